//! The pass over one Work: dispatch and observe. The only writer of members' objects and of Works' statuses.
//!
//! Every write to a member is a create, or carries the resource version that was seen, and none is sent when the lease that
//! allows it runs out.

use std::sync::Arc;
use std::time::Duration;

use lockgate_api::work::LastApplied;
use lockgate_api::{Cluster, Condition, Work, keys, names};
use lockgate_engine::dispatch::{self, Dispatch, DispatchInput};
use lockgate_engine::render::{self, manifest_hash};
use lockgate_engine::{TemplateId, object, observe};
use serde_json::Value;
use tokio::time::Instant;

use super::failing::tell_failed;
use super::fighting;
use super::lane::{Doubt, Lane};
use super::late;
use super::objects::Unknown;
use super::telling::{Outcome, Seen, tell};
use super::withdrawing::remove;
use crate::cache::{Cache, Key};
use crate::events::EventTarget;
use crate::link::{Link, LinkError};
use crate::queue::Aspects;
use crate::resource::Resource;
use crate::state::{self, State};
use crate::template::{self, PassError};

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Nothing was asked of the member.
    Settled,
    /// The member answered, in this time. What the hub takes says nothing about the member.
    Member(Duration),
}

/// Why a pass did not reach its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The member said no, or nothing.
    #[error("member: {0}")]
    Member(LinkError),
    /// The hub said no.
    #[error("hub: {0}")]
    Hub(PassError),
    /// The objects have moved on; at once again.
    #[error("the object has changed meanwhile")]
    Again,
    /// Something is missing that may come.
    #[error("{0}")]
    NotYet(String),
}

/// Compares one Work with its member, and brings the member to it.
pub(crate) async fn pass(
    state: &Arc<State>,
    lane: &Arc<Lane>,
    name: &str,
    _aspects: Aspects,
) -> Result<Sent, SendError> {
    let key = Key::new(&names::execution_namespace(&lane.cluster), name);
    let Some(work) = state::work(&state.caches.works, &key) else {
        lane.disputes.lock().remove(name);
        lane.doubted.lock().remove(name);
        return late::pass(state, lane, name).await;
    };
    let Some(link) = lane.link() else {
        if work.is_suspended() && !work.metadata.deleting() {
            tell(state, &key, &work, suspended_outcome(&work, Seen::Unknown), None);
        }
        return Err(SendError::Member(LinkError::Unreachable(
            "the way to the member is not known".into(),
        )));
    };
    if work.metadata.deleting() {
        return remove(state, lane, &link, &key, work).await;
    }
    let Some(cluster) = state.cluster(&lane.cluster) else {
        return Ok(Sent::Settled);
    };
    if cluster.metadata.deleting() {
        // The cluster leaves: its Works go first, and with them what was told to go.
        super::due::may_leave(state, &cluster, &work)?;
        template::delete_work(state, &key).await.map_err(SendError::Hub)?;
        return Ok(Sent::Settled);
    }
    if dispatch::is_stranger(&work) {
        stranger(state, &key, &work);
        return Ok(Sent::Settled);
    }
    let Some(manifest) = work.spec.workload.manifests.first() else {
        return Ok(Sent::Settled);
    };
    match edited(lane, &work, manifest) {
        Edited::No => {}
        Edited::Doubted => {
            // It is rendered again, and the member keeps what it has until then.
            match namespace_of(&work) {
                Some(namespace) => state.namespaces.add(namespace.clone(), state::RENDER),
                None => {
                    let id = template::of_work(state, &work.metadata, TemplateId::of(manifest));
                    state.templates.add(id, state::RENDER);
                }
            }
            return Err(SendError::NotYet("the Work is rendered again".into()));
        }
        Edited::Yes if work.is_suspended() => {}
        Edited::Yes if is_pending(state, &work, manifest) => {
            return Err(SendError::NotYet("the Work is about to be rendered again".into()));
        }
        Edited::Yes => {
            failed(state, lane, &key, &work, manifest, EDITED.to_owned());
            // Whatever renders it again writes it.
            return Ok(Sent::Settled);
        }
    }
    if work.is_suspended() {
        return suspended(state, lane, &key, &work, &cluster, manifest).await;
    }
    let resource = match member_resource(&cluster, manifest) {
        Some(resource) => resource,
        None if cluster.status.api_enablements.is_empty() => {
            return Err(SendError::NotYet(
                "what the member serves is not known yet".into(),
            ));
        }
        None => {
            let message = format!(
                "the cluster does not serve {} {}",
                object::text(manifest, "apiVersion"),
                object::text(manifest, "kind")
            );
            failed(state, lane, &key, &work, manifest, message);
            // The cluster's kinds change with its status, which brings us here again.
            return Ok(Sent::Settled);
        }
    };
    let objects = match lane.objects.of(lane, &resource, name).await {
        Ok(objects) => objects,
        Err(unknown) => {
            if let Unknown::Refused(error) = &unknown {
                let message = format!("the member does not show its {}: {error}", resource.plural);
                failed(state, lane, &key, &work, manifest, message);
            }
            return Err(not_known(&resource, unknown));
        }
    };
    let object_key = object_key(manifest);
    let live: Option<Value> = objects.get(&object_key).and_then(|cached| state::parse(&cached));
    let sending = Sending {
        state,
        lane,
        link: &link,
        resource: &resource,
        objects: &objects,
        object_key: &object_key,
        work: &work,
        manifest,
    };
    let (outcome, live, took) = sending.send(live).await?;
    let refused = matches!(outcome, Outcome::Failed { .. });
    fighting::look_again(state, lane, name);
    tell(state, &key, &work, outcome, live.as_ref());
    if refused {
        return Err(SendError::NotYet("the member refused the manifest".into()));
    }
    Ok(took.map_or(Sent::Settled, Sent::Member))
}

