//! Every form of every report, as a file that people can read. `LOCKGATE_BLESS=1 cargo test -p lockgate status` writes
//! the files anew; look at the difference before it is committed.

use std::path::Path;

use lockgate_api::names;
use serde_json::{Value, json};

mod reasons;

use super::*;
use crate::status::objects::{Objects, WorkView};
use lockgate_engine::TemplateId;

/// The hub of `testdata/hub.yaml`. A Work's name follows from its template, which the file gives after an `@`.
fn hub() -> Objects {
    let text = include_bytes!("testdata/hub.yaml");
    let value = machinery_value::decode::from_yaml(text).unwrap().value;
    let works: Vec<lockgate_api::Work> = decoded(&value["works"]);
    let works: Vec<WorkView> = works
        .into_iter()
        .map(|mut work| {
            let name = work.metadata.name.strip_prefix('@').unwrap().to_owned();
            let parts: Vec<&str> = name.split('/').collect();
            work.metadata.name = names::work_name(parts[0], parts[1], parts[2]);
            WorkView::of(work).unwrap()
        })
        .collect();
    Objects {
        policies: decoded(&value["policies"]),
        bindings: decoded(&value["bindings"]),
        clusters: decoded(&value["clusters"]),
        counts: fleet::count(works.iter()),
        works,
        ..Objects::default()
    }
}

fn decoded<T: serde::de::DeserializeOwned>(value: &Value) -> Vec<T> {
    serde_json::from_value(value.clone()).unwrap()
}

/// Compares with the file of that name, or writes it.
fn check(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/status/testdata")
        .join(name);
    if std::env::var_os("LOCKGATE_BLESS").is_some() {
        std::fs::write(&file, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        text == wanted,
        "{name} differs.\nexpected:\n{wanted}\nfound:\n{text}"
    );
}

fn plain(output: Output, report: &Report) -> String {
    let style = Style {
        paint: Paint::OFF,
        wide: output == Output::Wide,
        headers: true,
    };
    render(output, report, style)
}

fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    object
}

fn about(template: &Value, objects: &Objects) -> Report {
    let id = TemplateId::of(template);
    Report::Template(template::template(&id, Some(template), objects))
}

fn claimed(mut template: Value, id: &str, name: &str) -> Value {
    template["metadata"]["labels"] = json!({"propagationpolicy.karmada.io/permanent-id": id});
    template["metadata"]["annotations"] =
        json!({"propagationpolicy.karmada.io/namespace": "shop", "propagationpolicy.karmada.io/name": name});
    template
}

#[test]
fn templates_that_are_propagated() {
    let objects = hub();
    let deployment = |name: &str| object("apps/v1", "Deployment", "shop", name);
    for (name, template) in [
        ("web", claimed(deployment("web"), "id-web", "web")),
        ("api", claimed(deployment("api"), "id-api", "api")),
        ("nightly", claimed(deployment("nightly"), "id-batch", "batch")),
        ("old", object("v1", "ConfigMap", "shop", "old")),
        (
            "reader",
            object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "reader"),
        ),
        ("namespace", object("v1", "Namespace", "", "shop")),
    ] {
        check(
            &format!("template-{name}.txt"),
            &plain(Output::Table, &about(&template, &objects)),
        );
    }
    let api = about(&claimed(deployment("api"), "id-api", "api"), &objects);
    check("template-api-wide.txt", &plain(Output::Wide, &api));
    check("template-api.json", &plain(Output::Json, &api));
    check("template-api.yaml", &plain(Output::Yaml, &api));
}

#[test]
fn what_is_in_the_namespace_of_a_cluster() {
    let mut objects = hub();
    let web = claimed(object("apps/v1", "Deployment", "shop", "web"), "id-web", "web");
    let binding = objects
        .bindings
        .iter_mut()
        .find(|binding| binding.metadata.name == "web-deployment")
        .unwrap();
    let message = lockgate_engine::claim::in_cluster_namespace("shop");
    let condition =
        json!({"type": "Propagated", "status": "False", "reason": "NamespaceReserved", "message": message});
    binding
        .status
        .conditions
        .push(serde_json::from_value(condition).unwrap());
    let text = plain(Output::Table, &about(&web, &objects));
    assert!(text.contains("Frozen"), "{text}");
    assert!(
        text.contains("reserved, because a cluster has its name"),
        "{text}"
    );
}

#[test]
fn what_could_not_be_made_for_a_cluster() {
    let mut objects = hub();
    let web = claimed(object("apps/v1", "Deployment", "shop", "web"), "id-web", "web");
    let binding = objects
        .bindings
        .iter_mut()
        .find(|binding| binding.metadata.name == "web-deployment")
        .unwrap();
    let why = "OverridePolicy shop/bad, overrideRules[0]: /spec/none does not exist";
    let condition = json!({"type": "Rendered", "status": "False", "reason": "RenderFailed",
        "message": format!("member1: {why}")});
    binding
        .status
        .conditions
        .push(serde_json::from_value(condition).unwrap());
    let item = &mut binding.status.aggregated_status[0];
    (item.applied, item.applied_message) = (false, why.to_owned());
    let text = plain(Output::Table, &about(&web, &objects));
    let line = text.lines().find(|line| line.starts_with("member1")).unwrap();
    assert!(line.contains("False     ✖ Failing"), "{text}");
    assert!(line.ends_with(why), "{text}");
    assert!(
        text.contains("Next: lockgate render deployment/web -n shop --cluster member1"),
        "{text}"
    );
}

