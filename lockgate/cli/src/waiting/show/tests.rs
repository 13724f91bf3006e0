use std::sync::Arc;

use lockgate_api::PropagationPolicy;
use lockgate_engine::TemplateId;
use lockgate_engine::pending::{Applied, Resized};

use super::*;

fn policy(namespace: &str, name: &str, generation: i64) -> Arc<PropagationPolicy> {
    let metadata = json!({"namespace": namespace, "name": name, "uid": name, "generation": generation});
    Arc::new(serde_json::from_value(json!({"metadata": metadata})).unwrap())
}

fn target(name: &str, replicas: i64) -> TargetCluster {
    TargetCluster {
        name: name.into(),
        replicas,
    }
}

fn row(name: &str, why: &str, edit: impl FnOnce(&mut Pending)) -> Row {
    let mut pending = Pending {
        id: TemplateId {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: "shop".into(),
            name: name.into(),
        },
        applied: Some(Applied {
            claim: Some(Claim::by(&policy("shop", "web", 1))),
            id: "web".into(),
            generation: 1,
        }),
        current: Some(policy("shop", "web", 2)),
        changed: false,
        effect: Some(Effect::default()),
    };
    edit(&mut pending);
    Row {
        pending,
        why: why.into(),
        since: Timestamp::from_second(60).ok(),
        path: String::new(),
        binding_path: String::new(),
    }
}

fn found() -> Found {
    let rows = vec![
        row("web", "Lazy", |pending| {
            pending.effect = Some(Effect {
                added: vec![target("m3", 2)],
                removed: vec![target("m1", 2)],
                resized: vec![Resized {
                    cluster: "m2".into(),
                    from: 2,
                    to: 4,
                }],
                fields: vec!["placement"],
                trouble: None,
            });
        }),
        row("api", "StaticPolicy", |pending| {
            pending.effect = Some(Effect {
                fields: vec!["conflictResolution"],
                ..Effect::default()
            });
        }),
        row("new", "Lazy", |pending| {
            pending.applied = None;
            pending.current = Some(policy("", "all", 1));
            pending.effect = Some(Effect {
                trouble: Some("0/3 clusters are available".into()),
                ..Effect::default()
            });
        }),
        row("left", "NoPolicy", |pending| {
            pending.current = None;
            pending.changed = true;
            pending.effect = None;
            pending.applied.as_mut().unwrap().claim = None;
        }),
    ];
    Found { matched: 9, rows }
}

#[test]
fn a_table_with_a_line_for_each() {
    let now = Timestamp::from_second(60 + 300).unwrap();
    assert_eq!(
        render(&found(), Output::Table, true, Paint::OFF, now),
        "\
NAMESPACE   TEMPLATE          APPLIED                 CURRENT     WHY            SINCE   WOULD DO
shop        deployment/web    pp/web@1                pp/web@2    Lazy           5m      -m1(2) +m3(2) m2:2→4
shop        deployment/api    pp/web@1                pp/web@2    StaticPolicy   5m      nothing moves; conflictResolution
shop        deployment/new    never                   cpp/all@1   Lazy           5m      not placed: 0/3 clusters are available
shop        deployment/left   a policy that is gone   none        NoPolicy       5m      nothing: the template changed, and no policy matches it
"
    );
    let wide = render(&found(), Output::Wide, false, Paint::OFF, now);
    let first = wide.lines().next().unwrap();
    assert!(
        first.contains("m2:2→4") && first.ends_with("   placement"),
        "{wide}"
    );
}

#[test]
fn many_clusters_are_cut_unless_somebody_wants_them_all() {
    let effect = Effect {
        added: (1..=9).map(|number| target(&format!("m{number}"), 0)).collect(),
        ..Effect::default()
    };
    assert_eq!(moves(&effect, false), "+m1 +m2 +m3 +m4 and 5 more");
    assert!(moves(&effect, true).ends_with("+m8 +m9"));
    assert_eq!(moves(&Effect::default(), false), "nothing moves");
}

#[test]
fn programs_get_everything() {
    let value = value(&found());
    assert_eq!((&value["matched"], &value["pending"]), (&json!(9), &json!(4)));
    let web = &value["templates"][0];
    assert_eq!(web["since"], "1970-01-01T00:01:00Z");
    assert_eq!(web["applied"]["generation"], 1);
    assert_eq!(web["current"]["kind"], "PropagationPolicy");
    assert_eq!(web["effect"]["removed"], json!([{"name": "m1", "replicas": 2}]));
    assert_eq!(
        web["effect"]["resized"],
        json!([{"name": "m2", "from": 2, "to": 4}])
    );
    assert_eq!(
        value["templates"][3]["applied"],
        json!({"id": "web", "generation": 1})
    );
    assert!(value["templates"][3].get("current").is_none());
    assert_eq!(
        summary(&found().rows),
        "4 templates: 1 removal from clusters, 1 addition to clusters, 1 change of replicas"
    );
}
