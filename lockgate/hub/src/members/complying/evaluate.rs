//! One ConfigurationPolicy: is it time to look, what is found, and what is told of it on the member.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::ocm::ConfigurationPolicy;
use lockgate_api::ocm::configuration::ConfigurationStatus;
use lockgate_api::ocm::policy::COMPLIANT;
use lockgate_engine::comply::{
    Evaluated, Every, Known as KnownObjects, Outcome, Prune, Rules, Served, Subject, Template, conclude,
    judge, passing_since, rules, rules::Fault, status::is_forgotten, words,
};
use lockgate_engine::object;
use machinery_value::hash::canonical_hash;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::dispatching::SendError;
use super::watches::{Known, Watched};
use super::{TemplateMemory, Visit};
use crate::cache::Key;
use crate::clock::later;
use crate::link::LinkError;
use crate::resource::Resource;
use crate::template::encode_status;

/// What follows from the names of a policy and of its template comes after this in the name under which objects are made. A
/// policy that is stopped between making an object and saying so, or whose status somebody deletes, knows by that name that the
/// object is its own to remove.
const MAKER: &str = "lockgate-policy-";

/// What came of one ConfigurationPolicy.
pub(super) struct Looked {
    /// What it says from now on.
    pub(super) status: ConfigurationStatus,
    /// When to look again, if nothing happens before.
    pub(super) due: Option<Timestamp>,
    /// What the member refused, and may not refuse later.
    pub(super) refused: Option<String>,
    /// Whether something that is to be pruned only takes its time.
    pub(super) is_going: bool,
    /// Whether the member does not show what it speaks of, so that nobody knows.
    pub(super) is_hidden: bool,
    /// Whether the member does not keep what it must know to prune.
    pub(super) forgets: bool,
    /// Since when it enforces and nothing is wrong but what may pass by itself.
    pub(super) awaits_since: Option<Timestamp>,
    /// What is wrong, if the member does not serve some kind of it.
    pub(super) unserved: Option<String>,
}

/// What was found of all templates of one ConfigurationPolicy.
struct Judged {
    outcomes: Vec<Outcome>,
    /// What the member refused to change, and may not refuse later.
    refused: Option<String>,
    /// What it does not show, and may show later.
    hidden: Option<String>,
}

