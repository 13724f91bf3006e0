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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{fnv1a, webster};

    const EVEN: &str = "037f4fc2-c24f-4acb-baae-a405c0f691f5";
    const ODD: &str = "11111111-1111-1111-1111-111111111111";

    fn weights(list: &[(&str, i64)]) -> Vec<(String, i64)> {
        list.iter()
            .map(|(name, weight)| ((*name).to_owned(), *weight))
            .collect()
    }

    #[test]
    fn hashes() {
        assert_eq!(fnv1a(EVEN), 2_376_220_966);
        assert_eq!(fnv1a(ODD), 1_031_130_113);
    }

    #[test]
    fn vectors() {
        let abc = [("a", 1), ("b", 1), ("c", 1)];
        let cities = [("Alpha", 1200), ("Beta", 900), ("Gamma", 400)];
        /// Replicas, weights, and what comes of them for these uids.
        type Row<'a> = (i64, &'a [(&'a str, i64)], &'a [&'a str], &'a [i64]);
        let table: &[Row<'_>] = &[
            (9, &[("a", 1), ("b", 2)], &[EVEN, ODD, ""], &[3, 6]),
            (9, &[("a", 1), ("b", 3)], &[EVEN, ODD, ""], &[2, 7]),
            (5, &abc[..2], &[EVEN, ""], &[3, 2]),
            (5, &abc[..2], &[ODD], &[2, 3]),
            (7, &abc, &[EVEN], &[3, 2, 2]),
            (2, &abc, &[EVEN], &[1, 1, 0]),
            (2, &abc, &[ODD], &[0, 1, 1]),
            (
                10,
                &[("m1", 3), ("m2", 2), ("m3", 1)],
                &[EVEN, ODD, ""],
                &[5, 3, 2],
            ),
            (4, &cities, &[EVEN, ODD, ""], &[2, 1, 1]),
            // The order of the weights is kept, and does not decide.
            (5, &[("b", 1), ("a", 1)], &[EVEN], &[2, 3]),
            // Equally near with other weights: fewer replicas come first.
            (3, &[("a", 3), ("b", 1)], &[EVEN, ODD], &[2, 1]),
            // What has no weight gets nothing.
            (5, &[("a", 0), ("b", 1), ("c", -3)], &[EVEN, ODD, ""], &[0, 5, 0]),
            (5, &[("a", 0)], &[""], &[0]),
            (-5, &abc, &[""], &[0, 0, 0]),
            (5, &[], &[""], &[]),
        ];
        for (replicas, list, uids, expected) in table {
            for uid in *uids {
                let got: Vec<i64> = webster(*replicas, &weights(list), uid)
                    .into_iter()
                    .map(|(_, share)| share)
                    .collect();
                assert_eq!(got, *expected, "{replicas} replicas by {list:?}, uid {uid:?}");
            }
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let list = weights(&[("a", i64::MAX), ("b", i64::MAX), ("c", 1)]);
        let shares = webster(i64::MAX, &list, EVEN);
        // The last replica is an exact tie, and goes to the one with fewest.
        let shares: Vec<i64> = shares.into_iter().map(|(_, share)| share).collect();
        assert_eq!(shares, [i64::MAX / 2, i64::MAX / 2, 1]);
    }

    /// One replica after another, as the method is told.
    fn one_by_one(replicas: i64, weights: &[(String, i64)], downwards: bool) -> Vec<i64> {
        let mut shares = vec![0_i64; weights.len()];
        for _ in 0..replicas {
            let next = (0..weights.len()).filter(|i| weights[*i].1 > 0).reduce(|a, b| {
                let (left, right) = (
                    weights[a].1 * (2 * shares[b] + 1),
                    weights[b].1 * (2 * shares[a] + 1),
                );
                let first = match (left.cmp(&right), shares[a].cmp(&shares[b])) {
                    (std::cmp::Ordering::Equal, std::cmp::Ordering::Equal) => {
                        (weights[a].0 < weights[b].0) != downwards
                    }
                    (std::cmp::Ordering::Equal, fewer) => fewer.is_lt(),
                    (nearer, _) => nearer.is_gt(),
                };
                if first { a } else { b }
            });
            match next {
                Some(next) => shares[next] += 1,
                None => break,
            }
        }
        shares
    }

    fn some_weights() -> impl Strategy<Value = Vec<(String, i64)>> {
        let weight = prop_oneof![0..4_i64, 0..100_i64, 0..100_000_i64];
        prop::collection::btree_map("[a-e]{1,3}", weight, 0..9).prop_map(|map| map.into_iter().collect())
    }

    proptest! {
        #![proptest_config(crate::properties::cases(256))]

        #[test]
        fn equals_one_by_one(replicas in 0..300_i64, weights in some_weights(), odd: bool) {
            let shares: Vec<i64> = webster(replicas, &weights, if odd { ODD } else { EVEN })
                .into_iter()
                .map(|(_, share)| share)
                .collect();
            prop_assert_eq!(shares, one_by_one(replicas, &weights, odd));
        }

        #[test]
        fn the_sum_is_exact_and_one_more_takes_nothing_away(
            replicas in 0..i64::from(i32::MAX),
            weights in some_weights(),
        ) {
            let fewer = webster(replicas, &weights, ODD);
            let more = webster(replicas + 1, &weights, ODD);
            let sum = |shares: &[(String, i64)]| shares.iter().map(|(_, share)| share).sum::<i64>();
            let anybody = weights.iter().any(|(_, weight)| *weight > 0);
            prop_assert_eq!(sum(&fewer), if anybody { replicas } else { 0 });
            prop_assert_eq!(sum(&more), if anybody { replicas + 1 } else { 0 });
            for ((fewer, more), (_, weight)) in fewer.iter().zip(&more).zip(&weights) {
                prop_assert!(fewer.1 <= more.1);
                prop_assert!(*weight > 0 || more.1 == 0);
            }
        }
    }
}
