//! Clusters that keep what they have while nobody can say whether they are chosen.

use super::*;

/// The clusters of a world as ones that keep what they have, with their states.
fn kept(world: &World, wanted: Option<&[String]>) -> Vec<String> {
    let replicas = world.replicas.iter();
    let replicas = replicas.map(|(cluster, replica)| (cluster.clone(), Arc::new(replica.clone())));
    let before = world.root.status.clone().unwrap_or_default().status;
    let kept = retained(&before, &replicas.collect(), wanted, |_| false, world.now);
    let told = kept.into_iter().map(|one| one.told);
    told.map(|told| format!("{} {}", told.clustername, told.rollout_status))
        .collect()
}

#[test]
fn clusters_that_are_kept_are_told_as_they_are() {
    let strategy = json!({"type": "Progressive"});
    let mut world = World::new(root(strategy, "enforce"), &[("", &["a", "b"])]);
    world.settle();
    world.report("a", "Compliant");
    world.settle();
    let wanted = rollout::wanted(&world.root, &|_, _| None);
    let kept = |world: &World| kept(world, Some(&wanted));
    assert_eq!(kept(&world), ["a Succeeded", "b Progressing"]);
    world.report("b", "NonCompliant");
    assert_eq!(kept(&world), ["a Succeeded", "b Failed"]);
    world.report("a", "NonCompliant");
    world.report("b", "Compliant");
    assert_eq!(kept(&world), ["a Failed", "b Succeeded"]);
    // One that somebody deleted is to come back.
    world.replicas.remove("b");
    assert_eq!(kept(&world), ["a Failed", "b Progressing"]);
}

#[test]
fn who_does_not_have_what_is_wanted_waits() {
    let strategy = json!({"type": "Progressive"});
    let mut world = World::new(root(strategy, "enforce"), &[("", &["a", "b"])]);
    world.settle();
    world.report("a", "Compliant");
    // The second informs until its turn comes.
    assert_eq!(kept(&world, None), ["a Succeeded", "b ToApply"]);
    world.edit(2);
    let wanted = rollout::wanted(&world.root, &|_, _| None);
    assert_eq!(kept(&world, Some(&wanted)), ["a ToApply", "b ToApply"]);
}

#[test]
fn a_root_of_which_nothing_moves_tells_what_is_there() {
    let strategy = json!({"type": "Progressive"});
    let mut world = World::new(root(strategy, "enforce"), &[("", &["a", "b"])]);
    for cluster in ["a", "b"] {
        world.settle();
        world.report(cluster, "Compliant");
    }
    world.settle();
    assert_eq!(world.overall(), "Succeeded");
    let told = |world: &World| {
        let replicas = world.replicas.iter();
        let replicas = replicas.map(|(cluster, replica)| (cluster.clone(), Arc::new(replica.clone())));
        let kept = retained(&[], &replicas.collect(), None, |_| false, world.now);
        let mut root = world.root.clone();
        world.record.put(&mut root.metadata);
        let nobody = Selection {
            is_bound: true,
            ..Selection::default()
        };
        tell::status(&root, None, &nobody, None, &kept, world.now)
    };
    let before = world.root.status.clone().unwrap();
    let after = told(&world);
    assert_eq!(after.status, before.status);
    assert_eq!(after.rollout, before.rollout);
    assert_eq!(
        after.rollout_status_transition_time,
        before.rollout_status_transition_time
    );
    world.report("b", "NonCompliant");
    let after = told(&world);
    assert_eq!(
        [&*after.compliant, &*after.rollout_status],
        ["NonCompliant", "Failed"]
    );
    let groups = after.rollout.unwrap().groups;
    assert_eq!(groups[0].clusters[1].state, "Failed");
}
