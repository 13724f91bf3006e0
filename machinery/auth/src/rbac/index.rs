//! Everything the RBAC objects say, indexed by subject.
//!
//! One owner updates the index as objects change; many threads may ask it. An index can lie over a shared one
//! ([`RbacIndex::layered`]): what it holds itself goes before what is below, and what it removed stays hidden. An
//! object that is equal to the one below is not kept twice, so a server that holds only the bootstrap objects
//! costs next to nothing.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use machinery_value::Value;

use super::rule::PolicyRule;
use super::scope::{Binding, Scope};
use super::{Attributes, Decision};
use crate::quote::quote;
use crate::user::{GROUP_MASTERS, UserInfo, text};

/// Why an object cannot be indexed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RbacError {
    /// The object is of another kind.
    #[error("{0} is not a kind of role based access control")]
    OtherKind(String),
    /// The object has no name.
    #[error("{0} without a name")]
    Unnamed(String),
    /// A Role or RoleBinding without a namespace.
    #[error("{0} {1} without a namespace")]
    NoNamespace(String, String),
}

/// The rules that apply to a user.
#[derive(Debug, Default)]
pub struct UserRules<'a> {
    /// The rules, ordered by binding; the same rule may come more than once.
    pub rules: Vec<&'a PolicyRule>,
    /// Which roles were missing; the rules are complete otherwise.
    pub errors: Vec<String>,
}

/// The four RBAC kinds, by name; whether in the cluster or in a namespace follows from the kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Role,
    Binding,
}

/// The RBAC objects of a server. See the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct RbacIndex {
    cluster: Scope,
    namespaces: HashMap<Box<str>, Scope>,
    base: Option<Arc<RbacIndex>>,
}

impl RbacIndex {
    /// An index without objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// An index that starts with everything `base` holds and changes apart from it.
    pub fn layered(base: Arc<RbacIndex>) -> Self {
        Self {
            base: Some(base),
            ..Self::default()
        }
    }

    /// An index over these objects; the first that cannot be indexed ends it.
    pub fn from_objects<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Result<Self, RbacError> {
        let mut index = Self::new();
        for object in objects {
            index.upsert(object)?;
        }
        Ok(index)
    }

    /// Adds a Role, ClusterRole, RoleBinding or ClusterRoleBinding, or replaces the one of that name.
    pub fn upsert(&mut self, object: &Value) -> Result<(), RbacError> {
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        let (kind_name, name) = (text(object, "kind"), text(metadata, "name"));
        let (kind, namespace) = locate(kind_name, text(metadata, "namespace"))?;
        if name.is_empty() {
            return Err(RbacError::Unnamed(kind_name.to_owned()));
        }
        if namespace.is_some_and(str::is_empty) {
            return Err(RbacError::NoNamespace(kind_name.to_owned(), name.to_owned()));
        }
        let namespace = namespace.unwrap_or_default();
        match kind {
            Kind::Role => self.put_role(namespace, name, PolicyRule::list_from_role(object).into()),
            Kind::Binding => self.put_binding(Arc::new(Binding::from_json(object, namespace, name))),
        }
        Ok(())
    }

    /// Forgets the object of this kind, namespace (ignored for cluster kinds) and name, if it is there.
    pub fn remove(&mut self, kind: &str, namespace: &str, name: &str) {
        let Ok((kind, namespace)) = locate(kind, namespace) else {
            return;
        };
        let namespace = namespace.unwrap_or_default();
        let below = self.base.as_deref().is_some_and(|base| match kind {
            Kind::Role => base.role(namespace, name).is_some(),
            Kind::Binding => base.binding(namespace, name).is_some(),
        });
        let scope = self.scope_mut(namespace);
        match kind {
            Kind::Role => {
                scope.roles.remove(name);
                if below {
                    scope.removed_roles.insert(name.into());
                }
            }
            Kind::Binding => {
                scope.remove_binding(name);
                if below {
                    scope.removed_bindings.insert(name.into());
                }
            }
        }
        self.drop_if_empty(namespace);
    }

    /// Judges a request.
    pub fn authorize(&self, wanted: &Attributes<'_>) -> Decision {
        if wanted.user.in_group(GROUP_MASTERS) {
            return Decision::privileged();
        }
        let mut unresolved: Vec<String> = Vec::new();
        let mut granted = None;
        let mut judge = |binding: &Arc<Binding>| match self.rules_of(binding) {
            Some(rules) if rules.iter().any(|rule| rule.allows(wanted)) => {
                granted = Some(Decision::granted(binding, wanted.user));
                ControlFlow::Break(())
            }
            Some(_) => ControlFlow::Continue(()),
            None => {
                let error = missing_role(binding);
                if !unresolved.contains(&error) {
                    unresolved.push(error);
                }
                ControlFlow::Continue(())
            }
        };
        let mut flow = self.visit(wanted.user, "", &|_| true, &mut judge);
        if flow.is_continue() && wanted.path.is_none() && !wanted.namespace.is_empty() {
            flow = self.visit(wanted.user, wanted.namespace, &|_| true, &mut judge);
        }
        let _ = flow;
        granted.unwrap_or_else(|| Decision::denied(unresolved))
    }

