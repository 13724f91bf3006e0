//! Short names for pod templates: the same template, the same name, in every process.

use serde_json::Value;

/// Characters that make no words.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A short hash of a template, as it stands in names and labels. `collisions` draws another one.
pub(crate) fn template_hash(template: &Value, collisions: i64) -> String {
    // Maps are sorted, so that the text of a value is the same wherever its fields came from.
    let mut text = machinery_value::encode::to_vec(template);
    if collisions != 0 {
        text.extend_from_slice(collisions.to_string().as_bytes());
    }
    let hash = text.iter().fold(2_166_136_261_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(16_777_619)
    });
    hash.to_string()
        .bytes()
        .map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hash_names_a_template() {
        let hash = |image: &str, collisions| template_hash(&json!({"spec": {"image": image}}), collisions);
        assert_eq!(hash("a", 0), hash("a", 0));
        assert_ne!(hash("a", 0), hash("b", 0));
        assert_ne!(hash("a", 0), hash("a", 1));
        assert!(hash("a", 0).bytes().all(|b| ALPHABET.contains(&b)));
    }
}
