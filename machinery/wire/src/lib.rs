//! Built-in kinds on the wire: JSON and protobuf decoded as Kubernetes' Go types do.
