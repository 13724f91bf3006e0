//! The phases of suspension: one edit of the policy holds everything back, and one lets it go.

use std::time::Duration;

use lockgate_api::names;
use machinery_auth::UserInfo;

use crate::error::BenchError;
use crate::fleet::expect::Expected;
use crate::fleet::load::{self, NAMESPACE};
use crate::fleet::phases::Meter;
use crate::fleet::report::Phase;
use crate::fleet::world::{World, condition};
use crate::progress::Progress;

/// The stamp that is held back.
const HELD: u32 = 9;

/// Suspends everything, changes every template meanwhile, and resumes. Answers the stamp that everything carries then.
pub(crate) async fn measure(
    world: &World,
    expected: &Expected<'_>,
    patience: Duration,
    phases: &mut Vec<Phase>,
) -> Result<u32, BenchError> {
    let (n, m) = (expected.templates, world.members.len());
    let meter = Meter::start(world, "suspend", n * m, patience)?;
    world.driver.suspend(true).await?;
    let phase = meter.end(world, expected, n, None).await?;
    let written = phase.members.total;
    phases.push(phase);
    check(world, expected, true)?;
    untouched("suspending", written)?;

    let progress = Progress::start("touch while suspended", n);
    world.driver.touch_all(n, HELD, &progress).await?;
    world.quiet(patience).await?;
    let written: u64 = world.member_counts.take().values().sum();
    untouched("a change while suspended", written)?;

    for member in &world.members {
        member.arrivals.expect(HELD);
    }
    let meter = Meter::start(world, "resume", n * m, patience)?;
    world.driver.suspend(false).await?;
    meter
        .arrived(world, |member| member.arrivals.counts().1, n, m)
        .await?;
    let resumed = Expected {
        stamp: HELD,
        ..*expected
    };
    phases.push(meter.end(world, &resumed, n, None).await?);
    check(world, expected, false)?;
    Ok(HELD)
}

fn untouched(what: &str, written: u64) -> Result<(), BenchError> {
    if written == 0 {
        return Ok(());
    }
    Err(BenchError::wrong(format!(
        "{what} wrote to members {written} times"
    )))
}

/// Every Work is held back and says so, or none is.
fn check(world: &World, expected: &Expected<'_>, suspended: bool) -> Result<(), BenchError> {
    let hub = world.hub.local(UserInfo::apiserver());
    for number in 0..expected.templates {
        let work_name = names::work_name("Deployment", NAMESPACE, &load::name(number));
        for cluster in expected.clusters {
            let space = names::execution_namespace(cluster);
            let work = hub.get("work.karmada.io/v1alpha1", "works", &space, &work_name);
            let fine = work.is_some_and(|work| {
                work["spec"]["suspendDispatching"] == suspended
                    && condition(&work, "Dispatching") != suspended
            });
            if !fine {
                return Err(BenchError::wrong(format!(
                    "the Work {space}/{work_name} does not say whether it is suspended"
                )));
            }
        }
    }
    Ok(())
}
