//! Which of two tellings wins, in every order that the watch and our own writes may speak.

use std::sync::Weak;

use parking_lot::Mutex;

use super::*;

/// A cache, and what it told: `+name@version`, `name@old>new` or `-name@version`.
struct Told {
    cache: Arc<Cache>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Told {
    fn new() -> Self {
        let log = Arc::new(Mutex::new(Vec::new()));
        let cache = {
            let log = log.clone();
            let on_change = move |change: &Change| log.lock().push(describe(change));
            let selector = LabelSelector::parse("app=it").unwrap();
            Arc::new(Cache::new(
                &Resource::config_maps(),
                "",
                Some(selector),
                Arc::new(on_change),
            ))
        };
        Self { cache, log }
    }

    /// A cache that listed these objects, `name@version`, at version 10.
    fn listed(items: &[&str]) -> Self {
        let told = Self::new();
        told.list(10, items);
        told.log.lock().clear();
        told
    }

    fn list(&self, at: u64, items: &[&str]) {
        self.cache.list_begins();
        self.list_answers(at, items);
    }

    fn list_answers(&self, at: u64, items: &[&str]) {
        self.cache.list_is_at(&at.to_string());
        for item in items {
            self.cache.list_item(&object(item)).unwrap();
        }
        self.cache.list_ends(&at.to_string());
    }

    fn learn(&self, item: &str) {
        self.cache.learn(object(item).as_bytes()).unwrap();
    }

    fn forget(&self, item: &str) {
        let (name, uid) = name_and_uid(item);
        self.cache.forget(&Key::new("n", name), uid);
    }

    fn modified(&self, item: &str) {
        self.cache.watch_item(&Item::parse(&object(item)).unwrap());
    }

    fn deleted(&self, item: &str) {
        self.cache.watch_deleted(&Item::parse(&object(item)).unwrap());
    }

    #[track_caller]
    fn check(&self, expected: &[&str]) {
        assert_eq!(*self.log.lock(), expected);
        let held = self.cache.list().len();
        assert_eq!(held, self.cache.len());
    }
}

fn describe(change: &Change) -> String {
    match (&change.old, &change.new) {
        (None, Some(new)) => format!("+{}@{}", new.key.name, new.resource_version),
        (Some(old), None) => format!("-{}@{}", old.key.name, old.resource_version),
        (Some(old), Some(new)) => format!(
            "{}@{}>{}",
            new.key.name, old.resource_version, new.resource_version
        ),
        (None, None) => "nothing".into(),
    }
}

/// The uid is the name unless the name has a suffix: `a/2` is another object named `a`.
fn name_and_uid(item: &str) -> (&str, &str) {
    let id = item.split('@').next().unwrap();
    (id.split('/').next().unwrap(), id)
}

/// `name[/uid]@version[!]`, where `!` says that it is on its way out, held by a finalizer; `!!` that nothing holds it.
fn object(item: &str) -> String {
    let (name, uid) = name_and_uid(item);
    let version = item.split('@').nth(1).unwrap();
    let mut meta = serde_json::json!({"name": name, "namespace": "n", "uid": uid, "labels": {"app": "it"},
        "resourceVersion": version.trim_end_matches('!')});
    if version.ends_with('!') {
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        if !version.ends_with("!!") {
            meta["finalizers"] = serde_json::json!(["a/b"]);
        }
    }
    serde_json::json!({ "metadata": meta }).to_string()
}

#[test]
fn the_newest_version_wins() {
    let told = Told::listed(&["a@1", "b@2"]);
    told.learn("a@12");
    told.modified("a@11");
    told.modified("a@12");
    told.check(&["a@1>12"]);
    told.modified("a@13");
    told.learn("a@12");
    told.check(&["a@1>12", "a@12>13"]);
    // Versions compare as numbers, not as text.
    told.learn("b@100");
    told.modified("b@20");
    told.check(&["a@1>12", "a@12>13", "b@2>100"]);
}

#[test]
fn a_list_that_repeats_what_is_known_tells_nothing() {
    let told = Told::listed(&["a@1", "b@2"]);
    told.list(12, &["a@1", "b@2"]);
    told.check(&[]);
    told.list(20, &["b@15", "c@16"]);
    told.check(&["b@2>15", "+c@16", "-a@1"]);
}

#[test]
fn what_was_learned_after_a_list_survives_it() {
    let told = Told::listed(&["a@1"]);
    told.cache.list_begins();
    told.learn("new@30");
    told.learn("a@31");
    told.learn("stale@15");
    told.list_answers(20, &["a@1"]);
    told.check(&["+new@30", "a@1>31", "+stale@15", "-stale@15"]);
}

#[test]
fn an_answer_that_the_watch_has_passed_is_old() {
    let told = Told::listed(&["a@1"]);
    told.modified("a@11");
    told.deleted("a@12");
    told.learn("a@11");
    told.check(&["a@1>11", "-a@11"]);
    assert!(told.cache.is_empty());
}

#[test]
fn what_we_deleted_does_not_come_back() {
    let told = Told::listed(&["a@1"]);
    told.forget("a");
    told.modified("a@11");
    told.learn("a@12");
    told.check(&["-a@1"]);
    told.deleted("a@13");
    told.modified("a/2@14");
    told.check(&["-a@1", "+a@14"]);
    // Only the object that was meant is forgotten.
    told.forget("a");
    told.check(&["-a@1", "+a@14"]);
}

#[test]
fn the_deletion_of_a_predecessor_leaves_its_successor() {
    let told = Told::listed(&["a@1"]);
    told.forget("a");
    told.learn("a/2@15");
    told.deleted("a@12");
    told.modified("a/2@15");
    told.check(&["-a@1", "+a@15"]);
    told.deleted("a/2@16");
    told.check(&["-a@1", "+a@15", "-a@15"]);
}

#[test]
fn an_object_that_was_forgotten_too_early_returns() {
    let told = Told::listed(&["a@1", "b@2"]);
    told.forget("a");
    told.modified("a@11!");
    told.check(&["-a@1", "+a@11"]);
    told.forget("b");
    told.list(20, &["a@11!", "b@2"]);
    told.check(&["-a@1", "+a@11", "-b@2", "+b@2"]);
}

#[test]
fn a_list_that_began_before_a_deletion_does_not_undo_it() {
    let told = Told::listed(&["a@1"]);
    told.cache.list_begins();
    told.forget("a");
    told.list_answers(20, &["a@1"]);
    told.modified("a@21");
    told.deleted("a@22");
    told.check(&["-a@1"]);
}

#[test]
fn an_answer_that_ends_an_object_removes_it() {
    let told = Told::listed(&["a@1!", "b@2"]);
    told.learn("a@11!!");
    told.modified("a@11!");
    told.deleted("a@12!");
    told.check(&["-a@1"]);
    // So does an answer that takes it out of the selection.
    let other = object("b@13").replace(r#""app":"it""#, r#""app":"other""#);
    told.cache.learn(other.as_bytes()).unwrap();
    told.deleted("b@13");
    told.check(&["-a@1", "-b@2"]);
}

#[test]
fn a_history_that_was_put_back_is_believed() {
    let told = Told::listed(&["a@5", "b@6"]);
    told.modified("b@50");
    assert_eq!(told.cache.seen(), "50");
    told.list(20, &["a@5", "b@6"]);
    told.check(&["b@6>50", "b@50>6"]);
    assert_eq!(told.cache.seen(), "20");
    assert_eq!(told.cache.watch_bookmark(&object("x@19")), Ok(false));
    assert_eq!(told.cache.watch_bookmark(&object("x@21")), Ok(true));
    assert_eq!(told.cache.seen(), "21");
}

#[test]
fn seen_moves_after_the_telling_and_not_by_our_own_writes() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let cache = Arc::new_cyclic(|cache: &Weak<Cache>| {
        let (seen, cache) = (seen.clone(), cache.clone());
        let on_change = move |_: &Change| {
            let cache = cache.upgrade().unwrap();
            seen.lock().push((cache.seen_version(), cache.synced()));
        };
        Cache::new(&Resource::config_maps(), "", None, Arc::new(on_change))
    });
    cache.list_begins();
    cache.list_item(&object("a@1")).unwrap();
    assert!(!cache.synced());
    cache.list_ends("10");
    assert!(cache.synced());
    cache.watch_item(&Item::parse(&object("a@11")).unwrap());
    cache.learn(object("a@20").as_bytes()).unwrap();
    assert_eq!(cache.seen(), "11");
    assert_eq!(*seen.lock(), [(0, false), (10, true), (11, true)]);
}

#[test]
fn a_callback_may_feed_the_cache_and_may_panic() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let cache = Arc::new_cyclic(|cache: &Weak<Cache>| {
        let (log, cache) = (log.clone(), cache.clone());
        let on_change = move |change: &Change| {
            let text = describe(change);
            log.lock().push(text.clone());
            if text == "+a@1" {
                cache.upgrade().unwrap().learn(object("a@20").as_bytes()).unwrap();
                // What was fed is told after this, not inside it.
                log.lock().push("after".into());
            }
            assert!(!text.starts_with("+bad"), "as a bug would");
        };
        Cache::new(&Resource::config_maps(), "", None, Arc::new(on_change))
    });
    cache.list_item(&object("a@1")).unwrap();
    assert_eq!(*log.lock(), ["+a@1", "after", "a@1>20"]);
    let fed = std::panic::AssertUnwindSafe(|| cache.list_item(&object("bad@2")));
    assert!(std::panic::catch_unwind(fed).is_err());
    cache.list_item(&object("c@3")).unwrap();
    assert_eq!(log.lock().last().unwrap(), "+c@3");
}

