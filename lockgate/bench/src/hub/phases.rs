//! The phases: create, single objects, touch, retarget, restore, delete.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::fleet::load::{self, Driver, REPLICAS, STAMP};
use crate::fleet::world::SINGLES;
use crate::hub::World;
use crate::hub::report::{HubReport, Phase, Used};
use crate::hub::server::Server;
use crate::latencies::Latencies;
use crate::progress::{Progress, say};

/// The stamp of the touch.
const TOUCHED: u32 = 1;
/// How often a member is asked how far it is. Asking is work for the machine that is measured.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);
/// The same for a single object, of which the time itself is measured.
const BETWEEN_GLANCES: Duration = Duration::from_millis(2);
/// Processes rest when together they used less than this share of one core for a while.
const RESTING: f64 = 0.1;

/// What a member should have.
#[derive(Clone, Copy)]
struct Expected {
    templates: usize,
    /// The first of the members have them.
    members: usize,
    stamp: Option<u32>,
}

/// All phases, each on what the one before left.
pub(super) async fn all(world: &World, keep: bool, report: &mut HubReport) -> Result<(), BenchError> {
    let (n, m) = (world.templates, world.members.len());
    let names: Vec<String> = world.members.iter().map(|member| member.name.clone()).collect();
    let driver = Driver::new(world.hub.client.clone(), world.concurrency);
    check(world).await?;
    if !world.hub.has_namespace().await? {
        driver.create_namespace().await?;
    }
    driver.create_policy(&names).await?;
    let mut expected = Expected {
        templates: n,
        members: m,
        stamp: None,
    };

    let meter = Meter::start(world, "create", n * m).await?;
    driver.create_all(n, &Progress::start("create", n)).await?;
    meter
        .arrived(async |member| member.count().await, n, &world.members)
        .await?;
    report.phases.push(meter.end(&expected).await?);

    report.phases.push(singles(world, &driver, &expected).await?);

    let meter = Meter::start(world, "touch", n * m).await?;
    driver.touch_all(n, TOUCHED, &Progress::start("touch", n)).await?;
    meter
        .arrived(async |member| member.stamped(TOUCHED).await, n, &world.members)
        .await?;
    expected.stamp = Some(TOUCHED);
    report.phases.push(meter.end(&expected).await?);

    if m > 1 {
        let meter = Meter::start(world, "retarget", n * (m - 1)).await?;
        driver.retarget(&names[..1]).await?;
        let gone = async |member: &Server| Ok(n - member.count().await?.min(n));
        meter.arrived(gone, n, &world.members[1..]).await?;
        let moved = Expected {
            members: 1,
            ..expected
        };
        report.phases.push(meter.end(&moved).await?);

        let meter = Meter::start(world, "restore", n * (m - 1)).await?;
        driver.retarget(&names).await?;
        meter
            .arrived(async |member| member.count().await, n, &world.members)
            .await?;
        report.phases.push(meter.end(&expected).await?);
    }
    for process in &world.processes {
        report.memory.push((process.name.clone(), process.memory()?));
    }
    if keep {
        return Ok(());
    }

    let meter = Meter::start(world, "delete", n * m).await?;
    driver
        .each(n, &Progress::start("delete", n), async |number| {
            driver.delete(number).await
        })
        .await?;
    let gone = async |member: &Server| Ok(n - member.count().await?.min(n));
    meter.arrived(gone, n, &world.members).await?;
    expected.members = 0;
    report.phases.push(meter.end(&expected).await?);
    driver.delete_policy().await
}

/// Finds out what would stop a measurement, or make it one of something else, before anything is written.
async fn check(world: &World) -> Result<(), BenchError> {
    world.cpu()?;
    for member in &world.members {
        let name = &member.name;
        if !world.hub.knows_cluster(name).await? {
            return Err(BenchError::Usage(format!(
                "the hub has no cluster {name}: is --hub a hub, and has the member joined it by this name (kubectl get clusters)?"
            )));
        }
    }
    if world.hub.count().await? > 0 || world.hub.has_policy().await? {
        let namespace = load::NAMESPACE;
        return Err(BenchError::Usage(format!(
            "the namespace {namespace} of the hub is for this measurement alone, and not empty: \
             kubectl delete deployments,propagationpolicies.policy.karmada.io --all -n {namespace}"
        )));
    }
    Ok(())
}