/// Tells that nothing is done for a Work that somebody else wrote.
fn stranger(state: &State, key: &Key, work: &Work) {
    let said = Condition::find(&work.status.conditions, observe::APPLIED);
    if !said.is_some_and(|said| said.message.ends_with(dispatch::STRANGER)) {
        let target = EventTarget::of_work(work);
        state.events.warn(&target, "SyncFailed", dispatch::STRANGER);
    }
    let outcome = Outcome::Failed {
        message: dispatch::STRANGER.to_owned(),
        recreated: false,
        absent: true,
    };
    tell(state, key, work, outcome, None);
}

/// Tells that the member does not have what a Work holds, whatever it has of it.
fn failed(state: &State, lane: &Lane, key: &Key, work: &Work, manifest: &Value, message: String) {
    tell_failed(state, &lane.cluster, work, manifest, &message);
    let outcome = Outcome::Failed {
        message,
        recreated: false,
        absent: false,
    };
    tell(state, key, work, outcome, None);
}

/// What it means that the objects of a kind are not known. That a member does not show one kind is no reason to leave its
/// other Works alone.
fn not_known(resource: &Resource, unknown: Unknown) -> SendError {
    match unknown {
        Unknown::Trouble(error) => SendError::Member(error),
        Unknown::Refused(_) | Unknown::Slow => {
            SendError::NotYet(format!("the member's {} are not known yet", resource.plural))
        }
    }
}

/// Looks at the object of a Work that is not sent, and touches nothing. That it is suspended is told also of a member that
/// cannot be asked, or does not serve the kind.
async fn suspended(
    state: &Arc<State>,
    lane: &Arc<Lane>,
    key: &Key,
    work: &Work,
    cluster: &Cluster,
    manifest: &Value,
) -> Result<Sent, SendError> {
    let Some(resource) = member_resource(cluster, manifest) else {
        tell(state, key, work, suspended_outcome(work, Seen::Unknown), None);
        // The cluster's kinds change with its status, which brings us here again.
        return Ok(Sent::Settled);
    };
    let objects = match lane.objects.of(lane, &resource, &key.name).await {
        Ok(objects) => objects,
        Err(unknown) => {
            tell(state, key, work, suspended_outcome(work, Seen::Unknown), None);
            return Err(not_known(&resource, unknown));
        }
    };
    let live: Option<Value> = objects
        .get(&object_key(manifest))
        .and_then(|cached| state::parse(&cached));
    let interpreter = state.interpreters.read().of_object(manifest);
    let decision = dispatch::dispatch(&DispatchInput {
        manifest,
        live: live.as_ref(),
        last_applied: work.status.last_applied.as_ref(),
        work_generation: work.metadata.generation,
        interpreter: interpreter.as_deref(),
    });
    let seen = match (&live, decision) {
        (None, _) => Seen::Absent,
        (_, Dispatch::Nothing) => Seen::Agrees,
        _ => Seen::Differs,
    };
    tell(state, key, work, suspended_outcome(work, seen), live.as_ref());
    Ok(Sent::Settled)
}

