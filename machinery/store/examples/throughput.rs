//! Prints how many durable writes a second a store makes at several concurrencies, and how long it takes to open one
//! with 100,000 objects of 2 KB, after a proper close and after a crash.
//!
//! `cargo run --release --example throughput [directory]`; the directory decides which disk is measured.

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use machinery_store::{Change, Expect, Options, Range, Record, Store};

struct Raw(Bytes);

impl Record for Raw {
    fn bytes(&self) -> &Bytes {
        &self.0
    }
    fn decode(bytes: Bytes) -> Result<Self, String> {
        Ok(Self(bytes))
    }
}

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let directory = std::env::args_os()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let path = directory.join(format!("throughput-{}.store", std::process::id()));
    let result = measure(&path).await;
    for file in [path.clone(), crashed(&path)] {
        if file.exists() {
            std::fs::remove_file(file)?;
        }
    }
    result
}

fn crashed(path: &Path) -> PathBuf {
    path.with_extension("crashed")
}

async fn measure(path: &Path) -> Result<(), Failure> {
    let body: Bytes = (0..2048u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();

    for concurrency in [1, 16, 128] {
        let store = Store::<Raw>::open(path, Options::default())?;
        let rate = writes_per_second(&store, &body, concurrency).await;
        println!("durable writes at concurrency {concurrency:>3}: {rate:>7.0}/s");
        store.close().await;
        std::fs::remove_file(path)?;
    }
    let memory = Store::<Raw>::memory();
    println!(
        "in memory   at concurrency   1: {:>7.0}/s",
        writes_per_second(&memory, &body, 1).await
    );

    let store = Store::<Raw>::open(path, Options::default())?;
    let started = Instant::now();
    fill(&store, &body, 100_000).await;
    println!(
        "fill with 100,000 objects of 2 KB: {:.2} s",
        started.elapsed().as_secs_f64()
    );
    // A copy of the open file is what a crash would leave.
    std::fs::copy(path, crashed(path))?;
    let started = Instant::now();
    store.close().await;
    println!("close: {:.3} s", started.elapsed().as_secs_f64());

    for (what, path) in [("after a close", path), ("after a crash", &crashed(path))] {
        let megabytes = std::fs::metadata(path)?.len() >> 20;
        let (started, worked) = (Instant::now(), processor_seconds());
        let store = Store::<Raw>::open(path, Options::default())?;
        let (took, worked) = (started.elapsed().as_secs_f64(), processor_seconds() - worked);
        let started = Instant::now();
        let listed = store.range(Range::default())?.entries.len();
        let list = started.elapsed();
        println!("open {what}: {took:.3} s, {worked:.2} s of processor ({megabytes} MiB)");
        println!("list of all {listed} objects: {list:.1?}");
        store.close().await;
    }
    println!("peak memory: {}", peak_memory());
    Ok(())
}

async fn writes_per_second(store: &Store<Raw>, body: &Bytes, concurrency: usize) -> f64 {
    let done = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let deadline = started + Duration::from_secs(3);
    let writers: Vec<_> = (0..concurrency)
        .map(|writer| {
            let (store, body, done) = (store.clone(), body.clone(), done.clone());
            tokio::spawn(async move {
                let mut number = 0;
                while Instant::now() < deadline {
                    let body = body.clone();
                    let key = format!("/apps/deployments/ns-{writer}/name-{}", number % 100);
                    if store
                        .write(&key, Expect::Any, Change::put(move |_| Raw(body)))
                        .await
                        .is_ok()
                    {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    number += 1;
                }
            })
        })
        .collect();
    for writer in writers {
        let _ = writer.await;
    }
    done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64()
}

async fn fill(store: &Store<Raw>, body: &Bytes, objects: usize) {
    const WRITERS: usize = 512;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, body) = (store.clone(), body.clone());
            tokio::spawn(async move {
                for number in (writer..objects).step_by(WRITERS) {
                    let body = Bytes::copy_from_slice(&body);
                    let key = format!("/apps/deployments/namespace-{:03}/name-{number:06}", number % 100);
                    let _ = store
                        .write(&key, Expect::Absent, Change::put(move |_| Raw(body)))
                        .await;
                }
            })
        })
        .collect();
    for writer in writers {
        let _ = writer.await;
    }
}

/// What all threads have used so far; 0 where the system does not say.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // User and system time are fields 14 and 15, in hundredths of a second; the name before them may hold spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.map_or("unknown".into(), |line| {
        line.trim_start_matches("VmHWM:").trim().to_owned()
    })
}
