//! Bindings of roles. Roles themselves have no table of their own.

use machinery_value::Value;

use super::Kind;
use crate::column::{AGE, Column, NAME};
use crate::view::{Context, at, list, name, row, text};

const COLUMNS: &[Column] = &[
    NAME,
    Column::string("Role"),
    AGE,
    Column::wide("Users"),
    Column::wide("Groups"),
    Column::wide("ServiceAccounts"),
];

pub(super) const KINDS: &[Kind] = &[
    Kind {
        group: "rbac.authorization.k8s.io",
        kind: "RoleBinding",
        columns: COLUMNS,
        cells: binding,
    },
    Kind {
        group: "rbac.authorization.k8s.io",
        kind: "ClusterRoleBinding",
        columns: COLUMNS,
        cells: binding,
    },
];

fn binding(object: &Value, context: Context<'_>) -> Vec<Value> {
    let role = at(object, "roleRef");
    let subjects = |kind: &str| -> String {
        let of_kind = list(object, "subjects")
            .iter()
            .filter(|subject| text(subject, "kind") == kind);
        let printed = of_kind.map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text(subject, "namespace"), text(subject, "name")),
            _ => text(subject, "name").to_owned(),
        });
        printed.collect::<Vec<_>>().join(", ")
    };
    row![
        name(object),
        format!("{}/{}", text(role, "kind"), text(role, "name")),
        context.age(object),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}
