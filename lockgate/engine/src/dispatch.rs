//! The dispatch station.
