//! One collection on one server, and what is done with it. What was done is checked after the clocks were read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{LISTS_AT_A_TIME, make_namespace};
use crate::arguments::ApiArguments;
use crate::client::{Call, Client};
use crate::cost::{Cost, Meter};
use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::load::{Outcome, drive};
use crate::payload::Kind;
use crate::progress::Progress;
use crate::servers::Running;
use crate::verify::{self, ListOutline, page_path, parse};

/// What is measured, in this order: each needs what the one before it wrote.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    Create,
    Get,
    Update,
    ListAll,
    ListPages,
}

pub(super) const PHASES: [Phase; 5] = [
    Phase::Create,
    Phase::Get,
    Phase::Update,
    Phase::ListAll,
    Phase::ListPages,
];

/// One collection on one server.
pub(super) struct Subject<'a> {
    pub(super) running: &'a Running,
    client: Arc<Client>,
    kind: &'static Kind,
    namespace: Arc<str>,
    /// The resource versions of the objects, as last answered.
    versions: Vec<String>,
}

impl<'a> Subject<'a> {
    pub(super) async fn new(
        running: &'a Running,
        arguments: &ApiArguments,
        kind: &'static Kind,
        suffix: &str,
    ) -> Result<Self, BenchError> {
        let client = running.client(arguments.connections).await?;
        let namespace = format!("bench-{}-{suffix}", kind.name.to_lowercase());
        make_namespace(&client, &namespace).await?;
        Ok(Self {
            running,
            client,
            kind,
            namespace: namespace.into(),
            versions: Vec::new(),
        })
    }

    /// Some creates that are not measured.
    pub(super) async fn warm_up(&self, count: usize, concurrency: usize) -> Result<(), BenchError> {
        let progress = Progress::start(format!("warming up ({:?})", self.running.side), count);
        self.run(self.creates(count), concurrency, &progress).await?;
        Ok(())
    }

    fn creates(&self, count: usize) -> Vec<Call> {
        let path = self.kind.collection(&self.namespace);
        (0..count)
            .map(|number| Call::post(path.clone(), self.kind.body(number, 0, None)))
            .collect()
    }

    /// The requests of a phase, made up before its clocks are read.
    fn calls(&self, phase: Phase, count: usize) -> Vec<Call> {
        let update = |(number, version): (usize, &String)| {
            Call::put(
                self.kind.path(&self.namespace, number),
                self.kind.body(number, 1, Some(version)),
            )
        };
        match phase {
            Phase::Create => self.creates(count),
            Phase::Get => (0..count)
                .map(|number| Call::get(self.kind.path(&self.namespace, number)))
                .collect(),
            Phase::Update => self.versions.iter().enumerate().map(update).collect(),
            Phase::ListAll | Phase::ListPages => Vec::new(),
        }
    }

    pub(super) async fn phase(&mut self, phase: Phase, arguments: &ApiArguments) -> Result<Cost, BenchError> {
        let (count, lists) = (arguments.operations, lists(arguments));
        let calls = self.calls(phase, count);
        let steps = if calls.is_empty() { lists } else { calls.len() };
        let progress = Progress::start(
            format!("{phase:?} {}s ({:?})", self.kind.name, self.running.side),
            steps,
        );
        let meter = Meter::start(&self.running.processes)?;
        match phase {
            Phase::Create | Phase::Get | Phase::Update => {
                let outcome = self.run(calls, arguments.concurrency, &progress).await?;
                let cost = meter.stop(count, outcome.per_second(), outcome.latencies)?;
                match phase {
                    Phase::Create => self.check(&outcome.results, 0).await?,
                    Phase::Update => self.check(&outcome.results, 1).await?,
                    _ => self.check_answers(&outcome.results, 0)?,
                }
                Ok(cost)
            }
            Phase::ListAll => {
                let outcome = self.list_all(lists, count, &progress).await?;
                let size = outcome.results.first().map(|bytes| *bytes as f64 / 1e6);
                let cost = meter.stop(lists, outcome.per_second(), outcome.latencies)?;
                Ok(Cost { size, ..cost })
            }
            Phase::ListPages => {
                let outcome = self.list_pages(lists, count, &progress).await?;
                let pages: Vec<Duration> = outcome.results.iter().flatten().copied().collect();
                meter.stop(lists, outcome.per_second(), Latencies::new(pages))
            }
        }
    }

