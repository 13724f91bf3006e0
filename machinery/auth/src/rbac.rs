//! May they: role based access control, decided without I/O.
//!
//! [`RbacIndex`] holds what the four RBAC kinds say, indexed by subject. [`RbacIndex::authorize`] judges one
//! request; the rest of the module answers the questions around it: which rules somebody has, whether granting a
//! rule would be an escalation ([`covers`]), what an aggregated ClusterRole consists of ([`aggregate`]), and
//! which words tell the client no ([`forbidden_message`]).
//!
//! What always holds: rules only ever add; a member of `system:masters` may do everything; a binding to a role
//! that does not exist grants nothing and is named in the reason of a denial.

mod aggregate;
mod escalate;
mod forbidden;
mod index;
mod rule;
mod scope;
#[cfg(test)]
mod tests;

pub use aggregate::aggregate;
pub use escalate::{check_escalation, covers, escalation_message};
pub use forbidden::{forbidden_details, forbidden_message};
pub use index::{RbacError, RbacIndex, UserRules};
pub use rule::{PolicyRule, Texts};

use std::sync::Arc;

use crate::user::UserInfo;
use scope::Binding;

/// What somebody wants to do.
///
/// With a `path` it is a request for that path, and only `user` and `verb` count besides; otherwise it is a
/// request for a resource, and empty strings mean "none" (or, for `group`, the core group).
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// Who.
    pub user: &'a UserInfo,
    /// The verb: `get`, `list`, `watch`, `create`, …; for a path the lower-case HTTP method.
    pub verb: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The resource, plural.
    pub resource: &'a str,
    /// The subresource.
    pub subresource: &'a str,
    /// The namespace; empty for cluster-scoped resources and requests across namespaces.
    pub namespace: &'a str,
    /// The object's name.
    pub name: &'a str,
    /// A path that is not a resource.
    pub path: Option<&'a str>,
}

impl<'a> Attributes<'a> {
    /// `verb` on all objects of a resource, cluster-wide; narrow it by setting the other fields.
    pub fn resource(user: &'a UserInfo, verb: &'a str, group: &'a str, resource: &'a str) -> Self {
        Self {
            user,
            verb,
            group,
            resource,
            subresource: "",
            namespace: "",
            name: "",
            path: None,
        }
    }

    /// `verb` on a path that is not a resource.
    pub fn path(user: &'a UserInfo, verb: &'a str, path: &'a str) -> Self {
        Self {
            path: Some(path),
            ..Self::resource(user, verb, "", "")
        }
    }
}

/// The answer to "may they", and why. The reason is put into words only when asked for.
#[derive(Clone, Debug)]
pub struct Decision {
    /// Whether the request may proceed.
    pub allowed: bool,
    why: Why,
}

#[derive(Clone, Debug)]
enum Why {
    /// A member of `system:masters`.
    Privileged,
    /// A binding, and which of its subjects the user is.
    Granted(Arc<Binding>, usize),
    /// Nothing grants it; these roles could not be found on the way.
    NothingGrants(Vec<String>),
}

impl Decision {
    fn privileged() -> Self {
        Self {
            allowed: true,
            why: Why::Privileged,
        }
    }

    fn granted(binding: &Arc<Binding>, user: &UserInfo) -> Self {
        let subject = binding.first_applying(user).unwrap_or_default();
        Self {
            allowed: true,
            why: Why::Granted(Arc::clone(binding), subject),
        }
    }

    fn denied(unresolved: Vec<String>) -> Self {
        Self {
            allowed: false,
            why: Why::NothingGrants(unresolved),
        }
    }

    /// Why, in the words of the API; empty when there is nothing to say.
    pub fn reason(&self) -> String {
        match &self.why {
            Why::Privileged => String::new(),
            Why::Granted(binding, subject) => format!("RBAC: allowed by {}", binding.describe(*subject)),
            Why::NothingGrants(unresolved) => match unresolved.as_slice() {
                [] => String::new(),
                [one] => format!("RBAC: {one}"),
                several => format!("RBAC: [{}]", several.join(", ")),
            },
        }
    }
}
