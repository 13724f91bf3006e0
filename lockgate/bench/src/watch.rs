//! Many watches of one collection: how fast events get to all of them, and how late.
//!
//! Two measurements: a burst, written as fast as it goes, for the throughput; and writes at a fixed pace, whatever the
//! answers, for the delay. Every watch must see every write once and in order; one that the server ends, as servers do
//! with slow watches, goes on from where it was, as clients do.

mod crowd;
mod reader;

pub(crate) use crowd::crowd;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::arguments::ApiArguments;
use crate::client::{Call, Client};
use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::load::{drive, per_second};
use crate::operations::make_namespace;
use crate::payload::CONFIG_MAP;
use crate::process::cpu_seconds;
use crate::progress::Progress;
use crate::report::{Label, Report, Unit};
use crate::servers::Running;
use crate::verify::{ListOutline, parse};
use crate::watch::reader::{Reader, Seen};

/// Watches share connections: few enough for any server's limit.
const WATCHES_PER_CONNECTION: usize = 10;
/// The pace of writes whose delay is measured: far below what the servers manage.
const WRITES_PER_SECOND: u32 = 50;

#[derive(Clone, Copy)]
enum Pace {
    Burst,
    Fixed,
}

/// When each write was due or sent, and when it was answered, in nanoseconds after the beginning.
struct Times {
    begun: Instant,
    sent: Vec<AtomicU64>,
    answered: Vec<AtomicU64>,
}

