use lockgate_api::ObjectMeta;

use super::*;
use crate::gate::run::{Reach, Seen, Told};

fn told(digest: &str) -> Told {
    Told {
        digest: digest.to_owned(),
        ..Told::default()
    }
}

/// A cluster that is to get `new`.
fn member<'a>(cluster: &'a str, told: Option<&'a Told>) -> Member<'a> {
    Member {
        cluster,
        wanted: "new",
        kept: None,
        grows: told.is_none(),
        told,
        seen: Seen::Unknown,
        suspended: false,
        resumed: false,
        unsent: false,
        reach: Reach::Since(None),
        due: false,
        unmade: None,
    }
}

fn refused(cluster: &str, digest: &str) -> BTreeMap<String, Refused> {
    let refused = Refused {
        digest: digest.to_owned(),
        why: "too long".to_owned(),
    };
    BTreeMap::from([(cluster.to_owned(), refused)])
}

#[test]
fn what_was_refused_counts_until_it_is_taken_or_another_content_is_to_go() {
    let (old, new, fewer) = (told("old"), told("new"), told("new with more"));
    let has = |told| member("a", Some(told));
    let keeps = |told| Member {
        kept: Some("new with more"),
        ..has(told)
    };
    let unsent = |told| Member {
        unsent: true,
        ..has(told)
    };
    for (what, digest, member, counts) in [
        ("it is still to get that", "new", has(&old), true),
        ("its first copy is", "new", member("a", None), true),
        ("it has it now", "new", has(&new), false),
        ("held back on its way", "new", unsent(&new), true),
        ("something else is to go there", "newer", has(&old), false),
        ("not to have fewer yet", "new with more", keeps(&old), true),
        ("told not to have fewer", "new with more", keeps(&fewer), false),
        ("and is to have fewer now", "new", keeps(&fewer), true),
        ("it is no part of it any more", "new", member("b", None), false),
    ] {
        let mut record = RolloutRecord::default();
        let mut lately = refused("a", digest);
        record.take_refusals(&mut lately, &[member]);
        assert_eq!(
            (!record.refused.is_empty(), !lately.is_empty()),
            (counts, counts),
            "{what}"
        );
        // The same for what a record says that was read again.
        let mut record = RolloutRecord {
            refused: refused("a", digest),
            ..RolloutRecord::default()
        };
        record.take_refusals(&mut BTreeMap::new(), &[member]);
        assert_eq!(!record.refused.is_empty(), counts, "{what}, after a restart");
    }
}

#[test]
fn being_refused_again_changes_nothing() {
    let old = told("old");
    let members = [member("a", Some(&old))];
    let mut record = RolloutRecord::default();
    record.take_refusals(&mut refused("a", "new"), &members);
    let mut binding = ObjectMeta::default();
    record.put(&mut binding);
    assert_eq!(RolloutRecord::of(&binding).as_ref(), Some(&record));
    let mut again = refused("a", "new");
    if let Some(refused) = again.get_mut("a") {
        refused.why.push_str(" at 10:01");
    }
    let before = record.clone();
    record.take_refusals(&mut again, &members);
    assert_eq!(record, before);
    record.take_refusals(&mut BTreeMap::new(), &members);
    assert_eq!(record, before);
}

#[test]
fn the_refusals_of_a_whole_fleet_fit_into_an_annotation() {
    let names: Vec<String> = (0..5000).map(|number| format!("{number:063}")).collect();
    let members: Vec<Member<'_>> = names.iter().map(|name| member(name, None)).collect();
    let one = Refused {
        digest: "new".to_owned(),
        why: "ü\"".repeat(1000),
    };
    let mut lately = names.iter().map(|name| (name.clone(), one.clone())).collect();
    let mut record = RolloutRecord::default();
    record.take_refusals(&mut lately, &members);
    assert_eq!((record.refused.len(), lately.len()), (CLUSTERS, 5000));
    assert!(record.refused.values().all(|refused| refused.why.len() <= WORDS));
    let mut binding = ObjectMeta::default();
    record.put(&mut binding);
    let length: usize = binding.annotations.values().map(String::len).sum();
    assert!(length < 96 * 1024, "{length}");
}
