//! The built-in kinds of Kubernetes: schemas, defaults, validation, columns, protobuf.
