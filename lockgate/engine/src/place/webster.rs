//! Sharing out whole replicas by weights, with Webster's method.
//!
//! One replica after another goes to whoever has the largest weight / (2 · replicas + 1). So the sum is exact, and one
//! replica more never takes one away from anybody.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Shares out replicas by weights, in the order of the weights.
///
/// Those with a weight of 0 or less get nothing; if all have, nothing is given out. Of two that are equally near, the one
/// with fewer replicas comes first, and then the name decides: upwards or downwards by `uid`, which is the template's, so
/// that not every template favours the same clusters.
pub fn webster(replicas: i64, weights: &[(String, i64)], uid: &str) -> Vec<(String, i64)> {
    let downwards = !uid.is_empty() && fnv1a(uid) % 2 == 1;
    let weight = |weight: i64| u128::try_from(weight).unwrap_or(0);
    let total: u128 = weights.iter().map(|(_, own)| weight(*own)).sum();
    let replicas = u128::try_from(replicas).unwrap_or(0);
    let mut shares = vec![0_u128; weights.len()];
    // What everybody gets for sure is given out at once, so that the time does not grow with the replicas. With R
    // replicas to give, each share comes within a half of R · weight / total; R is so much smaller than what there is
    // that all those halves together do not give out too much.
    let sure = replicas.saturating_sub(weights.len().div_ceil(2) as u128);
    for (share, (_, own)) in shares.iter_mut().zip(weights) {
        let odd_below = (2 * sure * weight(*own)).saturating_sub(1).checked_div(total);
        *share = odd_below.unwrap_or(0).div_ceil(2);
    }
    let mut claims: BinaryHeap<Claim<'_>> = weights
        .iter()
        .enumerate()
        .filter(|(_, (_, own))| *own > 0)
        .map(|(index, (name, own))| Claim {
            weight: weight(*own),
            share: shares[index],
            name,
            downwards,
            index,
        })
        .collect();
    for _ in shares.iter().sum::<u128>()..replicas {
        let Some(mut first) = claims.pop() else { break };
        first.share += 1;
        shares[first.index] = first.share;
        claims.push(first);
    }
    weights
        .iter()
        .zip(shares)
        .map(|((name, _), share)| (name.clone(), i64::try_from(share).unwrap_or(i64::MAX)))
        .collect()
}

/// A claim to the next replica; the greatest gets it.
struct Claim<'a> {
    weight: u128,
    share: u128,
    name: &'a str,
    downwards: bool,
    index: usize,
}

impl Ord for Claim<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        // Both weights are below 2^63 and both shares are too, so that the products fit.
        let own = self.weight * (2 * other.share + 1);
        let others = other.weight * (2 * self.share + 1);
        let by_name = self.name.cmp(other.name);
        own.cmp(&others)
            .then(other.share.cmp(&self.share))
            .then(if self.downwards {
                by_name
            } else {
                by_name.reverse()
            })
            .then(other.index.cmp(&self.index))
    }
}

impl PartialOrd for Claim<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Claim<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Claim<'_> {}

/// The 32-bit FNV-1a hash.
fn fnv1a(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}