    async fn run(
        &self,
        calls: Vec<Call>,
        concurrency: usize,
        progress: &Progress,
    ) -> Result<Outcome<Bytes>, BenchError> {
        let (client, calls) = (self.client.clone(), Arc::new(calls));
        drive(calls.len(), concurrency, progress, move |lane, number| {
            let (client, calls) = (client.clone(), calls.clone());
            async move { client.call(lane, &calls[number]).await }
        })
        .await
    }

    /// Every answer and the whole collection must be what was written, and every version a new one.
    async fn check(&mut self, answers: &[Bytes], revision: u64) -> Result<(), BenchError> {
        self.check_answers(answers, revision)?;
        let mut versions = Vec::with_capacity(answers.len());
        for (number, answer) in answers.iter().enumerate() {
            versions.push(verify::resource_version(answer)?);
            if self.versions.get(number) == versions.last() {
                return Err(BenchError::wrong(format!(
                    "object {number} was updated and kept its resourceVersion"
                )));
            }
        }
        self.versions = versions;
        verify::collection(&self.client, self.kind, &self.namespace, answers.len(), revision).await
    }

    fn check_answers(&self, answers: &[Bytes], revision: u64) -> Result<(), BenchError> {
        answers
            .iter()
            .enumerate()
            .try_for_each(|(number, answer)| verify::object(self.kind, answer, number, revision))
    }

    async fn list_all(
        &self,
        lists: usize,
        count: usize,
        progress: &Progress,
    ) -> Result<Outcome<usize>, BenchError> {
        let (client, call) = (
            self.client.clone(),
            Arc::new(Call::get(self.kind.collection(&self.namespace))),
        );
        drive(lists, LISTS_AT_A_TIME, progress, move |lane, _| {
            let (client, call) = (client.clone(), call.clone());
            async move {
                let answer = client.call(lane, &call).await?;
                complete(parse::<ListOutline>(&answer)?.items.len(), count)?;
                Ok(answer.len())
            }
        })
        .await
    }

    /// Lists by pages; each list gives how long its pages took.
    async fn list_pages(
        &self,
        lists: usize,
        count: usize,
        progress: &Progress,
    ) -> Result<Outcome<Vec<Duration>>, BenchError> {
        let (client, kind, namespace) = (self.client.clone(), self.kind, self.namespace.clone());
        drive(lists, LISTS_AT_A_TIME, progress, move |lane, _| {
            let (client, namespace) = (client.clone(), namespace.clone());
            async move {
                let (mut pages, mut items, mut token) = (Vec::new(), 0, String::new());
                loop {
                    let asked = Instant::now();
                    let answer = client
                        .call(lane, &Call::get(page_path(kind, &namespace, &token)))
                        .await?;
                    pages.push(asked.elapsed());
                    let list: ListOutline = parse(&answer)?;
                    items += list.items.len();
                    token = list.metadata.next;
                    if token.is_empty() {
                        break;
                    }
                }
                complete(items, count)?;
                Ok(pages)
            }
        })
        .await
    }
}

fn lists(arguments: &ApiArguments) -> usize {
    (arguments.operations / 100).max(4)
}

/// A namespace may hold one object more: the certificate that a controller puts there.
fn complete(found: usize, expected: usize) -> Result<(), BenchError> {
    if found == expected || found == expected + 1 {
        return Ok(());
    }
    Err(BenchError::wrong(format!(
        "a list has {found} objects instead of {expected}"
    )))
}
