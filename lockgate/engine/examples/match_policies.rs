//! What finding the policy of a template costs: `cargo run --release -p lockgate-engine --example match_policies [POLICIES]`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement may end where it likes, and prints"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockgate_api::PropagationPolicy;
use lockgate_engine::selector::{PolicyIndex, policy_match};
use serde_json::{Value, json};

const TEMPLATES: usize = 1000;

/// Makes the policy of a number.
type Shape = fn(usize) -> Value;

/// A fleet's policies: each shape of selector in turn.
fn mixed(number: usize) -> Value {
    let (namespace, app) = (format!("team-{}", number % 50), format!("app-{number}"));
    let labels = json!({ "matchLabels": { "app": app, "tier": "web" } });
    match number % 5 {
        0 => json!({ "namespace": namespace, "selector": { "name": app } }),
        1 => json!({ "namespace": namespace, "selector": { "labelSelector": labels } }),
        2 => json!({ "namespace": "", "selector": { "namespace": namespace, "name": app } }),
        3 => json!({ "namespace": "", "selector": { "labelSelector": labels } }),
        _ => json!({ "namespace": "", "selector": { "namespace": format!("other-{number}") } }),
    }
}

/// All in one namespace, by a label that every template has, and another that few have.
fn crowded(number: usize) -> Value {
    let labels = json!({ "matchLabels": { "tier": "web", "app": format!("app-{number}") } });
    json!({ "namespace": "team-1", "selector": { "labelSelector": labels } })
}

/// All match everything.
fn everything(_: usize) -> Value {
    json!({ "namespace": "team-1", "selector": {} })
}

/// No label that must be there, each excludes something else, and only the last matches.
fn exclusions(number: usize) -> Value {
    let values = if number == 0 {
        vec!["none".to_owned()]
    } else {
        vec!["web".to_owned(), format!("web-{number}")]
    };
    let expression = json!({ "key": "tier", "operator": "NotIn", "values": values });
    json!({ "namespace": "team-1", "selector": { "labelSelector": { "matchExpressions": [expression] } } })
}

fn policies(count: usize, shape: Shape) -> Vec<Arc<PropagationPolicy>> {
    let policy = |number: usize| {
        let mut shape = shape(number);
        let mut selector = shape["selector"].take();
        selector["apiVersion"] = "apps/v1".into();
        selector["kind"] = "Deployment".into();
        let metadata = json!({ "namespace": shape["namespace"], "name": format!("policy-{number}") });
        // The last in match order is the first by number.
        let spec = json!({ "resourceSelectors": [selector], "priority": i32::from(number > 0) });
        Arc::new(serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap())
    };
    (0..count).map(policy).collect()
}

fn templates(policies: usize) -> Vec<Value> {
    let template = |number: usize| {
        let app = number * policies / TEMPLATES;
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
            "namespace": format!("team-{}", app % 50), "name": format!("app-{app}"),
            "labels": { "app": format!("app-{app}"), "tier": "web", "owner": "somebody" },
        } })
    };
    let in_one = |mut template: Value| {
        template["metadata"]["namespace"] = "team-1".into();
        template
    };
    let spread = (0..TEMPLATES).map(template);
    spread.clone().chain(spread.map(in_one)).collect()
}

/// The time that one call took: nine in ten took no longer, and the worst.
fn measure<'a, T>(templates: &'a [Value], mut call: impl FnMut(&'a Value) -> T) -> (Duration, Duration) {
    let mut times: Vec<Duration> = templates
        .iter()
        .map(|template| {
            let one = Instant::now();
            std::hint::black_box(call(template));
            one.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[times.len() * 9 / 10], times[times.len() - 1])
}

fn main() {
    let count: usize = std::env::args()
        .nth(1)
        .map_or(5000, |count| count.parse().unwrap());
    let templates = templates(count);
    println!(
        "{count} policies, {} templates; what nine in ten calls need, and the worst",
        templates.len()
    );
    let shapes: [(&str, Shape); 4] = [
        ("mixed", mixed),
        ("crowded", crowded),
        ("everything", everything),
        ("exclusions", exclusions),
    ];
    for (name, shape) in shapes {
        let policies = policies(count, shape);
        let start = Instant::now();
        let mut index = PolicyIndex::default();
        policies.iter().for_each(|policy| index.insert(policy.clone()));
        let built = start.elapsed();
        for template in &templates {
            index.best(template);
        }
        let matched = templates
            .iter()
            .filter(|template| index.best(template).is_some())
            .count();
        let best = measure(&templates, |template| index.best(template));
        let preemptors = measure(&templates, |template| index.preemptors(template));
        let candidates = measure(&templates[TEMPLATES - 100..TEMPLATES + 100], |template| {
            index.candidates(template)
        });
        let scan = measure(&templates[TEMPLATES - 10..TEMPLATES + 10], |template| {
            policies
                .iter()
                .filter_map(|policy| policy_match(policy, template))
                .max()
        });
        println!("{name}: built in {built:.1?}, {matched} templates matched");
        for (call, (most, worst)) in [
            ("best", best),
            ("preemptors", preemptors),
            ("candidates", candidates),
            ("a scan instead", scan),
        ] {
            println!("  {call:<16}{most:>10.2?}{worst:>12.2?}");
        }
    }
}
