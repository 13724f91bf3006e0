//! The runner itself, with scenarios that need no controllers.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may end where it likes and say why"
)]

use std::path::Path;

use lockgate_scenario::{Embedded, Failure, NoPlane, Scenario, Variant, run};

async fn outcome(text: &str, variant: Variant) -> Result<(), Failure> {
    let scenario = Scenario::parse(Path::new("inline.yaml"), text).unwrap();
    let outcome = run(&scenario, &mut Embedded::new(), &NoPlane, variant).await;
    outcome.failure.map_or(Ok(()), |failure| Err(*failure))
}

const HOLDS: &str = r#"
about: Servers do what servers do.
members:
  member1:
    objects:
    - {apiVersion: v1, kind: Namespace, metadata: {name: early}}
  member2:
steps:
- create: namespace shop
- create: namespace shop
  on: member1
- create: deployment web -n shop --image=nginx:1.19 --replicas=2
  on: member1
- expect:
  - exists: ns/early
    only-on: member1
  - exists: deploy/web -n shop
    only-on: member1
    with:
      spec.replicas: 2
      spec.template.spec.containers[name=nginx].image: "nginx:*"
      spec.nothing: null
      # The simulated kubelets have come to their end when this is looked at.
      status.readyReplicas: 2
    labels: {app: web}
    conditions: {Available: true, Progressing: "True NewReplicaSetAvailable: *successfully*"}
  - absent: deploy/web -n shop
    on: [hub, member2]
  - list: deployments -n shop
    on: member1
    names: [we*]
    each: {spec.replicas: 2}
  - list: deployments.apps -l app=other
    on: members
    count: 0
- mark: made
- edit: deploy/web -n shop
  on: member1
  set:
    spec.replicas: 3
    metadata.labels[example.com/x]: y
- expect:
  - exists: deploy/web -n shop
    on: member1
    with: {status.readyReplicas: 3}
    labels: {example.com/x: "y"}
  - unchanged: ns/shop
    since: made
  - writes: {hub: 0, members: 0}
- create: configmap box -n shop --from-literal=a=b
- remember: {uid: cm/box -n shop metadata.uid}
- restore: cm/box -n shop
- expect:
  - exists: cm/box -n shop
    with: {metadata.uid: "!$uid", data: {a: b}}
  - unchanged: members
- delete: deploy/web -n shop
  on: member1
- label: ns/shop team=a
- advance: 90s
- restart: controllers
- stop: controllers
- start: controllers
- expect:
  - absent: deploy/web -n shop
    on: members
  - exists: namespace/shop
    labels: {team: a}
  - no-event: Anything
- delete: namespace/shop
- expect:
  - absent: ns/shop
  - absent: cm/box -n shop
- apply:
    apiVersion: policy.karmada.io/v1alpha1
    kind: PropagationPolicy
    metadata: {name: bad, namespace: default}
    spec:
      resourceSelectors: []
  refused: spec.resourceSelectors
- apply:
  - apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: {name: boats.example.com}
    spec:
      group: example.com
      names: {kind: Boat, plural: boats, singular: boat, shortNames: [bo]}
      scope: Namespaced
      versions:
      - name: v1
        served: true
        storage: true
        schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - {apiVersion: example.com/v1, kind: Boat, metadata: {name: a, namespace: default}, spec: {sails: 2}}
- expect:
  - exists: bo/a -n default
    with: {spec.sails: 2}
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_holds_holds_in_every_way() {
    for variant in [
        Variant::Plain,
        Variant::RestartBetweenSteps,
        Variant::CutEveryWrite,
    ] {
        if let Err(failure) = outcome(HOLDS, variant).await {
            panic!("{}\n{failure}", variant.name());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_hold_is_reported() {
    let head = "about: x\nmembers: 2\nsteps:\n- create: configmap box --from-literal=a=b\n- create: configmap box --from-literal=a=b\n  on: member1\n- mark: m\n- edit: cm/box -n default\n  on: member1\n  set: {data.a: c}\n";
    for (step, line, expected, found) in [
        (
            "- expect:\n  - exists: cm/cup\n",
            12,
            "cm/cup on the hub",
            "it is not there; there are",
        ),
        ("- expect:\n  - absent: cm/box\n", 12, "no cm/box", "it is there"),
        (
            "- expect:\n  - exists: cm/box\n    with: {data.a: z, data.b: null}\n",
            12,
            "data.a: \"z\"",
            "data.a: \"b\"",
        ),
        (
            "- expect:\n  - exists: cm/box\n    only-on: member2\n",
            12,
            "cm/box on member2",
            "not there",
        ),
        (
            "- expect:\n  - exists: cm/box\n    conditions: {Ready: true}\n",
            12,
            "[type=Ready]",
            "nothing",
        ),
        (
            "- expect:\n  - list: cm -n default\n    names: []\n",
            12,
            "none",
            "box",
        ),
        (
            "- expect:\n  - list: cm -n default\n    count: 7\n",
            12,
            "7 of cm",
            "1: box",
        ),
        (
            "- expect:\n  - event: Happened\n",
            12,
            "event Happened",
            "no events",
        ),
        (
            "- expect:\n  - unchanged: members\n    since: m\n",
            12,
            "nothing on the members changed",
            "configmaps/box changed",
        ),
        (
            "- expect:\n  - unchanged: cm/box\n    on: member1\n",
            12,
            "is what it was",
            "it changed",
        ),
        (
            "- expect:\n  - unchanged: cm/cup\n",
            12,
            "is what it was",
            "it is gone",
        ),
        (
            "- expect:\n  - writes: {hub: 3}\n",
            12,
            "3 writes to the hub",
            "0",
        ),
        (
            "- expect:\n  - exists: cm/box\n    with: {data.a: $x}\n",
            12,
            "remembered",
            "\"x\"",
        ),
        (
            "- create: configmap box\n",
            11,
            "does this",
            "already exists (409)",
        ),
        (
            "- create: configmap cup\n  refused: never\n",
            11,
            "refuses",
            "it was done",
        ),
        (
            "- create: configmap box\n  refused: never\n",
            11,
            "contains \"never\"",
            "already exists",
        ),
        ("- delete: cm/cup\n", 11, "does this", "not found"),
        ("- delete: cups/cup\n", 11, "does this", "does not serve cups"),
        (
            "- remember: {x: cm/box data.q}\n",
            11,
            "data.q of cm/box",
            "nothing",
        ),
    ] {
        let text = format!("{head}{step}");
        let failure = outcome(&text, Variant::Plain).await.expect_err(&text);
        assert_eq!(failure.line, line, "{text}\n{failure}");
        assert!(failure.expected.contains(expected), "{text}\n{failure}");
        assert!(failure.found.contains(found), "{text}\n{failure}");
        let report = failure.to_string();
        assert!(
            report.starts_with(&format!("inline.yaml:{line}: step ")),
            "{report}"
        );
    }
}
