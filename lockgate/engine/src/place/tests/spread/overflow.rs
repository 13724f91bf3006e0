//! Spreads over groups of clusters that overflow.

use super::*;

/// The placement of a group of clusters that overflows: the tiers in order, each with its clusters.
fn overflowing(tiers: &[&[&str]], constraints: &[Value], strategy: &Value) -> Value {
    let named = |names: &&[&str]| json!({ "affinityName": names.join("-"), "clusterNames": names });
    let mut all = tiers.iter().map(named);
    let mut group = all.next().unwrap();
    group["overflowAffinities"] = all.collect();
    json!({ "clusterAffinities": [group], "spreadConstraints": constraints, "replicaScheduling": strategy })
}

#[test]
fn a_group_is_full_before_it_overflows_to_other_groups_of_the_spread() {
    let lines = ["a p1 eu z1 16", "b p2 us z2 16", "c p2 us z2 16", "d p2 ap z3 16"];
    let tiers: &[&[&str]] = &[&["a"], &["b", "c", "d"]];
    let any = |field: &str| vec![constraint(field, 1, 0), constraint("cluster", 1, 0)];
    let one = vec![constraint("region", 1, 1), constraint("cluster", 1, 0)];
    let both = vec![
        constraint("provider", 1, 0),
        constraint("region", 1, 0),
        constraint("zone", 1, 0),
    ];
    /// The constraints, the replicas, where they are, whether a rebalance was asked for; what comes of it.
    type Row<'a> = (Vec<Value>, i64, &'a [(&'a str, i64)], bool, &'a str);
    let table: &[Row<'_>] = &[
        (any("region"), 5, &[], false, "a:5"),
        (any("provider"), 5, &[], false, "a:5"),
        (any("zone"), 5, &[], false, "a:5"),
        (both.clone(), 5, &[], false, "a:5"),
        (one.clone(), 5, &[], false, "a:5"),
        // It overflows as far as it must, and to as few regions as will do.
        (any("region"), 20, &[], false, "a:16 b:2 c:2"),
        (any("provider"), 20, &[], false, "a:16 b:2 c:1 d:1"),
        (both, 20, &[], false, "a:16 b:2 c:2"),
        (one.clone(), 20, &[], false, "b:10 c:10"),
        (vec![constraint("region", 2, 2)], 5, &[], false, "a:5"),
        // One cluster of each region, and no more of them than clusters.
        (
            vec![constraint("region", 1, 0), constraint("cluster", 1, 2)],
            20,
            &[],
            false,
            "a:16 b:4",
        ),
        // When there are fewer the overflow goes first.
        (any("region"), 5, &[("a", 16), ("b", 2), ("c", 2)], false, "a:5"),
        // What is there stays, and what is added goes to the group itself; a rebalance gives out everything anew.
        (any("region"), 7, &[("b", 5)], false, "a:2 b:5"),
        (any("region"), 7, &[("b", 5)], true, "a:7"),
        (one, 7, &[("b", 5)], false, "b:6 c:1"),
    ];
    for (constraints, replicas, there, asked, expected) in table {
        let there: Vec<Value> = there
            .iter()
            .map(|(name, replicas)| json!({ "name": name, "replicas": replicas }))
            .collect();
        let asked = asked.then_some("2026-01-01T00:00:11Z");
        let spec = spec(
            json!({ "replicas": replicas, "clusters": there, "rescheduleTriggeredAt": asked,
            "placement": overflowing(tiers, constraints, &dynamic()) }),
        );
        let fleet = world(&lines);
        let placed = place(&PlaceInput {
            last_scheduled: Some("2026-01-01T00:00:10Z".parse().unwrap()),
            ..input(&spec, &fleet)
        });
        assert_eq!(told(&placed), *expected, "{replicas} {constraints:?} {there:?}");
    }
}

#[test]
fn clusters_of_a_later_tier_make_room_last() {
    let tiers: &[&[&str]] = &[&["a", "b"], &["c"]];
    let at = |replicas: i64| {
        let there = json!([{ "name": "a", "replicas": 1 }]);
        let one = [constraint("cluster", 1, 1)];
        let spec = spec(json!({ "replicas": replicas, "clusters": there,
            "placement": overflowing(tiers, &one, &dynamic()) }));
        told(&place(&input(
            &spec,
            &world(&["a p r z 2", "b p r z 9", "c p r z 20"]),
        )))
    };
    assert_eq!(at(2), "a:2");
    assert_eq!(at(9), "b:9");
    assert_eq!(at(10), "c:10");
}

#[test]
fn the_last_makes_way_whichever_group_it_stands_for() {
    let limits = [constraint("region", 1, 2), constraint("cluster", 1, 3)];
    let at = |lines: &[&str], tiers: &[&[&str]], replicas: i64| {
        let placement = overflowing(tiers, &limits, &dynamic());
        let spec = spec(json!({ "replicas": replicas, "placement": placement }));
        told(&place(&input(&spec, &world(lines))))
    };
    let lines = ["a1 p A z 6", "a2 p A z 5", "b1 p B z 1", "b2 p B z 7"];
    assert_eq!(at(&lines, &[&["a1", "a2", "b1"], &["b2"]], 13), "a1:6 a2:5 b2:2");
    // Whose place costs nothing comes before all others, although it is of the group itself.
    let lines = ["a1 p A z 2", "a2 p A z 4", "b1 p B z 0", "b2 p B z 1"];
    assert_eq!(
        at(&lines, &[&["a1", "b1"], &["b2"], &["a2"]], 4),
        "a1:2 a2:1 b2:1"
    );
}

#[test]
fn where_all_get_all_the_group_itself_comes_first() {
    let lines = ["a p eu z 0", "b p us z 0", "c p us z 0"];
    let one = [constraint("region", 1, 1)];
    let at = |there: Value| {
        let placement = overflowing(&[&["a"], &["b", "c"]], &one, &Value::Null);
        let spec = spec(json!({ "replicas": 1, "clusters": there, "placement": placement }));
        told(&place(&input(&spec, &world(&lines))))
    };
    assert_eq!(at(json!([])), "a:1");
    // Where it is it stays.
    assert_eq!(at(json!([{ "name": "b", "replicas": 1 }])), "b:1 c:1");
}

#[test]
fn many_regions_overflow_in_order() {
    // More sets of regions than are tried; of the five clusters of each, three are of the group itself.
    let lines: Vec<String> = (0..200)
        .map(|n| format!("c{n:03} p r{:02} z 10", n / 5))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let names: Vec<&str> = lines.iter().map(|line| &line[..4]).collect();
    let own: Vec<&str> = names.chunks(5).flat_map(|region| region[..3].to_vec()).collect();
    let more: Vec<&str> = names.chunks(5).flat_map(|region| region[3..].to_vec()).collect();
    let regions = [constraint("region", 1, 0), constraint("cluster", 1, 0)];
    for replicas in [1100, 1300] {
        let spec = spec(json!({ "replicas": replicas,
            "placement": overflowing(&[&own, &more], &regions, &dynamic()) }));
        let Verdict::Clusters(targets) = place(&input(&spec, &world(&lines))).verdict else {
            panic!("there is room");
        };
        let of_own = targets
            .iter()
            .filter(|target| own.contains(&target.name.as_str()));
        let in_own: i64 = of_own.map(|target| target.replicas).sum();
        assert_eq!(in_own, replicas.min(1200));
    }
}

#[test]
fn a_limit_on_clusters_is_one_for_all_groups_together() {
    let own = ["a1 p A z 10", "b1 p B z 4", "b2 p B z 4", "b3 p B z 4"];
    let lines: Vec<&str> = own.into_iter().chain(["c1 p C z 100"]).collect();
    let limits = [constraint("region", 1, 2), constraint("cluster", 1, 3)];
    let tiers: [&[&str]; 2] = [&["a1", "b1", "b2", "b3"], &["c1"]];
    let spec = spec(json!({ "replicas": 22, "placement": overflowing(&tiers, &limits, &dynamic()) }));
    assert_eq!(told(&place(&input(&spec, &world(&lines)))), "a1:10 c1:12");
}

#[test]
fn clusters_where_it_is_that_have_no_room_hide_no_others() {
    let lines = [
        "a1 p A z 2",
        "a2 p A z 2",
        "a3 p A z 100",
        "d1 p D z 10",
        "d2 p D z 100",
    ];
    let limits = [constraint("region", 1, 1), constraint("cluster", 1, 2)];
    let tiers: [&[&str]; 2] = [&["a1", "a2", "a3", "d1"], &["d2"]];
    // It was scaled to nothing there, and is to run again.
    let there = json!([{ "name": "a1", "replicas": 0 }, { "name": "a2", "replicas": 0 }]);
    let placement = overflowing(&tiers, &limits, &dynamic());
    let spec = spec(json!({ "replicas": 50, "clusters": there, "placement": placement }));
    assert_eq!(told(&place(&input(&spec, &world(&lines)))), "a1:1 a3:49");
}

proptest! {
    #![proptest_config(crate::properties::cases(512))]

    /// Of all sets of regions that have the room, none would put more replicas where they belong, tier by tier.
    #[test]
    fn a_tier_is_as_full_as_the_spread_allows(
        places in prop::collection::vec((0..4_usize, 0..3_usize, 0..8_i64), 1..8),
        (min, more) in (1..3_i64, 0..4_i64),
        replicas in 1..24_i64,
    ) {
        let lines: Vec<String> = places
            .iter()
            .enumerate()
            .map(|(n, (region, _, room))| format!("c{n} p r{region} z {room}"))
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let of_tier = |wanted: usize| -> Vec<&str> {
            let all = lines.iter().zip(&places);
            all.filter(|(_, (_, tier, _))| *tier == wanted).map(|(line, _)| &line[..2]).collect()
        };
        let tiers = [of_tier(0), of_tier(1), of_tier(2)];
        // A group that names nobody would be of all.
        let named: Vec<&[&str]> = tiers.iter().map(|names| if names.is_empty() { &["nobody"][..] } else { names }).collect();
        let given = |set: usize| -> Option<Vec<i64>> {
            let mut remaining = replicas;
            let by_tier = (0..3).map(|tier| {
                let inside = places.iter().filter(|place| (set >> place.0) & 1 == 1 && place.1 == tier);
                let part = remaining.min(inside.map(|place| place.2).sum());
                remaining -= part;
                part
            });
            let by_tier = by_tier.collect();
            (remaining == 0).then_some(by_tier)
        };
        let all = places.iter().fold(0, |all, place| all | 1_usize << place.0);
        let sets = (1..16_usize).filter(|set| set & !all == 0 && (min..=min + more).contains(&i64::from(set.count_ones())));
        let best = sets.filter_map(given).max();
        let constraints = [constraint("region", min, min + more)];
        let spec = spec(json!({ "replicas": replicas, "placement": overflowing(&named, &constraints, &dynamic()) }));
        let placed = place(&input(&spec, &world(&lines)));
        let found = match &placed.verdict {
            Verdict::Clusters(targets) => {
                let sum = |names: &Vec<&str>| targets.iter().filter(|target| names.contains(&target.name.as_str()))
                    .map(|target| target.replicas).sum::<i64>();
                Some(tiers.iter().map(sum).collect::<Vec<_>>())
            }
            _ => None,
        };
        prop_assert_eq!(found, best, "{:?}", placed.verdict);
    }

    /// Nor where there may be only so many clusters, of those sets whose best have the room.
    #[test]
    fn a_tier_is_as_full_as_limits_allow(
        places in prop::collection::vec((0..4_usize, 0..3_usize, 0..8_i64), 1..8),
        (min, more, most) in (1..3_i64, 0..4_i64, 1..6_usize),
        replicas in 2..24_i64,
    ) {
        let most = most.max(usize::try_from(min).unwrap());
        let mut places = places;
        places.sort_by_key(|(_, tier, room)| (*tier, -room));
        let line = |(n, (region, _, room)): (usize, &(usize, usize, i64))| format!("c{n} p r{region} z {room}");
        let lines: Vec<String> = places.iter().enumerate().map(line).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let tiers: Vec<Vec<&str>> = (0..3)
            .map(|tier| lines.iter().zip(&places).filter(|(_, place)| place.1 == tier).map(|(line, _)| &line[..2]).collect())
            .collect();
        let named: Vec<&[&str]> = tiers.iter().map(|names| if names.is_empty() { &["nobody"][..] } else { names }).collect();
        let given = |set: usize| -> Option<Vec<i64>> {
            let inside = || places.iter().enumerate().filter(|(_, place)| (set >> place.0) & 1 == 1);
            let mut taken: Vec<usize> = Vec::new();
            for (n, place) in inside() {
                if !taken.iter().any(|other| places[*other].0 == place.0) {
                    taken.push(n);
                }
            }
            let rest: Vec<usize> = inside().map(|(n, _)| n).filter(|n| !taken.contains(n)).collect();
            taken.extend(rest.into_iter().take(most.saturating_sub(taken.len())));
            let mut remaining = replicas;
            let by_tier = (0..3).map(|tier| {
                let rooms = taken.iter().map(|n| places[*n]).filter(|place| place.1 == tier).map(|place| place.2);
                let part = remaining.min(rooms.sum());
                remaining -= part;
                part
            });
            let by_tier = by_tier.collect();
            (remaining == 0 && taken.len() <= most).then_some(by_tier)
        };
        let all = places.iter().fold(0, |all, place| all | 1_usize << place.0);
        let sets = (1..16_usize).filter(|set| set & !all == 0 && (min..=min + more).contains(&i64::from(set.count_ones())));
        let Some(best) = sets.filter_map(given).max() else { return Ok(()) };
        let limits = [constraint("region", min, min + more), constraint("cluster", 1, i64::try_from(most).unwrap())];
        let spec = spec(json!({ "replicas": replicas, "placement": overflowing(&named, &limits, &dynamic()) }));
        let placed = place(&input(&spec, &world(&lines)));
        let Verdict::Clusters(targets) = &placed.verdict else { panic!("{placed:?}") };
        let sum = |names: &Vec<&str>| targets.iter().filter(|target| names.contains(&target.name.as_str()))
            .map(|target| target.replicas).sum::<i64>();
        let found: Vec<i64> = tiers.iter().map(sum).collect();
        prop_assert!(found >= best, "{:?} {:?} {:?}", found, best, placed.verdict);
    }
}
