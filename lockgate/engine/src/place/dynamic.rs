//! Sharing out replicas by the room that clusters have.
//!
//! A *steady* division moves as little as it can: what is given out stays, what is missing goes where there is room, and
//! what is too much is taken in proportion. A *fresh* one, asked for by a rebalance, gives out everything anew. Nobody gets
//! more than there is room for: the weights are the room, and one replica after another never takes more than its weight.

use super::webster::webster;

/// A cluster that may take replicas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// 0 if it is of the group itself, and 1 or more if of what the group overflows to.
    pub(super) tier: usize,
    /// How many more replicas it has room for.
    pub(super) available: i64,
    /// How many it has.
    pub(super) previous: i64,
}

/// How replicas are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mode {
    /// On as few clusters as possible.
    pub(super) aggregated: bool,
    /// From scratch.
    pub(super) fresh: bool,
}

/// There is not enough room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short {
    /// How many replicas were to be given out.
    pub(super) wanted: i64,
    /// For how many there is room.
    pub(super) room: i64,
}

/// What each candidate gets, in their order.
pub(super) fn divide(
    wanted: i64,
    candidates: &[Candidate<'_>],
    mode: Mode,
    uid: &str,
) -> Result<Vec<i64>, Short> {
    let assigned = candidates
        .iter()
        .map(|candidate| candidate.previous)
        .fold(0, i64::saturating_add);
    let previous = || candidates.iter().map(|candidate| candidate.previous);
    let nothing = || vec![0; candidates.len()];
    if mode.fresh {
        let weights: Vec<i64> = candidates
            .iter()
            .map(|candidate| candidate.available.saturating_add(candidate.previous))
            .collect();
        return share(wanted, candidates, &weights, mode, uid, nothing());
    }
    if assigned == wanted {
        return Ok(previous().collect());
    }
    if assigned > wanted {
        let weights: Vec<i64> = previous().collect();
        return share(wanted, candidates, &weights, mode, uid, nothing());
    }
    let weights: Vec<i64> = candidates.iter().map(|candidate| candidate.available).collect();
    share(
        wanted - assigned,
        candidates,
        &weights,
        mode,
        uid,
        previous().collect(),
    )
}

/// Adds `amount` to what everybody has: to the group itself as far as there is room, and then to what it overflows to.
fn share(
    amount: i64,
    candidates: &[Candidate<'_>],
    weights: &[i64],
    mode: Mode,
    uid: &str,
    mut shares: Vec<i64>,
) -> Result<Vec<i64>, Short> {
    let mut tiers: Vec<usize> = candidates.iter().map(|candidate| candidate.tier).collect();
    tiers.sort_unstable();
    tiers.dedup();
    let mut remaining = amount;
    for tier in tiers {
        let mut members: Vec<usize> = (0..candidates.len())
            .filter(|index| candidates[*index].tier == tier && weights[*index] > 0)
            .collect();
        let sum = |members: &[usize]| {
            let weights = members.iter().map(|index| weights[*index]);
            weights.fold(0, i64::saturating_add)
        };
        let part = remaining.min(sum(&members));
        if mode.aggregated {
            // Those that have some come first, and then those with most room: the fewest that suffice.
            members.sort_by(|a, b| {
                let key = |index: usize| (candidates[index].previous <= 0, -weights[index]);
                key(*a)
                    .cmp(&key(*b))
                    .then(candidates[*a].name.cmp(candidates[*b].name))
            });
            let enough = (1..=members.len()).find(|count| sum(&members[..*count]) >= part);
            members.truncate(enough.unwrap_or(members.len()));
        }
        let list: Vec<(String, i64)> = members
            .iter()
            .map(|index| (candidates[*index].name.to_owned(), weights[*index]))
            .collect();
        for (index, (_, share)) in members.iter().zip(webster(part, &list, uid)) {
            shares[*index] = shares[*index].saturating_add(share);
        }
        remaining -= part;
        if remaining == 0 {
            break;
        }
    }
    if remaining > 0 {
        return Err(Short {
            wanted: amount,
            room: amount - remaining,
        });
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn candidates(list: &[(&'static str, usize, i64, i64)]) -> Vec<Candidate<'static>> {
        list.iter()
            .map(|(name, tier, available, previous)| Candidate {
                name,
                tier: *tier,
                available: *available,
                previous: *previous,
            })
            .collect()
    }

    const WEIGHTED: Mode = Mode {
        aggregated: false,
        fresh: false,
    };
    const AGGREGATED: Mode = Mode {
        aggregated: true,
        fresh: false,
    };

    fn fresh(mode: Mode) -> Mode {
        Mode { fresh: true, ..mode }
    }

    #[test]
    fn divisions() {
        /// The case, the replicas, the mode, clusters with tier, room and what they have; what each gets, or the room.
        type Row<'a> = (
            &'a str,
            i64,
            Mode,
            &'a [(&'static str, usize, i64, i64)],
            Result<&'a [i64], i64>,
        );
        let table: &[Row<'_>] = &[
            (
                "by room",
                9,
                WEIGHTED,
                &[("a", 0, 10, 0), ("b", 0, 20, 0)],
                Ok(&[3, 6]),
            ),
            (
                "exactly full",
                3,
                WEIGHTED,
                &[("a", 0, 1, 0), ("b", 0, 2, 0)],
                Ok(&[1, 2]),
            ),
            (
                "too little",
                4,
                WEIGHTED,
                &[("a", 0, 1, 0), ("b", 0, 2, 0)],
                Err(3),
            ),
            ("no room at all", 1, WEIGHTED, &[("a", 0, 0, 0)], Err(0)),
            ("nobody", 1, WEIGHTED, &[], Err(0)),
            (
                "nothing changed, although the room did",
                3,
                WEIGHTED,
                &[("a", 0, 0, 3), ("b", 0, 100, 0)],
                Ok(&[3, 0]),
            ),
            (
                "more: only what is missing is given out",
                6,
                WEIGHTED,
                &[("a", 0, 0, 3), ("b", 0, 100, 0)],
                Ok(&[3, 3]),
            ),
            (
                "fewer: in proportion to what is there",
                3,
                WEIGHTED,
                &[("a", 0, 100, 4), ("b", 0, 0, 2)],
                Ok(&[2, 1]),
            ),
            (
                "fresh: everything anew",
                6,
                fresh(WEIGHTED),
                &[("a", 0, 0, 3), ("b", 0, 9, 0)],
                Ok(&[2, 4]),
            ),
            (
                "aggregated: the fewest",
                5,
                AGGREGATED,
                &[("a", 0, 4, 0), ("b", 0, 9, 0), ("c", 0, 5, 0)],
                Ok(&[0, 5, 0]),
            ),
            (
                "aggregated: two are needed",
                12,
                AGGREGATED,
                &[("a", 0, 4, 0), ("b", 0, 9, 0), ("c", 0, 5, 0)],
                Ok(&[0, 8, 4]),
            ),
            (
                "aggregated: where it is comes first",
                5,
                AGGREGATED,
                &[("a", 0, 3, 2), ("b", 0, 9, 0)],
                Ok(&[5, 0]),
            ),
            (
                "aggregated: fewer leaves the smaller ones",
                3,
                AGGREGATED,
                &[("a", 0, 0, 2), ("b", 0, 0, 4)],
                Ok(&[0, 3]),
            ),
            (
                "overflow only for what does not fit",
                7,
                WEIGHTED,
                &[("a", 0, 5, 0), ("b", 1, 9, 0), ("c", 1, 9, 0)],
                Ok(&[5, 1, 1]),
            ),
            (
                "overflow is not used without need",
                5,
                WEIGHTED,
                &[("a", 0, 5, 0), ("b", 1, 9, 0)],
                Ok(&[5, 0]),
            ),
            (
                "overflow shrinks first",
                4,
                WEIGHTED,
                &[("a", 0, 0, 4), ("b", 1, 9, 3)],
                Ok(&[4, 0]),
            ),
            (
                "overflow is full too",
                9,
                AGGREGATED,
                &[("a", 0, 5, 0), ("b", 1, 3, 0)],
                Err(8),
            ),
        ];
        for (case, wanted, mode, list, expected) in table {
            let got = divide(*wanted, &candidates(list), *mode, "");
            let expected = match expected {
                Ok(shares) => Ok(shares.to_vec()),
                Err(room) => Err(*room),
            };
            assert_eq!(got.map_err(|short| short.room), expected, "{case}");
        }
    }

    proptest! {
        #![proptest_config(crate::properties::cases(256))]

        #[test]
        fn what_is_given_out_adds_up_and_fits(
            wanted in 0..60_i64,
            list in prop::collection::vec((0..3_usize, 0..20_i64, 0..10_i64), 0..6),
            aggregated: bool,
            fresh: bool,
        ) {
            const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
            let list: Vec<Candidate<'_>> = list
                .iter()
                .zip(NAMES)
                .map(|((tier, available, previous), name)| Candidate {
                    name, tier: *tier, available: *available, previous: *previous,
                })
                .collect();
            let mode = Mode { aggregated, fresh };
            let room: i64 = list.iter().map(|c| c.available + c.previous).sum();
            match divide(wanted, &list, mode, "") {
                Ok(shares) => {
                    prop_assert_eq!(shares.iter().sum::<i64>(), wanted);
                    for (share, candidate) in shares.iter().zip(&list) {
                        prop_assert!(*share <= candidate.available + candidate.previous);
                    }
                    // Whoever is asked in another order gets the same.
                    let mut turned = list.clone();
                    turned.reverse();
                    let mut other = divide(wanted, &turned, mode, "").unwrap();
                    other.reverse();
                    prop_assert_eq!(&shares, &other);
                    // More is added, and less is taken, never both.
                    let assigned: i64 = list.iter().map(|c| c.previous).sum();
                    if !fresh {
                        for (share, candidate) in shares.iter().zip(&list) {
                            prop_assert!(wanted < assigned || *share >= candidate.previous);
                            prop_assert!(wanted > assigned || *share <= candidate.previous);
                        }
                    }
                }
                Err(short) => {
                    prop_assert!(room < wanted);
                    prop_assert!(short.room < short.wanted);
                }
            }
        }
    }
}
