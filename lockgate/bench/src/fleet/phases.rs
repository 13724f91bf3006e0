//! The phases: create, single objects, touch, retarget, restore, suspend, resume, restart; those of [`waits`] and [`rollout`]
//! if they are asked for.

use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::fleet::FleetArguments;
use crate::fleet::expect::{Expected, verify};
use crate::fleet::report::{Phase, Writes};
use crate::fleet::rollout;
use crate::fleet::suspension;
use crate::fleet::waits;
use crate::fleet::world::{MemberCluster, SINGLES, World, until};
use crate::latencies::Latencies;
use crate::process::Process;
use crate::progress::{Progress, say};

/// The stamp of the touch.
const TOUCHED: u32 = 1;

/// All phases, each on what the one before left.
pub(crate) async fn all(
    world: &mut World,
    arguments: &FleetArguments,
    phases: &mut Vec<Phase>,
) -> Result<(), BenchError> {
    let (n, m) = (arguments.templates as usize, world.members.len());
    let names = world.names();
    let patience = Duration::from_secs(arguments.patience);
    world.driver.prepare(&names).await?;
    world.quiet(patience).await?;
    let mut expected = Expected {
        templates: n,
        clusters: &names,
        stamp: 0,
        ready: arguments.ready,
    };

    let meter = Meter::start(world, "create", n * m, patience)?;
    let progress = Progress::start("create", n);
    let sent = world.driver.create_all(n, &progress).await?;
    meter
        .arrived(world, |member| member.arrivals.counts().0, n, m)
        .await?;
    phases.push(
        meter
            .end(world, &expected, n, Some(latencies(world, &sent)))
            .await?,
    );

    phases.push(singles(world, n, patience, &expected).await?);

    for member in &world.members {
        member.arrivals.expect(TOUCHED);
    }
    let meter = Meter::start(world, "touch", n * m, patience)?;
    let progress = Progress::start("touch", n);
    let sent = world.driver.touch_all(n, TOUCHED, &progress).await?;
    meter
        .arrived(world, |member| member.arrivals.counts().1, n, m)
        .await?;
    expected.stamp = TOUCHED;
    phases.push(
        meter
            .end(world, &expected, n, Some(latencies(world, &sent)))
            .await?,
    );

    if m > 1 {
        let first = &names[..1];
        let meter = Meter::start(world, "retarget", n * (m - 1), patience)?;
        world.driver.retarget(first).await?;
        let gone = |member: &MemberCluster| n - member.arrivals.counts().0.min(n);
        meter.arrived(world, gone, n, m - 1).await?;
        let moved = Expected {
            clusters: first,
            ..expected
        };
        phases.push(meter.end(world, &moved, n, None).await?);

        let meter = Meter::start(world, "restore", n * (m - 1), patience)?;
        world.driver.retarget(&names).await?;
        meter
            .arrived(world, |member| member.arrivals.counts().0, n, m)
            .await?;
        phases.push(meter.end(world, &expected, n, None).await?);
    }

    expected.stamp = suspension::measure(world, &expected, patience, phases).await?;
    if arguments.waits {
        waits::lazy_edit(world, &expected, patience, phases).await?;
        waits::preempt(world, &expected, patience, phases).await?;
    }

    if arguments.rollout {
        expected.stamp = rollout::measure(world, &expected, patience, phases).await?;
    }

    world.stop_control().await;
    let meter = Meter::start(world, "restart", 0, patience)?;
    world.start_control().await?;
    let phase = meter.end(world, &expected, n, None).await?;
    let written = phase.hub.total + phase.hub.events + phase.members.total;
    phases.push(phase);
    if written > 0 {
        return Err(BenchError::wrong(format!("a restart wrote {written} times")));
    }
    Ok(())
}

/// One object at a time: how long until every member has it.
async fn singles(
    world: &World,
    n: usize,
    patience: Duration,
    expected: &Expected<'_>,
) -> Result<Phase, BenchError> {
    let meter = Meter::start(world, "single objects", SINGLES * world.members.len(), patience)?;
    let mut samples = Vec::with_capacity(SINGLES);
    for number in n..n + SINGLES {
        let begun = Instant::now();
        world.driver.create(number).await?;
        let arrived = || {
            let times = world.members.iter().map(|member| member.arrivals.since(number));
            times
                .collect::<Option<Vec<_>>>()
                .and_then(|times| times.into_iter().max())
        };
        until(patience, "a single object is everywhere", || arrived().is_some()).await?;
        samples.extend(arrived().map(|last| last.saturating_duration_since(begun)));
    }
    let wall = meter.begun.elapsed();
    for number in n..n + SINGLES {
        world.driver.delete(number).await?;
    }
    let left = || world.members.iter().any(|member| member.arrivals.counts().0 > n);
    until(patience, "the single objects are gone", || !left()).await?;
    let mut phase = meter
        .end(world, expected, SINGLES, Some(Latencies::new(samples)))
        .await?;
    phase.wall_s = wall.as_secs_f64();
    phase.objects_per_s = phase.objects as f64 / phase.wall_s;
    Ok(phase)
}