/// One object at a time: how long until every member has it.
async fn singles(world: &World, driver: &Driver, expected: &Expected) -> Result<Phase, BenchError> {
    let n = world.templates;
    let meter = Meter::start(world, "single objects", SINGLES * world.members.len()).await?;
    let mut samples = Vec::with_capacity(SINGLES);
    for number in n..n + SINGLES {
        let begun = Instant::now();
        driver.create(number).await?;
        for member in &world.members {
            while !member.has(&load::name(number)).await? {
                world.still_patient(begun, "a single object is everywhere")?;
                tokio::time::sleep(BETWEEN_GLANCES).await;
            }
        }
        samples.push(begun.elapsed());
    }
    meter.reached();
    for number in n..n + SINGLES {
        driver.delete(number).await?;
    }
    let begun = Instant::now();
    for member in &world.members {
        while member.count().await? > n {
            world.still_patient(begun, "the single objects are gone")?;
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }
    let latencies = Latencies::new(samples);
    let mut phase = meter.end(expected).await?;
    phase.p50_ms = Some(latencies.quantile(0.5));
    phase.p95_ms = Some(latencies.quantile(0.95));
    Ok(phase)
}

impl World {
    fn still_patient(&self, begun: Instant, what: &str) -> Result<(), BenchError> {
        if begun.elapsed() < self.patience {
            return Ok(());
        }
        Err(BenchError::wrong(format!(
            "not so after {:?}: {what}",
            self.patience
        )))
    }

    /// The CPU time that each process has taken.
    fn cpu(&self) -> Result<Vec<f64>, BenchError> {
        self.processes
            .iter()
            .map(|process| process.cpu_seconds())
            .collect()
    }

    /// Waits until the processes have nothing to do but to beat.
    async fn rest(&self, what: &str) -> Result<(), BenchError> {
        let begun = Instant::now();
        loop {
            let before: f64 = self.cpu()?.iter().sum();
            tokio::time::sleep(self.rest).await;
            let after: f64 = self.cpu()?.iter().sum();
            if after - before < RESTING * self.rest.as_secs_f64() {
                return Ok(());
            }
            self.still_patient(begun, &format!("all rest after {what}"))?;
        }
    }
}

/// Measures one phase.
struct Meter<'a> {
    world: &'a World,
    name: &'static str,
    objects: usize,
    begun: Instant,
    cpu: Vec<f64>,
    writes: BTreeMap<String, u64>,
    arrived: std::cell::Cell<Option<Duration>>,
}

impl<'a> Meter<'a> {
    async fn start(world: &'a World, name: &'static str, objects: usize) -> Result<Self, BenchError> {
        world.rest("what was before").await?;
        let writes = world.hub.writes().await?;
        Ok(Self {
            world,
            name,
            objects,
            cpu: world.cpu()?,
            writes,
            begun: Instant::now(),
            arrived: std::cell::Cell::new(None),
        })
    }

    /// Waits until each of these members has `wanted` of something.
    async fn arrived(
        &self,
        of: impl AsyncFn(&Server) -> Result<usize, BenchError>,
        wanted: usize,
        members: &[Server],
    ) -> Result<(), BenchError> {
        let progress = Progress::start(self.name, wanted * members.len());
        let mut shown = vec![0; members.len()];
        loop {
            for (member, shown) in members.iter().zip(&mut shown) {
                if *shown < wanted {
                    let now = of(member).await?.min(wanted);
                    progress.advance(now.saturating_sub(*shown) as u64);
                    *shown = now;
                }
            }
            if shown.iter().all(|shown| *shown == wanted) {
                self.reached();
                return Ok(());
            }
            self.world.still_patient(self.begun, self.name)?;
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    /// What was to be measured is reached now.
    fn reached(&self) {
        self.arrived.set(Some(self.begun.elapsed()));
    }

    /// Waits until all rest, reads every member back, and gives the figures.
    async fn end(self, expected: &Expected) -> Result<Phase, BenchError> {
        let world = self.world;
        let wall = self.arrived.get().unwrap_or_else(|| self.begun.elapsed());
        world.rest(self.name).await?;
        let cpu = world.cpu()?;
        let mut writes = world.hub.writes().await?;
        for (what, before) in &self.writes {
            if let Some(count) = writes.get_mut(what) {
                *count -= before;
            }
        }
        writes.retain(|_, count| *count > 0);
        for (index, member) in world.members.iter().enumerate() {
            let wanted = if index < expected.members {
                expected.templates
            } else {
                0
            };
            verify(member, wanted, expected.stamp)
                .await
                .map_err(|error| match error {
                    BenchError::Wrong(what) => BenchError::wrong(format!("after {}: {what}", self.name)),
                    other => other,
                })?;
        }
        say(&format!("{}: {:.2} s, verified", self.name, wall.as_secs_f64()));
        Ok(Phase {
            name: self.name.to_owned(),
            objects: self.objects,
            wall_s: wall.as_secs_f64(),
            objects_per_s: self.objects as f64 / wall.as_secs_f64(),
            p50_ms: None,
            p95_ms: None,
            hub_writes: writes,
            cpu: world
                .processes
                .iter()
                .zip(cpu.iter().zip(&self.cpu))
                .map(|(process, (after, before))| Used {
                    process: process.name.clone(),
                    seconds: after - before,
                })
                .collect(),
        })
    }
}

/// Reads a member back, object by object.
async fn verify(member: &Server, wanted: usize, stamp: Option<u32>) -> Result<(), BenchError> {
    let wrong = |what: String| Err(BenchError::wrong(format!("{}: {what}", member.name)));
    let found = member.all().await?;
    let mut left: BTreeSet<String> = (0..wanted).map(load::name).collect();
    let stamp = stamp.map(|stamp| stamp.to_string());
    for object in &found {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        if !left.remove(name) {
            return wrong(format!("{name} should not be there"));
        }
        let labels = &object["metadata"]["labels"];
        if labels["app"] != name || labels[STAMP].as_str() != stamp.as_deref() {
            return wrong(format!("the labels of {name} are {labels}"));
        }
        let image = &object["spec"]["template"]["spec"]["containers"][0]["image"];
        if object["spec"]["replicas"] != REPLICAS || image != "nginx:1.19.0" {
            return wrong(format!("{name} is not the one that was sent"));
        }
    }
    match left.first() {
        Some(name) => wrong(format!("{name} is missing, and {} more", left.len() - 1)),
        None => Ok(()),
    }
}
