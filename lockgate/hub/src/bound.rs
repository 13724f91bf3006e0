//! Which template a binding is of. Each of its Works asks for that when the control plane starts, and to read the whole binding
//! every time would cost each Work as much as there are clusters.

use std::collections::HashMap;

use lockgate_api::binding::ObjectReference;
use lockgate_engine::TemplateId;
use parking_lot::Mutex;
use serde::Deserialize;

use crate::cache::{Cached, Key};

#[derive(Deserialize)]
struct BindingHead {
    spec: BindingHeadSpec,
}

#[derive(Deserialize)]
struct BindingHeadSpec {
    resource: ObjectReference,
}

/// The template of a binding, of which nothing else is read.
pub(crate) fn bound(cached: &Cached) -> Option<TemplateId> {
    let head: BindingHead = cached.parse().ok()?;
    let resource = head.spec.resource;
    Some(TemplateId {
        api_version: resource.api_version,
        kind: resource.kind,
        namespace: resource.namespace,
        name: resource.name,
    })
}

/// The templates of the bindings that somebody asked for, each with the version that it was read from.
#[derive(Default)]
pub(crate) struct Bound {
    known: Mutex<HashMap<Key, (String, TemplateId)>>,
}

impl Bound {
    /// The same as [`bound`], read once for each version.
    pub(crate) fn of(&self, cached: &Cached) -> Option<TemplateId> {
        if let Some((version, id)) = self.known.lock().get(&cached.key)
            && *version == cached.resource_version
        {
            return Some(id.clone());
        }
        let id = bound(cached)?;
        let known = (cached.resource_version.clone(), id.clone());
        self.known.lock().insert(cached.key.clone(), known);
        Some(id)
    }

    /// The binding is gone.
    pub(crate) fn forget(&self, binding: &Key) {
        self.known.lock().remove(binding);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::resource::Resource;

    #[test]
    fn each_version_says_whose_it_is() {
        let (cache, bound) = (Cache::detached(&Resource::resource_bindings()), Bound::default());
        let key = Key::new("n", "web-deployment");
        for (version, api_version) in [("1", "apps/v1"), ("2", "apps/v1"), ("3", "example.com/v1")] {
            let body = format!(
                r#"{{"metadata":{{"name":"web-deployment","namespace":"n","uid":"u","resourceVersion":"{version}"}},
                "spec":{{"resource":{{"apiVersion":"{api_version}","kind":"Deployment","namespace":"n","name":"web"}}}}}}"#
            );
            cache.learn(body.as_bytes()).unwrap();
            let cached = cache.get(&key).unwrap();
            for _ in 0..2 {
                let id = bound.of(&cached).unwrap();
                assert_eq!((id.api_version.as_str(), id.name.as_str()), (api_version, "web"));
            }
        }
        assert_eq!(bound.known.lock().len(), 1);
        bound.forget(&key);
        assert!(bound.known.lock().is_empty());
    }
}
