//! What must hold of every decision, by an account of its own: what each cluster was told and has said since, and no status of
//! the run.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::world::{Content, Plan, Site, World};
use lockgate_engine::gate::rules::{Order, threshold_size};
use lockgate_engine::gate::run::{Act, Member, Run, RunInput, Seen, Target};

/// A cluster that is to have a copy, as it is when something is decided.
struct Known<'a> {
    site: &'a Site,
    at: usize,
    group: usize,
    mandatory: bool,
    in_flight: bool,
    failing: bool,
    released: Option<Target>,
}

/// Checks a decision that is about to be carried out.
pub(crate) fn check(world: &World, input: &RunInput<'_>, decided: &Run<'_>, plan: &Plan) {
    let removes = decided.removes && !input.leaving.is_empty();
    let releases = decided
        .steps
        .iter()
        .any(|step| matches!(step.act, Act::Release(_)));
    if !removes && !releases {
        return;
    }
    let full = input.record.promoted_full;
    let soak = if is_reversed(input) || full {
        Duration::ZERO
    } else {
        input.followed.rules.soak
    };
    let known = known(world, input, decided, soak);
    if releases && !full {
        places(input, &known);
        failures(input, &known);
        turns(input, &known);
    }
    if input.followed.breaks_first {
        breaks(world, input, &known, plan);
    } else {
        if removes {
            soaked(world, input, &known, soak);
        }
        replicas(world, &known, plan, removes);
    }
}

/// Checks that a revision which counts as a success from now on has been one: every cluster has what it is to have, and whoever
/// was told so by this rollout is well, and has been long enough. People may have ended a soak.
pub(crate) fn succeeded(world: &World, input: &RunInput<'_>) {
    let full = input.record.promoted_full;
    let soak = if is_reversed(input) || full {
        Duration::ZERO
    } else {
        input.followed.rules.soak
    };
    let sites = world.sites.iter();
    for (site, member) in sites.filter_map(|site| {
        let member = input.members.iter().find(|member| member.cluster == site.name)?;
        Some((site, member))
    }) {
        let has = site
            .present()
            .is_some_and(|held| held.told.digest == member.wanted);
        assert!(
            has && !site.is_unsent(),
            "{} has not got what succeeded",
            site.name
        );
        if let Some(since) = counts_since(site, input) {
            let soaked = input.now >= after(since, soak) || is_promoted(site, input);
            assert!(soaked, "{} has not soaked what succeeded", site.name);
        }
    }
}

/// Whether it is a way back, and not one that an operator chose.
fn is_reversed(input: &RunInput<'_>) -> bool {
    input.back.is_some_and(|back| !back.forward)
}

fn known<'a>(world: &'a World, input: &RunInput<'_>, decided: &Run<'_>, soak: Duration) -> Vec<Known<'a>> {
    let mandatory = input.groups.named_by(&input.followed.rules.mandatory);
    let all = decided
        .steps
        .iter()
        .zip(input.members)
        .zip(input.groups.clusters());
    let mut sites = world.sites.iter().enumerate();
    let known = all.map(|((step, member), (name, group))| {
        let (at, site) = sites.find(|(_, site)| site.name == name).unwrap();
        assert_eq!((step.cluster, member.cluster), (name, name));
        // Where what is to go goes first, more than is wanted is nothing new.
        let kept = member.kept.filter(|_| !input.followed.breaks_first);
        let is_new = member
            .told
            .is_some_and(|told| told.digest == member.wanted || Some(told.digest.as_str()) == kept);
        let failing = is_failing(site, input);
        let retried = failing && is_new && is_retried(site, input);
        Known {
            site,
            at,
            group,
            mandatory: mandatory[group],
            in_flight: is_in_flight(site, input, soak) && !retried && !(is_new && is_promoted(site, input)),
            failing: failing && is_new && !retried,
            released: match step.act {
                Act::Release(target) => Some(target),
                _ => None,
            },
        }
    });
    known.collect()
}

