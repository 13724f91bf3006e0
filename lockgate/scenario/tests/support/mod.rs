//! The scenario files of the repository.

use std::path::{Path, PathBuf};

/// The files below `scenarios/`, sorted.
pub fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files = Vec::new();
    let mut open = vec![root];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Says what the controllers do, if `LOCKGATE_LOG` asks for it.
pub fn start_logging() {
    let filter =
        tracing_subscriber::EnvFilter::try_from_env("LOCKGATE_LOG").unwrap_or_else(|_| "error".into());
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_test_writer()
        .try_init();
}
