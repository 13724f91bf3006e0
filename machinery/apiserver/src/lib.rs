//! The Kubernetes API as one tower::Service.
