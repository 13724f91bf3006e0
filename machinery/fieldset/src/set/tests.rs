use proptest::prelude::*;
use serde_json::json;

use super::*;

/// A set, written as paths of single letters: `a a.b c`.
fn set(text: &str) -> FieldSet {
    let mut set = FieldSet::new();
    for path in text.split_whitespace() {
        let names: Vec<&str> = path.split('.').collect();
        set.insert(&Path::of_fields(&names));
    }
    set
}

fn text(set: &FieldSet) -> String {
    let paths: Vec<String> = set
        .paths()
        .iter()
        .map(|path| path.to_string()[1..].to_owned())
        .collect();
    paths.join(" ")
}

#[test]
fn operations() {
    type Operation = fn(FieldSet, FieldSet) -> FieldSet;
    let cases: [(&str, Operation, &str, &str, &str); 12] = [
        ("union", FieldSet::union, "a a.b", "a.c b", "a b a.b a.c"),
        ("union", FieldSet::union, "", "a.c", "a.c"),
        (
            "intersection",
            |a, b| a.intersection(&b),
            "a a.b c",
            "a.b c.d",
            "a.b",
        ),
        ("intersection", |a, b| a.intersection(&b), "a.b", "a.c", ""),
        ("difference", |a, b| a.difference(&b), "a a.b c", "a", "c a.b"),
        ("difference", |a, b| a.difference(&b), "a.b.c", "a.b", "a.b.c"),
        ("difference", |a, b| a.difference(&b), "a a.b", "a.b", "a"),
        ("difference", |a, b| a.difference(&b), "a.b", "a.b", ""),
        (
            "recursive",
            |a, b| a.recursive_difference(&b),
            "a a.b c.d",
            "a",
            "c.d",
        ),
        (
            "recursive",
            |a, b| a.recursive_difference(&b),
            "a.b.c a.d",
            "a.b",
            "a.d",
        ),
        ("recursive", |a, b| a.recursive_difference(&b), "a", "a.b", "a"),
        ("leaves", |set, _| set.leaves(), "a a.b a.b.c d", "", "d a.b.c"),
    ];
    for (name, operation, left, right, expected) in cases {
        let found = operation(set(left), set(right));
        assert_eq!(text(&found), expected, "{name} of {left:?} and {right:?}");
    }
}

#[test]
fn membership_is_of_the_field_itself() {
    let set = set("a.b c");
    assert!(set.has(&Path::of_fields(&["a", "b"])));
    assert!(!set.has(&Path::of_fields(&["a"])));
    assert!(!set.has(&Path::of_fields(&["c", "d"])));
    assert!(!set.has(&Path::default()));
    assert_eq!(set.len(), 2);
    assert_eq!(set.depth(), 2);
}

#[test]
fn what_is_pushed_late_is_still_sorted() {
    let mut set = FieldSet::new();
    for name in ["b", "a", "c", "a"] {
        set.push(PathElement::field(name), true, FieldSet::new());
    }
    set.push(PathElement::Value(json!(1)), false, FieldSet::new());
    assert_eq!(text(&set), "a b c");
}

fn any_set() -> impl Strategy<Value = FieldSet> {
    let path = prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4);
    prop::collection::vec(path, 0..8).prop_map(|paths| {
        let mut set = FieldSet::new();
        for path in paths {
            set.insert(&Path::of_fields(&path));
        }
        set
    })
}

proptest! {
    #[test]
    fn sets_behave_as_sets(a in any_set(), b in any_set()) {
        let both: Vec<Path> = a.paths().into_iter().filter(|path| b.has(path)).collect();
        prop_assert_eq!(a.intersection(&b).paths().len(), both.len());
        prop_assert!(both.iter().all(|path| a.intersection(&b).has(path)));
        prop_assert_eq!(a.clone().union(b.clone()).len(), a.len() + b.len() - both.len());
        prop_assert_eq!(a.clone().difference(&b).len(), a.len() - both.len());
        prop_assert_eq!(a.clone().union(b.clone()), b.clone().union(a.clone()));
        prop_assert_eq!(a.clone().difference(&b).union(a.intersection(&b)), a.clone());
        prop_assert!(a.clone().difference(&a).is_empty());
        for path in a.clone().recursive_difference(&b).paths() {
            let above = (1..=path.0.len()).any(|end| b.has(&Path(path.0[..end].to_vec())));
            prop_assert!(a.has(&path) && !above);
        }
    }
}
