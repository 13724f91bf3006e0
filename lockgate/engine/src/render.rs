//! The render station.
