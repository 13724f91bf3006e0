use proptest::prelude::*;
use serde_json::json;

use super::*;

fn fleet(count: usize) -> Vec<Selected> {
    let cluster = |number: usize| Selected {
        name: format!("c{number}"),
        labels: [("parity".to_owned(), (number % 2).to_string())].into(),
        claims: [("third".to_owned(), (number % 3).to_string())].into(),
    };
    (0..count).map(cluster).collect()
}

fn selector(key: &str, value: &str) -> Option<LabelSelector> {
    Some(LabelSelector {
        match_labels: [(key.to_owned(), value.to_owned())].into(),
        ..LabelSelector::default()
    })
}

#[test]
fn labels_and_claims_must_both_match() {
    let named = [NamedGroup {
        name: "both".to_owned(),
        labels: selector("parity", "0"),
        claims: selector("third", "0"),
    }];
    let groups = cut(&fleet(7), &named, None).unwrap();
    let found: Vec<(&str, usize)> = groups
        .iter()
        .map(|group| (group.name.as_str(), group.clusters.len()))
        .collect();
    assert_eq!(found, [("both", 2), ("", 5)]);
    assert_eq!(groups[0].clusters, ["c0", "c6"]);
}

#[test]
fn nobody_selected_is_one_empty_group() {
    let groups = cut::<Selected>(&[], &[], Some(&IntOrString::Int(3))).unwrap();
    assert_eq!(groups.iter().collect::<Vec<_>>(), [&DecisionGroup::default()]);
    assert_eq!(decision_parts(&groups).len(), 1);
}

#[test]
fn what_cannot_be_read_is_an_error_and_cuts_nothing() {
    let expression = json!({ "matchExpressions": [{ "key": "a", "operator": "Near" }] });
    let named = [NamedGroup {
        name: "odd".to_owned(),
        labels: Some(serde_json::from_value(expression).unwrap()),
        claims: None,
    }];
    let error = cut(&fleet(3), &named, None).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the selector of the decision group \"odd\": "),
        "{error}"
    );
    let error = cut(&fleet(3), &[], Some(&IntOrString::Text("3".to_owned()))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "clustersPerDecisionGroup: \"3\" is a text: write the number 3 without quotes"
    );
}

proptest! {
    #![proptest_config(crate::properties::cases(300))]

    #[test]
    fn every_cluster_is_in_one_group_of_the_size(
        count in 0..260_usize,
        size in prop_oneof![
            (0..300_i64).prop_map(IntOrString::Int),
            (0..101_u8).prop_map(|percent| IntOrString::Text(format!("{percent}%"))),
        ],
        named in prop::collection::vec((any::<bool>(), 0..4_u8), 0..4),
    ) {
        let selected = fleet(count);
        let named: Vec<NamedGroup> = named
            .into_iter()
            .map(|(label, value)| NamedGroup {
                name: format!("g{value}"),
                labels: selector("parity", &value.to_string()).filter(|_| label),
                claims: selector("third", &value.to_string()).filter(|_| !label),
            })
            .collect();
        let groups = cut(&selected, &named, Some(&size)).unwrap();
        let limit = match parse_threshold(&size).unwrap().of(count) {
            limit if (1..=count as i128).contains(&limit) => limit as usize,
            _ => count,
        };
        let mut wanted: Vec<&str> = selected.iter().map(|cluster| cluster.name.as_str()).collect();
        wanted.sort_unstable();
        prop_assert!(groups.clusters().map(|(name, _)| name).eq(wanted));
        prop_assert_eq!(groups.iter().map(|group| group.clusters.len()).sum::<usize>(), count);
        for (position, group) in groups.iter().enumerate() {
            prop_assert_eq!(group.index as usize, position);
            prop_assert!(group.clusters.len() <= limit && (count == 0 || !group.clusters.is_empty()));
        }
        let parts = decision_parts(&groups);
        prop_assert!(parts.iter().map(|part| part.number).eq(1..=parts.len()));
        prop_assert!(parts.iter().all(|part| part.clusters.len() <= DECISION_SIZE));
        prop_assert_eq!(parts.iter().map(|part| part.clusters.len()).sum::<usize>(), count);
    }
}