/// The summary in a binding comes after the Works that it sums up.
#[test]
fn what_only_the_works_say_yet() {
    let mut objects = hub();
    let binding = objects
        .bindings
        .iter_mut()
        .find(|binding| binding.metadata.name == "api-deployment")
        .unwrap();
    binding.status.aggregated_status.clear();
    for work in objects.works.clone() {
        objects.note(work);
    }
    let fleet = fleet::fleet(None, &objects);
    let line = |fleet: &report::FleetReport| {
        let mut lines = fleet.not_well.iter();
        let line = lines.find(|line| line.template == "Deployment shop/api").unwrap();
        (line.state, line.reason.clone())
    };
    let (state, reason) = line(&fleet);
    assert_eq!(state, report::State::Failing);
    assert!(
        reason.contains("already exists in the cluster member1"),
        "{reason}"
    );
}

#[test]
fn what_rollout_policies_hold_back() {
    let mut objects = hub();
    let selector = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]);
    objects.rollouts = decoded(&json!([
        {
            "metadata": {"name": "web-deployment", "namespace": "shop"},
            "spec": {"resourceSelectors": selector, "suspension": {
                "dispatchingOnClusters": {"clusterNames": ["member2"]}, "reason": "checking the schema"}},
        },
        {
            "metadata": {"name": "idle", "namespace": "shop"},
            "spec": {"resourceSelectors": selector, "suspension": {}},
        },
    ]));
    for work in &mut objects.works {
        if work.object.name == "web" && work.cluster == "member2" {
            work.suspended = true;
            work.suspended_by = "RolloutPolicy shop/web-deployment: checking the schema".to_owned();
        }
    }
    let web = claimed(object("apps/v1", "Deployment", "shop", "web"), "id-web", "web");
    check("template-held.txt", &plain(Output::Table, &about(&web, &objects)));
    // Somebody else's policy is deleted by its name.
    objects.rollouts[0].metadata.name = "freeze".to_owned();
    let text = plain(Output::Table, &about(&web, &objects));
    assert!(
        text.contains("Next: kubectl delete rolloutpolicy freeze -n shop"),
        "{text}"
    );
    // Without the Work, what the policies say counts.
    let fleet = Report::Fleet(fleet::fleet(None, &objects));
    assert!(
        plain(Output::Wide, &fleet)
            .contains("dispatching is suspended (RolloutPolicy shop/freeze: checking the schema)"),
        "{}",
        plain(Output::Wide, &fleet)
    );
}

/// The handbook shows what the command prints.
#[test]
fn the_handbook_is_right() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let handbook = std::fs::read_to_string(root.join("../../docs/status.md")).unwrap();
    let shown = std::fs::read_to_string(root.join("src/status/testdata/template-api.txt")).unwrap();
    assert!(handbook.contains(&shown));
}

#[test]
fn what_is_left_of_a_template() {
    let id = TemplateId::of(&object("apps/v1", "Deployment", "shop", "web"));
    let report = Report::Template(template::template(&id, None, &hub()));
    check("template-gone.txt", &plain(Output::Table, &report));
}

/// Every reason for which something is not propagated.
#[test]
fn templates_that_are_not_propagated() {
    let objects = hub();
    let with = |mut object: Value, field: &str, value: Value| {
        object["metadata"][field] = value;
        object
    };
    let cases = [
        object("apps/v1", "Deployment", "shop", "orders"),
        object("apps/v1", "Deployment", "other", "web"),
        with(
            object("apps/v1", "Deployment", "shop", "web2"),
            "labels",
            json!({"team": "batch"}),
        ),
        object("batch/v1", "Job", "shop", "once"),
        claimed(object("v1", "ConfigMap", "shop", "settings"), "id-later", "later"),
        claimed(object("v1", "ConfigMap", "shop", "lost"), "id-gone", "gone"),
        claimed(object("v1", "ConfigMap", "shop", "early"), "id-batch", "batch"),
        with(
            object("v1", "ConfigMap", "shop", "theirs"),
            "labels",
            json!({"resourcetemplate.karmada.io/claimed-by": "somebody"}),
        ),
        object("v1", "ConfigMap", "kube-system", "coredns"),
        object("v1", "Secret", "karmada-es-member1", "token"),
        object("coordination.k8s.io/v1", "Lease", "shop", "lock"),
        object("policy.open-cluster-management.io/v1", "Policy", "shop", "limits"),
        with(
            object("v1", "ConfigMap", "shop", "going"),
            "deletionTimestamp",
            json!("2026-11-15T09:00:00Z"),
        ),
        object("v1", "Namespace", "", "default"),
        object("v1", "Namespace", "", "kube-public"),
        with(
            object("v1", "Namespace", "", "private"),
            "labels",
            json!({"namespace.karmada.io/skip-auto-propagation": "true"}),
        ),
    ];
    let text: Vec<String> = cases
        .iter()
        .map(|case| plain(Output::Table, &about(case, &objects)))
        .collect();
    check("not-propagated.txt", &text.join("\n---\n\n"));
}

