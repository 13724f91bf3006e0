//! Structural schemas: prune, default, validate, CEL; list types and merge keys.
