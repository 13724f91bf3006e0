//! The copy of a replica on its member, and the ConfigurationPolicies that are made from it.

use lockgate_api::ObjectMeta;
use lockgate_api::ocm::policy::{PARENT_POLICY, Policy, REVISION, ROOT_POLICY};
use lockgate_api::ocm::policy_binding::Dependency;
use lockgate_api::ocm::{CLUSTER_NAMESPACE, ConfigurationPolicy};
use lockgate_engine::comply::replica::{self, Planned};
use lockgate_engine::comply::rules;
use lockgate_engine::comply::{Prune, status, words};
use lockgate_engine::governance::replica::is_inform;
use lockgate_engine::governance::revision::{Mark, evaluated};
use lockgate_engine::object;
use serde_json::{Value, json};

use super::super::dispatching::{SendError, encode};
use super::{Visit, report};
use crate::cache::{Cache, Key};
use crate::link::{DeleteOptions, LinkError};
use crate::resource::Resource;
use crate::state;
use crate::template;

impl Visit<'_> {
    fn key(&self, name: &str) -> Key {
        Key::new(self.cluster(), name)
    }

    /// Brings the copy to its replica.
    pub(super) async fn sync_copy(&self, replica: &Policy) -> Result<Policy, SendError> {
        let copies = self.own.copies();
        let key = self.key(self.name);
        let present: Option<Policy> = copies.get(&key).and_then(|cached| state::parse(&cached));
        let Some(present) = present else {
            let mut made = Policy {
                spec: replica.spec.clone(),
                ..Policy::default()
            };
            made.metadata.name = self.name.to_owned();
            made.metadata.namespace = self.cluster().to_owned();
            made.metadata.labels.clone_from(&replica.metadata.labels);
            made.metadata
                .annotations
                .clone_from(&replica.metadata.annotations);
            return self
                .create(copies, &key, template::encode(copies.resource(), &made))
                .await;
        };
        if present.metadata.label(ROOT_POLICY).is_none() {
            let message = format!(
                "cluster {0} has a policy {1} of its own in its namespace {0}, which is left alone: delete or rename it there",
                self.cluster(),
                self.name
            );
            report::failed(self.state, &key, replica, &message).await?;
            return Err(SendError::NotYet(message));
        }
        if present.metadata.deleting() {
            return Err(SendError::NotYet("the member's policy is being deleted".into()));
        }
        let same = present.spec == replica.spec
            && present.metadata.labels == replica.metadata.labels
            && present.metadata.annotations == replica.metadata.annotations;
        if same {
            return Ok(present);
        }
        let mut next = present;
        next.spec.clone_from(&replica.spec);
        next.metadata.labels.clone_from(&replica.metadata.labels);
        next.metadata
            .annotations
            .clone_from(&replica.metadata.annotations);
        next.status = None;
        self.replace(copies, &key, template::encode(copies.resource(), &next))
            .await
    }

    /// What a template says while it waits for others.
    pub(super) fn pending(&self, planned: &Planned) -> Option<Result<String, String>> {
        replica::pending(planned, |dependency| self.compliance(dependency))
    }

    /// What a dependency says of itself, if it is there.
    fn compliance(&self, dependency: &Dependency) -> Option<String> {
        let found = self.dependency(dependency)?;
        found["status"]["compliant"].as_str().map(str::to_owned)
    }

    fn dependency(&self, dependency: &Dependency) -> Option<Value> {
        let cache = match dependency.kind.as_str() {
            "Policy" => self.own.copies(),
            "ConfigurationPolicy" => self.own.templates(),
            _ => return None,
        };
        cache.find(self.cluster(), &dependency.name)?.parse().ok()
    }

    /// Whether all that a template waits for has not said its last word: it waits for its turn in a rollout, or was not looked
    /// at since.
    fn waits_for_rollouts(&self, planned: &Planned) -> bool {
        let is_unmet = |dependency: &&Dependency| {
            self.compliance(dependency).as_deref() != Some(dependency.compliance.as_str())
        };
        let is_in_rollout = |dependency: &Dependency| {
            let found = self.dependency(dependency)?;
            let policy = match dependency.kind.as_str() {
                "Policy" => &dependency.name,
                _ => object::label(&found, PARENT_POLICY)?,
            };
            let cached = self.own.copies().get(&self.key(policy))?;
            let copy: Policy = state::parse(&cached)?;
            copy.metadata.annotation(REVISION)?;
            Some(waits_for_its_turn(&copy) || evaluated(&copy).is_none())
        };
        let mut unmet = planned.dependencies.iter().filter(is_unmet);
        unmet.all(|dependency| is_in_rollout(dependency) == Some(true))
    }

    /// Brings a ConfigurationPolicy to its template; `None` if it belongs to another policy.
    pub(super) async fn sync_template(
        &self,
        copy: &Policy,
        name: &str,
        planned: &Value,
    ) -> Result<Option<ConfigurationPolicy>, SendError> {
        let templates = self.own.templates();
        let key = self.key(name);
        let mut wanted = planned.clone();
        wanted["metadata"]["ownerReferences"] = json!([{
            "apiVersion": replica::API_VERSION,
            "kind": "Policy",
            "name": copy.metadata.name,
            "uid": copy.metadata.uid,
        }]);
        let Some(present) = self.template(name) else {
            return Ok(Some(self.create(templates, &key, encode(&wanted)).await?));
        };
        if object::label(&present, PARENT_POLICY) != Some(self.name) {
            return Ok(None);
        }
        if object::deleting(&present) {
            return Err(SendError::NotYet(format!(
                "the member's ConfigurationPolicy {name} is being deleted"
            )));
        }
        let mut wanted = replica::in_place_of(wanted, &present, informs_for_now(copy));
        if replica::says_the_same(&present, &wanted) {
            return typed(&present).map(Some);
        }
        for field in ["uid", "resourceVersion"] {
            wanted["metadata"][field] = present["metadata"][field].clone();
        }
        Ok(Some(self.replace(templates, &key, encode(&wanted)).await?))
    }

    fn template(&self, name: &str) -> Option<Value> {
        let cached = self.own.templates().get(&self.key(name))?;
        cached.parse().ok()
    }

    /// Takes away the ConfigurationPolicy of a template that waits for others; gives what keeps it. While the template only
    /// informs, one that would take objects with it stays as it is, unevaluated: what it made is not forgotten and not
    /// deleted. So does one that waits only for policies that wait for their turn: they are looked at again soon, and perhaps
    /// nothing is wrong then.
    pub(super) async fn put_away(&self, planned: &Planned) -> Result<Option<String>, SendError> {
        let Some(template) = self.template(&planned.name) else {
            return Ok(None);
        };
        if object::label(&template, PARENT_POLICY) != Some(self.name) || self.waits_for_rollouts(planned) {
            return Ok(None);
        }
        let action = planned
            .object
            .as_ref()
            .map_or("", |object| object::text(&object["spec"], "remediationAction"));
        let template = typed(&template)?;
        let enforces = action.eq_ignore_ascii_case("enforce");
        if !enforces && takes_with_it(&template) {
            return Ok(None);
        }
        self.take_away(&template, enforces && has_enforced(&template))
            .await
    }

    /// Takes away the ConfigurationPolicies of templates that the policy has no longer; gives those that cannot go yet, and
    /// why. What one of them made, and would take with it if it enforced, is not forgotten while the policy waits for its turn
    /// to enforce: it stays until it can be done. One that only informed takes nothing with it. A template that cannot be
    /// followed is none that is gone.
    pub(super) async fn put_away_rest(
        &self,
        replica: &Policy,
        planned: &[Planned],
    ) -> Result<Vec<(String, String)>, SendError> {
        let informs = is_inform(&replica.spec.remediation_action);
        let waits = informs_for_now(replica);
        let mut left = Vec::new();
        for template in self.made_templates() {
            let name = &template.metadata.name;
            if planned.iter().any(|planned| planned.name == *name) || (waits && takes_with_it(&template)) {
                continue;
            }
            let prunes = !informs && has_enforced(&template);
            if let Some(why) = self.take_away(&template, prunes).await? {
                left.push((name.clone(), why));
            }
        }
        Ok(left)
    }

    /// The ConfigurationPolicies that were made from this policy.
    pub(super) fn made_templates(&self) -> Vec<ConfigurationPolicy> {
        let all = self.own.templates().list();
        let mine = all.iter().filter_map(|cached| {
            let template: ConfigurationPolicy = state::parse(cached)?;
            (template.metadata.label(PARENT_POLICY) == Some(self.name)).then_some(template)
        });
        mine.collect()
    }

    /// Takes a ConfigurationPolicy away, perhaps with what goes with it. If some of that is still there, it stays, and this
    /// says so.
    pub(super) async fn take_away(
        &self,
        template: &ConfigurationPolicy,
        prunes: bool,
    ) -> Result<Option<String>, SendError> {
        let prune = rules::prune(&template.spec);
        if prune != Prune::Nothing && prunes {
            let status = template.status.clone().unwrap_or_default();
            let left = self.prune(&status::all_that_goes(&status, prune)).await?;
            if let Some(first) = left.first() {
                let more = match left.len() {
                    1 => String::new(),
                    count => format!("; and {} more", count - 1),
                };
                return Ok(Some(format!(
                    "objects of ConfigurationPolicy {} are to go and are still there: {}: {}{more}",
                    template.metadata.name,
                    words::name(&first.object.object),
                    first.why
                )));
            }
        }
        if let Some(memory) = self.lane.policies.memories.lock().get_mut(self.name) {
            memory.templates.remove(&template.metadata.name);
        }
        let templates = self.own.templates();
        self.delete(templates, &template.metadata).await?;
        // Another policy may wait for the name.
        self.wake_dependents();
        Ok(None)
    }

    /// Deletes a copy or a ConfigurationPolicy as it was seen.
    pub(super) async fn delete(&self, cache: &Cache, seen: &ObjectMeta) -> Result<(), SendError> {
        self.may_write()?;
        let key = self.key(&seen.name);
        let path = cache.resource().object(&key.namespace, &key.name);
        let options = DeleteOptions::as_read(&seen.uid, &seen.resource_version);
        match self.link.delete(&path, &options).await {
            Ok(()) | Err(LinkError::NotFound) => {
                cache.forget(&key, &seen.uid);
                Ok(())
            }
            Err(LinkError::Conflict) => {
                self.read_again(cache, &key).await?;
                Err(SendError::Again)
            }
            Err(error) => Err(SendError::Member(error)),
        }
    }

    async fn create<T: serde::de::DeserializeOwned>(
        &self,
        cache: &Cache,
        key: &Key,
        body: Vec<u8>,
    ) -> Result<T, SendError> {
        self.may_write()?;
        let collection = cache.resource().collection(&key.namespace);
        let mut answer = self.link.create(&collection, body.clone()).await;
        if matches!(answer, Err(LinkError::NotFound)) {
            self.make_namespace().await?;
            answer = self.link.create(&collection, body).await;
        }
        match answer {
            Ok(answer) => learned(cache, &answer),
            Err(LinkError::AlreadyExists) => {
                let path = cache.resource().object(&key.namespace, &key.name);
                if let Ok(found) = self.link.get(&path).await {
                    cache.learn_read(&found).map_err(SendError::Member)?;
                }
                Err(SendError::Again)
            }
            Err(error) => Err(SendError::Member(error)),
        }
    }

    async fn replace<T: serde::de::DeserializeOwned>(
        &self,
        cache: &Cache,
        key: &Key,
        body: Vec<u8>,
    ) -> Result<T, SendError> {
        self.may_write()?;
        let path = cache.resource().object(&key.namespace, &key.name);
        self.put(cache, key, &path, body).await
    }

    /// Replaces an object or its status.
    pub(super) async fn put<T: serde::de::DeserializeOwned>(
        &self,
        cache: &Cache,
        key: &Key,
        path: &str,
        body: Vec<u8>,
    ) -> Result<T, SendError> {
        match self.link.replace(path, body).await {
            Ok(answer) => learned(cache, &answer),
            Err(LinkError::Conflict | LinkError::NotFound) => {
                self.read_again(cache, key).await?;
                Err(SendError::Again)
            }
            Err(error) => Err(SendError::Member(error)),
        }
    }

    /// Reads an object that has moved on.
    async fn read_again(&self, cache: &Cache, key: &Key) -> Result<(), SendError> {
        let path = cache.resource().object(&key.namespace, &key.name);
        match self.link.get(&path).await {
            Ok(found) => cache.learn_read(&found).map_err(SendError::Member),
            Err(LinkError::NotFound) => {
                if let Some(cached) = cache.get(key) {
                    cache.forget(key, &cached.uid);
                }
                Ok(())
            }
            Err(error) => Err(SendError::Member(error)),
        }
    }

    /// Makes the namespace of the cluster on the member.
    async fn make_namespace(&self) -> Result<(), SendError> {
        let namespaces = Resource::namespaces();
        let name = self.cluster();
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {CLUSTER_NAMESPACE: name}},
        });
        match self
            .link
            .create(&namespaces.collection(""), encode(&namespace))
            .await
        {
            Ok(_) | Err(LinkError::AlreadyExists) => Ok(()),
            Err(error) => Err(SendError::Member(error)),
        }
    }
}

