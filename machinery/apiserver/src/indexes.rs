//! What the server keeps in hand from certain objects: roles, definitions, admission policies.
//!
//! They follow the store: after a write of such an object, the present state of its key is read again, so that the
//! order in which two writers get here does not matter. A request that was answered is already in force.

use std::sync::Arc;

use machinery_auth::RbacIndex;
use machinery_store::Range;
use machinery_value::Value;
use parking_lot::{Mutex, RwLock};

use crate::admission::policy::PolicySet;
use crate::definitions;
use crate::registry::built_in;
use crate::resource::{Resource, key_prefix};
use crate::server::Inner;

/// The indexes of one server.
pub(crate) struct Indexes {
    /// Shared with the expressions of policies that ask what is allowed.
    pub(crate) rbac: Arc<RwLock<RbacIndex>>,
    pub(crate) policies: RwLock<PolicySet>,
    /// Held while the custom resources are rebuilt.
    pub(crate) definitions: Mutex<()>,
}

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
pub(crate) const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// The resource, if something is kept from its objects; such resources are all compiled in.
pub(crate) fn concerned(resource: &Resource) -> Option<&'static Resource> {
    let (group, plural) = (resource.group.as_str(), resource.plural.as_str());
    let concerned = matches!(group, RBAC | ADMISSION) || (group, plural) == DEFINITIONS;
    let found = concerned.then(|| built_in().find(group, &resource.version, plural));
    found.flatten().map(|resource| &**resource)
}

impl Indexes {
    /// Empty indexes. With the usual roles, which each server makes when it starts, what they say is shared by all
    /// servers of the process.
    pub(crate) fn new(bootstrap_roles: bool) -> Self {
        let rbac = if bootstrap_roles {
            RbacIndex::layered(machinery_auth::bootstrap::bootstrap_index())
        } else {
            RbacIndex::new()
        };
        Self {
            rbac: Arc::new(RwLock::new(rbac)),
            policies: RwLock::default(),
            definitions: Mutex::default(),
        }
    }

    /// Reads everything from the store, once, at the start.
    pub(crate) fn load(&self, server: &Inner) {
        for plural in ["clusterroles", "clusterrolebindings", "roles", "rolebindings"] {
            for (key, object) in whole_collection(server, RBAC, plural) {
                self.rbac_changed(plural, &key, Some(object));
            }
        }
        self.load_policies(server);
        definitions::load(server);
    }

    /// Takes note of a write at `key`.
    pub(crate) fn changed(&self, server: &Inner, resource: &Resource, key: &str) {
        match (resource.group.as_str(), resource.plural.as_str()) {
            (RBAC, plural) => {
                // The lock comes first, so that the newest state is the last to be taken in.
                let mut rbac = self.rbac.write();
                let object = server.store.get(key).map(|stored| resource.whole(&stored));
                apply_rbac(&mut rbac, plural, key, object);
            }
            (ADMISSION, _) => self.load_policies(server),
            (group, plural) if (group, plural) == DEFINITIONS => definitions::refresh(server, key),
            _ => {}
        }
    }

    fn rbac_changed(&self, plural: &str, key: &str, object: Option<Value>) {
        apply_rbac(&mut self.rbac.write(), plural, key, object);
    }

    fn load_policies(&self, server: &Inner) {
        let mut policies = self.policies.write();
        let objects = |plural: &str| {
            whole_collection(server, ADMISSION, plural)
                .into_iter()
                .map(|(_, o)| o)
                .collect()
        };
        *policies = PolicySet::new(
            objects("validatingadmissionpolicies"),
            objects("validatingadmissionpolicybindings"),
        );
    }
}

fn apply_rbac(rbac: &mut RbacIndex, plural: &str, key: &str, object: Option<Value>) {
    let kind = match plural {
        "clusterroles" => "ClusterRole",
        "clusterrolebindings" => "ClusterRoleBinding",
        "roles" => "Role",
        _ => "RoleBinding",
    };
    match object {
        Some(mut object) => {
            object["kind"] = Value::from(kind);
            if let Err(error) = rbac.upsert(&object) {
                tracing::warn!(%key, %error, "an RBAC object was left out");
            }
        }
        None => {
            let rest = key.strip_prefix(&key_prefix(RBAC, plural)).unwrap_or(key);
            let (namespace, name) = rest.split_once('/').unwrap_or(("", rest));
            rbac.remove(kind, namespace, name);
        }
    }
}

fn whole_collection(server: &Inner, group: &str, plural: &str) -> Vec<(String, Value)> {
    let prefix = key_prefix(group, plural);
    match server.store.range(Range {
        prefix: &prefix,
        after: None,
        limit: 0,
        at: None,
    }) {
        Ok(page) => page
            .entries
            .iter()
            .map(|e| (e.key.to_string(), e.value.content()))
            .collect(),
        Err(_) => Vec::new(),
    }
}