fn after(time: Timestamp, duration: Duration) -> Timestamp {
    time.checked_add(SignedDuration::try_from(duration).unwrap())
        .unwrap()
}

/// Since when what a cluster says counts, if it was told anything by a rollout that is not over.
fn counts_since(site: &Site, input: &RunInput<'_>) -> Option<Timestamp> {
    // Who was told nothing yet is neither under way nor has it failed.
    let told = &site.present().filter(|_| !site.is_unsent())?.told;
    let by_this = told.revision > input.record.good_revision();
    let since = site
        .since
        .max(told.released_at?)
        .max(site.up_since)
        .min(input.now);
    by_this.then_some(since)
}

fn is_late(site: &Site, since: Timestamp, input: &RunInput<'_>) -> bool {
    let deadline = input.followed.rules.deadline;
    site.seen != Seen::Well && deadline.is_some_and(|deadline| input.now >= after(since, deadline))
}

/// Whether a cluster has a place: it was told something and may still become well, or soaks.
fn is_in_flight(site: &Site, input: &RunInput<'_>, soak: Duration) -> bool {
    let Some(since) = counts_since(site, input).filter(|_| !site.suspended) else {
        return false;
    };
    site.down
        || match site.seen {
            Seen::Well => input.now < after(since, soak),
            _ => !is_late(site, since, input),
        }
}

fn is_failing(site: &Site, input: &RunInput<'_>) -> bool {
    let Some(since) = counts_since(site, input) else {
        return false;
    };
    // Who has failed has failed until it is seen to be well, also while nobody can see it.
    let late = !site.down && is_late(site, since, input);
    !site.suspended && (site.failed || late)
}

/// Whether somebody let what failed start again.
fn is_retried(site: &Site, input: &RunInput<'_>) -> bool {
    was_told_before(site, input.record.retried)
}

/// Whether somebody ended its soak.
fn is_promoted(site: &Site, input: &RunInput<'_>) -> bool {
    let lasts = !site.failed && (site.down || site.seen == Seen::Well || !is_failing(site, input));
    lasts && was_told_before(site, input.record.promoted)
}

fn was_told_before(site: &Site, asked: Option<Timestamp>) -> bool {
    let released = site.present().and_then(|held| held.told.released_at);
    asked
        .zip(released)
        .is_some_and(|(asked, released)| released <= asked)
}

/// Outside mandatory groups no more clusters are in flight than may be.
fn places(input: &RunInput<'_>, known: &[Known<'_>]) {
    let rules = &input.followed.rules;
    let outside = || known.iter().filter(|known| !known.mandatory);
    // Who was in flight with something older has its place.
    let joins = |known: &Known<'_>| known.released.is_some() && !known.in_flight;
    if rules.order != Order::Progressive || !outside().any(joins) {
        return;
    }
    let open = outside().count();
    let window = threshold_size(rules.max_concurrency, open, open);
    let in_flight = outside()
        .filter(|known| known.in_flight || known.released.is_some())
        .count();
    assert!(
        in_flight <= window,
        "{in_flight} are in flight, and {window} may be"
    );
}

/// Nothing starts once more failed than may.
fn failures(input: &RunInput<'_>, known: &[Known<'_>]) {
    let rules = &input.followed.rules;
    let limit = |population| threshold_size(rules.max_failures, population, 0);
    let failing = known.iter().filter(|known| known.failing);
    let first = failing.clone().next().map(|known| known.site.name.as_str());
    assert!(
        !failing.clone().any(|known| known.mandatory),
        "{first:?} failed, and others start"
    );
    let count = failing.clone().count();
    match rules.order {
        Order::All => {}
        Order::Progressive => assert!(count <= limit(known.len()), "{count} failed, and others start"),
        Order::ProgressivePerGroup => {
            for (at, group) in input.groups.iter().enumerate() {
                let count = failing.clone().filter(|known| known.group == at).count();
                assert!(
                    count <= limit(group.clusters.len()),
                    "{count} failed in {group}, and others start"
                );
            }
        }
    }
}

