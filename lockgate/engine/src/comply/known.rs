//! What a status knows of the objects that its policy speaks of, or spoke of: those that are told, those that are to go, and
//! the further ones for which there is no room to be told.

use std::collections::{BTreeMap, HashMap, HashSet};

use lockgate_api::ocm::configuration::{
    ConfigurationStatus, FurtherObjects, RelatedMeta, RelatedObject, RelatedProperties, RelatedRef,
};

use super::judge::{Judged, NO_NAME, Subject};
use super::rules::Prune;

/// The most that is written of further objects, in bytes: with what is told of the others it must fit into one object.
const MAX_FURTHER: usize = 700_000;

/// Group and version, kind, namespace and name.
type Which<'a> = (&'a str, &'a str, &'a str, &'a str);

/// What is known of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fact<'a> {
    /// Its uid; empty if it was not there.
    pub(super) uid: &'a str,
    /// Whether the policy made it.
    pub(super) made: bool,
    /// Whether the policy spoke of it while it enforced.
    pub(super) enforced: bool,
    /// What was told of it; empty for further ones.
    pub(super) reason: &'a str,
}

/// What a status knows of its objects.
#[derive(Debug, Default)]
pub struct Known<'a>(HashMap<Which<'a>, Fact<'a>>);

impl<'a> Known<'a> {
    /// What this status knows.
    pub fn of(status: &'a ConfigurationStatus) -> Self {
        let told = status.related_objects.iter().chain(&status.pending_prune);
        let told = told.map(|related| (which(&related.object), fact(related)));
        let further = status.further_objects.iter().flat_map(|further| {
            let of_kind = (further.api_version.as_str(), further.kind.as_str());
            further.objects.iter().filter_map(move |text| {
                let (namespace, name, fact) = read(text)?;
                Some(((of_kind.0, of_kind.1, namespace, name), fact))
            })
        });
        let mut all = HashMap::new();
        for (which, fact) in told.chain(further) {
            // What is told comes first, and says the most.
            all.entry(which).or_insert(fact);
        }
        Self(all)
    }

    pub(super) fn find(&self, subject: &Subject, namespace: &str, name: &str) -> Option<Fact<'a>> {
        let which = (
            subject.api_version.as_str(),
            subject.kind.as_str(),
            namespace,
            name,
        );
        self.0.get(&which).copied()
    }

    /// Whether an object is there that nothing has been said of yet.
    pub fn is_new(&self, subject: &Subject, one: &Judged) -> bool {
        let [name] = &*one.names else {
            return false;
        };
        let known = self.find(subject, &one.namespace, name);
        !one.made && !one.uid.is_empty() && known.is_none_or(|known| known.uid != one.uid)
    }

    /// The objects of which nobody speaks any more and that are to go some time, in order.
    pub(super) fn left_behind(&self, related: &[RelatedObject], prune: Prune) -> Vec<RelatedObject> {
        let spoken_of: HashSet<Which<'_>> = related.iter().map(|one| which(&one.object)).collect();
        let left = self
            .0
            .iter()
            .filter(|(which, fact)| goes(which.3, fact, prune) && !spoken_of.contains(*which));
        let mut left: Vec<RelatedObject> = left.map(|(which, fact)| related_object(which, fact)).collect();
        sort(&mut left);
        left
    }
}

/// By kind, namespace, name, and group and version, each once. Nothing else may decide: what comes in another order is written.
pub(super) fn sort(related: &mut Vec<RelatedObject>) {
    let key = |related: &RelatedObject| {
        let object = &related.object;
        let meta = &object.metadata;
        let kind = object.kind.clone();
        (
            kind,
            meta.namespace.clone(),
            meta.name.clone(),
            object.api_version.clone(),
        )
    };
    related.sort_by_cached_key(key);
    related.dedup_by(|a, b| a.object == b.object);
}

/// Whether an object is one that goes with its policy. What was only informed about never is.
fn goes(name: &str, fact: &Fact<'_>, prune: Prune) -> bool {
    let is_ours = match prune {
        Prune::Nothing => false,
        Prune::IfCreated => fact.made,
        Prune::All => fact.made || fact.enforced,
    };
    is_ours && !fact.uid.is_empty() && name != NO_NAME
}

fn which(object: &RelatedRef) -> Which<'_> {
    let meta = &object.metadata;
    (&object.api_version, &object.kind, &meta.namespace, &meta.name)
}