fn suspended_outcome(work: &Work, seen: Seen) -> Outcome {
    let by = work.metadata.annotation(keys::SUSPENDED_BY).unwrap_or_default();
    Outcome::Suspended {
        by: by.to_owned(),
        seen,
    }
}

/// What is said of a Work that somebody edited, and that is not rendered again.
const EDITED: &str = "the manifest was edited by hand, and is not sent: nobody owns its template, or a rollout holds it, so that \
                      it is not rendered again yet";

/// Whether the manifest is another than was rendered.
enum Edited {
    /// It is what was rendered, as far as the hub keeps it so.
    No,
    /// It is not, and nobody has rendered it since.
    Doubted,
    /// It is not, and it was not rendered again.
    Yes,
}

/// Whether what renders a manifest is on its way.
fn is_pending(state: &State, work: &Work, manifest: &Value) -> bool {
    let id = template::of_work(state, &work.metadata, TemplateId::of(manifest));
    let namespace = namespace_of(work).or_else(|| template::is_namespace(&id).then_some(&id.name));
    namespace.is_some_and(|name| state.namespaces.is_pending(name)) || state.templates.is_pending(&id)
}

/// The Namespace that goes everywhere by itself, if a Work is of one.
fn namespace_of(work: &Work) -> Option<&String> {
    let owner = work.metadata.controller();
    owner
        .filter(|owner| owner.kind == "Namespace")
        .map(|owner| &owner.name)
}

/// Whether somebody edited the manifest by hand: only what was rendered is sent. A manifest that the server keeps in another
/// form than it was sent in would be rendered for ever; so each generation of a Work is doubted once, and believed if it is
/// what the server made of it when it was written again.
fn edited(lane: &Lane, work: &Work, manifest: &Value) -> Edited {
    let Some(hash) = work.metadata.annotation(keys::RENDERED) else {
        return Edited::No;
    };
    let mut doubted = lane.doubted.lock();
    // What was sent was believed then; an edit moves the generation.
    let sent = work.status.last_applied.as_ref();
    // We write one manifest, and whatever somebody adds to it is not sent either.
    let is_rendered = hash == manifest_hash(manifest) && work.spec.workload.manifests.len() == 1;
    if is_rendered || sent.is_some_and(|sent| sent.work_generation == work.metadata.generation) {
        doubted.remove(&work.metadata.name);
        return Edited::No;
    }
    let doubt = doubted.entry(work.metadata.name.clone()).or_default();
    let (uid, generation) = (&work.metadata.uid, work.metadata.generation);
    match doubt.of(uid, generation) {
        Some(true) => Edited::No,
        Some(false) => Edited::Yes,
        None => {
            *doubt = Doubt::new(uid, generation);
            Edited::Doubted
        }
    }
}

/// The resource behind a manifest, as the member serves it.
pub(super) fn member_resource(cluster: &Cluster, manifest: &Value) -> Option<Resource> {
    let (api_version, kind) = (
        object::text(manifest, "apiVersion"),
        object::text(manifest, "kind"),
    );
    let enabled = cluster
        .status
        .api_enablements
        .iter()
        .find(|enablement| enablement.group_version == api_version)?;
    let plural = &enabled
        .resources
        .iter()
        .find(|resource| resource.kind == kind)?
        .name;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let namespaced = !object::meta_text(manifest, "namespace").is_empty();
    Some(Resource::new(group, version, plural, kind, namespaced))
}

