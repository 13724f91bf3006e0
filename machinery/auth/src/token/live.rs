//! What a token depends on besides its signature.

use jiff::Timestamp;
use machinery_value::Value;

use super::{LEEWAY_SECONDS, TokenError, same_secret};
use crate::user::text;

/// An object by name and uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// Its name.
    pub name: String,
    /// Its uid; may be empty where only the name is known.
    pub uid: String,
}

/// To which kind of object a token is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundKind {
    /// To a pod of the account's namespace.
    Pod,
    /// To a secret of the account's namespace.
    Secret,
    /// To a node.
    Node,
}

impl BoundKind {
    /// The kind's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::Secret => "Secret",
            Self::Node => "Node",
        }
    }

    /// The key of its claim, which is also how messages call it.
    pub(super) fn claim(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Secret => "secret",
            Self::Node => "node",
        }
    }
}

/// The object to which a token is bound: when that goes, the token goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundObject {
    /// Of which kind.
    pub kind: BoundKind,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// One object that must be looked up before a token is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveCheck {
    /// The kind: ServiceAccount, Pod, Secret or Node, all of the core group.
    pub kind: &'static str,
    /// The namespace; empty for nodes.
    pub namespace: String,
    /// The name.
    pub name: String,
    pub(super) expect: Expect,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    AccountUid(String),
    BoundUid(BoundKind, String),
    /// A secret of the old sort, which holds the very token.
    Token,
}

impl LiveCheck {
    /// Whether the object that was found under that name is the one that `token` depends on, and is alive.
    pub fn judge(&self, found: Option<&Value>, token: &str, now: Timestamp) -> Result<(), TokenError> {
        let (namespace, name) = (&self.namespace, &self.name);
        let Some(found) = found else {
            return Err(TokenError::Stale(match self.expect {
                Expect::AccountUid(_) => format!("serviceaccounts {name:?} not found"),
                Expect::BoundUid(..) => "service account token has been invalidated".to_owned(),
                Expect::Token => "Token has been invalidated".to_owned(),
            }));
        };
        let metadata = found.get("metadata").unwrap_or(&Value::Null);
        let uid = text(metadata, "uid");
        let deleted = deleted_before(metadata, now);
        let stale = |message: String| Err(TokenError::Stale(message));
        match &self.expect {
            Expect::AccountUid(_) if deleted => {
                stale(format!("service account {namespace}/{name} has been deleted"))
            }
            Expect::AccountUid(claim) if claim != uid => stale(format!(
                "service account UID ({uid}) does not match claim ({claim})"
            )),
            Expect::BoundUid(..) if deleted => stale("service account token has been invalidated".into()),
            Expect::BoundUid(kind, claim) if claim != uid => {
                let (shown, of) = match kind {
                    BoundKind::Pod => ("pod", "pod ref"),
                    BoundKind::Secret => ("secret", "secret ref"),
                    BoundKind::Node => ("node", "node ref"),
                };
                stale(format!(
                    "{shown} UID ({uid}) does not match service account {of} claim ({claim})"
                ))
            }
            Expect::Token if metadata.get("deletionTimestamp").is_some_and(|at| !at.is_null()) => {
                stale("Token has been invalidated".into())
            }
            Expect::Token if !holds_token(found, token) => stale("Token does not match server's copy".into()),
            _ => Ok(()),
        }
    }
}

/// Deleted long enough ago that differing clocks do not explain it. A time that cannot be read counts as past.
fn deleted_before(metadata: &Value, now: Timestamp) -> bool {
    match metadata.get("deletionTimestamp") {
        None | Some(Value::Null) => false,
        Some(at) => {
            let at = at.as_str().and_then(|at| at.parse::<Timestamp>().ok());
            at.is_none_or(|at| at.as_second().saturating_add(LEEWAY_SECONDS) < now.as_second())
        }
    }
}

/// Whether the secret's `token` is this one. Secrets hold base64.
fn holds_token(secret: &Value, token: &str) -> bool {
    use base64::Engine as _;
    let held = secret
        .get("data")
        .and_then(|data| data.get("token"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let held = base64::engine::general_purpose::STANDARD.decode(held);
    held.is_ok_and(|held| !held.is_empty() && same_secret(&held, token))
}
