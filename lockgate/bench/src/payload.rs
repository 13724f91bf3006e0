//! The objects that are written: their content follows from their number and revision alone, so that it can be checked.

use bytes::Bytes;
use serde_json::{Value, json};

/// A kind of objects to measure with.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    api_version: &'static str,
    prefix: &'static str,
    plural: &'static str,
    /// Where the part is that is ours and nobody adds to.
    essence: &'static str,
}

/// ConfigMaps of 2 KB, as sent.
pub(crate) const CONFIG_MAP: Kind = Kind {
    name: "ConfigMap",
    api_version: "v1",
    prefix: "/api/v1",
    plural: "configmaps",
    essence: "/data",
};

/// Deployments of about the same size: the server has more to default, validate and count.
pub(crate) const DEPLOYMENT: Kind = Kind {
    name: "Deployment",
    api_version: "apps/v1",
    prefix: "/apis/apps/v1",
    plural: "deployments",
    essence: "/spec/template/metadata/annotations",
};

impl Kind {
    pub(crate) fn collection(&self, namespace: &str) -> String {
        format!("{}/namespaces/{namespace}/{}", self.prefix, self.plural)
    }

    pub(crate) fn path(&self, namespace: &str, number: usize) -> String {
        format!("{}/{}", self.collection(namespace), name(number))
    }

    /// The object as it is sent; with a resource version, to replace the object of that version.
    pub(crate) fn body(&self, number: usize, revision: u64, resource_version: Option<&str>) -> Bytes {
        let content = content(number, revision);
        let mut metadata = json!({"name": name(number)});
        if let Some(version) = resource_version {
            metadata["resourceVersion"] = version.into();
        }
        let mut object = json!({"apiVersion": self.api_version, "kind": self.name, "metadata": metadata});
        if self.name == "ConfigMap" {
            object["data"] = content;
        } else {
            object["spec"] = json!({
                "replicas": 3,
                "selector": {"matchLabels": {"app": name(number)}},
                "template": {
                    "metadata": {"labels": {"app": name(number)}, "annotations": content},
                    "spec": {"containers": [{
                        "name": "main",
                        "image": "registry.example/app:1",
                        "ports": [{"containerPort": 8080}],
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                    }]},
                },
            });
        }
        Bytes::from(object.to_string())
    }

    /// What a second manager applies to an object: one entry beside those of the first.
    pub(crate) fn addition(&self, number: usize) -> Bytes {
        let leaf = json!({ADDED: added(number)});
        let nested = self
            .essence
            .rsplit('/')
            .filter(|key| !key.is_empty())
            .fold(leaf, |inner, key| json!({key: inner}));
        let mut object =
            json!({"apiVersion": self.api_version, "kind": self.name, "metadata": {"name": name(number)}});
        if let (Some(object), Value::Object(nested)) = (object.as_object_mut(), nested) {
            object.extend(nested);
        }
        Bytes::from(object.to_string())
    }

    /// Whether an object is the one of that number and revision, with what the second manager added.
    pub(crate) fn is_with_addition(&self, object: &Value, number: usize, revision: u64) -> bool {
        let mut expected = content(number, revision);
        expected[ADDED] = added(number).into();
        object["metadata"]["name"] == name(number).as_str() && object.pointer(self.essence) == Some(&expected)
    }

    /// Whether an object is the one of that number and revision.
    pub(crate) fn is(&self, object: &Value, number: usize, revision: u64) -> bool {
        object["metadata"]["name"] == name(number).as_str()
            && object.pointer(self.essence) == Some(&content(number, revision))
    }
}

pub(crate) fn name(number: usize) -> String {
    format!("bench-{number:07}")
}

/// The number in a name.
pub(crate) fn number(name: &str) -> Option<usize> {
    name.strip_prefix("bench-")?.parse().ok()
}

/// The entry of the second manager.
const ADDED: &str = "second";

fn added(number: usize) -> String {
    format!("{:016x}", mix(number as u64))
}

const ENTRIES: u64 = 14;
/// Words of 16 digits in an entry.
const WORDS: u64 = 8;

fn content(number: usize, revision: u64) -> Value {
    let seed = mix(number as u64 ^ mix(revision));
    let entry = |entry: u64| {
        (0..WORDS)
            .map(|word| format!("{:016x}", mix(seed ^ mix(entry * WORDS + word))))
            .collect::<String>()
    };
    (0..ENTRIES)
        .map(|index| (format!("k{index:02}"), Value::from(entry(index))))
        .collect()
}

/// Spreads the bits of a number, so that content does not compress.
fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_map_is_two_kilobytes() {
        let length = CONFIG_MAP.body(12, 0, None).len();
        assert!((1_990..=2_100).contains(&length), "{length}");
    }

    #[test]
    fn an_object_is_itself_and_no_other() {
        for kind in [&CONFIG_MAP, &DEPLOYMENT] {
            let object: Value = serde_json::from_slice(&kind.body(7, 1, Some("42"))).unwrap();
            assert_eq!(object["metadata"]["resourceVersion"], "42");
            assert!(kind.is(&object, 7, 1));
            assert!(!kind.is(&object, 7, 2) && !kind.is(&object, 8, 1));
        }
    }

    #[test]
    fn an_addition_is_one_entry() {
        let addition: Value = serde_json::from_slice(&DEPLOYMENT.addition(7)).unwrap();
        let entry = &addition["spec"]["template"]["metadata"]["annotations"][ADDED];
        assert_eq!(*entry, added(7).as_str(), "{addition}");
        let mut object: Value = serde_json::from_slice(&CONFIG_MAP.body(7, 1, None)).unwrap();
        assert!(!CONFIG_MAP.is_with_addition(&object, 7, 1));
        object["data"][ADDED] = added(7).into();
        assert!(CONFIG_MAP.is_with_addition(&object, 7, 1) && !CONFIG_MAP.is(&object, 7, 1));
    }

    #[test]
    fn names_tell_their_number() {
        assert_eq!(number(&name(123_456)), Some(123_456));
        assert_eq!(number("kube-root-ca.crt"), None);
    }
}
