//! Why something is not sent, or not any more: every case in which the clusters alone would say that all is well.

use lockgate_engine::observe::NOT_YET;

use super::*;

fn text_about(template: &Value, objects: &Objects) -> String {
    plain(Output::Table, &about(template, objects))
}

fn binding_named<'a>(objects: &'a mut Objects, name: &str) -> &'a mut lockgate_api::Binding {
    let mut bindings = objects.bindings.iter_mut();
    bindings.find(|binding| binding.metadata.name == name).unwrap()
}

fn policy_named<'a>(objects: &'a mut Objects, name: &str) -> &'a mut lockgate_api::PropagationPolicy {
    let mut policies = objects.policies.iter_mut();
    policies.find(|policy| policy.metadata.name == name).unwrap()
}

fn cluster_role(name: &str) -> Value {
    object("rbac.authorization.k8s.io/v1", "ClusterRole", "", name)
}

/// A policy without templates, as the hub would have it.
fn policy(name: &str, mut spec: Value, status: &Value) -> lockgate_api::PropagationPolicy {
    spec["resourceSelectors"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": name}]);
    let policy = json!({
        "metadata": {"name": name, "namespace": "shop", "uid": name, "generation": 1},
        "spec": spec, "status": status,
    });
    serde_json::from_value(policy).unwrap()
}

fn fleet_text(objects: &Objects) -> String {
    plain(Output::Table, &Report::Fleet(fleet::fleet(None, objects)))
}

/// Names of bindings and Works carry no group and no colon: what has another's name has nothing of its own.
#[test]
fn the_name_of_its_binding_is_taken() {
    let mut objects = hub();
    binding_named(&mut objects, "reader-clusterrole").metadata.name = "my.reader-clusterrole".into();
    binding_named(&mut objects, "my.reader-clusterrole")
        .spec
        .resource
        .name = "my:reader".into();
    for work in &mut objects.works {
        if work.object.kind == "ClusterRole" {
            work.name = names::work_name("ClusterRole", "", "my:reader");
            work.object.name = "my:reader".into();
        }
    }
    let first = text_about(&cluster_role("my:reader"), &objects);
    assert!(first.contains("member1   -       True "), "{first}");
    let mut loser = cluster_role("my.reader");
    for claims in [false, true] {
        if claims {
            let labels = json!({"clusterpropagationpolicy.karmada.io/permanent-id": "id-readers"});
            loser["metadata"]["labels"] = labels;
        }
        let text = text_about(&loser, &objects);
        assert!(
            text.starts_with("ClusterRole my.reader   • Not propagated\n"),
            "{text}"
        );
        assert!(
            text.contains(
                "named my.reader-clusterrole, and that is the binding of rbac.authorization.k8s.io/v1 ClusterRole my:reader"
            ),
            "{text}"
        );
        assert!(!text.contains("member1"), "{text}");
        assert!(
            text.ends_with("\nNext: lockgate status clusterrole/my:reader\n"),
            "{text}"
        );
    }
}

/// A kind that shares its name with one of Kubernetes' is named with its group.
#[test]
fn kinds_of_one_name() {
    let mut objects = hub();
    objects.bindings = decoded(&json!([{
        "metadata": {"name": "old-configmap", "namespace": "shop"},
        "spec": {"resource": {"apiVersion": "example.org/v1", "kind": "ConfigMap", "namespace": "shop", "name": "old"}},
    }]));
    for work in &mut objects.works {
        if work.object.kind == "ConfigMap" {
            work.object.api_version = "example.org/v1".into();
        }
    }
    objects
        .clusters
        .retain(|cluster| cluster.metadata.name == "member1");
    let theirs = text_about(&object("example.org/v1", "ConfigMap", "shop", "old"), &objects);
    assert!(theirs.contains("member1"), "{theirs}");
    assert!(
        fleet_text(&objects).contains("Next: lockgate status configmap.example.org/old -n shop"),
        "{}",
        fleet_text(&objects)
    );
    // The core's has the name of the binding, of the Works, and nothing that is there.
    policy_named(&mut objects, "later").spec.resource_selectors = decoded(&json!([
        {"apiVersion": "v1", "kind": "ConfigMap"},
    ]));
    let ours = text_about(&object("v1", "ConfigMap", "shop", "old"), &objects);
    assert!(ours.contains("• Not propagated"), "{ours}");
    assert!(
        ours.contains("the binding of example.org/v1 ConfigMap old"),
        "{ours}"
    );
    assert!(!ours.contains("member1"), "{ours}");
    assert!(
        ours.ends_with("Next: lockgate status configmap.example.org/old -n shop\n"),
        "{ours}"
    );
}

/// A member that does not answer has refused nothing.
#[test]
fn what_is_on_its_way_is_no_failure() {
    let mut objects = hub();
    let item = &mut binding_named(&mut objects, "reader-clusterrole")
        .status
        .aggregated_status[0];
    (item.applied, item.applied_message) = (false, NOT_YET.to_owned());
    item.health = "Unknown".into();
    let line = |objects: &Objects| {
        let text = fleet_text(objects);
        let mut lines = text.lines().map(str::to_owned);
        lines.find(|line| line.starts_with("ClusterRole reader")).unwrap()
    };
    let waiting = line(&objects);
    assert!(waiting.contains("◷ Waiting      1/2"), "{waiting}");
    assert!(
        waiting.ends_with("its newest content is not sent yet"),
        "{waiting}"
    );
    for condition in &mut objects.clusters[0].status.conditions {
        condition.status = "False".into();
    }
    let unknown = line(&objects);
    assert!(unknown.contains("? Unknown"), "{unknown}");
}

#[test]
fn a_template_that_was_given_to_somebody_else() {
    let mut objects = hub();
    let mut reader = cluster_role("reader");
    reader["metadata"]["labels"] = json!({"resourcetemplate.karmada.io/claimed-by": "other"});
    for work in &mut objects.works {
        work.generation = 1;
    }
    let text = text_about(&reader, &objects);
    assert!(text.starts_with("ClusterRole reader   • Frozen\n"), "{text}");
    assert!(
        text.contains("the label resourcetemplate.karmada.io/claimed-by=other leaves it to somebody else"),
        "{text}"
    );
    assert!(
        text.ends_with("Next: kubectl label clusterrole/reader resourcetemplate.karmada.io/claimed-by-\n"),
        "{text}"
    );
}

#[test]
fn names_that_are_too_long() {
    let objects = hub();
    let name = "a".repeat(248);
    let text = text_about(
        &claimed(object("v1", "ConfigMap", "shop", &name), "id-batch", "batch"),
        &objects,
    );
    assert!(text.contains("• Not propagated"), "{text}");
    assert!(
        text.contains("that of its binding would have 258 characters, and at most 253 are allowed"),
        "{text}"
    );
    // The name of a binding may do where that of its Works does not.
    let name = "a".repeat(248);
    let text = text_about(
        &claimed(object("v1", "Pod", "shop", &name), "id-batch", "batch"),
        &objects,
    );
    assert!(text.contains("that of its Works would have 2"), "{text}");
}

#[test]
fn overrides_that_are_not_there() {
    let mut objects = hub();
    objects.overrides.insert(("shop".into(), "there".into()));
    objects.policies.push(policy(
        "depov",
        json!({"dependentOverrides": ["there", "missing"]}),
        &json!({"observedGeneration": 1, "claimed": 0, "pending": 0}),
    ));
    let text = text_about(&object("v1", "ConfigMap", "shop", "depov"), &objects);
    assert!(
        text.contains("has not claimed it yet: it waits for the overrides missing\n"),
        "{text}"
    );
    let text = fleet_text(&objects);
    assert!(
        text.contains("4 templates, 1 policy and 2 clusters are not well"),
        "{text}"
    );
    let line = text.lines().find(|line| line.contains("shop/depov")).unwrap();
    assert!(line.contains("◷ Waiting"), "{text}");
    assert!(line.ends_with("it waits for the overrides missing"), "{text}");
    let own = Report::Policy(fleet::policy(
        policy_named(&mut objects.clone(), "depov"),
        &objects,
    ));
    let own = plain(Output::Table, &own);
    assert!(
        own.starts_with("PropagationPolicy shop/depov   ◷ Waiting\n"),
        "{own}"
    );
    assert!(
        own.contains("note         it waits for the overrides missing"),
        "{own}"
    );
    // Who may not list them is not told that they are missing.
    objects.unseen.push("overridepolicies");
    let text = fleet_text(&objects);
    assert!(
        text.contains("it may wait for the overrides there, missing"),
        "{text}"
    );
    objects.unseen.clear();
    // Nor is who may list those of another namespace alone.
    for (only, said) in [
        ("shop", "it waits for the overrides missing"),
        ("kitchen", "it may wait for"),
    ] {
        objects.only_in = Some(only.to_owned());
        let text = fleet_text(&objects);
        assert!(text.contains(said), "{only}: {text}");
    }
    objects.only_in = None;
    objects.overrides.insert(("shop".into(), "missing".into()));
    let own = Report::Policy(fleet::policy(
        policy_named(&mut objects.clone(), "depov"),
        &objects,
    ));
    let own = plain(Output::Table, &own);
    assert!(
        own.starts_with("PropagationPolicy shop/depov   • Claims nothing\n"),
        "{own}"
    );
}

#[test]
fn another_scheduler() {
    let mut objects = hub();
    let binding = binding_named(&mut objects, "nightly-deployment");
    binding.status.conditions.clear();
    binding.spec.scheduler_name = "other".into();
    let nightly = claimed(
        object("apps/v1", "Deployment", "shop", "nightly"),
        "id-batch",
        "batch",
    );
    let text = text_about(&nightly, &objects);
    assert!(text.contains("◷ Waiting"), "{text}");
    assert!(text.contains("the scheduler \"other\" places it"), "{text}");
    assert!(
        fleet_text(&objects).contains("the scheduler \"other\" places it"),
        "{}",
        fleet_text(&objects)
    );
}

#[test]
fn policies_of_kinds_that_nobody_serves() {
    let mut objects = hub();
    let message = "nothing is propagated of foo/v1 Nope (the hub does not serve it)";
    objects.policies = vec![policy(
        "odd",
        json!({}),
        &json!({"observedGeneration": 1, "claimed": 0, "pending": 0, "conditions": [
            {"type": "KindsServed", "status": "False", "reason": "NotServed", "message": message},
        ]}),
    )];
    let own = Report::Policy(fleet::policy(&objects.policies[0], &objects));
    let own = plain(Output::Table, &own);
    assert!(
        own.starts_with("PropagationPolicy shop/odd   • Not propagated\n"),
        "{own}"
    );
    objects.bindings.clear();
    objects
        .clusters
        .retain(|cluster| cluster.metadata.name == "member2");
    let text = fleet_text(&objects);
    assert!(text.contains("1 policy is not well"), "{text}");
    let line = text.lines().find(|line| line.contains("shop/odd")).unwrap();
    assert!(
        line.contains("• Not propagated") && line.ends_with(message),
        "{text}"
    );
    assert!(
        text.ends_with("Next: lockgate status propagationpolicy/odd -n shop\n"),
        "{text}"
    );
}

/// What the control plane writes for a template carries the template's claim.
#[test]
fn a_binding_is_no_template() {
    let binding = claimed(
        object(
            "work.karmada.io/v1alpha2",
            "ResourceBinding",
            "shop",
            "web-deployment",
        ),
        "id-web",
        "web",
    );
    let text = text_about(&binding, &hub());
    assert_eq!(
        text,
        "ResourceBinding shop/web-deployment   • Not propagated\n  note   objects of this kind are never propagated\n\n\
         Next: lockgate status\n"
    );
    // The same order for what somebody else propagates.
    let mut theirs = claimed(object("v1", "ConfigMap", "shop", "theirs"), "id-later", "later");
    theirs["metadata"]["labels"]["resourcetemplate.karmada.io/claimed-by"] = "somebody".into();
    let text = text_about(&theirs, &hub());
    assert!(
        text.starts_with("ConfigMap shop/theirs   • Not propagated\n"),
        "{text}"
    );
}

/// The clusters that are rid of it are not listed as if it came there.
#[test]
fn a_template_that_goes() {
    let mut objects = hub();
    objects
        .works
        .retain(|work| work.object.name != "web" || work.cluster != "member1");
    let mut web = claimed(object("apps/v1", "Deployment", "shop", "web"), "id-web", "web");
    let gone = Report::Template(template::template(&TemplateId::of(&web), None, &objects));
    web["metadata"]["deletionTimestamp"] = json!("2026-11-15T09:00:00Z");
    for (report, how) in [
        (gone, "the template is gone"),
        (about(&web, &objects), "the template is being deleted"),
    ] {
        let text = plain(Output::Table, &report);
        assert!(text.starts_with("Deployment shop/web   ◌ Leaving\n"), "{text}");
        assert!(text.contains(how), "{text}");
        assert!(!text.contains("member1"), "{text}");
        assert!(text.contains("member2"), "{text}");
    }
}
