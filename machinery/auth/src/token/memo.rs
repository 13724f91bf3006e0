//! Remembers whose signatures were good.
//!
//! Verifying a signature costs more than all the rest of a request, clients send the same token with each, and a
//! signature that was good stays good for the same keys. Only the signature is remembered: time, audience and live
//! objects are judged anew each time.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// When this many are remembered, all are forgotten: simple, and rare enough.
const MAX_REMEMBERED: usize = 4096;

/// Digests of tokens with good signatures.
#[derive(Default)]
pub(super) struct GoodSignatures(Mutex<HashSet<[u8; 32]>>);

impl GoodSignatures {
    pub(super) fn contains(&self, digest: &[u8; 32]) -> bool {
        // A set of plain bytes is whole even if somebody panicked beside it.
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(digest)
    }

    pub(super) fn insert(&self, digest: [u8; 32]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(digest);
    }
}

/// A copy starts anew: it may be given other keys.
impl Clone for GoodSignatures {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl std::fmt::Debug for GoodSignatures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GoodSignatures")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_a_bounded_number_and_copies_nothing() {
        let good = GoodSignatures::default();
        for i in 0..=MAX_REMEMBERED {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&(i as u64).to_be_bytes());
            good.insert(digest);
            assert!(good.contains(&digest));
        }
        assert!(good.0.lock().unwrap().len() <= MAX_REMEMBERED);
        assert!(!good.contains(&[0; 32]));
        good.insert([1; 32]);
        assert!(!good.clone().contains(&[1; 32]));
    }
}
