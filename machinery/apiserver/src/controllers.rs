//! The controllers without which an API server is no cluster.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::server::Inner;

/// Starts them all.
pub(crate) fn start(_server: &Arc<Inner>) -> Vec<JoinHandle<()>> {
    Vec::new()
}