pub(super) fn object_key(manifest: &Value) -> Key {
    Key::new(
        object::meta_text(manifest, "namespace"),
        object::meta_text(manifest, "name"),
    )
}

/// One manifest on its way to one member.
pub(super) struct Sending<'a> {
    pub(super) state: &'a State,
    pub(super) lane: &'a Lane,
    pub(super) link: &'a Link,
    pub(super) resource: &'a Resource,
    objects: &'a Arc<Cache>,
    pub(super) object_key: &'a Key,
    pub(super) work: &'a Work,
    pub(super) manifest: &'a Value,
}

impl Sending<'_> {
    /// Brings the member to the manifest. Answers what came of it, the object there, and how long the member took if it was
    /// asked.
    async fn send(
        &self,
        mut live: Option<Value>,
    ) -> Result<(Outcome, Option<Value>, Option<Duration>), SendError> {
        let mut took = None;
        let interpreter = self.state.interpreters.read().of_object(self.manifest);
        // The first answer may tell of an object that was not known; the second try knows it.
        for _ in 0..3 {
            let decision = dispatch::dispatch(&DispatchInput {
                manifest: self.manifest,
                live: live.as_ref(),
                last_applied: self.work.status.last_applied.as_ref(),
                work_generation: self.work.metadata.generation,
                interpreter: interpreter.as_deref(),
            });
            let recreated = live.is_none() && self.was_applied();
            match decision {
                Dispatch::Nothing => return Ok((Outcome::Applied { recreated: false }, live, took)),
                Dispatch::Wait => {
                    return Err(SendError::NotYet("the member's object is being deleted".into()));
                }
                Dispatch::Refuse { message, .. } => {
                    self.tell_failed(&message);
                    return Ok((
                        Outcome::Failed {
                            message,
                            recreated: false,
                            absent: false,
                        },
                        live,
                        took,
                    ));
                }
                Dispatch::Create(body) => {
                    if recreated && self.is_left_deleted() {
                        let message =
                            "somebody on the member deletes it again and again; it is made again later";
                        return Ok((Outcome::Lost(message.to_owned()), None, took));
                    }
                    self.may_write()?;
                    let begun = Instant::now();
                    let answer = self
                        .objects
                        .create(self.link, self.object_key, encode(&body))
                        .await;
                    took = Some(begun.elapsed());
                    match answer {
                        Ok(answer) => {
                            self.count_created(true, recreated);
                            if recreated {
                                self.was_made_again();
                            }
                            let live = read_answer(&answer)?;
                            return Ok((Outcome::Applied { recreated }, Some(live), took));
                        }
                        Err(LinkError::AlreadyExists) => live = Some(self.read().await?),
                        Err(error) => {
                            self.count_created(false, recreated);
                            return self.refused(error, recreated, live, took);
                        }
                    }
                }
                Dispatch::Update(body, drift) => {
                    let managers = match drift {
                        Some(_) if self.is_left_changed() => return Ok((Outcome::Unchanged, live, took)),
                        Some(_) => self.read_managers().await?,
                        None => Value::Null,
                    };
                    self.may_write()?;
                    let path = self
                        .resource
                        .object(&self.object_key.namespace, &self.object_key.name);
                    let begun = Instant::now();
                    let body = encode(&body);
                    let answer = self
                        .objects
                        .replace(self.link, self.object_key, &path, body)
                        .await;
                    took = Some(begun.elapsed());
                    match answer {
                        Ok(answer) => {
                            self.count_updated(true);
                            let after = read_answer(&answer)?;
                            if let (Some(_), Some(before)) = (drift, &live) {
                                self.was_corrected(before, &after, &managers);
                            }
                            return Ok((Outcome::Applied { recreated: false }, Some(after), took));
                        }
                        Err(LinkError::Conflict) => live = Some(self.read().await?),
                        Err(LinkError::NotFound) => {
                            if let Some(cached) = self.objects.get(self.object_key) {
                                self.objects.forget(self.object_key, &cached.uid);
                            }
                            live = None;
                        }
                        Err(error) => {
                            self.count_updated(false);
                            return self.refused(error, false, live, took);
                        }
                    }
                }
            }
        }
        Err(SendError::NotYet("the member's object keeps changing".into()))
    }

    /// What a member's refusal means: trouble on the way is tried again, a no is told.
    fn refused(
        &self,
        error: LinkError,
        recreated: bool,
        live: Option<Value>,
        took: Option<Duration>,
    ) -> Result<(Outcome, Option<Value>, Option<Duration>), SendError> {
        let told = matches!(
            error,
            LinkError::Refused { code: 400..500, .. }
                | LinkError::NotFound
                | LinkError::NotServed
                | LinkError::Conflict
        );
        if !told {
            return Err(SendError::Member(error));
        }
        let message = error.to_string();
        self.tell_failed(&message);
        let outcome = Outcome::Failed {
            message,
            recreated,
            absent: live.is_none(),
        };
        Ok((outcome, live, took))
    }

    fn tell_failed(&self, why: &str) {
        tell_failed(self.state, &self.lane.cluster, self.work, self.manifest, why);
    }

    /// Whether the member had what the Work holds now, also if it is known since then that it has it no more.
    fn was_applied(&self) -> bool {
        let status = &self.work.status;
        let generation = self.work.metadata.generation;
        let lost = Condition::find(&status.conditions, observe::APPLIED).is_some_and(|condition| {
            condition.reason == observe::RECREATE_FAILED && condition.observed_generation == Some(generation)
        });
        let last = status.last_applied.as_ref();
        lost || last.is_some_and(|last| last.work_generation == generation)
    }

    fn count_created(&self, ok: bool, again: bool) {
        let Resource { kind, .. } = self.resource;
        let api_version = self.resource.api_version();
        self.state
            .metrics
            .created(ok, &api_version, kind, &self.lane.cluster, again);
    }

    fn count_updated(&self, ok: bool) {
        let Resource { kind, .. } = self.resource;
        let api_version = self.resource.api_version();
        self.state
            .metrics
            .updated(ok, &api_version, kind, &self.lane.cluster, ok);
    }

    fn may_write(&self) -> Result<(), SendError> {
        if self.state.guard.may_write() {
            Ok(())
        } else {
            Err(SendError::NotYet(
                "another controller may be leading by now".into(),
            ))
        }
    }

    async fn read(&self) -> Result<Value, SendError> {
        let path = self
            .resource
            .object(&self.object_key.namespace, &self.object_key.name);
        match self.link.get(&path).await {
            Ok(answer) => {
                // Only what we manage is followed, so that a stranger's object is not remembered.
                let live: Value =
                    serde_json::from_slice(&answer).map_err(|e| SendError::NotYet(e.to_string()))?;
                if object::label(&live, keys::MANAGED) == Some("true") {
                    return self.learn(&answer);
                }
                Ok(live)
            }
            Err(LinkError::NotFound) => Err(SendError::Again),
            Err(error) => Err(SendError::Member(error)),
        }
    }

    fn learn(&self, answer: &[u8]) -> Result<Value, SendError> {
        self.objects.learn(answer).map_err(SendError::Member)?;
        read_answer(answer)
    }
}

fn read_answer(answer: &[u8]) -> Result<Value, SendError> {
    serde_json::from_slice(answer).map_err(|e| SendError::NotYet(e.to_string()))
}

/// The template behind a manifest, as events name it.
pub(super) fn template_of(manifest: &Value) -> EventTarget {
    let uid = object::annotation(manifest, keys::TEMPLATE_UID).unwrap_or_default();
    EventTarget {
        uid: uid.to_owned(),
        ..EventTarget::of_value(manifest)
    }
}

pub(super) fn encode(object: &Value) -> Vec<u8> {
    // Encoding a value cannot fail.
    serde_json::to_vec(object).unwrap_or_default()
}

/// What was sent, for the Work's status.
pub(super) fn last_applied(work: &Work, live: &Value) -> LastApplied {
    LastApplied {
        work_generation: work.metadata.generation,
        uid: object::meta_text(live, "uid").to_owned(),
        version: dispatch::version_of(live),
        replicas: render::workload(live).map(|workload| workload.replicas),
    }
}
