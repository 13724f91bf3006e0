//! Waiting until nothing moves any more. Nothing here sleeps to be right: every wait has a condition, and a deadline
//! that fails with what is not so.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::file::Place;
use crate::line::Fuse;
use crate::plane::Controllers;
use crate::server::Written;
use crate::world::{Site, Watched, World};

/// Longer than anything takes on the slowest machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(1);

/// How the wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Nothing moves.
    Idle,
    /// The controllers were cut off.
    Cut,
}

/// Waits until the controllers have seen every change and have nothing to do, and nobody else owes anything.
pub(crate) async fn settle(
    world: &World,
    controllers: Option<(&dyn Controllers, &Fuse)>,
    written: &[(Place, Written)],
) -> Result<Settled, String> {
    let begun = Instant::now();
    let mut told = 0;
    // Two looks in a row at the same state: a watch of which nobody knows may lie between an event and its effect.
    let mut quiet_at = None;
    loop {
        if let Some((_, fuse)) = controllers
            && fuse.blown()
        {
            return Ok(Settled::Cut);
        }
        stir(world, written.len());
        let before = revisions(world);
        let moving = moving(world, controllers.map(|(controllers, _)| controllers), written);
        let after = revisions(world);
        match moving {
            None if before == after => {
                if quiet_at.as_ref() == Some(&after) {
                    return Ok(Settled::Idle);
                }
                quiet_at = Some(after);
                tokio::task::yield_now().await;
            }
            None => quiet_at = None,
            Some(what) => {
                quiet_at = None;
                let waited = begun.elapsed().as_secs();
                if waited > told {
                    told = waited;
                    tracing::debug!(seconds = waited, what, "still moving");
                }
                if begun.elapsed() > DEADLINE {
                    return Err(format!("after {} seconds {what}", DEADLINE.as_secs()));
                }
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// After any change, by whomever, somebody looks after real servers before they are called quiet. Without one nothing is owed,
/// and time may pass quickly.
fn stir(world: &World, written: usize) {
    let by_controllers: u64 = world.sites().map(|(_, site)| site.line.writes()).sum();
    let changes = by_controllers + written as u64;
    if world.looked_after.swap(changes, Ordering::AcqRel) == changes {
        return;
    }
    for (_, site) in world.sites() {
        if let Watched::Real(janitor) = &site.watched {
            janitor.stir();
        }
    }
}

fn revisions(world: &World) -> Vec<u64> {
    world.sites().map(|(_, site)| site.revision()).collect()
}

/// What is not at rest.
fn moving(
    world: &World,
    controllers: Option<&dyn Controllers>,
    written: &[(Place, Written)],
) -> Option<String> {
    for (place, site) in world.sites() {
        if let Some(owed) = site.owed() {
            return Some(format!("{place}: {owed}"));
        }
    }
    let controllers = controllers?;
    if world.clock.is_anybody_late() {
        return Some("somebody is about to wake up".to_owned());
    }
    for (place, change) in written {
        // Embedded servers tell more than their answers.
        let embedded = |site: &Site| matches!(site.watched, Watched::Embedded { .. });
        if !world.site(place).is_some_and(embedded)
            && let Some(unseen) = unseen_change(world, controllers, place, change)
        {
            return Some(unseen);
        }
    }
    for (place, site) in world.sites() {
        if let Watched::Real(janitor) = &site.watched {
            for change in janitor.written() {
                if let Some(unseen) = unseen_change(world, controllers, &place, &change) {
                    return Some(unseen);
                }
            }
        }
        if let Watched::Embedded { tower, .. } = &site.watched {
            for (resource, version) in tower.newest(place != Place::Hub) {
                if let Some(unseen) = unseen(world, controllers, &place, &resource, version) {
                    return Some(unseen);
                }
            }
            // Some of what is not managed is looked at all the same: what policies select, and what a member has room for.
            let fault = site.line.fault();
            for watching in controllers.watches(&place) {
                let version = tower.newest_of(&watching);
                if fault.shows(&watching.resource.plural) && watching.seen < version {
                    return Some(format!(
                        "the controllers have seen {} {} on {place} up to {}, not {version}",
                        watching.resource, watching.name, watching.seen
                    ));
                }
            }
            for (resource, version) in tower.newest(false) {
                if fault.shows(&resource.plural)
                    && let Some(seen) = controllers.seen_all(&place, &resource)
                    && seen < version
                {
                    return Some(format!(
                        "the controllers have seen all {resource} on {place} up to {seen}, not {version}"
                    ));
                }
            }
        }
    }
    (!controllers.idle()).then(|| format!("the controllers are not idle: {}", controllers.busy_with()))
}

/// A change that the controllers have not seen and could see.
fn unseen(
    world: &World,
    controllers: &dyn Controllers,
    place: &Place,
    resource: &lockgate_hub::Resource,
    version: u64,
) -> Option<String> {
    if world
        .site(place)
        .is_some_and(|site| !site.line.fault().shows(&resource.plural))
    {
        return None;
    }
    let seen = controllers.seen(place, resource)?;
    (seen < version)
        .then(|| format!("the controllers have seen {resource} on {place} up to {seen}, not {version}"))
}

/// The same of a change that somebody made on a real server. Nobody follows what is not managed on a member.
fn unseen_change(
    world: &World,
    controllers: &dyn Controllers,
    place: &Place,
    change: &Written,
) -> Option<String> {
    let is_followed = *place == Place::Hub || change.managed;
    let unseen = || unseen(world, controllers, place, &change.resource, change.version);
    is_followed.then(unseen).flatten()
}
