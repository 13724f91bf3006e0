//! The RBAC objects of one scope: the cluster, or one namespace.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use machinery_value::Value;

use super::rule::PolicyRule;
use crate::quote::quote;
use crate::user::{UserInfo, service_account_user, text};

/// Whom a binding names. Subjects of unknown kinds apply to nobody and are not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    User(Box<str>),
    Group(Box<str>),
    ServiceAccount {
        namespace: Box<str>,
        name: Box<str>,
        user: Box<str>,
    },
}

impl Subject {
    /// `binding_namespace` is where service accounts live whose namespace is not given.
    fn from_json(value: &Value, binding_namespace: &str) -> Option<Self> {
        let name = text(value, "name");
        match text(value, "kind") {
            "User" => Some(Self::User(name.into())),
            "Group" => Some(Self::Group(name.into())),
            "ServiceAccount" => {
                let namespace = match text(value, "namespace") {
                    "" => binding_namespace,
                    given => given,
                };
                let user = service_account_user(namespace, name).into();
                (!namespace.is_empty()).then(|| Self::ServiceAccount {
                    namespace: namespace.into(),
                    name: name.into(),
                    user,
                })
            }
            _ => None,
        }
    }

    fn applies(&self, user: &UserInfo) -> bool {
        match self {
            Self::User(name) => **name == *user.name,
            Self::Group(name) => user.in_group(name),
            Self::ServiceAccount { user: name, .. } => **name == *user.name,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::User(name) => format!("User {}", quote(name)),
            Self::Group(name) => format!("Group {}", quote(name)),
            Self::ServiceAccount { namespace, name, .. } => {
                format!("ServiceAccount {}", quote(&format!("{name}/{namespace}")))
            }
        }
    }
}

/// A RoleBinding, or (with an empty namespace) a ClusterRoleBinding.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Binding {
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
    pub(super) role_kind: Box<str>,
    pub(super) role_name: Box<str>,
    subjects: Box<[Subject]>,
}

impl Binding {
    pub(super) fn from_json(value: &Value, namespace: &str, name: &str) -> Self {
        let subjects = value.get("subjects").and_then(Value::as_array);
        let role = value.get("roleRef").unwrap_or(&Value::Null);
        Self {
            namespace: namespace.into(),
            name: name.into(),
            role_kind: text(role, "kind").into(),
            role_name: text(role, "name").into(),
            subjects: subjects
                .into_iter()
                .flatten()
                .filter_map(|s| Subject::from_json(s, namespace))
                .collect(),
        }
    }

    /// The first subject that is this user.
    pub(super) fn first_applying(&self, user: &UserInfo) -> Option<usize> {
        self.subjects.iter().position(|subject| subject.applies(user))
    }

    /// The binding, its role and its subject number `subject`.
    pub(super) fn describe(&self, subject: usize) -> String {
        let (kind, name) = if self.namespace.is_empty() {
            ("ClusterRoleBinding", quote(&self.name))
        } else {
            ("RoleBinding", quote(&format!("{}/{}", self.name, self.namespace)))
        };
        let subject = self
            .subjects
            .get(subject)
            .map(Subject::describe)
            .unwrap_or_default();
        format!(
            "{kind} {name} of {} {} to {subject}",
            self.role_kind,
            quote(&self.role_name)
        )
    }
}

/// What an index holds for one scope. In a layered index, `removed_*` hide what the layer below still has.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) roles: HashMap<Box<str>, Arc<[PolicyRule]>>,
    pub(super) removed_roles: HashSet<Box<str>>,
    pub(super) bindings: HashMap<Box<str>, Arc<Binding>>,
    pub(super) removed_bindings: HashSet<Box<str>>,
    /// Bindings by the user they name, service accounts under their user names; each list ordered by name.
    by_user: HashMap<Box<str>, Vec<Arc<Binding>>>,
    by_group: HashMap<Box<str>, Vec<Arc<Binding>>>,
}

impl Scope {
    pub(super) fn is_empty(&self) -> bool {
        self.roles.is_empty()
            && self.removed_roles.is_empty()
            && self.bindings.is_empty()
            && self.removed_bindings.is_empty()
    }

    /// Whether the layer below must not be asked for this binding.
    pub(super) fn shadows_binding(&self, name: &str) -> bool {
        self.bindings.contains_key(name) || self.removed_bindings.contains(name)
    }

    /// The bindings that name this user, as lists. One that names them twice is in two.
    pub(super) fn lists_of<'a>(&'a self, user: &UserInfo) -> impl Iterator<Item = &'a [Arc<Binding>]> {
        let own = self.by_user.get(user.name.as_str()).into_iter();
        own.chain(
            user.groups
                .iter()
                .filter_map(|group| self.by_group.get(group.as_str())),
        )
        .map(Vec::as_slice)
    }

    pub(super) fn insert_binding(&mut self, binding: Arc<Binding>) {
        self.remove_binding(&binding.name);
        for subject in &binding.subjects {
            let list = match subject {
                Subject::User(name) | Subject::ServiceAccount { user: name, .. } => {
                    self.by_user.entry(name.clone()).or_default()
                }
                Subject::Group(name) => self.by_group.entry(name.clone()).or_default(),
            };
            if let Err(at) = list.binary_search_by(|b| b.name.cmp(&binding.name)) {
                list.insert(at, Arc::clone(&binding));
            }
        }
        self.bindings.insert(binding.name.clone(), binding);
    }

    pub(super) fn remove_binding(&mut self, name: &str) {
        let Some(binding) = self.bindings.remove(name) else {
            return;
        };
        for subject in &binding.subjects {
            let (map, key) = match subject {
                Subject::User(key) | Subject::ServiceAccount { user: key, .. } => (&mut self.by_user, key),
                Subject::Group(key) => (&mut self.by_group, key),
            };
            let Some(list) = map.get_mut(key) else { continue };
            list.retain(|b| *b.name != *name);
            if list.is_empty() {
                map.remove(key);
            }
        }
    }
}
