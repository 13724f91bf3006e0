//! Running one scenario: steps one after the other, and after each of them a wait until nothing moves.

mod check;
mod moment;
mod perform;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockgate_engine::Gates;

use crate::backend::Backend;
use crate::file::{Action, Place, Scenario, Step};
use crate::line::Fuse;
use crate::matching::Memory;
use crate::path::Path;
use crate::plane::{Controllers, Joining, Plane, Setup};
use crate::reference::Reference;
use crate::report::Failure;
use crate::server::Written;
use crate::settle::{Settled, settle};
use crate::world::World;
use moment::Moment;

/// How a scenario is run. Its expectations must hold in every way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// As it is written.
    Plain,
    /// With the controllers stopped and started again after every step.
    RestartBetweenSteps,
    /// Again and again, with the controllers killed after their first write, their second, and so on to their last.
    CutEveryWrite,
}

impl Variant {
    /// The word for it in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::RestartBetweenSteps => "restart between steps",
            Self::CutEveryWrite => "cut every write",
        }
    }
}

/// How a scenario went.
#[derive(Debug)]
pub struct Outcome {
    /// What it is called.
    pub name: String,
    /// How it was run.
    pub variant: Variant,
    /// How long it took.
    pub took: Duration,
    /// How often it was run.
    pub runs: u64,
    /// What went wrong, if something did.
    pub failure: Option<Box<Failure>>,
}

/// The most runs of one scenario with a cut.
const MAX_CUTS: u64 = 5000;

/// How long events may take to be told.
const EVENTS_WITHIN: Duration = Duration::from_secs(20);

/// Runs a scenario in one way.
pub async fn run(
    scenario: &Scenario,
    backend: &mut dyn Backend,
    plane: &dyn Plane,
    variant: Variant,
) -> Outcome {
    let begun = Instant::now();
    let mut outcome = Outcome {
        name: scenario.name.clone(),
        variant,
        took: Duration::ZERO,
        runs: 1,
        failure: None,
    };
    match variant {
        Variant::Plain => (_, outcome.failure) = once(scenario, backend, plane, Mode::Plain).await,
        Variant::RestartBetweenSteps => {
            (_, outcome.failure) = once(scenario, backend, plane, Mode::Restarts).await;
        }
        Variant::CutEveryWrite => {
            for after in 1..=MAX_CUTS {
                outcome.runs = after;
                let (was_cut, failure) = once(scenario, backend, plane, Mode::Cut(after)).await;
                outcome.failure = failure.map(|mut failure| {
                    failure.title = format!(
                        "{} (with the controllers killed after write {after})",
                        failure.title
                    );
                    failure
                });
                // Without a cut the controllers have no more writes than that.
                if !was_cut || outcome.failure.is_some() {
                    break;
                }
            }
        }
    }
    outcome.took = begun.elapsed();
    outcome
}

/// One way through a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plain,
    Restarts,
    /// Killed after so many writes, counted from the first step.
    Cut(u64),
}

/// Runs it once; says whether the controllers were cut off on the way.
async fn once(
    scenario: &Scenario,
    backend: &mut dyn Backend,
    plane: &dyn Plane,
    mode: Mode,
) -> (bool, Option<Box<Failure>>) {
    let before = |found: String| {
        Box::new(Failure {
            file: scenario.file.clone(),
            line: 0,
            step: 0,
            title: "before the first step".to_owned(),
            expected: "servers and controllers that are ready".to_owned(),
            found,
            object: None,
        })
    };
    let world = match backend.open(scenario, plane).await {
        Ok(world) => world,
        Err(what) => return (false, Some(before(what))),
    };
    let mut runner = Runner {
        scenario,
        plane,
        world,
        mode,
        gates: scenario.gates,
        running: None,
        cut: false,
        restarts: 0,
        written: Vec::new(),
        memory: Memory::new(),
        last: Moment::default(),
        marks: BTreeMap::new(),
    };
    let failure = match runner.prepare().await {
        Err(what) => Some(before(what)),
        Ok(()) => runner.steps().await.err(),
    };
    runner.stop().await;
    let Runner { world, cut, .. } = runner;
    let after = |expected: &str, found: String| {
        let mut failure = before(found);
        failure.title = "after the last step".to_owned();
        failure.expected = expected.to_owned();
        failure
    };
    let blind = "writes to members that create, or name the version of what they change or delete";
    let failure = failure.or_else(|| blind_write(&world).map(|write| after(blind, write)));
    match (failure, backend.close(world).await) {
        (Some(failure), _) => (cut, Some(failure)),
        (None, Ok(())) => (cut, None),
        (None, Err(what)) => {
            let clean = "servers that are clean for the next scenario";
            (cut, Some(after(clean, what)))
        }
    }
}

