//! A store against a naive model that remembers everything.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use crate::testing::{Text, block_on, delete, drain, put, show_page};
use crate::{Expect, From, Options, Range, ReadError, Store, Watch, WriteError};

const KEYS: [&str; 6] = ["/a/x", "/a/y", "/a/z/1", "/ab", "/b/x", "c"];
const PREFIXES: [&str; 6] = ["", "/", "/a/", "/a", "/a/z/", "/b/x"];
const HISTORY: usize = 12;

#[derive(Clone, Debug)]
enum Step {
    Write {
        key: usize,
        delete: bool,
        expect: Option<i64>,
    },
    Read {
        prefix: usize,
        after: Option<usize>,
        limit: usize,
        back: Option<u64>,
    },
    Watch {
        prefix: usize,
        back: Option<u64>,
    },
    Drain {
        watch: usize,
    },
    Compact {
        back: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let expect = prop::option::of(-1..2i64);
    let back = || prop::option::of(0..20u64);
    prop_oneof![
        8 => (0..KEYS.len(), prop::bool::weighted(0.3), expect)
            .prop_map(|(key, delete, expect)| Step::Write { key, delete, expect }),
        3 => (0..PREFIXES.len(), prop::option::of(0..KEYS.len()), 0..4usize, back())
            .prop_map(|(prefix, after, limit, back)| Step::Read { prefix, after, limit, back }),
        2 => (0..PREFIXES.len(), back()).prop_map(|(prefix, back)| Step::Watch { prefix, back }),
        2 => (0..8usize).prop_map(|watch| Step::Drain { watch }),
        1 => (0..20u64).prop_map(|back| Step::Compact { back }),
    ]
}

struct Logged {
    revision: u64,
    key: &'static str,
    /// The entry as it is shown, none after a delete.
    after: Option<String>,
    event: String,
}

/// Every write that ever happened.
struct Model {
    log: Vec<Logged>,
    revision: u64,
    floor: u64,
}

impl Model {
    fn at(&self, key: &str, revision: u64) -> Option<&String> {
        let newest = self
            .log
            .iter()
            .rev()
            .find(|write| write.revision <= revision && write.key == key);
        newest.and_then(|write| write.after.as_ref())
    }

    fn revision_of(&self, key: &str) -> Option<u64> {
        let newest = self.log.iter().rev().find(|write| write.key == key)?;
        newest.after.is_some().then_some(newest.revision)
    }

    fn push(&mut self, key: &'static str, value: Option<String>) {
        self.revision += 1;
        let was = self
            .at(key, self.revision)
            .map_or(String::new(), |was| format!(" was {was}"));
        let after = value.map(|value| format!("{key}={value}@{}", self.revision));
        let event = match &after {
            Some(entry) => format!("+{entry}{was}"),
            None => format!("-{key}=gone at {}@{}{was}", self.revision, self.revision),
        };
        self.log.push(Logged {
            revision: self.revision,
            key,
            after,
            event,
        });
        if self.log.len() > HISTORY {
            self.floor = self.floor.max(self.log[self.log.len() - HISTORY - 1].revision);
        }
    }

    fn page(&self, prefix: &str, after: Option<&str>, limit: usize, revision: u64) -> (String, usize) {
        let mut keys = KEYS.to_vec();
        keys.sort_unstable();
        let all: Vec<&String> = keys
            .into_iter()
            .filter(|key| key.starts_with(prefix) && after.is_none_or(|after| *key > after))
            .filter_map(|key| self.at(key, revision))
            .collect();
        let shown = if limit == 0 {
            all.len()
        } else {
            limit.min(all.len())
        };
        (
            all[..shown]
                .iter()
                .map(|entry| entry.as_str())
                .collect::<Vec<_>>()
                .join(" "),
            all.len() - shown,
        )
    }