/// A group starts when those before it are settled.
fn turns(input: &RunInput<'_>, known: &[Known<'_>]) {
    let reversed = is_reversed(input);
    let released = |known: &&Known<'_>| known.released.is_some();
    for open in known.iter().filter(|known| known.in_flight && !known.failing) {
        let before = |other: &Known<'_>| match (other.mandatory, open.mandatory) {
            (false, true) => !reversed,
            (true, false) => reversed,
            (false, false) if input.followed.rules.order != Order::ProgressivePerGroup => false,
            _ if reversed => other.group < open.group,
            _ => other.group > open.group,
        };
        let early = known.iter().filter(released).find(|other| before(other));
        let early = early.map(|other| (&other.site.name, &open.site.name));
        assert!(early.is_none(), "starts before the other is settled: {early:?}");
    }
}

/// What is no longer wanted goes when everything that replaces it has soaked.
fn soaked(world: &World, input: &RunInput<'_>, known: &[Known<'_>], soak: Duration) {
    for (known, member) in known.iter().zip(input.members) {
        let site = known.site;
        let held = site.present();
        let has = held.is_some_and(|held| {
            held.told.digest == member.wanted || Some(held.told.digest.as_str()) == member.kept
        });
        assert!(has, "{} has no copy at {}, and others go", site.name, world.now);
        if let Some(since) = counts_since(site, input) {
            let well = site.seen == Seen::Well && !site.down;
            let soaked = input.now >= after(since, soak) || is_promoted(site, input);
            assert!(well && soaked, "{} has not soaked, and others go", site.name);
        }
    }
}

/// Where nothing may run twice, nobody gets more while others are to give theirs up, or may not have done so yet.
fn breaks(world: &World, input: &RunInput<'_>, known: &[Known<'_>], plan: &Plan) {
    let more = |(known, member): &(&Known<'_>, &Member<'_>)| known.released.is_some() && member.grows;
    let Some((more, _)) = known.iter().zip(input.members).find(more) else {
        return;
    };
    let has_too_much = |(site, content): &(&Site, &Option<Content>)| {
        let wanted = content.map_or(0, |content| content.1);
        let held = site
            .work
            .as_ref()
            .filter(|_| !site.is_unsent() || site.has_copy());
        held.is_some_and(|held| held.content.1 > wanted)
    };
    let keeps = world.sites.iter().zip(&plan.contents).find(has_too_much);
    let keeps = keeps.map(|(site, _)| &site.name);
    assert!(
        keeps.is_none(),
        "{} gets more before {keeps:?} has less",
        more.site.name
    );
    let gives_up = |(known, member): &(&Known<'_>, &Member<'_>)| known.in_flight && !member.grows;
    let gives_up = known.iter().zip(input.members).find(gives_up);
    let gives_up = gives_up.map(|(known, _)| &known.site.name);
    assert!(
        gives_up.is_none(),
        "{} gets more while {gives_up:?} is under way",
        more.site.name
    );
}

/// Replicas that are ready never fall below what was there and what is to be, whichever is less.
fn replicas(world: &World, known: &[Known<'_>], plan: &Plan, removes: bool) {
    let before: i64 = world.sites.iter().map(|site| site.ready).sum();
    let wanted: i64 = plan.contents.iter().flatten().map(|content| content.1).sum();
    let mut then = before;
    for known in known
        .iter()
        .filter(|known| known.released == Some(Target::Wanted))
    {
        let replicas = plan.contents[known.at].map_or(0, |content| content.1);
        then -= (known.site.ready - replicas).max(0);
    }
    if removes {
        let goes = world
            .sites
            .iter()
            .zip(&plan.contents)
            .filter(|(_, content)| content.is_none());
        then -= goes.map(|(site, _)| site.ready).sum::<i64>();
    }
    assert!(
        then >= before.min(wanted),
        "{then} replicas are left, of {before} before and {wanted} wanted"
    );
}