impl Times {
    fn new(count: usize) -> Self {
        let zeros = || (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            begun: Instant::now(),
            sent: zeros(),
            answered: zeros(),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

pub(crate) async fn measure(
    fleet: &[Running],
    arguments: &ApiArguments,
    report: &mut Report,
) -> Result<(), BenchError> {
    let writes = (arguments.operations / 10).max(20);
    for pace in [Pace::Burst, Pace::Fixed] {
        for round in 0..arguments.repeat {
            for running in fleet {
                fan_out(running, arguments, writes, pace, round, report)
                    .await
                    .map_err(BenchError::on(running.side))?;
            }
        }
    }
    Ok(())
}

async fn fan_out(
    running: &Running,
    arguments: &ApiArguments,
    writes: usize,
    pace: Pace,
    round: usize,
    report: &mut Report,
) -> Result<(), BenchError> {
    let watchers = arguments.watchers;
    let name = match pace {
        Pace::Burst => "burst",
        Pace::Fixed => "paced",
    };
    let namespace = format!("bench-watch-{name}-{round}");
    let client = running.client(arguments.connections).await?;
    make_namespace(&client, &namespace).await?;
    let readers = running.client(watchers.div_ceil(WATCHES_PER_CONNECTION)).await?;
    let times = Arc::new(Times::new(writes));
    let watches = open(&readers, &namespace, watchers, &times).await?;
    let progress = Progress::start(
        format!("writing to {watchers} watches ({:?})", running.side),
        writes,
    );
    let cpu_before = cpu_seconds(&running.processes)?;
    let first = times.now();
    match pace {
        Pace::Burst => burst(&client, &namespace, arguments.concurrency, &times, &progress).await?,
        Pace::Fixed => paced(&client, &namespace, WRITES_PER_SECOND, &times, &progress).await?,
    }
    let Deliveries { at, resumed } = Deliveries::of(watches).await?;
    let cpu = cpu_seconds(&running.processes)? - cpu_before;
    let last = at.iter().flatten().copied().max().unwrap_or(first);
    let wall = Duration::from_nanos(last.saturating_sub(first));
    let events = writes * watchers;
    let mut add = |what: &str, unit: Unit, value: f64| {
        let what = match pace {
            Pace::Burst => format!("burst: {what}"),
            Pace::Fixed => format!("{WRITES_PER_SECOND} writes/s: {what}"),
        };
        report.record(
            running.side,
            Label::new(format!("Watch: {watchers} watches of one collection"), what, unit),
            value,
        );
    };
    if let Pace::Burst = pace {
        add("events delivered", Unit::PerSecond, per_second(events, wall));
        add(
            "watches that the server ended, and that were resumed",
            Unit::Count,
            resumed as f64,
        );
    }
    let (from_write, from_answer) = (delays(&at, &times.sent), delays(&at, &times.answered));
    add(
        "delay since the write was sent, p50",
        Unit::Milliseconds,
        from_write.quantile(0.5),
    );
    add(
        "delay since the write was sent, p99",
        Unit::Milliseconds,
        from_write.quantile(0.99),
    );
    add(
        "delay since the write was answered, p50",
        Unit::Milliseconds,
        from_answer.quantile(0.5),
    );
    add(
        "delay since the write was answered, p99",
        Unit::Milliseconds,
        from_answer.quantile(0.99),
    );
    add(
        "server CPU for each 1,000 events",
        Unit::Milliseconds,
        cpu * 1e6 / events as f64,
    );
    Ok(())
}

/// What all watches of a run have seen.
struct Deliveries {
    /// For each watch, when it saw each write.
    at: Vec<Vec<u64>>,
    /// How often a server ended one.
    resumed: usize,
}

impl Deliveries {
    /// Waits until every watch has seen every write.
    async fn of(mut watches: JoinSet<Result<Seen, BenchError>>) -> Result<Self, BenchError> {
        let (mut at, mut resumed) = (Vec::with_capacity(watches.len()), 0);
        while let Some(watch) = watches.join_next().await {
            let seen = watch.map_err(|e| BenchError::wrong(format!("a watch broke off: {e}")))??;
            resumed += seen.resumed;
            at.push(seen.at);
        }
        Ok(Self { at, resumed })
    }
}

/// How long after these times the writes were seen.
fn delays(deliveries: &[Vec<u64>], from: &[AtomicU64]) -> Latencies {
    let late = |(number, at): (usize, &u64)| {
        Duration::from_nanos(at.saturating_sub(from[number].load(Ordering::Relaxed)))
    };
    let each = deliveries
        .iter()
        .flat_map(|seen| seen.iter().enumerate().map(late));
    Latencies::new(each.collect())
}

/// Opens the watches; each ends once it has seen every write, with the time at which it saw each.
async fn open(
    readers: &Arc<Client>,
    namespace: &str,
    watchers: usize,
    times: &Arc<Times>,
) -> Result<JoinSet<Result<Seen, BenchError>>, BenchError> {
    let collection = CONFIG_MAP.collection(namespace);
    let list: ListOutline = parse(
        &readers
            .call(0, &Call::get(format!("{collection}?limit=1")))
            .await?,
    )?;
    let version = list.metadata.resource_version;
    let version = version
        .parse()
        .map_err(|_| BenchError::wrong(format!("{version:?} is no resourceVersion")))?;
    let mut watches = JoinSet::new();
    for lane in 0..watchers {
        let reader = Reader::open(
            readers.clone(),
            lane,
            collection.clone(),
            version,
            times.sent.len(),
        )
        .await?;
        let times = times.clone();
        watches.spawn(async move { reader.read(&times).await });
    }
    Ok(watches)
}

async fn burst(
    client: &Arc<Client>,
    namespace: &str,
    concurrency: usize,
    times: &Arc<Times>,
    progress: &Progress,
) -> Result<(), BenchError> {
    let (client, times, path) = (
        client.clone(),
        times.clone(),
        Arc::<str>::from(CONFIG_MAP.collection(namespace)),
    );
    let count = times.sent.len();
    drive(count, concurrency, progress, move |lane, number| {
        let (client, times, path) = (client.clone(), times.clone(), path.clone());
        async move {
            let call = Call::post(&*path, CONFIG_MAP.body(number, 0, None));
            times.sent[number].store(times.now(), Ordering::Relaxed);
            client.call(lane, &call).await?;
            times.answered[number].store(times.now(), Ordering::Relaxed);
            Ok(())
        }
    })
    .await?;
    Ok(())
}

/// Each write is sent when it is due; its delay counts from then, even if it was sent late.
async fn paced(
    client: &Arc<Client>,
    namespace: &str,
    per_second: u32,
    times: &Arc<Times>,
    progress: &Progress,
) -> Result<(), BenchError> {
    let path = Arc::<str>::from(CONFIG_MAP.collection(namespace));
    let between = Duration::from_secs(1) / per_second;
    let first = Instant::now();
    let mut writes = JoinSet::new();
    for number in 0..times.sent.len() {
        let due = first + between * u32::try_from(number).unwrap_or(u32::MAX);
        let call = Call::post(&*path, CONFIG_MAP.body(number, 0, None));
        tokio::time::sleep_until(due.into()).await;
        let nanoseconds = u64::try_from((due - times.begun).as_nanos()).unwrap_or(u64::MAX);
        times.sent[number].store(nanoseconds, Ordering::Relaxed);
        let (client, times) = (client.clone(), times.clone());
        writes.spawn(async move {
            client.call(number, &call).await?;
            times.answered[number].store(times.now(), Ordering::Relaxed);
            Ok::<(), BenchError>(())
        });
        progress.advance(1);
    }
    while let Some(write) = writes.join_next().await {
        write.map_err(|e| BenchError::wrong(format!("a write broke off: {e}")))??;
    }
    Ok(())
}
