//! The claim station.
