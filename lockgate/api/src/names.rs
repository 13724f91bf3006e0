//! Names that follow from other names. They are part of the wire contract: other programs compute them too.

use crate::keys;

/// FNV-1a, 32 bits.
pub fn fnv1a_32(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// The decimal digits of a hash in an alphabet that makes no words.
fn encode(hash: u32) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    hash.to_string()
        .bytes()
        .map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]))
        .collect()
}

/// The name of a template's binding.
pub fn binding_name(kind: &str, name: &str) -> String {
    format!("{}-{kind}", name.replace(':', ".")).to_lowercase()
}

/// The name of a template's Works; the same in every execution namespace.
pub fn work_name(kind: &str, namespace: &str, name: &str) -> String {
    let name = name.replace(':', ".");
    let hashed = if namespace.is_empty() {
        format!("{name}-{kind}")
    } else {
        format!("{namespace}-{name}-{kind}")
    };
    format!(
        "{}-{}",
        name.to_lowercase(),
        encode(fnv1a_32(&hashed.to_lowercase()))
    )
}

/// The label key by which a dependency's binding names a binding that needs it.
pub fn depended_by_key(namespace: &str, name: &str) -> String {
    let hash = fnv1a_32(&format!("{namespace}/{name}"));
    format!("{}{}", keys::DEPENDED_BY_PREFIX, encode(hash))
}

/// A cluster's execution namespace.
pub fn execution_namespace(cluster: &str) -> String {
    format!("{}{cluster}", keys::EXECUTION_PREFIX)
}

/// The cluster of an execution namespace.
pub fn cluster_of(namespace: &str) -> Option<&str> {
    namespace.strip_prefix(keys::EXECUTION_PREFIX)
}

/// Whether a namespace belongs to the control plane, so that nothing in it is a template.
pub fn is_reserved(namespace: &str) -> bool {
    namespace.starts_with(keys::EXECUTION_PREFIX)
        || namespace == keys::CLUSTER_NAMESPACE
        || namespace == keys::SYSTEM_NAMESPACE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_others_compute() {
        assert_eq!(work_name("Deployment", "default", "nginx"), "nginx-687f7fb96f");
        assert_eq!(work_name("Namespace", "", "predict"), "predict-5c885f7948");
        assert_eq!(
            binding_name("ClusterRole", "system:node"),
            "system.node-clusterrole"
        );
        assert_eq!(fnv1a_32("037f4fc2-c24f-4acb-baae-a405c0f691f5"), 2_376_220_966);
        assert_eq!(fnv1a_32("11111111-1111-1111-1111-111111111111"), 1_031_130_113);
        assert_eq!(work_name("Deployment", "shop", "api"), "api-84bb5b647b");
        assert_eq!(
            depended_by_key("shop", "web-deployment"),
            "resourcebinding.karmada.io/depended-by-8546649456"
        );
    }
}
