//! How long a server takes from the start of its process until it is ready.

use crate::arguments::{ApiArguments, Section};
use crate::error::BenchError;
use crate::progress::Progress;
use crate::report::{Goal, Label, Report, Unit};
use crate::servers::{Running, Servers};

/// Starts each server again and again, in turns; the last ones run on for the measurements that follow.
pub(crate) async fn measure(
    servers: &Servers,
    arguments: &ApiArguments,
    report: &mut Report,
) -> Result<Vec<Running>, BenchError> {
    let wanted = arguments.wants(Section::Start);
    // The first start reads programs from disk and makes certificates: it does not count.
    let unmeasured = if wanted && !arguments.quick { 1 } else { 0 };
    let rounds = if wanted { arguments.repeat + unmeasured } else { 1 };
    let progress = Progress::start("starting servers", rounds);
    let mut fleet: Vec<Running> = Vec::new();
    for round in 0..rounds {
        for running in fleet.drain(..) {
            running.stop().await?;
        }
        for side in servers.sides() {
            let running = servers.start(side).await?;
            if wanted && round >= unmeasured {
                let label = Label::new("Start", "process start until ready", Unit::Milliseconds)
                    .goal(Goal::Below(500.0));
                report.record(side, label, running.took.as_secs_f64() * 1e3);
            }
            fleet.push(running);
        }
        progress.advance(1);
    }
    Ok(fleet)
}
