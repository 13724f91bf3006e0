//! The observe station.
