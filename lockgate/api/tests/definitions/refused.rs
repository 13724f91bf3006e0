//! What is refused, with a message that names the field.

mod clusters;
mod interpreters;
mod ocm;
mod overrides;
mod placements;
mod policies;
mod rollouts;

use serde_json::{Value, json};

use crate::harness::{Server, sample};

/// A kind, what its spec says, and what the refusal must name.
pub(crate) type Case = (&'static str, Value, &'static str);

pub(crate) async fn check(server: &Server) {
    let mut wrong = Vec::new();
    let cases = [
        policies::policies(),
        policies::selectors(),
        rollouts::rollouts(),
        placements::placements(),
        placements::copies(),
        overrides::overrides(),
        clusters::clusters(),
        clusters::others(),
        interpreters::interpreters(),
        ocm::placements(),
        ocm::clusters(),
    ];
    for (kind, spec, field) in cases.concat() {
        // Both kinds of a policy share their rules.
        let kinds: &[&str] = match kind {
            "Propagation" => &["PropagationPolicy", "ClusterPropagationPolicy"],
            "Rollout" => &["RolloutPolicy", "ClusterRolloutPolicy"],
            "Override" => &["OverridePolicy", "ClusterOverridePolicy"],
            "Binding" => &["ResourceBinding", "ClusterResourceBinding"],
            one => &[one],
        };
        for kind in kinds {
            let answer = server.try_create(&sample(kind, &spec)).await;
            if answer.code != 422 || !answer.message().contains(field) {
                wrong.push(format!(
                    "{kind} {spec}\n  wanted: {field}\n  answer: {} {}",
                    answer.code,
                    answer.message()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    interpreters::webhooks(server).await;
    names(server).await;
    changes(server).await;
}

/// The name of a cluster is part of its execution namespace's.
async fn names(server: &Server) {
    for (name, good) in [
        ("a".repeat(48), true),
        ("a".repeat(49), false),
        ("a.b".to_owned(), false),
    ] {
        let mut cluster = sample("Cluster", &json!({}));
        cluster["metadata"]["name"] = json!(name);
        let answer = server.try_create(&cluster).await;
        if good {
            answer.granted();
        } else {
            assert_eq!(answer.code, 422, "{name} {}", answer.body);
            assert!(answer.message().contains("metadata.name"), "{}", answer.message());
        }
    }
}

/// What may not be changed once it is there.
async fn changes(server: &Server) {
    for kind in ["PropagationPolicy", "ClusterPropagationPolicy"] {
        let object = server.create(&sample(kind, &json!({}))).await.granted();
        let other = json!({"spec": {"schedulerName": "other"}});
        let answer = server.merge(&object, &other, None).await;
        assert_eq!(answer.code, 422, "{}", answer.body);
        assert!(
            answer.message().contains("spec.schedulerName"),
            "{}",
            answer.message()
        );
        // Everything else may change, and a patch that removes the name means the default, which it has.
        let rest = json!({"spec": {"schedulerName": null, "priority": -7, "activationPreference": "Lazy"}});
        let changed = server.merge(&object, &rest, None).await.granted();
        assert_eq!(changed["spec"]["priority"], -7);
        assert_eq!(changed["spec"]["schedulerName"], "default-scheduler");
        server.delete(&object).await.granted();
    }
}
