//! Many members in one process: how fast they start, and what an empty one weighs. No network is involved.

use std::sync::Arc;
use std::time::Instant;

use machinery_apiserver::{ApiServer, Options};
use machinery_auth::{Pki, UserInfo};

use crate::arguments::ApiArguments;
use crate::error::BenchError;
use crate::process::Process;
use crate::progress::Progress;
use crate::report::{Goal, Label, Report, Unit};
use crate::servers::Side;

const SECTION: &str = "In process: empty members, in memory";

/// Starts members in this process. Must come before everything else: memory that was freed and not given back is not seen.
pub(crate) async fn measure(arguments: &ApiArguments, report: &mut Report) -> Result<(), BenchError> {
    let failed = |error: String| BenchError::server("member", error);
    let pki = Arc::new(Pki::ephemeral().map_err(|e| failed(e.to_string()))?);
    let count = arguments.members;
    for round in 0..arguments.repeat {
        let progress = Progress::start(format!("starting {count} members"), count);
        let (mut members, mut after_first) = (Vec::with_capacity(count), None);
        let before = Process::this().memory()?.resident;
        let begun = Instant::now();
        for _ in 0..count {
            members.push(
                ApiServer::start(Options::new(pki.clone()))
                    .await
                    .map_err(|e| failed(e.to_string()))?,
            );
            after_first = after_first.or(Some(Process::this().memory()?.resident));
            progress.advance(1);
        }
        let wall = begun.elapsed();
        let after = Process::this().memory()?.resident;
        check(&members)?;
        let started =
            Label::new(SECTION, format!("start of {count}"), Unit::Milliseconds).goal(Goal::Below(5_000.0));
        report.record(Side::Embedded, started, wall.as_secs_f64() * 1e3);
        if round == 0 {
            let mut memory = |name: &str, value: f64, goal: Option<Goal>| {
                report.record(
                    Side::Embedded,
                    Label {
                        goal,
                        ..Label::new(SECTION, name, Unit::Megabytes)
                    },
                    value,
                );
            };
            let first = after_first.unwrap_or(after);
            memory(
                "each: resident, what all share divided among them",
                (after - before) / count as f64,
                Some(Goal::Below(1.0)),
            );
            memory("the first: resident, with what all share", first - before, None);
            memory(
                "each further: resident",
                (after - first) / (count.max(2) - 1) as f64,
                None,
            );
        }
        for member in members {
            member.stop().await;
        }
    }
    Ok(())
}

/// Every member must have what every cluster has.
fn check(members: &[ApiServer]) -> Result<(), BenchError> {
    for member in members {
        let local = member.local(UserInfo::apiserver());
        if local.get("v1", "namespaces", "", "default").is_none() {
            return Err(BenchError::wrong("a member has no namespace \"default\""));
        }
    }
    Ok(())
}
