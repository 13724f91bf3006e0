//! What went wrong with a file, before it is known which file it is.

use std::io;
use std::path::Path;

use super::format;
use crate::error::OpenError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("it is in use by another process")]
    Locked,
    #[error("its format {0} is newer than {known}", known = format::VERSION)]
    NewerFormat(u32),
    #[error("its engine format {0} is unknown")]
    EngineFormat(u8),
    #[error("it is damaged: {0}")]
    Damaged(String),
    #[error("it is damaged at key {key:?}: {detail}")]
    DamagedRecord { key: String, detail: String },
    #[error("the value at key {key:?} is unreadable: {detail}")]
    UnreadableValue { key: String, detail: String },
    #[error("it is not a store: {0}")]
    NotAStore(String),
    #[error("permission denied: {0}")]
    PermissionDenied(io::Error),
    #[error("no space left: {0}")]
    NoSpace(io::Error),
    #[error("{0}")]
    Io(io::Error),
}

impl Problem {
    pub(super) fn at(self, path: &Path) -> OpenError {
        let path = path.to_path_buf();
        match self {
            Self::Locked => OpenError::Locked { path },
            Self::NewerFormat(found) => OpenError::NewerFormat {
                path,
                found,
                supported: format::VERSION,
            },
            Self::EngineFormat(found) => OpenError::EngineFormat { path, found },
            Self::Damaged(detail) => OpenError::Damaged { path, detail },
            Self::DamagedRecord { key, detail } => OpenError::DamagedRecord { path, key, detail },
            Self::UnreadableValue { key, detail } => OpenError::UnreadableValue { path, key, detail },
            Self::NotAStore(detail) => OpenError::NotAStore { path, detail },
            Self::PermissionDenied(source) => OpenError::PermissionDenied { path, source },
            Self::NoSpace(source) => OpenError::NoSpace { path, source },
            Self::Io(source) => OpenError::Io { path, source },
        }
    }

    /// Whether the content is in doubt, so that nothing more may be written to it.
    pub(super) fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged(_) | Self::DamagedRecord { .. })
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => Self::PermissionDenied(error),
            Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => Self::NoSpace(error),
            Kind::IsADirectory => Self::NotAStore("it is a directory".into()),
            Kind::UnexpectedEof => Self::Damaged("it ends too early".into()),
            Kind::InvalidData => Self::NotAStore(error.to_string()),
            _ => Self::Io(error),
        }
    }
}

impl From<redb::Error> for Problem {
    fn from(error: redb::Error) -> Self {
        use redb::Error as E;
        match error {
            E::DatabaseAlreadyOpen => Self::Locked,
            E::UpgradeRequired(found) => Self::EngineFormat(found),
            E::Io(error) => error.into(),
            E::Corrupted(detail) => Self::Damaged(detail),
            E::TableDoesNotExist(_) => Self::Damaged(error.to_string()),
            E::TableTypeMismatch { .. }
            | E::TableIsMultimap(_)
            | E::TableIsNotMultimap(_)
            | E::TypeDefinitionChanged { .. } => Self::NotAStore(error.to_string()),
            other => Self::Io(io::Error::other(other.to_string())),
        }
    }
}

/// The engine has an error type for each kind of call; all of them are cases of one.
macro_rules! from_engine {
    ($($error:ident),*) => {$(
        impl From<redb::$error> for Problem {
            fn from(error: redb::$error) -> Self {
                redb::Error::from(error).into()
            }
        }
    )*};
}

from_engine!(
    CommitError,
    CompactionError,
    DatabaseError,
    SetDurabilityError,
    StorageError,
    TableError,
    TransactionError
);
