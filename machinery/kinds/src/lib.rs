//! The built-in kinds of Kubernetes: catalog, schemas, defaults, validation.