fn fact(related: &RelatedObject) -> Fact<'_> {
    let properties = related.properties.as_ref();
    Fact {
        uid: properties.map_or("", |known| &known.uid),
        made: properties.is_some_and(|known| known.created_by_policy == Some(true)),
        enforced: properties.is_some_and(|known| known.enforced_by_policy == Some(true)),
        reason: &related.reason,
    }
}

fn related_object((api_version, kind, namespace, name): &Which<'_>, fact: &Fact<'_>) -> RelatedObject {
    RelatedObject {
        object: RelatedRef {
            api_version: (*api_version).to_owned(),
            kind: (*kind).to_owned(),
            metadata: RelatedMeta {
                name: (*name).to_owned(),
                namespace: (*namespace).to_owned(),
            },
        },
        properties: Some(RelatedProperties {
            created_by_policy: Some(fact.made),
            enforced_by_policy: fact.enforced.then_some(true),
            uid: fact.uid.to_owned(),
            ..RelatedProperties::default()
        }),
        ..RelatedObject::default()
    }
}

/// What is kept of objects that are not told: `namespace/name uid`, then whether the policy made and enforced it. `Err` says
/// that this is too much to be kept. What nobody would prune is the first to be forgotten.
pub(super) fn further(objects: &[&RelatedObject]) -> Result<Vec<FurtherObjects>, ()> {
    let all = objects.iter().copied();
    let may_go = |related: &&RelatedObject| {
        let fact = fact(related);
        fact.made || fact.enforced
    };
    written(all.clone()).or_else(|()| written(all.filter(may_go)))
}

fn written<'a>(objects: impl Iterator<Item = &'a RelatedObject>) -> Result<Vec<FurtherObjects>, ()> {
    let mut kinds: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    let mut size = 0;
    for related in objects {
        let (api_version, kind, namespace, name) = which(&related.object);
        let fact = fact(related);
        if fact.uid.is_empty() {
            continue;
        }
        let mut text = format!("{namespace}/{name} {}", fact.uid);
        if fact.made || fact.enforced {
            text.push(' ');
            text.push_str(if fact.made { "made" } else { "" });
            text.push_str(if fact.enforced { "+enforced" } else { "" });
        }
        size += text.len() + 3;
        if size > MAX_FURTHER {
            return Err(());
        }
        kinds.entry((api_version, kind)).or_default().push(text);
    }
    let all = kinds
        .into_iter()
        .map(|((api_version, kind), objects)| FurtherObjects {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            objects,
        });
    Ok(all.collect())
}

/// Namespace, name and what is known, as [`further`] writes it.
fn read(text: &str) -> Option<(&str, &str, Fact<'_>)> {
    let (which, rest) = text.split_once(' ')?;
    let (namespace, name) = which.split_once('/')?;
    let (uid, flags) = rest.split_once(' ').unwrap_or((rest, ""));
    let fact = Fact {
        uid,
        made: flags.starts_with("made"),
        enforced: flags.ends_with("+enforced"),
        reason: "",
    };
    Some((namespace, name, fact))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(api_version: &str, name: &str, made: bool) -> RelatedObject {
        let fact = Fact {
            uid: "0e5c1c8e-7d1f-4f4e-9d2b-6a3f0c5b7a11",
            made,
            enforced: false,
            reason: "",
        };
        related_object(&(api_version, "Role", "shop", name), &fact)
    }

    #[test]
    fn objects_of_one_kind_and_name_have_an_order() {
        let [a, b] = ["a.example/v1", "b.example/v1"].map(|group| object(group, "box", true));
        for mut all in [[&a, &b, &a], [&b, &a, &b]].map(|all| all.map(Clone::clone).to_vec()) {
            sort(&mut all);
            assert_eq!(all, [a.clone(), b.clone()].to_vec());
        }
    }

    #[test]
    fn what_is_not_pruned_is_forgotten_first() {
        let all = |count: usize, made: fn(usize) -> bool| -> Vec<RelatedObject> {
            let of = |number: usize| object("v1", &format!("box-{number}"), made(number));
            (0..count).map(of).collect()
        };
        let kept = |objects: &[RelatedObject]| {
            let further = further(&objects.iter().collect::<Vec<_>>())?;
            Ok::<usize, ()>(further.iter().map(|kind| kind.objects.len()).sum())
        };
        assert_eq!(kept(&all(100, |number| number % 100 == 0)), Ok(100));
        assert_eq!(kept(&all(30_000, |number| number % 100 == 0)), Ok(300));
        assert_eq!(kept(&all(30_000, |_| true)), Err(()));
    }
}
