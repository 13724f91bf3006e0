//! Role bindings.

use crate::access::{Object, each, set_text, text, with};

const GROUP: &str = "rbac.authorization.k8s.io";

/// A RoleBinding or ClusterRoleBinding.
pub(super) fn binding(object: &mut Object) {
    with(object, "roleRef", |role| set_text(role, "apiGroup", GROUP));
    each(object, "subjects", |subject| {
        // A service account is in the core group, whose name is empty.
        if matches!(subject.get("kind").map(text), Some("User" | "Group")) {
            set_text(subject, "apiGroup", GROUP);
        }
    });
}
