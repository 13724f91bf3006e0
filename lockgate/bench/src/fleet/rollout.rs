//! A rollout of every template in three stages, of a fifth, three tenths and half of the members, without a soak: how long
//! until the last one has succeeded, and what it takes.

use std::time::Duration;

use lockgate_api::names;
use machinery_auth::UserInfo;

use crate::error::BenchError;
use crate::fleet::expect::Expected;
use crate::fleet::load::{self, NAMESPACE};
use crate::fleet::phases::Meter;
use crate::fleet::report::Phase;
use crate::fleet::world::{World, until};
use crate::progress::Progress;

/// The stamp of what is rolled out.
const ROLLED: u32 = 12;
/// The stages, and after how many tenths of the members each ends.
const STAGES: [(&str, usize); 3] = [("first", 2), ("second", 5), ("third", 10)];

/// Rolls a change of every template out. Answers the stamp that everything carries then.
pub(crate) async fn measure(
    world: &World,
    expected: &Expected<'_>,
    patience: Duration,
    phases: &mut Vec<Phase>,
) -> Result<u32, BenchError> {
    let (n, m) = (expected.templates, world.members.len());
    for (at, member) in world.members.iter().enumerate() {
        let mut stages = STAGES.iter();
        let stage = stages.find(|(_, tenths)| at * 10 < m * tenths);
        world
            .driver
            .label_cluster(&member.name, stage.map_or("third", |(name, _)| name))
            .await?;
    }
    world.driver.roll_out(&STAGES.map(|(name, _)| name)).await?;
    world.quiet(patience).await?;
    until_succeeded(world, n, 1, patience).await?;

    for member in &world.members {
        member.arrivals.expect(ROLLED);
    }
    let meter = Meter::start(world, "rollout", n * m, patience)?;
    let progress = Progress::start("rollout", n);
    world.driver.restamp_all(n, ROLLED, &progress).await?;
    let stamped = |member: &crate::fleet::world::MemberCluster| member.arrivals.counts().1;
    meter.arrived(world, stamped, n, m).await?;
    until_succeeded(world, n, 2, patience).await?;
    meter.reached();
    let rolled = Expected {
        stamp: ROLLED,
        ..*expected
    };
    phases.push(meter.end(world, &rolled, n, None).await?);
    Ok(ROLLED)
}

/// Waits until a revision of every template has succeeded everywhere.
async fn until_succeeded(
    world: &World,
    templates: usize,
    revision: i64,
    patience: Duration,
) -> Result<(), BenchError> {
    let hub = world.hub.local(UserInfo::apiserver());
    let succeeded = |number: usize| {
        let name = names::binding_name("Deployment", &load::name(number));
        let binding = hub.get("work.karmada.io/v1alpha2", "resourcebindings", NAMESPACE, &name);
        binding.is_some_and(|binding| {
            let rollout = &binding["status"]["rollout"];
            rollout["phase"] == "Succeeded" && rollout["revision"] == revision
        })
    };
    let mut done = 0;
    until(patience, "every rollout has succeeded", || {
        while done < templates && succeeded(done) {
            done += 1;
        }
        done == templates
    })
    .await
}