#[test]
fn the_whole_hub() {
    let objects = hub();
    let report = Report::Fleet(fleet::fleet(None, &objects));
    check("fleet.txt", &plain(Output::Table, &report));
    check("fleet-wide.txt", &plain(Output::Wide, &report));
    check("fleet.json", &plain(Output::Json, &report));
    check("fleet.yaml", &plain(Output::Yaml, &report));
    let style = Style {
        paint: Paint::OFF,
        wide: false,
        headers: false,
    };
    check("fleet-no-headers.txt", &render(Output::Table, &report, style));
    let elsewhere = Report::Fleet(fleet::fleet(Some("elsewhere"), &objects));
    check("fleet-elsewhere.txt", &plain(Output::Table, &elsewhere));
}

#[test]
fn hubs_in_which_all_is_well() {
    let empty = Report::Fleet(fleet::fleet(None, &Objects::default()));
    check("fleet-empty.txt", &plain(Output::Table, &empty));
    let mut well = hub();
    well.policies.retain(|policy| policy.metadata.name == "readers");
    well.bindings
        .retain(|binding| binding.metadata.name == "reader-clusterrole");
    well.works.retain(|work| work.object.kind == "ClusterRole");
    well.clusters.retain(|cluster| cluster.metadata.name != "member3");
    well.counts = fleet::count(well.works.iter());
    let report = Report::Fleet(fleet::fleet(None, &well));
    check("fleet-well.txt", &plain(Output::Table, &report));
}

#[test]
fn controllers_that_do_not_run() {
    let now: jiff::Timestamp = "2026-11-15T09:00:00Z".parse().unwrap();
    let silence = |spec: Value| {
        let objects = Objects {
            lease: Some((json!({"spec": spec}), now)),
            ..Objects::default()
        };
        objects.silence()
    };
    let lease =
        |renewed: &str| json!({"holderIdentity": "hub-0", "leaseDurationSeconds": 15, "renewTime": renewed});
    assert_eq!(silence(lease("2026-11-15T08:59:50.000000Z")), None);
    assert_eq!(silence(lease("2026-11-15T08:59:30.000000Z")), None);
    assert_eq!(
        silence(lease("2026-11-15T08:59:00.000000Z")).unwrap(),
        "nobody runs the controllers: hub-0 renewed their lease 60 s ago, and not since"
    );
    assert_eq!(
        silence(json!({})).unwrap(),
        "nobody runs the controllers: their lease is free"
    );
    assert_eq!(Objects::default().silence(), None);
}

#[test]
fn long_lists_are_cut() {
    let mut objects = hub();
    let failing = objects
        .bindings
        .iter()
        .find(|b| b.metadata.name == "api-deployment")
        .unwrap()
        .clone();
    objects.bindings = (0..12)
        .map(|number| {
            let mut binding = failing.clone();
            binding.spec.resource.name = format!("api-{number:02}");
            binding
        })
        .collect();
    let report = Report::Fleet(fleet::fleet(None, &objects));
    let text = plain(Output::Table, &report);
    assert!(
        text.contains("Deployment shop/api-09") && !text.contains("Deployment shop/api-10"),
        "{text}"
    );
    assert!(text.contains("… and 2 more: -o wide lists them"), "{text}");
    assert!(plain(Output::Wide, &report).contains("Deployment shop/api-11"));
}

#[test]
fn policies_and_clusters() {
    let objects = hub();
    for policy in &objects.policies {
        let report = Report::Policy(fleet::policy(policy, &objects));
        check(
            &format!("policy-{}.txt", policy.metadata.name),
            &plain(Output::Table, &report),
        );
    }
    for cluster in &objects.clusters {
        let report = Report::Cluster(fleet::cluster(cluster, &objects));
        check(
            &format!("cluster-{}.txt", cluster.metadata.name),
            &plain(Output::Table, &report),
        );
    }
}

#[test]
fn a_frame_fits_the_screen() {
    let text = "one\n\x1b[32mtwo words\x1b[0m\nthree\n";
    assert_eq!(
        frame(text, 3, 5, true),
        "\x1b[2J\x1b[Hone\x1b[K\n\x1b[32mtwo w\x1b[0m\x1b[K\n\x1b[J"
    );
    assert_eq!(frame("one\n", 24, 80, false), "\x1b[Hone\x1b[K\n\x1b[J");
}
