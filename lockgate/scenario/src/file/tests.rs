use std::path::Path as FilePath;

use super::*;

fn parse(text: &str) -> Result<Scenario, FileError> {
    Scenario::parse(FilePath::new("some.yaml"), text)
}

#[test]
fn a_scenario_is_read() {
    let scenario = parse(
        r#"
about: Shows something.
gates: {StaticPolicy: true}
members:
  member1: {labels: {tier: gold}, region: eu, zones: [a, b]}
  member2:
steps:
- create: namespace shop
- create: deployment web -n shop --image=reg.io/nginx:1.19 --replicas=2
- label: deployment/web -n shop tier=gold old-
- edit: deployment/web -n shop
  set: {spec.replicas: 3, "metadata.annotations[a.b/c]": null}
- delete: deployment/web -n shop --cascade=orphan
  refused: protected
- member: {member1: {refuses: deployments, code: 503, message: no}}
- advance: 5m
- mark: here
- remember: {uid: deployment/web -n shop metadata.uid}
- restart: controllers
  gates: {PropagationPolicyPreemption: true}
- expect:
  - exists: deployment/web -n shop
    only-on: [member1]
    with: {spec.replicas: 3}
    conditions: {Ready: true, Other: "False Why: *x: y*"}
  - absent: deployment/web -n shop
    on: members
  - list: works -n karmada-es-member1
    names: [b, a]
  - unchanged: members
    since: here
  - writes: {hub: 0, members: "<=4"}
  - no-event: Bad
    for: deployment/web -n shop
"#,
    )
    .unwrap();
    assert_eq!(scenario.name, "some");
    assert!(scenario.gates.static_policy && !scenario.gates.preemption);
    assert_eq!(scenario.members[0].zones, ["a", "b"]);
    assert_eq!(scenario.members[1].name, "member2");
    assert_eq!(scenario.steps[0].line, 8);
    let Action::Create(deployment) = &scenario.steps[1].action else {
        panic!()
    };
    assert_eq!(
        deployment["spec"]["template"]["spec"]["containers"][0]["name"],
        "nginx"
    );
    let Action::Edit(reference, set) = &scenario.steps[2].action else {
        panic!()
    };
    assert_eq!(reference.to_string(), "deployment/web -n shop");
    assert_eq!(set[1].0.to_string(), "metadata.labels.old");
    assert!(matches!(
        scenario.steps[4].action,
        Action::Delete(_, Some(Cascade::Orphan))
    ));
    assert_eq!(scenario.steps[4].refused.as_deref(), Some("protected"));
    let Action::Expect(expectations) = &scenario.steps[10].action else {
        panic!()
    };
    let Check::Exists(_, wanted) = &expectations[0].check else {
        panic!()
    };
    assert_eq!(wanted[2].1["message"], "*x: y*");
    assert_eq!(
        expectations[1].places,
        Places::On(vec![
            Place::Member("member1".into()),
            Place::Member("member2".into())
        ])
    );
    assert!(matches!(
        &expectations[4].check,
        Check::Writes {
            members: Some(Bound::AtMost(4)),
            ..
        }
    ));
}

#[test]
fn mistakes_are_refused_with_line_and_remedy() {
    for (text, line, part) in [
        ("abuot: x\nsteps: []\n", 1, "did you mean `about`"),
        ("about: x\nsteps: []\n", 1, "no steps"),
        ("about: x\nstepz:\n- mark: a\n", 3, "did you mean `steps`"),
        ("about: x\nsteps:\n- mark: a\nextra: 1\n", 4, "has no key `extra`"),
        ("about: x\nsteps:\n- aply: {}\n", 3, "did you mean `apply`"),
        ("about: x\nsteps:\n- mark: a\n  stop: controllers\n", 3, "either"),
        (
            "about: x\nsteps:\n- expect:\n  - exist: a/b\n",
            4,
            "did you mean `exists`",
        ),
        (
            "about: x\nsteps:\n- expect:\n  - exists: a/b\n    wiht: {}\n",
            5,
            "did you mean `with`",
        ),
        ("about: x\nsteps:\n- expect:\n  - exists: a\n", 4, "KIND/NAME"),
        (
            "about: x\nsteps:\n- expect:\n  - exists: a/b\n    on: member9\n",
            5,
            "there is no member \"member9\"",
        ),
        (
            "about: x\nsteps:\n- expect:\n  - unchanged: members\n    since: x\n",
            4,
            "mark: x",
        ),
        ("about: x\nsteps:\n- expect:\n  - list: works\n", 4, "`names`"),
        (
            "about: x\nsteps:\n- expect:\n  - exists: a/b\n    conditions: {A: maybe}\n",
            5,
            "not a condition",
        ),
        ("about: x\nsteps:\n- apply: {kind: A}\n", 3, "apiVersion"),
        (
            "about: x\nsteps:\n- create: secret x\n",
            3,
            "write the object out",
        ),
        ("about: x\nsteps:\n- create: deployment x\n", 3, "--image"),
        ("about: x\nsteps:\n- advance: soon\n", 3, "30s"),
        ("about: x\nsteps:\n- advance: 1000h\n", 3, "a day"),
        ("about: x\nsteps:\n- restart: hub\n", 3, "controllers"),
        ("about: x\nsteps:\n- member: {member1: odd}\n", 3, "up, down"),
        (
            "about: x\nsteps:\n- member: {member1: {hides: a, code: 200}}\n",
            3,
            "from 400 to 599",
        ),
        ("about: x\nsteps:\n- mark: a\n  refused: b\n", 3, "refuse"),
        (
            "about: x\nsteps:\n- mark: a\n  set: {b: 1}\n",
            4,
            "belongs to edit",
        ),
        (
            "about: x\ngates: {Static: true}\nsteps:\n- mark: a\n",
            2,
            "StaticPolicy",
        ),
        ("about: x\nmembers: 999\nsteps:\n- mark: a\n", 2, "at most"),
        ("about: x\nneeds: [pods]\nsteps:\n- mark: a\n", 2, "workloads"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.what.contains(part), "{text}\n{error}");
        assert_eq!(error.line, line, "{text}\n{error}");
    }
}
