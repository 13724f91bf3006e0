//! JSON values as Kubernetes uses them: decoding, patches, paths, quantities, canonical hashes.