    fn events(&self, prefix: &str, after: u64) -> Vec<String> {
        let writes = self
            .log
            .iter()
            .filter(|write| write.revision > after && write.key.starts_with(prefix));
        writes.map(|write| write.event.clone()).collect()
    }
}

struct Watched {
    watch: Watch<Text>,
    prefix: &'static str,
    from: u64,
    seen: Vec<String>,
}

impl Watched {
    fn check(&mut self, model: &Model) -> Result<(), TestCaseError> {
        self.seen.extend(drain(&mut self.watch));
        prop_assert_eq!(&self.seen, &model.events(self.prefix, self.from));
        prop_assert_eq!(self.watch.progress(), model.revision);
        Ok(())
    }
}

async fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let store = Store::memory_with(&Options {
        history_events: HISTORY,
        ..Options::default()
    });
    let mut model = Model {
        log: Vec::new(),
        revision: 1,
        floor: 0,
    };
    let mut watches: Vec<Watched> = Vec::new();
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Write {
                key,
                delete: remove,
                expect,
            } => {
                let key = KEYS[key];
                let current = model.revision_of(key);
                let expect = match expect {
                    None => Expect::Any,
                    Some(-1) => Expect::Absent,
                    Some(shift) => Expect::Revision(current.unwrap_or(1) + shift as u64),
                };
                let fits = match expect {
                    Expect::Any => current.is_some() || !remove,
                    Expect::Absent => current.is_none() && !remove,
                    Expect::Revision(revision) => current == Some(revision),
                };
                let text = format!("v{number}");
                let result = if remove {
                    delete(&store, key, expect).await
                } else {
                    put(&store, key, expect, &text).await
                };
                match result {
                    Ok(revision) => {
                        prop_assert!(fits);
                        model.push(key, (!remove).then_some(text));
                        prop_assert_eq!(revision, model.revision);
                    }
                    Err(WriteError::Conflict(now)) => {
                        prop_assert!(!fits);
                        prop_assert_eq!(now.map(|entry| entry.revision), current);
                    }
                    Err(other) => return Err(TestCaseError::fail(other.to_string())),
                }
            }
            Step::Read {
                prefix,
                after,
                limit,
                back,
            } => {
                let (prefix, after) = (PREFIXES[prefix], after.map(|key| KEYS[key]));
                // One step into the future is asked for too.
                let at = back.map(|back| (model.revision + 1).saturating_sub(back));
                let revision = at.unwrap_or(model.revision);
                match store.range(Range {
                    prefix,
                    after,
                    limit,
                    at,
                }) {
                    Ok(page) => {
                        prop_assert!(revision >= model.floor && revision <= model.revision);
                        prop_assert_eq!(page.revision, revision);
                        prop_assert_eq!(
                            (show_page(&page), page.remaining),
                            model.page(prefix, after, limit, revision)
                        );
                    }
                    Err(error) => check_refused(&model, revision, error)?,
                }
            }
            Step::Watch { prefix, back } => {
                let prefix = PREFIXES[prefix];
                let after = back.map(|back| (model.revision + 1).saturating_sub(back));
                let revision = after.unwrap_or(model.revision);
                match store.watch(prefix, after.map_or(From::Now, From::After), usize::MAX) {
                    Ok(watch) => {
                        prop_assert!(revision >= model.floor && revision <= model.revision);
                        watches.push(Watched {
                            watch,
                            prefix,
                            from: revision,
                            seen: Vec::new(),
                        });
                    }
                    Err(error) => check_refused(&model, revision, error)?,
                }
            }
            Step::Drain { watch } => {
                if let Some(watch) = watches.get_mut(watch) {
                    watch.check(&model)?;
                }
            }
            Step::Compact { back } => {
                let revision = (model.revision + 1).saturating_sub(back);
                store.compact(revision);
                model.floor = model.floor.max(revision.min(model.revision));
            }
        }
        prop_assert_eq!(store.revision(), model.revision);
    }
    watches.iter_mut().try_for_each(|watch| watch.check(&model))
}

fn check_refused(model: &Model, requested: u64, error: ReadError) -> Result<(), TestCaseError> {
    let (oldest, current) = (model.floor, model.revision);
    let expected = if requested > current {
        ReadError::Future { requested, current }
    } else {
        prop_assert!(requested < oldest);
        ReadError::Compacted {
            requested,
            oldest,
            current,
        }
    };
    prop_assert_eq!(error, expected);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_store_does_what_the_model_does(steps in prop::collection::vec(step(), 1..120)) {
        block_on(run(steps))?;
    }
}