impl Visit<'_> {
    /// Looks at one ConfigurationPolicy, if it is time to. `told` is what the replica says of it now.
    pub(super) async fn evaluate(
        &self,
        policy: &ConfigurationPolicy,
        fresh: bool,
        told: &str,
        watched: &mut BTreeSet<Watched>,
    ) -> Result<Looked, SendError> {
        let mut memory = self.recall(policy);
        let previous = policy.status.clone().unwrap_or_default();
        let now = self.state.clock.now();
        let (namespaces, hidden) = match &*memory.rules {
            Ok(rules) => match self.namespaces(rules, watched).await? {
                Ok(namespaces) => (namespaces, None),
                Err(fault) => (Vec::new(), Some(fault)),
            },
            Err(_) => (Vec::new(), None),
        };
        let enforces = memory.rules.as_ref().as_ref().is_ok_and(|rules| rules.enforce);
        let prune = rules::prune(&policy.spec);
        let must = fresh
            || hidden.is_some()
            // What is still to go is tried again.
            || enforces && !previous.pending_prune.is_empty()
            || previous.last_evaluated_generation != Some(policy.metadata.generation)
            || previous.compliant.is_empty()
            // Only a look tells whether that is because the member forgets, and nobody remembers one.
            || memory.forgets.is_none() && prune != Prune::Nothing && told != COMPLIANT
            || memory
                .namespaces
                .as_ref()
                .is_some_and(|before| *before != namespaces);
        if let (Ok(rules), false) = (&*memory.rules, must) {
            let due = match rules.every(previous.compliant == COMPLIANT) {
                Every::Watch => Some(now),
                Every::Never => None,
                Every::After(wait) => Some(later(memory.evaluated, wait)),
            };
            if due.is_none_or(|due| due > now) {
                // What it selects stays watched: with the next look it must be known.
                self.follow(rules, &namespaces, watched).await?;
                let forgets = memory.forgets.unwrap_or(false);
                self.keep_memory(policy, memory);
                return Ok(Looked {
                    status: previous,
                    due,
                    refused: None,
                    is_going: false,
                    is_hidden: false,
                    forgets,
                    awaits_since: None,
                    unserved: None,
                });
            }
        }
        memory.evaluated = now;
        memory.namespaces = Some(namespaces.clone());
        let rules = memory.rules.clone();
        let judged = match (&*rules, hidden) {
            (Ok(_), Some(fault)) => Judged {
                hidden: Some(fault.message.clone()),
                outcomes: vec![Err(fault)],
                refused: None,
            },
            (Ok(rules), None) => {
                self.judge_all(policy, rules, &namespaces, &mut memory, watched)
                    .await?
            }
            (Err(fault), _) => Judged {
                outcomes: vec![Err(fault.clone())],
                refused: None,
                hidden: None,
            },
        };
        let outcomes = judged.outcomes;
        let evaluated = Evaluated {
            name: &policy.metadata.name,
            outcomes: &outcomes,
            generation: policy.metadata.generation,
            enforce: enforces,
            prune,
            unpruned: None,
            never: rules.as_ref().as_ref().map_or((false, false), Rules::never),
            custom: policy.spec.custom_message.as_ref(),
            now,
        };
        let mut concluded = conclude(&previous, &evaluated);
        let mut unpruned = Vec::new();
        if !concluded.prune.is_empty() {
            unpruned = self.prune(&concluded.prune).await?;
            let unpruned = Some(unpruned.as_slice());
            concluded = conclude(
                &previous,
                &Evaluated {
                    unpruned,
                    ..evaluated
                },
            );
        }
        let status = concluded.status;
        let kept = self.write(policy, &previous, &status).await?;
        let forgets = kept.is_some_and(|kept| is_forgotten(&status, &kept, prune));
        memory.forgets = Some(forgets);
        let is_hidden = judged.hidden.is_some();
        let refused = judged.hidden.or(judged.refused).or_else(|| {
            let stays = unpruned.first()?;
            Some(format!(
                "{} is to be pruned and is still there: {}",
                words::name(&stays.object.object),
                stays.why
            ))
        });
        let due = match (&*rules, status.compliant == COMPLIANT) {
            (Ok(rules), compliant) => match rules.every(compliant) {
                Every::After(wait) => Some(later(now, wait)),
                Every::Watch | Every::Never => None,
            },
            (Err(_), _) => None,
        };
        self.keep_memory(policy, memory);
        let awaits_since = passing_since(&outcomes, &status).filter(|_| enforces && unpruned.is_empty());
        let mut faults = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        let unserved = faults
            .find(|fault| fault.may_pass)
            .map(|fault| fault.message.clone());
        Ok(Looked {
            status,
            due,
            refused,
            is_going: unpruned.iter().any(|one| one.is_going),
            is_hidden,
            forgets,
            awaits_since,
            unserved,
        })
    }

    /// Writes the status if it says something new; gives what the member kept of it.
    async fn write(
        &self,
        policy: &ConfigurationPolicy,
        previous: &ConfigurationStatus,
        status: &ConfigurationStatus,
    ) -> Result<Option<ConfigurationStatus>, SendError> {
        if status == previous {
            return Ok(None);
        }
        self.may_write()?;
        let templates = self.own.templates();
        let resource = templates.resource();
        let key = Key::new(self.cluster(), &policy.metadata.name);
        let body = encode_status(resource, &policy.metadata, status);
        let path = resource.status(&key.namespace, &key.name);
        let written: ConfigurationPolicy = self.put(templates, &key, &path, body).await?;
        Ok(written.status)
    }

    /// What is remembered of a ConfigurationPolicy, as far as it is still the same.
    fn recall(&self, policy: &ConfigurationPolicy) -> TemplateMemory {
        let metadata = &policy.metadata;
        let memories = self.lane.policies.memories.lock();
        let known = memories
            .get(self.name)
            .and_then(|memory| memory.templates.get(&metadata.name))
            .filter(|known| known.uid == metadata.uid && known.generation == metadata.generation)
            .cloned();
        drop(memories);
        known.unwrap_or_else(|| {
            let status = policy.status.as_ref();
            let evaluated = status.and_then(|status| status.last_evaluated.parse().ok());
            TemplateMemory {
                uid: metadata.uid.clone(),
                generation: metadata.generation,
                rules: Arc::new(Rules::read(&policy.spec)),
                evaluated: evaluated.unwrap_or(Timestamp::UNIX_EPOCH),
                namespaces: None,
                forgets: None,
                tried: Default::default(),
            }
        })
    }

    fn keep_memory(&self, policy: &ConfigurationPolicy, memory: TemplateMemory) {
        let mut memories = self.lane.policies.memories.lock();
        let all = memories.entry(self.name.to_owned()).or_default();
        all.templates.insert(policy.metadata.name.clone(), memory);
    }

    /// The namespaces that a policy selects, by name.
    async fn namespaces(
        &self,
        rules: &Rules,
        watched: &mut BTreeSet<Watched>,
    ) -> Result<Result<Vec<String>, Fault>, SendError> {
        let Some(selector) = rules.selects_namespaces() else {
            return Ok(Ok(Vec::new()));
        };
        let cache = match self.watch(Watched::namespaces(), watched).await? {
            Ok(cache) => cache,
            Err(fault) => return Ok(Err(fault)),
        };
        let mut names = Vec::new();
        cache.for_each(|cached| {
            let labels: Value = cached.parse().unwrap_or_default();
            if selector.selects(&cached.key.name, object::labels(&labels), cached.terminating) {
                names.push(cached.key.name.to_string());
            }
        });
        Ok(Ok(names))
    }

    /// What the policy's templates speak of on this member.
    async fn subjects<'a>(
        &self,
        rules: &'a Rules,
        namespaces: &[String],
    ) -> Result<Vec<SubjectHere<'a>>, SendError> {
        let mut all = Vec::with_capacity(rules.templates.len());
        let mut asked = BTreeSet::new();
        for template in &rules.templates {
            let template = match template {
                Ok(template) => template,
                Err(fault) => {
                    all.push(Err(fault.clone()));
                    continue;
                }
            };
            let (api_version, kind) = (
                object::text(&template.object, "apiVersion"),
                object::text(&template.object, "kind"),
            );
            let mut resource = self.resource(api_version, kind).await?;
            if resource.is_none() && asked.insert(api_version) {
                // It may have been defined since somebody asked, perhaps by this policy.
                self.lane.policies.served.lock().remove(api_version);
                resource = self.resource(api_version, kind).await?;
            }
            let served = resource.as_ref().map(|resource| Served {
                plural: resource.plural.clone(),
                namespaced: resource.namespaced,
            });
            let subject = Subject::of(template, rules.selected(namespaces), served);
            all.push(subject.and_then(|subject| {
                let resource = resource.ok_or_else(|| Fault::template("the kind is not served"))?;
                Ok((template, subject, resource))
            }));
        }
        Ok(all)
    }

    /// Keeps watching what the policy selects.
    async fn follow(
        &self,
        rules: &Rules,
        namespaces: &[String],
        watched: &mut BTreeSet<Watched>,
    ) -> Result<(), SendError> {
        for (_, subject, resource) in self.subjects(rules, namespaces).await?.into_iter().flatten() {
            // What it does not show is told with the next look.
            let _ = self.watch(Watched::of(&subject, &resource), watched).await?;
        }
        Ok(())
    }

    /// Judges all objects of all templates, and does what is to be done about them.
    async fn judge_all(
        &self,
        policy: &ConfigurationPolicy,
        rules: &Rules,
        namespaces: &[String],
        memory: &mut TemplateMemory,
        watched: &mut BTreeSet<Watched>,
    ) -> Result<Judged, SendError> {
        let mut outcomes = Vec::with_capacity(rules.templates.len());
        let (mut refused, mut hidden) = (None, None);
        let tried = std::mem::take(&mut memory.tried);
        let maker = maker(self.name, &policy.metadata.name);
        let previous = policy.status.clone().unwrap_or_default();
        let known = KnownObjects::of(&previous);
        let prunes_own = rules::prune(&policy.spec) == Prune::IfCreated;
        let subjects = self.subjects(rules, namespaces).await?;
        for (place, subject) in subjects.into_iter().enumerate() {
            let (template, subject, resource) = match subject {
                Ok(found) => found,
                Err(fault) => {
                    outcomes.push(Err(fault));
                    continue;
                }
            };
            let cache = match self.watch(Watched::of(&subject, &resource), watched).await? {
                Ok(cache) => cache,
                Err(fault) => {
                    hidden = hidden.or_else(|| Some(fault.message.clone()));
                    outcomes.push(Err(fault));
                    continue;
                }
            };
            let mut judged = judge(template, &subject, &Known(&cache));
            for one in &mut judged {
                let enforce = rules.enforce && !template.is_search();
                let carried = super::carry::Carrying {
                    visit: self,
                    template,
                    place,
                    resource: &resource,
                    cache: &cache,
                    enforce,
                    maker: &maker,
                    tried: &tried,
                };
                let (kept, no) = carried.carry(one).await?;
                if prunes_own && known.is_new(&subject, one) {
                    one.made = carried.is_maker(one).await?;
                }
                memory.tried.extend(kept);
                refused = refused.or(no);
            }
            outcomes.push(Ok((subject, judged)));
        }
        Ok(Judged {
            outcomes,
            refused,
            hidden,
        })
    }

    /// What the member serves of a kind.
    pub(super) async fn resource(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<Resource>, SendError> {
        let known = self.lane.policies.served.lock().get(api_version).cloned();
        let resources = match known {
            Some(known) => known,
            None => {
                let asked = Arc::new(self.ask(api_version).await?);
                let mut served = self.lane.policies.served.lock();
                served.insert(api_version.to_owned(), asked.clone());
                asked
            }
        };
        Ok(resources.iter().find(|resource| resource.kind == kind).cloned())
    }

    async fn ask(&self, api_version: &str) -> Result<Vec<Resource>, SendError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let any = Resource::new(group, version, "", "", false);
        let path = any.collection("");
        match self.link.get(path.trim_end_matches('/')).await {
            Ok(answer) => {
                let list: ServedList = serde_json::from_slice(&answer)
                    .map_err(|error| SendError::NotYet(format!("discovery of {api_version}: {error}")))?;
                let resources = list.resources.into_iter().filter(|one| !one.name.contains('/'));
                Ok(resources
                    .map(|one| Resource::new(group, version, &one.name, &one.kind, one.namespaced))
                    .collect())
            }
            Err(LinkError::NotFound | LinkError::NotServed) => Ok(Vec::new()),
            Err(error) => Err(SendError::Member(error)),
        }
    }
}

/// The name under which a template of a policy makes objects: the same after both were made again. Names of managers have at
/// most 128 characters.
fn maker(policy: &str, template: &str) -> String {
    let id = canonical_hash(&json!([policy, template])).to_string();
    format!("{MAKER}{id}")
}

/// What a template speaks of, and where that is served.
type SubjectHere<'a> = Result<(&'a Template, Subject, Resource), rules::Fault>;

#[derive(Deserialize)]
struct ServedList {
    #[serde(default)]
    resources: Vec<ServedOne>,
}

#[derive(Deserialize)]
struct ServedOne {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
}
