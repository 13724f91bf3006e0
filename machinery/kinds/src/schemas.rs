//! The schemas of the built-in kinds.