#[test]
fn threads_do_not_tell_out_of_order() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let told = log.clone();
    let on_change = move |change: &Change| told.lock().push(change.new.as_ref().unwrap().version());
    let cache = Cache::new(&Resource::config_maps(), "", None, Arc::new(on_change));
    std::thread::scope(|scope| {
        for start in 1..=4_u64 {
            let cache = &cache;
            scope.spawn(move || {
                for step in 0..500 {
                    cache
                        .learn(object(&format!("a@{}", start + 4 * step)).as_bytes())
                        .unwrap();
                }
            });
        }
    });
    let log = log.lock();
    assert!(log.is_sorted() && log.last() == Some(&2000), "{log:?}");
}

#[test]
fn objects_are_listed_in_order_and_by_namespace() {
    let cache = Cache::detached(&Resource::config_maps());
    for (namespace, name) in [("b", "x"), ("a", "y"), ("a", "x")] {
        let text = format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"{namespace}","uid":"u","resourceVersion":"1"}}}}"#
        );
        cache.learn(text.as_bytes()).unwrap();
    }
    let keys = |list: Vec<Arc<Cached>>| list.iter().map(|c| c.key.to_string()).collect::<Vec<_>>();
    assert_eq!(keys(cache.list()), ["a/x", "a/y", "b/x"]);
    assert_eq!(keys(cache.list_in("a")), ["a/x", "a/y"]);
    assert!(cache.list_in("c").is_empty() && cache.synced());
    assert!(cache.find("b", "x").is_some() && cache.find("b", "y").is_none());
    let body: serde_json::Value = cache.find("b", "x").unwrap().parse().unwrap();
    assert_eq!(
        (&body["apiVersion"], &body["kind"]),
        (&"v1".into(), &"ConfigMap".into())
    );
}

#[test]
fn what_others_did_is_told_apart_from_our_own() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let told = log.clone();
    let on_change = move |change: &Change| told.lock().push((describe(change), change.own));
    let cache = Cache::new(&Resource::config_maps(), "", None, Arc::new(on_change));
    cache.list_item(&object("a@1")).unwrap();
    cache.learn(object("a@2").as_bytes()).unwrap();
    cache.learn_read(object("a@3").as_bytes()).unwrap();
    cache.watch_item(&Item::parse(&object("a@4")).unwrap());
    cache.forget(&Key::new("n", "a"), "a");
    cache.learn(object("b@5").as_bytes()).unwrap();
    cache.forget_gone(&Key::new("n", "b"), "b");
    let expected = [
        ("+a@1", false),
        ("a@1>2", true),
        ("a@2>3", false),
        ("a@3>4", false),
        ("-a@4", true),
        ("+b@5", true),
        ("-b@5", false),
    ];
    let log = log.lock();
    let log: Vec<_> = log.iter().map(|(text, own)| (text.as_str(), *own)).collect();
    assert_eq!(log, expected);
}
