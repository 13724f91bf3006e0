//! Server-side apply: of objects that are not there, of nothing new, and by a second manager of the same objects.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::arguments::ApiArguments;
use crate::client::{Call, Client};
use crate::cost::{Cost, Meter, Phrase};
use crate::error::BenchError;
use crate::load::drive;
use crate::operations::make_namespace;
use crate::payload::{Kind, name};
use crate::progress::Progress;
use crate::report::{Goal, Report};
use crate::servers::Running;
use crate::verify::{parse, resource_version};

const FIRST: &str = "bench-first";
const SECOND: &str = "bench-second";
/// Applies before the first measurement.
const WARM_UP: usize = 200;

/// What is measured, in this order: each needs what the one before it wrote.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Create,
    Nothing,
    Second,
}

const PHASES: [Phase; 3] = [Phase::Create, Phase::Nothing, Phase::Second];

/// One collection on one server.
struct Subject<'a> {
    running: &'a Running,
    client: Arc<Client>,
    kind: &'static Kind,
    namespace: String,
    /// The resource versions of the objects, as last answered.
    versions: Vec<String>,
}

/// Measures all servers in turns, so that a noisy moment hits all of them.
pub(crate) async fn measure(
    fleet: &[Running],
    arguments: &ApiArguments,
    report: &mut Report,
) -> Result<(), BenchError> {
    for &kind in arguments.kinds() {
        for running in fleet {
            let mut subject = Subject::new(running, arguments, kind, "warm-up").await?;
            let count = WARM_UP.min(arguments.operations);
            subject.phase(Phase::Create, count, arguments.concurrency).await?;
        }
        for round in 0..arguments.repeat {
            let mut subjects = Vec::with_capacity(fleet.len());
            for running in fleet {
                subjects.push(Subject::new(running, arguments, kind, &round.to_string()).await?);
            }
            for phase in PHASES {
                for subject in &mut subjects {
                    let side = subject.running.side;
                    let cost = subject
                        .phase(phase, arguments.operations, arguments.concurrency)
                        .await
                        .map_err(BenchError::on(side))?;
                    cost.record(report, side, &phrase(kind, phase));
                }
            }
        }
    }
    Ok(())
}

fn phrase(kind: &Kind, phase: Phase) -> Phrase<'static> {
    let (what, times) = match phase {
        Phase::Create => ("apply of a new object", 4.0),
        Phase::Nothing => ("apply of nothing new", 10.0),
        Phase::Second => ("apply by a second manager", 4.0),
    };
    Phrase {
        section: if kind.name == "ConfigMap" {
            "Server-side apply: ConfigMaps of 2 KB"
        } else {
            "Server-side apply: Deployments"
        },
        what,
        latency: "latency",
        goal: Some(Goal::TimesReal(times)),
    }
}

impl<'a> Subject<'a> {
    async fn new(
        running: &'a Running,
        arguments: &ApiArguments,
        kind: &'static Kind,
        suffix: &str,
    ) -> Result<Self, BenchError> {
        let client = running.client(arguments.connections).await?;
        let namespace = format!("bench-apply-{}-{suffix}", kind.name.to_lowercase());
        make_namespace(&client, &namespace).await?;
        Ok(Self {
            running,
            client,
            kind,
            namespace,
            versions: Vec::new(),
        })
    }

    /// The requests are made up before the clocks are read, and what was answered is looked at afterwards.
    async fn phase(&mut self, phase: Phase, count: usize, concurrency: usize) -> Result<Cost, BenchError> {
        let calls: Arc<Vec<Call>> = Arc::new((0..count).map(|number| self.call(phase, number)).collect());
        let what = format!(
            "{phase:?} by apply, {}s ({:?})",
            self.kind.name, self.running.side
        );
        let progress = Progress::start(what, count);
        let client = self.client.clone();
        let meter = Meter::start(&self.running.processes)?;
        let outcome = drive(count, concurrency, &progress, move |lane, number| {
            let (client, calls) = (client.clone(), calls.clone());
            async move { client.call(lane, &calls[number]).await }
        })
        .await?;
        let cost = meter.stop(count, outcome.per_second(), outcome.latencies)?;
        self.check(phase, &outcome.results)?;
        self.read_back(phase, count, concurrency).await?;
        Ok(cost)
    }

    fn call(&self, phase: Phase, number: usize) -> Call {
        let path = self.kind.path(&self.namespace, number);
        let whole = || self.kind.body(number, 0, None);
        match phase {
            Phase::Create => Call::apply(&path, FIRST, whole(), true),
            Phase::Nothing => Call::apply(&path, FIRST, whole(), false),
            Phase::Second => Call::apply(&path, SECOND, self.kind.addition(number), false),
        }
    }

    /// Every answer must be what was applied; its version a new one, unless nothing was new.
    fn check(&mut self, phase: Phase, answers: &[Bytes]) -> Result<(), BenchError> {
        let mut versions = Vec::with_capacity(answers.len());
        for (number, answer) in answers.iter().enumerate() {
            self.check_object(phase, &parse(answer)?, number)?;
            let version = resource_version(answer)?;
            let same = self.versions.get(number) == Some(&version);
            if same != (phase == Phase::Nothing) {
                return Err(BenchError::wrong(format!(
                    "{} {}: an apply {} its resourceVersion",
                    self.kind.name,
                    name(number),
                    if same {
                        "that changed it kept"
                    } else {
                        "of nothing new changed"
                    }
                )));
            }
            versions.push(version);
        }
        self.versions = versions;
        Ok(())
    }

    /// The object must hold what was applied, and each of its managers must be told of.
    fn check_object(&self, phase: Phase, object: &Value, number: usize) -> Result<(), BenchError> {
        let (right, expected): (bool, &[&str]) = match phase {
            Phase::Create | Phase::Nothing => (self.kind.is(object, number, 0), &[FIRST]),
            Phase::Second => (self.kind.is_with_addition(object, number, 0), &[FIRST, SECOND]),
        };
        let managers: Vec<&str> = object["metadata"]["managedFields"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|entry| entry["operation"] == "Apply")
            .filter_map(|entry| entry["manager"].as_str())
            .collect();
        if right && managers == expected {
            return Ok(());
        }
        Err(BenchError::wrong(format!(
            "{} {} is not as it was applied (managers: {managers:?})",
            self.kind.name,
            name(number)
        )))
    }

    async fn read_back(&self, phase: Phase, count: usize, concurrency: usize) -> Result<(), BenchError> {
        let progress = Progress::start("reading back", count);
        let client = self.client.clone();
        let paths: Arc<Vec<String>> = Arc::new(
            (0..count)
                .map(|number| self.kind.path(&self.namespace, number))
                .collect(),
        );
        let found = drive(count, concurrency, &progress, move |lane, number| {
            let (client, paths) = (client.clone(), paths.clone());
            async move { client.call(lane, &Call::get(&*paths[number])).await }
        })
        .await?;
        found
            .results
            .iter()
            .enumerate()
            .try_for_each(|(number, answer)| self.check_object(phase, &parse(answer)?, number))
    }
}
