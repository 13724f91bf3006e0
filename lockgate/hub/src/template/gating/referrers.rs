//! What others need goes with them: where everything that needs a template waits for its turn, the template waits too.

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use lockgate_api::{Binding, RolloutPolicy};
use lockgate_engine::TemplateId;
use lockgate_engine::gate;
use lockgate_engine::gate::record::{GivenUp, RolloutRecord};
use lockgate_engine::gate::run::Told;

use crate::cache::Key;
use crate::rollouts;
use crate::state::State;
use crate::template::holding::rollouts_about;
use crate::template::{PassError, is_frozen, owning, template_of};

/// A binding that needs another one, and has not gone everywhere itself.
pub(super) struct Referrer {
    pub(super) ranked: Vec<Arc<RolloutPolicy>>,
    clusters: HashSet<String>,
    /// Where it has not been released yet.
    without: HashSet<String>,
    /// Whether its own change is on its way.
    moves: bool,
    /// That its own change was given up, if it was.
    given_up: Option<GivenUp>,
    /// Whether it goes somewhere by a policy of its own.
    owned: bool,
    id: TemplateId,
    /// The last revision of its own that is everywhere.
    good: i64,
}

/// The bindings that need this one, with how far their own rollouts are.
pub(super) fn referrers(state: &State, binding: &Binding) -> Result<Vec<Referrer>, PassError> {
    let mut found = Vec::new();
    for snapshot in &binding.spec.required_by {
        let key = Key::new(&snapshot.namespace, &snapshot.name);
        let Some(referrer) = state.binding(&key) else {
            continue;
        };
        let id = template_of(&referrer);
        let record = RolloutRecord::of(&referrer.metadata);
        let unsettled = record.as_ref().is_some_and(|record| !record.is_settled());
        if unsettled && rollouts::view(state, &id).is_none() {
            // Nobody has looked since the start.
            return Err(PassError::NotYet(format!("how far {id} is is not known yet")));
        }
        if state.kinds.is_unread(&id.api_version, &id.kind) {
            return Err(PassError::NotYet(format!("{id} is not known yet")));
        }
        let ranked = rollouts_about(state, &id).map(|(about, template)| gate::ranked(&about, &template));
        found.push(Referrer {
            ranked: ranked.unwrap_or_default(),
            clusters: snapshot
                .clusters
                .iter()
                .map(|target| target.name.clone())
                .collect(),
            without: rollouts::without(state, &id).into_iter().collect(),
            moves: unsettled,
            given_up: record
                .as_ref()
                .and_then(|record| record.given_up(&id.to_string())),
            owned: !is_frozen(&referrer),
            good: record.map_or(0, |record| record.good_revision()),
            id,
        });
    }
    Ok(found)
}

/// That a change was given up which others made who need a template; those that were made for the sake of others aside.
pub(super) fn given_up(referrers: &[Referrer]) -> Option<&GivenUp> {
    let owned = referrers.iter().filter(|referrer| referrer.owned);
    owned.filter_map(|referrer| referrer.given_up.as_ref()).next()
}

/// Whether a change is on its way of something that needs a template: what changes here belongs to it.
pub(super) fn is_part_of_a_change(referrers: &[Referrer]) -> bool {
    referrers.iter().any(|referrer| referrer.owned && referrer.moves)
}

/// Whether everything that needs a template in a cluster waits there itself.
pub(super) fn is_early(referrers: &[Referrer], cluster: &str) -> bool {
    let mut here = referrers
        .iter()
        .filter(|referrer| referrer.clusters.contains(cluster))
        .peekable();
    here.peek().is_some() && here.all(|referrer| referrer.without.contains(cluster))
}

/// Whether something that needs a template in a cluster, and is on its way, was told there already; and if the template
/// itself has begun to change, whether that was since then.
pub(super) fn is_due(state: &State, referrers: &[Referrer], cluster: &str, begun: Option<Timestamp>) -> bool {
    let was_told = |referrer: &Referrer| {
        let work = owning::work_on(state, &referrer.id, cluster);
        let told = work.map(|(_, head)| Told::of(&head.work.metadata));
        told.is_some_and(|told| {
            told.revision > referrer.good && begun.is_none_or(|begun| told.released_at >= Some(begun))
        })
    };
    referrers.iter().any(|referrer| {
        referrer.moves
            && referrer.clusters.contains(cluster)
            && !referrer.without.contains(cluster)
            && (begun.is_none() || was_told(referrer))
    })
}
