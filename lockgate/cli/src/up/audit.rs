//! The audit logs: a folder with a file for each server.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use machinery_apiserver::AuditLog;

use crate::exit::Failure;

/// Opens the log of one server; what is in it already stays.
pub(crate) fn open(folder: &Path, server: &str) -> Result<AuditLog, Failure> {
    let unwritable = |path: &Path, source| Failure::UnwritableLog {
        path: path.to_owned(),
        source,
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|source| unwritable(folder, source))?;
    let file = folder.join(format!("{server}.log"));
    AuditLog::append(&file).map_err(|source| unwritable(&file, source))
}
