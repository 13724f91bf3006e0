//! Creates, gets, updates and lists: how many a second, how fast, and what they cost.

mod subject;

use bytes::Bytes;

use crate::arguments::ApiArguments;
use crate::client::{Call, Client};
use crate::cost::{Cost, Phrase};
use crate::error::BenchError;
use crate::operations::subject::{PHASES, Phase, Subject};
use crate::payload::Kind;
use crate::report::{Goal, Report};
use crate::servers::{Running, Side};
use crate::verify;

/// Whole lists are large: more at a time would measure queues.
const LISTS_AT_A_TIME: usize = 4;
/// What the servers do before the first measurement.
const WARM_UP: usize = 200;

/// Measures all servers in turns, so that a noisy moment hits all of them.
pub(crate) async fn measure(
    fleet: &[Running],
    arguments: &ApiArguments,
    report: &mut Report,
) -> Result<(), BenchError> {
    for &kind in arguments.kinds() {
        for running in fleet {
            let subject = Subject::new(running, arguments, kind, "warm-up").await?;
            subject.warm_up(WARM_UP, arguments.concurrency).await?;
        }
        for round in 0..arguments.repeat {
            let mut subjects = Vec::with_capacity(fleet.len());
            for running in fleet {
                subjects.push(Subject::new(running, arguments, kind, &round.to_string()).await?);
            }
            for phase in PHASES {
                for subject in &mut subjects {
                    let cost = subject
                        .phase(phase, arguments)
                        .await
                        .map_err(BenchError::on(subject.running.side))?;
                    record(report, subject.running.side, kind, phase, arguments, &cost);
                }
            }
        }
    }
    Ok(())
}

/// Makes a namespace to write in.
pub(crate) async fn make_namespace(client: &Client, name: &str) -> Result<(), BenchError> {
    let body = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    client
        .call(
            0,
            &Call::post("/api/v1/namespaces", Bytes::from(body.to_string())),
        )
        .await?;
    Ok(())
}

fn record(report: &mut Report, side: Side, kind: &Kind, phase: Phase, arguments: &ApiArguments, cost: &Cost) {
    let count = arguments.operations;
    let (what, goal) = match phase {
        Phase::Create => ("create".to_owned(), Some(Goal::TimesReal(5.0))),
        Phase::Get => ("get".to_owned(), None),
        Phase::Update => ("update".to_owned(), Some(Goal::TimesReal(5.0))),
        Phase::ListAll => (format!("list all {count}, {LISTS_AT_A_TIME} at a time"), None),
        Phase::ListPages => (
            format!(
                "list all {count} by pages of {}, {LISTS_AT_A_TIME} at a time",
                verify::PAGE
            ),
            None,
        ),
    };
    let phrase = Phrase {
        section: if kind.name == "ConfigMap" {
            "Operations: ConfigMaps of 2 KB"
        } else {
            "Operations: Deployments"
        },
        what: &what,
        latency: if matches!(phase, Phase::ListPages) {
            "page latency"
        } else {
            "latency"
        },
        goal,
    };
    cost.record(report, side, &phrase);
}
