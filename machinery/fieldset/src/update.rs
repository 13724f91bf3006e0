//! Ownership after a create, a PUT or a patch: whoever changes a field owns it.
//!
//! The server calls [`update`] with the object as the client wants it, before it prepares, admits and allocates: what
//! the server itself fills in is nobody's.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use machinery_value::{Map, Value};

use crate::apply::{Conflict, Conflicts};
use crate::check::check;
use crate::compare::{Comparison, compare};
use crate::managed::{Identity, ManagedFields, Operation, Owned, Time, clear, is_reset};
use crate::reconcile::reconcile;
use crate::reset::Reset;
use crate::set::FieldSet;
use crate::shape::{Shape, Versions};
use crate::value::same;

/// The most managers that own fields by updates; beyond, the oldest become one.
const MAX_UPDATERS: usize = 10;
/// The manager that the oldest become.
const OLD_UPDATES: &str = "ancient-changes";
/// The longest name that a manager gets from a user agent, in bytes.
const MAX_NAME: usize = 128;

/// One write.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    /// The versions of the kind.
    pub versions: &'a dyn Versions,
    /// The version in which the client writes, and in which objects are given.
    pub api_version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The subresource, empty for the object itself.
    pub subresource: &'a str,
    /// What a write through this path takes no notice of.
    pub reset: &'a Reset,
    /// Who writes.
    pub manager: &'a str,
    /// When.
    pub now: Time,
    /// The object of this kind with nothing set: for built-in kinds what the empty object decodes to (`spec: {}`,
    /// `status: {}`), for custom resources `{}`. What a create has beyond that is owned.
    pub empty: &'a Value,
}

/// The name of a manager: the one that the client gives, or what its user agent begins with.
pub fn manager_name(field_manager: &str, user_agent: &str) -> String {
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let agent = user_agent.split('/').next().unwrap_or_default();
    let mut name = String::new();
    for c in agent
        .chars()
        .filter(|c| *c == ' ' || !c.is_whitespace() && !c.is_control())
    {
        if name.len() + c.len_utf8() > MAX_NAME {
            break;
        }
        name.push(c);
    }
    name
}

/// Records in `new` who owns its fields. `live` is the stored object, or [`Write::empty`] for a create.
///
/// A list that the client itself sends with a write of the object counts in place of the stored one, and an empty one
/// clears it. An object that does not fit its schema loses the list, as one does that has lost it before.
pub fn update(write: &Write<'_>, live: &Value, new: &mut Value) {
    let mut managed = managed_fields(write, live, new);
    clear(new);
    let created = live["metadata"]["uid"].as_str().unwrap_or_default().is_empty();
    if managed.entries.is_empty() && !created {
        return;
    }
    if track(write, live, new, &mut managed, write.manager) {
        cap(&mut managed);
        managed.store(new);
    }
}

fn managed_fields(write: &Write<'_>, live: &Value, new: &Value) -> ManagedFields {
    let sent = new.get("metadata").and_then(|meta| meta.get("managedFields"));
    if write.subresource.is_empty() {
        if is_reset(sent) {
            return ManagedFields::default();
        }
        match ManagedFields::decode(sent) {
            Ok(managed) if !managed.entries.is_empty() => return managed,
            // Clients that do not know the list, or send nonsense, do not lose it by accident.
            _ => {}
        }
    }
    ManagedFields::of(live).unwrap_or_default()
}

/// Gives the fields that differ between `live` and `new` to `manager`. Returns whether the objects fit their shape.
pub(crate) fn track(
    write: &Write<'_>,
    live: &Value,
    new: &Value,
    managed: &mut ManagedFields,
    manager: &str,
) -> bool {
    let Some(shape) = write.versions.shape(write.api_version) else {
        return false;
    };
    if check(shape, new, true).is_err() || check(shape, live, true).is_err() {
        return false;
    }
    reconcile_all(write, managed);
    let Ok(comparison) = transfer(write, shape, live, new, managed, None) else {
        return false;
    };
    let changed = strip(comparison.modified.union(comparison.added));
    if changed.is_empty() {
        return true;
    }
    let identity = Identity::new(manager, Operation::Update, write.api_version, write.subresource);
    let owned = match managed.entries.remove(&identity) {
        Some(previous) => changed.union(previous.fields),
        None => changed,
    };
    managed.entries.insert(
        identity,
        Owned {
            fields: owned,
            api_version: write.api_version.to_owned(),
            time: Some(write.now),
        },
    );
    true
}

/// Adapts every entry to the present schema of its version; entries of versions that are gone go.
pub(crate) fn reconcile_all(write: &Write<'_>, managed: &mut ManagedFields) {
    managed.entries.retain(|_, owned| {
        let Some(shape) = write.versions.shape(&owned.api_version) else {
            return false;
        };
        if let Some(fields) = reconcile(shape, &owned.fields) {
            owned.fields = fields;
        }
        true
    });
}

