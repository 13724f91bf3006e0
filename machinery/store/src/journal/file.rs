//! The file of a journal: how it comes into being, and when it is made smaller.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use redb::backends::FileBackend;

use super::{Journal, Loaded, Problem};
use crate::entry::Record;

/// What the engine writes at the start of a file.
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// A file up to this size is never made smaller.
const SMALL_FILE: u64 = 32 << 20;
/// How much larger than its content a file may be.
const SLACK: u64 = 4;

pub(super) fn open<V: Record>(path: &Path, cache_bytes: usize) -> Result<(Journal, Loaded<V>), Problem> {
    match File::open(path) {
        Ok(file) => check_kind(file)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => create::<V>(path, cache_bytes)?,
        Err(error) => return Err(error.into()),
    }
    let backend = FileBackend::new(read_write().create(true).open(path)?)?;
    let (mut journal, loaded) = Journal::open_backend(backend, cache_bytes)?;
    let size = fs::metadata(path)?.len();
    if size > SMALL_FILE && size / SLACK > loaded.bytes {
        if let Err(problem) = journal.compact() {
            journal.stop(&problem);
            return Err(problem);
        }
        tracing::info!(
            before = size,
            after = fs::metadata(path)?.len(),
            "made the store's file smaller"
        );
    }
    Ok((journal, loaded))
}

/// Refuses what cannot be a store, before anything is written to it.
fn check_kind(file: File) -> Result<(), Problem> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(Problem::NotAStore("it is not a regular file".into()));
    }
    let mut start = Vec::new();
    file.take(MAGIC.len() as u64).read_to_end(&mut start)?;
    if metadata.len() > 0 && start != MAGIC {
        return Err(Problem::NotAStore("it does not start like one".into()));
    }
    Ok(())
}

/// Makes an empty store that appears at `path` as a whole or not at all: a crash leaves no half-made file, and of two
/// processes that do this at once one wins and neither replaces the other's.
fn create<V: Record>(path: &Path, cache_bytes: usize) -> Result<(), Problem> {
    let Some(name) = path.file_name() else {
        return Err(Problem::NotAStore("it names no file".into()));
    };
    let mut draft_name = OsString::from(".");
    draft_name.push(name);
    draft_name.push(format!(".{}.new", uuid::Uuid::new_v4().simple()));
    let draft = path.with_file_name(draft_name);
    let file = read_write().create_new(true).open(&draft)?;
    let made = FileBackend::new(file).map_err(Problem::from).and_then(|backend| {
        let (journal, _) = Journal::open_backend::<V>(backend, cache_bytes)?;
        journal.close(None);
        match fs::hard_link(&draft, path) {
            Ok(()) => sync_directory(path),
            // Another process was faster, or the file system has no links and the file is made in place.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => {
                tracing::debug!(%error, "no hard links here; the store's file is made in place");
                Ok(())
            }
        }
    });
    let removed = fs::remove_file(&draft);
    made?;
    Ok(removed?)
}

fn read_write() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).truncate(false);
    // What is stored can be secret.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes the new name of a file durable.
fn sync_directory(path: &Path) -> Result<(), Problem> {
    if cfg!(unix) {
        let directory = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}