/// Controllers that run, and what can kill them.
struct Running {
    controllers: Box<dyn Controllers>,
    fuse: Arc<Fuse>,
}

struct Runner<'a> {
    scenario: &'a Scenario,
    plane: &'a dyn Plane,
    world: World,
    mode: Mode,
    /// The gates of the controllers that run, or are started next.
    gates: Gates,
    running: Option<Running>,
    /// Whether the controllers were cut off.
    cut: bool,
    /// How often they were started again.
    restarts: u64,
    /// Changes that the controllers must have seen.
    written: Vec<(Place, Written)>,
    memory: Memory,
    /// The moment before the last step that did something.
    last: Moment,
    marks: BTreeMap<String, Moment>,
}

impl Runner<'_> {
    /// Starts the controllers and lets the members join.
    async fn prepare(&mut self) -> Result<(), String> {
        for spec in &self.scenario.members {
            let site = self.world.members.get(&spec.name).ok_or("a member is missing")?;
            for object in &spec.objects {
                let written = site.server.apply(object).await;
                let written = written.map_err(|problem| format!("{}: {problem}", spec.name))?;
                self.written.push((Place::Member(spec.name.clone()), written));
            }
        }
        self.start().await?;
        for spec in &self.scenario.members {
            let site = self.world.members.get(&spec.name).ok_or("a member is missing")?;
            self.plane
                .join(Joining {
                    hub: self.world.hub.server.client(),
                    member: site.server.client(),
                    spec,
                    endpoint: &site.endpoint,
                    authority: site.authority.as_deref(),
                })
                .await
                .map_err(|error| format!("{} did not join: {error}", spec.name))?;
            // The controllers must have seen the Cluster before anything can be called idle.
            let cluster = cluster(&spec.name);
            let joined = self.world.hub.server.written_last(&cluster).await;
            let joined = joined.map_err(|problem| format!("{cluster}: {problem}"))?;
            self.written.extend(joined.map(|written| (Place::Hub, written)));
            if !spec.taints.is_empty() {
                let taints = (Path::keys(["spec", "taints"]), spec.taints.clone().into());
                let written = self.world.hub.server.edit(&cluster, &[taints]).await;
                let written = written.map_err(|problem| format!("{cluster}: {problem}"))?;
                self.written.push((Place::Hub, written));
            }
        }
        self.settle().await?;
        self.check_ready().await?;
        if let (Mode::Cut(writes), Some(running)) = (self.mode, &self.running) {
            running.fuse.arm(writes);
        }
        Ok(())
    }

    async fn check_ready(&self) -> Result<(), String> {
        if !self.plane.makes_ready() {
            return Ok(());
        }
        let ready = Path::parse("status.conditions[type=Ready].status")?;
        for spec in &self.scenario.members {
            let cluster = cluster(&spec.name);
            let found = self.world.hub.server.get(&cluster).await;
            let found = found.map_err(|problem| problem.to_string())?.unwrap_or_default();
            if ready.get(&found).and_then(|status| status.as_str()) != Some("True") {
                return Err(format!(
                    "{cluster} is not ready:\n{}",
                    crate::report::excerpt(&found)
                ));
            }
        }
        Ok(())
    }

    async fn steps(&mut self) -> Result<(), Box<Failure>> {
        for (position, step) in self.scenario.steps.iter().enumerate() {
            let number = position + 1;
            let failed = |expected: String, found: String| {
                Box::new(self::failure(self.scenario, number, step, expected, found))
            };
            match &step.action {
                Action::Expect(expectations) => {
                    for expectation in expectations {
                        self.check(number, expectation).await?;
                    }
                    continue;
                }
                Action::Mark(name) => {
                    let moment = self.moment().await;
                    let moment = moment.map_err(|what| failed("a look at the servers".to_owned(), what))?;
                    self.marks.insert(name.clone(), moment);
                    continue;
                }
                Action::Remember(values) => {
                    for (name, reference, path) in values {
                        self.remember(&step.on, name, reference, path)
                            .await
                            .map_err(|what| failed(format!("{path} of {reference}"), what))?;
                    }
                    continue;
                }
                _ => {}
            }
            let moment = self.moment().await;
            self.last = moment.map_err(|what| failed("a look at the servers".to_owned(), what))?;
            self.perform(number, step).await?;
            let idle = || "that everything comes to rest".to_owned();
            self.settle().await.map_err(|what| failed(idle(), what))?;
            if self.mode == Mode::Restarts
                && let Some(running) = &self.running
            {
                // What was not told yet would be lost.
                let _ = tokio::time::timeout(EVENTS_WITHIN, running.controllers.told()).await;
                let again = || "that everything comes to rest after a restart".to_owned();
                self.restart().await.map_err(|what| failed(again(), what))?;
                self.settle().await.map_err(|what| failed(again(), what))?;
            }
        }
        Ok(())
    }

    async fn remember(
        &mut self,
        place: &Place,
        name: &str,
        reference: &Reference,
        path: &Path,
    ) -> Result<(), String> {
        let site = self
            .world
            .site(place)
            .ok_or_else(|| format!("there is no {place}"))?;
        let object = site.server.get(reference).await;
        let object = object.map_err(|problem| problem.to_string())?;
        let object = object.ok_or_else(|| format!("there is no {reference}"))?;
        let value = path.get(&object).cloned().ok_or("nothing")?;
        self.memory.insert(name.to_owned(), value);
        Ok(())
    }

    /// Waits until nothing moves, and servers that are elsewhere have been looked after. Controllers that were cut off on the
    /// way are started anew.
    async fn settle(&mut self) -> Result<(), String> {
        self.world.look_after();
        self.settle_quickly().await
    }

    /// The same in the midst of a step: without a change nobody is looked after.
    async fn settle_quickly(&mut self) -> Result<(), String> {
        loop {
            let running = self.running.as_ref();
            let controllers = running.map(|running| (&*running.controllers, &*running.fuse));
            match settle(&self.world, controllers, &self.written).await? {
                Settled::Idle => return Ok(()),
                Settled::Cut => {
                    self.cut = true;
                    self.stop().await;
                    self.start().await?;
                }
            }
        }
    }

    async fn start(&mut self) -> Result<(), String> {
        let fuse = Fuse::none();
        let setup = Setup {
            hub: self.world.hub_client(&fuse),
            connector: self.world.connector(&fuse),
            gates: self.gates,
            clock: self.world.clock.clone(),
        };
        let controllers = self.plane.start(setup).await?;
        self.running = Some(Running { controllers, fuse });
        Ok(())
    }

    async fn stop(&mut self) {
        if let Some(Running { controllers, fuse }) = self.running.take() {
            controllers.stop().await;
            // Whatever of them is left behind cannot do anything any more.
            fuse.blow();
        }
    }

    async fn restart(&mut self) -> Result<(), String> {
        let left = self.running.as_ref().and_then(|running| running.fuse.left());
        self.stop().await;
        self.restarts += 1;
        self.world.hub.line.come_late(self.restarts);
        self.start().await?;
        if let (Some(left), Some(running)) = (left, &self.running) {
            running.fuse.arm(left);
        }
        Ok(())
    }
}

/// A write to a member that did not name a version: it may come late, and meet what nobody looked at.
fn blind_write(world: &World) -> Option<String> {
    world
        .members
        .iter()
        .find_map(|(name, site)| Some(format!("{name}: {}", site.line.blind()?)))
}

fn cluster(name: &str) -> Reference {
    Reference {
        kind: "clusters.cluster.karmada.io".to_owned(),
        name: name.to_owned(),
        namespace: String::new(),
        selector: String::new(),
    }
}

fn failure(scenario: &Scenario, number: usize, step: &Step, expected: String, found: String) -> Failure {
    Failure {
        file: scenario.file.clone(),
        line: step.line,
        step: number,
        title: step.title.clone(),
        expected,
        found,
        object: None,
    }
}
