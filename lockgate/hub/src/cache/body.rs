//! The text of objects, packed. Objects of one kind look alike and a fleet has many: each is kept as what makes it different
//! from the first ones of its cache, a tenth of its size as a rule. To read one again takes about a microsecond.

use std::fmt;
use std::sync::Arc;

use lz4_flex::block::{compress_with_dict, decompress_with_dict};
use parking_lot::RwLock;

/// How much text the objects of a cache are compared with at most. More of it would find more, and every object that is packed
/// would take longer.
const MOST: usize = 16 << 10;
/// What is kept as less than this part of its size looks like the others.
const ALIKE: usize = 4;

/// What the objects of a cache look like: the text of the first ones, and of later ones that look different.
#[derive(Default)]
pub(super) struct Looks(RwLock<Arc<[u8]>>);

impl Looks {
    /// Packs an object's text.
    pub(super) fn pack(&self, text: &[u8]) -> Body {
        let body = Body::pack(text, self.0.read().clone());
        if body.packed.len() <= text.len() / ALIKE {
            return body;
        }
        self.learn(&body.looks, text);
        // What is learnt serves this object first: alone in its cache it takes no more than its text.
        Body::pack(text, self.0.read().clone())
    }

    /// Adds a text that is unlike those that are known, unless somebody else was faster, or there is no more room.
    fn learn(&self, known: &Arc<[u8]>, text: &[u8]) {
        let mut looks = self.0.write();
        if Arc::ptr_eq(&looks, known) && known.len() + text.len() <= MOST {
            *looks = [&**known, text].concat().into();
        }
    }
}

/// The text of one object.
#[derive(Clone)]
pub(super) struct Body {
    /// What it is different from: the cache may have learnt more since.
    looks: Arc<[u8]>,
    packed: Box<[u8]>,
    size: usize,
}

impl Body {
    fn pack(text: &[u8], looks: Arc<[u8]>) -> Self {
        Self {
            packed: compress_with_dict(text, &looks).into_boxed_slice(),
            looks,
            size: text.len(),
        }
    }

    /// How long the text is.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The text again.
    pub(super) fn text(&self) -> Vec<u8> {
        let text = decompress_with_dict(&self.packed, self.size, &self.looks);
        debug_assert!(text.is_ok(), "what was packed here is read here");
        text.unwrap_or_default()
    }
}

impl PartialEq for Body {
    /// Equal texts may be packed in different ways.
    fn eq(&self, other: &Self) -> bool {
        self.size == other.size && self.text() == other.text()
    }
}

impl Eq for Body {}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(name: &str, image: &str) -> Vec<u8> {
        format!(
            r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{name}","namespace":"shop","labels":
            {{"app":"{name}"}}}},"spec":{{"replicas":2,"selector":{{"matchLabels":{{"app":"{name}"}}}},"template":
            {{"metadata":{{"labels":{{"app":"{name}"}}}},"spec":{{"containers":[{{"name":"web","image":"{image}",
            "terminationMessagePath":"/dev/termination-log"}}]}}}}}}}}"#
        )
        .into_bytes()
    }

    fn noise(seed: u64, size: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        };
        (0..size).map(|_| next()).collect()
    }

    #[test]
    fn what_was_packed_is_read_again() {
        let looks = Looks::default();
        let texts: Vec<Vec<u8>> = vec![
            Vec::new(),
            b"{}".to_vec(),
            deployment("a", "nginx:1"),
            noise(1, 3000),
            deployment("b", "nginx:2"),
            noise(2, 100_000),
            noise(3, 3000),
            [deployment("c", "x"), noise(4, 70_000), deployment("d", "x")].concat(),
            noise(5, MOST),
            noise(6, 5000),
            deployment("e", "nginx:1"),
        ];
        let bodies: Vec<Body> = texts.iter().map(|text| looks.pack(text)).collect();
        for (body, text) in bodies.iter().zip(&texts) {
            assert_eq!(body.text(), *text);
        }
        assert!(looks.0.read().len() <= MOST);
    }

    #[test]
    fn objects_that_look_alike_take_little() {
        let looks = Looks::default();
        let alone = looks.pack(&deployment("a", "nginx:1"));
        assert!(
            alone.packed.len() < 100,
            "its own look is known: {}",
            alone.packed.len()
        );
        for number in 0..100 {
            let text = deployment(&format!("d{number}"), "nginx:2");
            let body = looks.pack(&text);
            assert!(body.packed.len() <= text.len() / ALIKE, "{}", body.packed.len());
        }
        assert_eq!(
            looks.0.read().len(),
            deployment("a", "nginx:1").len(),
            "nothing new"
        );
    }
}
