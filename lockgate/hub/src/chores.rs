//! Small duties: definitions of ours that somebody deletes are made again, policies that another control plane held back
//! from deletion may go, and rollout policies say what they hold back.

use std::sync::Weak;

use lockgate_api::{PropagationPolicy, keys, names};
use lockgate_engine::gate;

use crate::cache::Key;
use crate::install;
use crate::link::LinkError;
use crate::rebalance;
use crate::resource::Resource;
use crate::rollouts;
use crate::state::{self, State};
use crate::template::{self, PassError, encode};

/// How soon it is looked again whether all templates are known.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(200);

/// Something to see to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Chore {
    /// A definition changed or went.
    Definition(String),
    /// A cluster leaves that cannot be reached, and keeps what it has.
    Abandon(String),
    /// A policy is being deleted.
    Policy {
        /// Its namespace; empty for a ClusterPropagationPolicy.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A rebalancer changed, or what it names.
    Rebalance(String),
    /// A customization of a kind changed.
    Interpreter(String),
    /// A rollout policy changed, or the clusters that it may name.
    Rollout {
        /// Its namespace; empty for a ClusterRolloutPolicy.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// Does one chore.
pub(crate) async fn pass(state: &State, chore: &Chore) -> Result<(), PassError> {
    match chore {
        Chore::Definition(name) => keep_definition(state, name).await,
        Chore::Abandon(cluster) => abandon(state, cluster).await,
        Chore::Policy { namespace, name } => release_policy(state, namespace, name).await,
        Chore::Interpreter(name) => crate::interpreters::tell(state, name).await,
        Chore::Rollout { namespace, name } => tell_rollout(state, namespace, name).await,
        Chore::Rebalance(name) => rebalance::pass(state, name).await,
    }
}

async fn keep_definition(state: &State, name: &str) -> Result<(), PassError> {
    install::make_again(&state.link, name)
        .await
        .map_err(|error| PassError::Link {
            what: "failed to make a definition again",
            error,
        })
}

/// Lets the Works of a cluster go without asking the member, which is left as it is, our marks included.
async fn abandon(state: &State, cluster: &str) -> Result<(), PassError> {
    let leaving = state
        .cluster_reconciler
        .get()
        .and_then(Weak::upgrade)
        .and_then(|clusters| clusters.leaving(cluster));
    if !leaving.is_some_and(|leaving| leaving.abandon) {
        return Ok(());
    }
    for cached in state.caches.works.list_in(&names::execution_namespace(cluster)) {
        template::delete_work(state, &cached.key).await?;
        template::refresh_work(state, &cached.key).await?;
        if let Some(work) = state::work(&state.caches.works, &cached.key) {
            template::release_work(state, &cached.key, &work).await?;
        }
    }
    Ok(())
}

/// Writes what a rollout policy holds back, and whether the clusters that it names are there.
async fn tell_rollout(state: &State, namespace: &str, name: &str) -> Result<(), PassError> {
    let (cache, resource) = if namespace.is_empty() {
        (
            &state.caches.cluster_rollout_policies,
            Resource::cluster_rollout_policies(),
        )
    } else {
        (&state.caches.rollout_policies, Resource::rollout_policies())
    };
    let Some(policy) = state.rollouts.read().get(namespace, name).cloned() else {
        return Ok(());
    };
    if policy.metadata.deleting() {
        return Ok(());
    }
    let is_there = |cluster: &str| state.cluster(cluster).is_some();
    let now = state.clock.now();
    let mut status = gate::rollout_status(&policy, is_there, now);
    if rollouts::is_whole(state) {
        rollouts::tell(state, &policy, &mut status, now);
    } else if policy.spec.strategy.is_some() {
        // Sums over some of the templates would be wrong; they are told when all are known.
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let chore = Chore::Rollout { namespace, name };
        state.chores.add_soon(chore, 1, LOOK_AGAIN);
    }
    if policy.status.as_ref() == Some(&status) {
        return Ok(());
    }
    let body = template::encode_status(&resource, &policy.metadata, &status);
    let what = "failed to write a rollout policy's status";
    match template::replace_status(state, cache, &resource, &Key::new(namespace, name), body, what).await {
        Ok(_) => Ok(()),
        // It is gone, and its status with it.
        Err(PassError::Again) if cache.get(&Key::new(namespace, name)).is_none() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Drops the finalizers that another control plane put on a policy: claims do not need them.
async fn release_policy(state: &State, namespace: &str, name: &str) -> Result<(), PassError> {
    let (cache, resource) = state.policies_of(namespace);
    let key = Key::new(namespace, name);
    let Some(mut policy) = cache
        .get(&key)
        .and_then(|cached| state::parse::<PropagationPolicy>(&cached))
    else {
        return Ok(());
    };
    let ours = [keys::PP_FINALIZER, keys::CPP_FINALIZER];
    let before = policy.metadata.finalizers.len();
    policy.metadata.finalizers.retain(|f| !ours.contains(&f.as_str()));
    if !policy.metadata.deleting() || policy.metadata.finalizers.len() == before {
        return Ok(());
    }
    match state
        .link
        .replace(&resource.object(namespace, name), encode(&resource, &policy))
        .await
    {
        Ok(_) | Err(LinkError::NotFound) => Ok(()),
        Err(LinkError::Conflict) => Err(PassError::Again),
        Err(error) => Err(PassError::Link {
            what: "failed to let a policy go",
            error,
        }),
    }
}
