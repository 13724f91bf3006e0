//! The policies on a member: their definitions, the copies of replicas, and the ConfigurationPolicies.

use std::sync::{Arc, Weak};
use std::time::Duration;

use lockgate_api::definitions::policy_crds;
use lockgate_api::ocm::Policy;
use lockgate_api::ocm::policy::PARENT_POLICY;
use lockgate_engine::object;
use serde_json::Value;

use super::super::dispatching::SendError;
use super::super::lane::{Errand, Lane, OBSERVE};
use super::{PATIENCE, known, report};
use crate::cache::{Cache, Cached, Change};
use crate::install;
use crate::link::{Link, LinkError};
use crate::resource::Resource;
use crate::state;
use crate::watch::{Following, follow as follow_resource};

/// How long a change waits for more of the same.
const OBSERVE_AFTER: Duration = Duration::from_millis(30);

/// What is followed of a member's policies.
pub(super) struct Own {
    copies: Following,
    templates: Following,
}

impl Own {
    /// The copies of replicas.
    pub(super) fn copies(&self) -> &Arc<Cache> {
        &self.copies.cache
    }

    /// The ConfigurationPolicies.
    pub(super) fn templates(&self) -> &Arc<Cache> {
        &self.templates.cache
    }

    pub(super) fn is_synced(&self) -> bool {
        [self.copies(), self.templates()]
            .into_iter()
            .all(|cache| cache.synced() || cache.trouble().is_some())
    }

    pub(super) fn hurry(&self) {
        self.copies.hurry();
        self.templates.hurry();
    }

    /// Whether the member does not serve what is followed.
    fn lacks_definitions(&self) -> bool {
        [self.copies(), self.templates()]
            .into_iter()
            .any(|cache| matches!(cache.trouble(), Some(LinkError::NotServed)))
    }

    pub(super) fn seen(&self) -> [(Resource, String, String, String, u64); 2] {
        [self.copies(), self.templates()].map(|cache| {
            (
                cache.resource().clone(),
                cache.namespace().to_owned(),
                String::new(),
                String::new(),
                cache.seen_version(),
            )
        })
    }
}

/// Follows the policies of a member; its definitions are installed first, if that is asked.
pub(super) async fn follow(lane: &Arc<Lane>, link: &Link, install: bool) -> Result<Arc<Own>, SendError> {
    // What is not served is not there because some definitions are somebody else's, or we were stopped between two.
    let followed = lane
        .policies
        .own()
        .filter(|own| !(install && own.lacks_definitions()));
    let own = match followed {
        Some(own) => own,
        None => {
            if install {
                put_definitions(link).await?;
            }
            let mut slot = lane.policies.own.lock();
            let kept = slot.take().filter(|own| !own.lacks_definitions());
            slot.insert(kept.unwrap_or_else(|| Arc::new(start(lane, link))))
                .clone()
        }
    };
    known(&own.copies).await?;
    known(&own.templates).await?;
    Ok(own)
}

async fn put_definitions(link: &Link) -> Result<(), SendError> {
    for definition in policy_crds() {
        install::put_on_member(link, &definition)
            .await
            .map_err(SendError::Member)?;
    }
    for definition in policy_crds() {
        let name = object::meta_text(&definition, "name").to_owned();
        if tokio::time::timeout(PATIENCE, install::established(link, &name))
            .await
            .is_err()
        {
            return Err(SendError::NotYet(format!(
                "{name} is not served by the member yet"
            )));
        }
    }
    Ok(())
}

/// Whether others may wait for what changed of a copy: the answer to a write of ours may have been lost on its way.
fn is_news(change: &Change) -> bool {
    let status = |cached: &Option<Arc<Cached>>| {
        let policy: Option<Policy> = cached.as_ref().and_then(|cached| state::parse(cached));
        policy.and_then(|policy| policy.status).unwrap_or_default()
    };
    report::is_news(&status(&change.old), &status(&change.new))
}

/// The policy that a copy is of.
fn copy(change: &Change) -> Option<String> {
    change.key().map(|key| key.name.to_string())
}

/// The policy that a ConfigurationPolicy was made from.
fn parent(change: &Change) -> Option<String> {
    let cached = change.new.as_ref().or(change.old.as_ref())?;
    let template: Value = cached.parse().ok()?;
    object::label(&template, PARENT_POLICY).map(str::to_owned)
}

fn start(lane: &Arc<Lane>, link: &Link) -> Own {
    let told = |lane: Weak<Lane>, name: fn(&Change) -> Option<String>| {
        move |change: &Change| {
            let (Some(lane), false) = (lane.upgrade(), change.own) else {
                return;
            };
            if let Some(name) = name(change) {
                lane.queue.add_soon(Errand::Policy(name), OBSERVE, OBSERVE_AFTER);
            }
        }
    };
    let (copies, copy) = (Arc::downgrade(lane), told(Arc::downgrade(lane), copy));
    let copy = move |change: &Change| {
        copy(change);
        if let (Some(lane), true) = (copies.upgrade(), !change.own && is_news(change)) {
            report::wake_dependents(&lane);
        }
    };
    Own {
        copies: follow_resource(link, &Resource::policies(), &lane.cluster, None, copy),
        templates: follow_resource(
            link,
            &Resource::configuration_policies(),
            &lane.cluster,
            None,
            told(Arc::downgrade(lane), parent),
        ),
    }
}