/// Whether a replica only informs until its turn comes. One that nobody releases may enforce some time.
pub(super) fn waits_for_its_turn(replica: &Policy) -> bool {
    Mark::of(replica).is_none_or(|mark| mark.revision == 0)
}

/// Whether a replica informs, and only until its turn comes.
fn informs_for_now(replica: &Policy) -> bool {
    is_inform(&replica.spec.remediation_action) && waits_for_its_turn(replica)
}

/// Whether what a ConfigurationPolicy last stood for was enforced.
pub(super) fn has_enforced(template: &ConfigurationPolicy) -> bool {
    let before = template.metadata.annotation(replica::ENFORCED_BEFORE);
    replica::has_enforced(&template.spec.remediation_action, before)
}

/// Whether objects go with a ConfigurationPolicy.
fn takes_with_it(template: &ConfigurationPolicy) -> bool {
    let prune = rules::prune(&template.spec);
    let status = template.status.clone().unwrap_or_default();
    prune != Prune::Nothing && !status::all_that_goes(&status, prune).is_empty()
}

fn learned<T: serde::de::DeserializeOwned>(cache: &Cache, answer: &[u8]) -> Result<T, SendError> {
    cache.learn(answer).map_err(SendError::Member)?;
    serde_json::from_slice(answer).map_err(|error| SendError::NotYet(error.to_string()))
}

fn typed(template: &Value) -> Result<ConfigurationPolicy, SendError> {
    serde_json::from_value(template.clone()).map_err(|error| SendError::NotYet(error.to_string()))
}
