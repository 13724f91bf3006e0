//! The place station.
