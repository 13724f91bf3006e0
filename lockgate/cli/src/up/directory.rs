//! The data directory: stores, keys, ports, and the lock that keeps a second process out.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use machinery_auth::Pki;

use crate::exit::Failure;

/// Where a fleet keeps everything, or a temporary place for one that keeps nothing.
pub(crate) struct Directory {
    path: PathBuf,
    ephemeral: bool,
    /// Held as long as the process lives.
    _lock: File,
}

impl Directory {
    /// Opens the directory, makes it if need be, and locks it.
    pub(crate) fn open(wanted: Option<&Path>, ephemeral: bool) -> Result<Self, Failure> {
        let path = if ephemeral {
            std::env::temp_dir().join(format!("lockgate-{}", std::process::id()))
        } else {
            match wanted {
                Some(path) => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
                None => default_path()?,
            }
        };
        let unwritable = |source| Failure::Unwritable {
            path: path.clone(),
            source,
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(unwritable)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.join("lock"))
            .map_err(unwritable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path,
                ephemeral,
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(Failure::DirectoryInUse { path }),
            Err(TryLockError::Error(source)) => Err(Failure::Unwritable { path, source }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file of a cluster's objects; none when nothing is kept.
    pub(crate) fn store(&self, cluster: &str) -> Option<PathBuf> {
        (!self.ephemeral).then(|| self.path.join(format!("{cluster}.db")))
    }

    /// The authority that all clusters of the fleet share.
    pub(crate) fn pki(&self) -> Result<Pki, Failure> {
        if self.ephemeral {
            return Pki::ephemeral().map_err(|e| Failure::Other(e.to_string()));
        }
        Pki::load_or_create(self.path.join("pki")).map_err(|e| Failure::Damaged(e.to_string()))
    }

    /// The file that remembers the ports.
    pub(crate) fn ports_file(&self) -> PathBuf {
        self.path.join("ports.json")
    }

    /// The ports of the last run.
    pub(crate) fn ports(&self) -> Result<Ports, Failure> {
        let file = self.ports_file();
        match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Ports).map_err(|e| {
                Failure::Damaged(format!(
                    "{} is damaged ({e}): remove it, and new ports are chosen",
                    file.display()
                ))
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Ports::default()),
            Err(source) => Err(Failure::Unwritable { path: file, source }),
        }
    }

    /// Keeps the ports for the next run.
    pub(crate) fn save_ports(&self, ports: &Ports) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(&ports.0).unwrap_or_default();
        write_file(&self.ports_file(), &text)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.ephemeral {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// `$XDG_DATA_HOME/lockgate`, or its usual place in the home directory.
fn default_path() -> Result<PathBuf, Failure> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map(|base| base.join("lockgate"))
        .ok_or_else(|| {
            Failure::Usage("there is no home directory: name one with --data-dir, or use --ephemeral".into())
        })
}

/// Replaces a file in one step, readable by its owner alone.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    use std::io::Write as _;
    let unwritable = |source| Failure::Unwritable {
        path: path.to_owned(),
        source,
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let write = || -> std::io::Result<()> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut file = File::options()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().map_err(unwritable)
}

/// Which cluster listens where.
#[derive(Debug, Default)]
pub(crate) struct Ports(BTreeMap<String, u16>);

impl Ports {
    pub(crate) fn get(&self, cluster: &str) -> Option<u16> {
        self.0.get(cluster).copied()
    }

    pub(crate) fn set(&mut self, cluster: &str, port: u16) {
        self.0.insert(cluster.to_owned(), port);
    }
}