    /// The rules that `user` has in `namespace`, or cluster-wide if that is empty.
    pub fn rules_for(&self, user: &UserInfo, namespace: &str) -> UserRules<'_> {
        let mut found = UserRules::default();
        let scopes: &[&str] = if namespace.is_empty() {
            &[""]
        } else {
            &["", namespace]
        };
        for scope in scopes {
            // By name: each binding once, and always in the same order.
            let mut bindings: BTreeMap<&str, &Arc<Binding>> = BTreeMap::new();
            let _ = self.visit(user, scope, &|_| true, &mut |binding| {
                bindings.insert(&binding.name, binding);
                ControlFlow::Continue(())
            });
            for binding in bindings.into_values() {
                match self.rules_of(binding) {
                    Some(rules) => found.rules.extend(rules.iter()),
                    None => {
                        let error = missing_role(binding);
                        if !found.errors.contains(&error) {
                            found.errors.push(error);
                        }
                    }
                }
            }
        }
        found
    }

    /// The rules of the ClusterRole `name`, or with a namespace of the Role `name` there.
    pub fn role(&self, namespace: &str, name: &str) -> Option<&[PolicyRule]> {
        if let Some(scope) = self.scope(namespace) {
            if let Some(rules) = scope.roles.get(name) {
                return Some(rules);
            }
            if scope.removed_roles.contains(name) {
                return None;
            }
        }
        self.base.as_deref()?.role(namespace, name)
    }

    fn binding(&self, namespace: &str, name: &str) -> Option<&Arc<Binding>> {
        if let Some(scope) = self.scope(namespace) {
            if let Some(binding) = scope.bindings.get(name) {
                return Some(binding);
            }
            if scope.removed_bindings.contains(name) {
                return None;
            }
        }
        self.base.as_deref()?.binding(namespace, name)
    }

    /// Roles are always looked up from the top, also for a binding of the layer below.
    fn rules_of(&self, binding: &Binding) -> Option<&[PolicyRule]> {
        match &*binding.role_kind {
            "ClusterRole" => self.role("", &binding.role_name),
            // A ClusterRoleBinding has no namespace in which a Role could be.
            "Role" if !binding.namespace.is_empty() => self.role(&binding.namespace, &binding.role_name),
            _ => None,
        }
    }

    /// Shows `see` the bindings of one scope that name `user`, from this layer down, until it breaks off.
    fn visit<'a>(
        &'a self,
        user: &UserInfo,
        namespace: &str,
        visible: &dyn Fn(&str) -> bool,
        see: &mut dyn FnMut(&'a Arc<Binding>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let scope = self.scope(namespace);
        if let Some(scope) = scope {
            for list in scope.lists_of(user) {
                for binding in list.iter().filter(|b| visible(&b.name)) {
                    see(binding)?;
                }
            }
        }
        match self.base.as_deref() {
            None => ControlFlow::Continue(()),
            Some(base) => {
                let hidden = |name: &str| scope.is_some_and(|scope| scope.shadows_binding(name));
                base.visit(user, namespace, &|name| visible(name) && !hidden(name), see)
            }
        }
    }

    fn put_role(&mut self, namespace: &str, name: &str, rules: Arc<[PolicyRule]>) {
        let same_below = self.base.as_deref().and_then(|b| b.role(namespace, name)) == Some(&*rules);
        let scope = self.scope_mut(namespace);
        scope.removed_roles.remove(name);
        if same_below {
            scope.roles.remove(name);
        } else {
            scope.roles.insert(name.into(), rules);
        }
        self.drop_if_empty(namespace);
    }

    fn put_binding(&mut self, binding: Arc<Binding>) {
        let namespace = binding.namespace.clone();
        let below = self
            .base
            .as_deref()
            .and_then(|b| b.binding(&namespace, &binding.name));
        let same_below = below == Some(&binding);
        let scope = self.scope_mut(&namespace);
        scope.removed_bindings.remove(&binding.name);
        if same_below {
            scope.remove_binding(&binding.name);
        } else {
            scope.insert_binding(binding);
        }
        self.drop_if_empty(&namespace);
    }

    fn scope(&self, namespace: &str) -> Option<&Scope> {
        if namespace.is_empty() {
            Some(&self.cluster)
        } else {
            self.namespaces.get(namespace)
        }
    }

    fn scope_mut(&mut self, namespace: &str) -> &mut Scope {
        if namespace.is_empty() {
            &mut self.cluster
        } else {
            self.namespaces.entry(namespace.into()).or_default()
        }
    }

    fn drop_if_empty(&mut self, namespace: &str) {
        if self.namespaces.get(namespace).is_some_and(Scope::is_empty) {
            self.namespaces.remove(namespace);
        }
    }
}

/// What a kind is, and the namespace of such an object: none for cluster kinds.
fn locate<'a>(kind: &str, namespace: &'a str) -> Result<(Kind, Option<&'a str>), RbacError> {
    match kind {
        "Role" => Ok((Kind::Role, Some(namespace))),
        "ClusterRole" => Ok((Kind::Role, None)),
        "RoleBinding" => Ok((Kind::Binding, Some(namespace))),
        "ClusterRoleBinding" => Ok((Kind::Binding, None)),
        other => Err(RbacError::OtherKind(other.to_owned())),
    }
}

fn missing_role(binding: &Binding) -> String {
    let name = quote(&binding.role_name);
    match &*binding.role_kind {
        "ClusterRole" => format!("clusterrole.rbac.authorization.k8s.io {name} not found"),
        "Role" => format!("role.rbac.authorization.k8s.io {name} not found"),
        other => format!("unsupported role reference kind: {}", quote(other)),
    }
}
