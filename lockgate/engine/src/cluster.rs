//! Member clusters: when they count as ready, which taints follow, which kinds they serve.
