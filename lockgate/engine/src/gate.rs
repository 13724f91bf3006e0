//! The gate station.
