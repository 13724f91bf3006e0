use std::sync::Arc;

use lockgate_api::RolloutPolicy;
use serde_json::{Value, json};

use super::*;

fn policy(namespace: &str, name: &str, selectors: Value) -> Arc<RolloutPolicy> {
    let policy = json!({
        "metadata": { "namespace": namespace, "name": name },
        "spec": { "resourceSelectors": selectors },
    });
    Arc::new(serde_json::from_value(policy).unwrap())
}

fn template(kind: &str, namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": { "namespace": namespace, "name": name, "labels": { "tier": name } },
    })
}

fn names(index: &RolloutIndex, template: &Value) -> Vec<String> {
    let about = index.about(template);
    let may_concern = index.may_concern(&TemplateId::of(template));
    assert!(may_concern || about.is_empty(), "{template} would not be read");
    about.iter().map(|policy| policy.title()).collect()
}

#[test]
fn what_no_selector_could_mean_is_not_read() {
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" });
    let mut index = RolloutIndex::default();
    let concerns = |index: &RolloutIndex, kind: &str, name: &str| {
        index.may_concern(&TemplateId::of(&template(kind, "shop", name)))
    };
    assert!(!concerns(&index, "Deployment", "web"));
    index.insert(policy("", "web", json!([deployment])));
    assert!(concerns(&index, "Deployment", "web"));
    assert!(!concerns(&index, "Deployment", "db"));
    assert!(!concerns(&index, "StatefulSet", "web"));
    index.insert(policy(
        "shop",
        "all",
        json!([{ "apiVersion": "apps/v1", "kind": "Deployment" }]),
    ));
    assert!(concerns(&index, "Deployment", "db"));
    index.remove("shop", "all");
    assert!(!concerns(&index, "Deployment", "db"));
}

#[test]
fn policies_reach_what_their_kind_may_reach() {
    let of = |rest: Value| {
        let mut selector = json!({ "apiVersion": "apps/v1", "kind": "Deployment" });
        selector
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        selector
    };
    let mut index = RolloutIndex::default();
    index.insert(policy("shop", "all", json!([of(json!({}))])));
    index.insert(policy("shop", "web", json!([of(json!({ "name": "web" }))])));
    index.insert(policy(
        "shop",
        "tier",
        json!([of(
            json!({ "labelSelector": { "matchLabels": { "tier": "web" } } })
        )]),
    ));
    // Somebody may have stored it before the rule was there.
    index.insert(policy(
        "shop",
        "elsewhere",
        json!([of(json!({ "namespace": "other" }))]),
    ));
    index.insert(policy("other", "all", json!([of(json!({}))])));
    index.insert(policy("", "everything", json!([of(json!({}))])));
    index.insert(policy("", "of-shop", json!([of(json!({ "namespace": "shop" }))])));
    index.insert(policy(
        "",
        "twice",
        json!([of(json!({})), of(json!({ "name": "web" }))]),
    ));
    let web = template("Deployment", "shop", "web");
    let everywhere = ["ClusterRolloutPolicy everything", "ClusterRolloutPolicy of-shop"];
    assert_eq!(
        names(&index, &web),
        [
            &everywhere[..],
            &[
                "ClusterRolloutPolicy twice",
                "RolloutPolicy shop/all",
                "RolloutPolicy shop/tier",
                "RolloutPolicy shop/web"
            ]
        ]
        .concat()
    );
    assert_eq!(
        names(&index, &template("Deployment", "other", "api")),
        [
            "ClusterRolloutPolicy everything",
            "ClusterRolloutPolicy twice",
            "RolloutPolicy other/all"
        ]
    );
    // What lives in no namespace is for the policies that live in none.
    assert_eq!(
        names(&index, &template("Deployment", "", "web")),
        ["ClusterRolloutPolicy everything", "ClusterRolloutPolicy twice"]
    );
    assert!(names(&index, &template("StatefulSet", "shop", "web")).is_empty());
    // The answers are those of a look at every policy.
    for template in [web, template("Deployment", "other", "api")] {
        let scan: Vec<String> = index
            .iter()
            .filter(|policy| is_about(policy, &template))
            .map(|policy| policy.title())
            .collect();
        assert_eq!(names(&index, &template), scan);
    }
}

#[test]
fn a_policy_that_goes_or_changes_leaves_nothing_behind() {
    let selector = |name: &str| json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": name }]);
    let mut index = RolloutIndex::default();
    index.insert(policy("shop", "p", selector("web")));
    index.insert(policy("shop", "p", selector("api")));
    assert!(names(&index, &template("Deployment", "shop", "web")).is_empty());
    assert_eq!(names(&index, &template("Deployment", "shop", "api")).len(), 1);
    assert!(index.get("shop", "p").is_some());
    assert!(index.remove("shop", "p").is_some());
    assert!(index.remove("shop", "p").is_none());
    assert_eq!(index.iter().count(), 0);
    assert!(index.postings.is_empty());

    let mut going = (*policy("shop", "p", selector("web"))).clone();
    going.metadata.deletion_timestamp = Some("2026-01-01T00:00:00Z".to_owned());
    index.insert(Arc::new(going));
    assert!(names(&index, &template("Deployment", "shop", "web")).is_empty());
}