/// Takes from all managers what has changed between two objects. `applier`, which may keep what it has, is the one
/// that applies without force: what it would take from others is a conflict.
pub(crate) fn transfer(
    write: &Write<'_>,
    shape: Shape<'_>,
    live: &Value,
    new: &Value,
    managed: &mut ManagedFields,
    applier: Option<(&Identity, bool)>,
) -> Result<Comparison, Conflicts> {
    let own = compare(shape, live, new).map(|set| write.reset.filter(set));
    let mut others: BTreeMap<String, Comparison> = BTreeMap::new();
    for owned in managed.entries.values() {
        let version = &owned.api_version;
        if version == write.api_version || others.contains_key(version) {
            continue;
        }
        if let Some(shape) = write.versions.shape(version) {
            let in_version = |object| write.versions.convert(object, write.api_version, version);
            let (live, new): (Cow<'_, Value>, Cow<'_, Value>) = (in_version(live), in_version(new));
            let comparison = compare(shape, &live, &new).map(|set| write.reset.filter(set));
            others.insert(version.clone(), comparison);
        }
    }
    let changes = |owned: &Owned| {
        if owned.api_version == write.api_version {
            Some(&own)
        } else {
            others.get(&owned.api_version)
        }
    };
    let is_applier = |identity: &Identity| applier.is_some_and(|(own, _)| own == identity);

    let mut taken: BTreeMap<Identity, FieldSet> = BTreeMap::new();
    for (identity, owned) in &managed.entries {
        if is_applier(identity) {
            continue;
        }
        if let Some(changes) = changes(owned) {
            let modified = owned.fields.intersection(&changes.modified);
            let fields = modified.union(owned.fields.intersection(&changes.added));
            if !fields.is_empty() {
                taken.insert(identity.clone(), fields);
            }
        }
    }
    if applier.is_some_and(|(_, force)| !force) && !taken.is_empty() {
        return Err(Conflicts(
            taken
                .iter()
                .flat_map(|(identity, fields)| {
                    fields.paths().into_iter().map(|path| Conflict {
                        manager: identity.clone(),
                        path,
                    })
                })
                .collect(),
        ));
    }
    managed.entries.retain(|identity, owned| {
        if !is_applier(identity) {
            if let Some(fields) = taken.get(identity) {
                owned.fields = std::mem::take(&mut owned.fields).difference(fields);
            }
            match changes(owned) {
                Some(changes) if !changes.removed.is_empty() => {
                    owned.fields = std::mem::take(&mut owned.fields).difference(&changes.removed);
                }
                Some(_) => {}
                None => return false,
            }
        }
        !owned.fields.is_empty()
    });
    Ok(own)
}

/// The set without what nobody owns: the identity of an object, and what the server writes.
pub(crate) fn strip(set: FieldSet) -> FieldSet {
    static NOBODY: OnceLock<FieldSet> = OnceLock::new();
    set.difference(NOBODY.get_or_init(|| {
        FieldSet::of_fields(&[
            &["apiVersion"],
            &["kind"],
            &["metadata"],
            &["metadata", "name"],
            &["metadata", "namespace"],
            &["metadata", "creationTimestamp"],
            &["metadata", "selfLink"],
            &["metadata", "uid"],
            &["metadata", "clusterName"],
            &["metadata", "generation"],
            &["metadata", "managedFields"],
            &["metadata", "resourceVersion"],
        ])
    }))
}

/// Lets the oldest updaters of each version become one, until there are few enough.
fn cap(managed: &mut ManagedFields) {
    let mut updaters: Vec<(i64, String, Identity)> = managed
        .entries
        .iter()
        .filter(|(identity, _)| identity.operation == Operation::Update)
        .map(|(identity, owned)| {
            let seconds = owned.time.map_or(0, Time::seconds);
            (seconds, identity.sort_key(), identity.clone())
        })
        .collect();
    let mut count = updaters.len();
    if count <= MAX_UPDATERS {
        return;
    }
    updaters.sort();
    let mut first_of: BTreeMap<String, Identity> = BTreeMap::new();
    for (_, _, identity) in updaters {
        if count <= MAX_UPDATERS {
            return;
        }
        let Some(owned) = managed.entries.get(&identity).cloned() else {
            continue;
        };
        let bucket = Identity::new(OLD_UPDATES, Operation::Update, &owned.api_version, "");
        let Some(first) = first_of.get(&owned.api_version) else {
            first_of.insert(owned.api_version.clone(), identity);
            continue;
        };
        if !managed.entries.contains_key(&bucket)
            && let Some(first) = managed.entries.remove(first)
        {
            managed.entries.insert(bucket.clone(), first);
        }
        managed.entries.remove(&identity);
        if let Some(old) = managed.entries.get_mut(&bucket) {
            old.fields = owned.fields.union(std::mem::take(&mut old.fields));
            old.time = owned.time;
        } else {
            managed.entries.insert(bucket, owned);
        }
        count -= 1;
    }
}

/// Keeps the times of `old` if nothing else has changed, so that a write that changes nothing is none. The server
/// calls it last, after everything that changes `new`.
pub fn keep_times(old: &Value, new: &mut Value) {
    let lists = (
        &old["metadata"]["managedFields"],
        &new["metadata"]["managedFields"],
    );
    let (Value::Array(before), Value::Array(after)) = lists else {
        return;
    };
    let pairs = || before.iter().zip(after);
    let times_differ = pairs().any(|(a, b)| a.get("time") != b.get("time"));
    let same_length = before.len() == after.len();
    if !times_differ || !same_length || !pairs().all(|(a, b)| same_but(a, b, "time")) {
        return;
    }
    let (old_meta, new_meta) = (&old["metadata"], &new["metadata"]);
    if same_but(old, new, "metadata") && same_but(old_meta, new_meta, "managedFields") {
        let before = Value::Array(before.to_vec());
        new["metadata"]["managedFields"] = before;
    }
}

/// Whether two objects are the same but for the field `name`.
fn same_but(old: &Value, new: &Value, name: &str) -> bool {
    let (Value::Object(old), Value::Object(new)) = (old, new) else {
        return false;
    };
    let others = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(name));
    others(old) == others(new)
        && old
            .iter()
            .all(|(key, a)| key == name || new.get(key).is_some_and(|b| same(a, b)))
}

#[cfg(test)]
mod tests;
