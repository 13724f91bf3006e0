//! The directory on disk: whole writes, and keys for their owner alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::PkiError;

/// No file here is larger; one that is, is not ours.
const MAX_FILE: u64 = 64 * 1024;

const MODE_DIR: u32 = 0o700;
const MODE_KEY: u32 = 0o600;
const MODE_CERTIFICATE: u32 = 0o644;

/// An open directory. While it is open, no other process can open it here.
pub(super) struct Directory {
    root: PathBuf,
    warnings: Vec<String>,
    /// Released when dropped.
    _lock: File,
}

impl Directory {
    pub(super) fn open(root: &Path) -> Result<Self, PkiError> {
        create_private(root).map_err(io_error("create", root))?;
        let mut warnings = Vec::new();
        tighten(root, MODE_DIR, &mut warnings)?;
        // Two processes that start at once would otherwise each make an authority.
        let lock_path = root.join(".lock");
        let lock = open_for_write(&lock_path, false).map_err(io_error("open", &lock_path))?;
        lock.lock().map_err(io_error("lock", &lock_path))?;
        Ok(Self {
            root: root.to_owned(),
            warnings,
            _lock: lock,
        })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(super) fn into_warnings(self) -> Vec<String> {
        self.warnings
    }

    /// The file's text, or `None` if there is no such file.
    pub(super) fn read(&self, name: &str) -> Result<Option<String>, PkiError> {
        let path = self.path(name);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(io_error("open", &path))?,
        };
        let mut text = String::new();
        file.take(MAX_FILE)
            .read_to_string(&mut text)
            .map_err(io_error("read", &path))?;
        Ok(Some(text))
    }

    /// The same for a key; if others can read the file, that is ended first.
    pub(super) fn read_key(&mut self, name: &str) -> Result<Option<String>, PkiError> {
        let path = self.path(name);
        if path.exists() {
            tighten(&path, MODE_KEY, &mut self.warnings)?;
        }
        self.read(name)
    }

    pub(super) fn write_key(&self, name: &str, text: &str) -> Result<(), PkiError> {
        self.write(name, text, MODE_KEY)
    }

    pub(super) fn write_certificate(&self, name: &str, text: &str) -> Result<(), PkiError> {
        self.write(name, text, MODE_CERTIFICATE)
    }

    /// Writes beside the file and renames, so that a reader or a crash sees the old text or the new one.
    fn write(&self, name: &str, text: &str, mode: u32) -> Result<(), PkiError> {
        let (path, beside) = (self.path(name), self.path(&format!(".{name}.new")));
        let write = || -> io::Result<()> {
            // What a crash left behind.
            match fs::remove_file(&beside) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = open_for_write(&beside, true)?;
            file.write_all(text.as_bytes())?;
            set_mode(&beside, mode)?;
            file.sync_all()?;
            fs::rename(&beside, &path)?;
            File::open(&self.root)?.sync_all()
        };
        write().map_err(io_error("write", &path))
    }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PkiError {
    move |source| PkiError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

/// Takes away what `allowed` does not have. Failing that, the file is not used.
fn tighten(path: &Path, allowed: u32, warnings: &mut Vec<String>) -> Result<(), PkiError> {
    let mode = mode_of(path).map_err(io_error("inspect", path))?;
    if mode & !allowed & 0o777 != 0 {
        set_mode(path, mode & allowed).map_err(io_error("restrict", path))?;
        warnings.push(format!(
            "{} was open to others (mode {:04o}); closed it",
            path.display(),
            mode & 0o7777
        ));
    }
    Ok(())
}

#[cfg(unix)]
fn create_private(root: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(MODE_DIR).create(root)
}

#[cfg(unix)]
fn open_for_write(path: &Path, new: bool) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new()
        .write(true)
        .create(true)
        .create_new(new)
        .mode(MODE_KEY)
        .open(path)
}

#[cfg(unix)]
fn mode_of(path: &Path) -> io::Result<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::metadata(path)?.permissions().mode())
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o7777))
}

#[cfg(not(unix))]
compile_error!("private keys are protected by Unix file modes");