/// From the sending of each object to its arrival at the last member.
fn latencies(world: &World, sent: &[Instant]) -> Latencies {
    let last = |number: usize| {
        world
            .members
            .iter()
            .filter_map(|member| member.arrivals.since(number))
            .max()
    };
    let samples = sent
        .iter()
        .enumerate()
        .filter_map(|(number, sent)| Some(last(number)?.saturating_duration_since(*sent)));
    Latencies::new(samples.collect())
}

/// Measures one phase.
pub(super) struct Meter {
    name: &'static str,
    objects: usize,
    begun: Instant,
    cpu: f64,
    patience: Duration,
    arrived: std::cell::Cell<Option<Duration>>,
}

impl Meter {
    pub(super) fn start(
        world: &World,
        name: &'static str,
        objects: usize,
        patience: Duration,
    ) -> Result<Self, BenchError> {
        world.hub_counts.take();
        world.member_counts.take();
        Ok(Self {
            name,
            objects,
            cpu: Process::this().cpu_seconds()?,
            begun: Instant::now(),
            patience,
            arrived: std::cell::Cell::new(None),
        })
    }

    /// Waits until `members` of the members have `wanted` of something.
    pub(super) async fn arrived(
        &self,
        world: &World,
        of: impl Fn(&MemberCluster) -> usize,
        wanted: usize,
        members: usize,
    ) -> Result<(), BenchError> {
        let progress = Progress::start(self.name, wanted * members);
        let mut shown = 0;
        until(self.patience, self.name, || {
            let counts: Vec<usize> = world
                .members
                .iter()
                .map(|member| of(member).min(wanted))
                .collect();
            let sum: usize = counts.iter().sum();
            progress.advance(sum.saturating_sub(shown) as u64);
            shown = shown.max(sum);
            counts.iter().filter(|count| **count == wanted).count() >= members
        })
        .await?;
        self.reached();
        Ok(())
    }

    /// What was to be measured is reached now.
    pub(super) fn reached(&self) {
        self.arrived.set(Some(self.begun.elapsed()));
    }

    /// Waits until all is quiet, reads everything back, and gives the figures.
    pub(super) async fn end(
        self,
        world: &World,
        expected: &Expected<'_>,
        templates: usize,
        latencies: Option<Latencies>,
    ) -> Result<Phase, BenchError> {
        let check = |world: &World| verify(world, expected);
        self.end_with(world, templates, latencies, check).await
    }

    /// The same where something else is to be read back.
    pub(super) async fn end_with(
        self,
        world: &World,
        templates: usize,
        latencies: Option<Latencies>,
        check: impl FnOnce(&World) -> Result<(), BenchError>,
    ) -> Result<Phase, BenchError> {
        let rested = world.quiet(self.patience).await?;
        let settled = rested.saturating_duration_since(self.begun);
        let wall = self.arrived.get().unwrap_or(settled);
        let process = Process::this();
        let cpu = process.cpu_seconds()? - self.cpu;
        let (hub, members) = (world.hub_counts.take(), world.member_counts.take());
        check(world).map_err(|error| match error {
            BenchError::Wrong(what) => BenchError::wrong(format!("after {}: {what}", self.name)),
            other => other,
        })?;
        say(&format!("{}: {:.2} s, verified", self.name, wall.as_secs_f64()));
        Ok(Phase {
            name: self.name.to_owned(),
            objects: self.objects,
            wall_s: wall.as_secs_f64(),
            objects_per_s: self.objects as f64 / wall.as_secs_f64(),
            settled_s: settled.as_secs_f64(),
            p50_ms: latencies.as_ref().map(|latencies| latencies.quantile(0.5)),
            p95_ms: latencies.as_ref().map(|latencies| latencies.quantile(0.95)),
            hub: Writes::of(hub, templates),
            members: Writes::of(members, templates),
            cpu_s: cpu,
            peak_mb: process.memory()?.peak,
        })
    }
}
