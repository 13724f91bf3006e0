//! Eviction: a delete of a Pod that its disruption budget must allow.
//!
//! What a budget allows stands in its status, which somebody else keeps. An eviction takes one from it in the same write that
//! finds that there is one left, so that two of them never take the same.

use http::Response;
use machinery_auth::UserInfo;
use machinery_kinds::Gvk;
use machinery_store::Range;
use machinery_value::Value;
use machinery_value::field::{FieldError, FieldPath};
use machinery_value::labels::LabelSelector;
use serde_json::json;

use crate::body::Body;
use crate::meta;
use crate::negotiate::Accept;
use crate::ops::delete::{DeleteOptions, check_preconditions, delete};
use crate::ops::update::{Part, Target, update};
use crate::ops::{FieldValidation, Saved, WriteOptions, read};
use crate::ownership::Owner;
use crate::registry::built_in;
use crate::resource::Resource;
use crate::serve::subresources::{admit, done, read_typed};
use crate::serve::writes::{check_dry_run, with_warnings, write_options};
use crate::serve::{Call, deletes};
use crate::status::{ApiError, Subject};

/// How many evicted Pods a budget may remember before somebody must confirm that they are gone.
const MAX_DISRUPTED: usize = 2000;
/// When a client should ask again while its budget has not been looked at.
const LATER: u32 = 10;
/// How often a Pod that changes while it is judged is judged again.
const ATTEMPTS: usize = 20;

/// Answers a request to evict a Pod.
pub(super) async fn answer(
    call: &Call,
    resource: &Resource,
    accept: Accept,
    body: &[u8],
) -> Result<Response<Body>, ApiError> {
    let options = write_options(call, "CreateOptions")?;
    let eviction = read_typed(call, Gvk::new("policy", "v1", "Eviction"), &options, body)?;
    let evicted = carry_out(call, resource, eviction, &options).await;
    with_warnings(&options, evicted.map(|()| done(call, accept)))
}

async fn carry_out(
    call: &Call,
    resource: &Resource,
    eviction: Value,
    options: &WriteOptions,
) -> Result<(), ApiError> {
    let info = &call.info;
    if meta::name(&eviction) != info.name {
        return Err(ApiError::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    let mut options = options.clone();
    check_reads(&info.name, &eviction["deleteOptions"])?;
    options.dry_run |= is_dry_run(call, &eviction["deleteOptions"])?;
    let wanted = read_options(&eviction["deleteOptions"])?;
    read::get(&call.server, resource, &info.namespace, &info.name, &call.query)?;
    admit(call, resource, eviction, &options)?;
    evict(call, resource, wanted, &options.judged()).await
}

/// A Pod that cannot be read cannot be judged.
fn check_reads(pod: &str, options: &Value) -> Result<(), ApiError> {
    const OPTION: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
    if options[OPTION] != true {
        return Ok(());
    }
    let kind = Subject {
        group: "policy",
        name: "Eviction",
    };
    let why = "can not be set for pod eviction, try after removing the option";
    let path = FieldPath::new("deleteOptions").child(OPTION);
    let error = FieldError::invalid(&path, &json!(true), why);
    Err(ApiError::invalid(kind, pod, &[error]))
}

/// How the Pod is to be deleted.
fn read_options(options: &Value) -> Result<DeleteOptions, ApiError> {
    let text = |value: &Value| value.as_str().filter(|t| !t.is_empty()).map(str::to_owned);
    let policy = options["propagationPolicy"].as_str().unwrap_or("");
    let propagation = deletes::read_propagation(policy, options["orphanDependents"].as_bool());
    Ok(DeleteOptions {
        uid: text(&options["preconditions"]["uid"]),
        resource_version: text(&options["preconditions"]["resourceVersion"]),
        propagation: propagation.map_err(deletes::invalid)?,
        grace_period: options["gracePeriodSeconds"].as_i64(),
    })
}

/// Whether the options inside an eviction ask for a dry run; what the query says must be the same, if both say anything.
fn is_dry_run(call: &Call, options: &Value) -> Result<bool, ApiError> {
    let inside: Vec<&str> = options["dryRun"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let outside: Vec<&str> = call
        .query
        .all("dryRun")
        .filter(|value| !value.is_empty())
        .collect();
    if !inside.is_empty() && !outside.is_empty() && inside != outside {
        return Err(ApiError::unclassified(format!(
            "Non-matching dry-run options in request and content: [{}] and [{}]",
            outside.join(" "),
            inside.join(" ")
        )));
    }
    check_dry_run(&inside).map_err(deletes::invalid)?;
    Ok(!inside.is_empty())
}

async fn evict(
    call: &Call,
    resource: &Resource,
    wanted: DeleteOptions,
    options: &WriteOptions,
) -> Result<(), ApiError> {
    let info = &call.info;
    let key = resource.key(&info.namespace, &info.name);
    for _ in 0..ATTEMPTS {
        let stored = call
            .server
            .store
            .get(&key)
            .ok_or_else(|| ApiError::not_found(resource.subject(), &info.name))?;
        let pod = resource.content(&stored.value);
        let leave = judge(call, &pod, options).await?;
        // What was decided of one version of the Pod holds for that version alone. Who named one is told if it was another;
        // for the others a Pod that changed is judged again.
        let binds = leave.holds_for_one_version(&pod) && wanted.resource_version.is_none();
        let mut bound = wanted.clone();
        if binds {
            bound.resource_version = Some(meta::resource_version(&pod).to_owned());
        }
        match (remove(call, resource, bound, options).await, leave) {
            (Err(error), Leave::Free) if binds && error.is_conflict() => {}
            // Its budget was asked, and somebody may wait for the answer: it is to ask again.
            (Err(error), Leave::Unready(budget)) if binds && error.is_conflict() => {
                return Err(ApiError::over_budget(being_processed(&budget), Some(LATER)));
            }
            (result, _) => return result,
        }
    }
    Err(ApiError::modified(resource.subject(), &info.name))
}

/// Why a Pod may go.
enum Leave {
    /// It disrupts nobody when it goes.
    Free,
    /// It is not ready, and so of no use to this budget.
    Unready(String),
    /// Its budget gave a disruption for it, or it has none.
    Granted,
}

impl Leave {
    /// Whether it may go as it is, and perhaps not as it is a moment later. What is over or going stays so, and what was
    /// taken from a budget is taken.
    fn holds_for_one_version(&self, pod: &Value) -> bool {
        match self {
            Self::Free => {
                !meta::is_deleting(pod)
                    && !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
            }
            Self::Unready(_) => true,
            Self::Granted => false,
        }
    }
}

/// Whether a Pod may go; takes a disruption from its budget if it needs one.
async fn judge(call: &Call, pod: &Value, options: &WriteOptions) -> Result<Leave, ApiError> {
    if is_over(pod) {
        return Ok(Leave::Free);
    }
    let Some(budget) = budget_of(call, pod)? else {
        return Ok(Leave::Granted);
    };
    if frees_unready(&budget, pod) {
        return Ok(Leave::Unready(meta::name(&budget).to_owned()));
    }
    take(call, meta::name(&budget), options).await?;
    Ok(Leave::Granted)
}

/// Says on the Pod why it goes, and deletes it.
async fn remove(
    call: &Call,
    resource: &Resource,
    mut wanted: DeleteOptions,
    options: &WriteOptions,
) -> Result<(), ApiError> {
    let info = &call.info;
    if !options.dry_run
        && let Some(version) = mark(call, resource, &wanted).await?
        && wanted.resource_version.is_some()
    {
        wanted.resource_version = Some(version);
    }
    delete(
        &call.server,
        resource,
        &info.namespace,
        &info.name,
        &wanted,
        options,
    )
    .await?;
    Ok(())
}

/// Whether a Pod disrupts nobody when it goes: it does not run yet, or no more, or is going already.
fn is_over(pod: &Value) -> bool {
    meta::is_deleting(pod)
        || matches!(
            pod["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed" | "Pending")
        )
}

/// Whether a budget lets a Pod go that is not ready and so counts for nothing.
fn frees_unready(budget: &Value, pod: &Value) -> bool {
    let ready = pod["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    if ready {
        return false;
    }
    let count = |key: &str| budget["status"][key].as_i64().unwrap_or_default();
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        || (count("desiredHealthy") > 0 && count("currentHealthy") >= count("desiredHealthy"))
}

/// The budget that a Pod is counted in. A Pod of several has none that could be asked.
fn budget_of(call: &Call, pod: &Value) -> Result<Option<Value>, ApiError> {
    let Some(resource) = budgets() else {
        return Ok(None);
    };
    let page = call.server.store.range(Range {
        prefix: &resource.collection(&call.info.namespace),
        ..Range::default()
    });
    let entries = page.map(|page| page.entries).unwrap_or_default();
    let labels = &pod["metadata"]["labels"];
    let mut matching = entries
        .iter()
        .map(|entry| resource.content(&entry.value))
        .filter(|budget| selects(&budget["spec"]["selector"], labels));
    let first = matching.next();
    if first.is_some() && matching.next().is_some() {
        return Err(ApiError::unclassified(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        ));
    }
    Ok(first)
}

/// Whether a budget's selector selects these labels; one that is missing selects nothing.
fn selects(selector: &Value, labels: &Value) -> bool {
    !selector.is_null()
        && LabelSelector::from_object(Some(selector))
            .is_ok_and(|selector| selector.matches_labels(labels.as_object()))
}

fn budgets() -> Option<&'static Resource> {
    built_in()
        .find("policy", "v1", "poddisruptionbudgets")
        .map(|resource| &**resource)
}

/// Takes one disruption from a budget, in the server's own name.
async fn take(call: &Call, name: &str, options: &WriteOptions) -> Result<(), ApiError> {
    let Some(resource) = budgets() else { return Ok(()) };
    let target = Target {
        resource,
        namespace: &call.info.namespace,
        name,
        part: Part::Status,
    };
    let own = WriteOptions::new(
        std::sync::Arc::new(UserInfo::apiserver()),
        options.dry_run,
        FieldValidation::Ignore,
        Owner::Manager("kube-apiserver".to_owned()),
    );
    let now = call.server.now_text();
    update(&call.server, &target, &own, |budget| {
        spend(budget, &call.info.name, &now)
    })
    .await?;
    Ok(())
}

/// The budget with one disruption less, or why there is none to take.
fn spend(budget: &Value, pod: &str, now: &str) -> Result<Value, ApiError> {
    let name = meta::name(budget);
    let status = &budget["status"];
    let count = |key: &str| status[key].as_i64().unwrap_or_default();
    if count("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or_default() {
        return Err(ApiError::over_budget(being_processed(name), Some(LATER)));
    }
    let forbidden = |why: &str| {
        let subject = Subject {
            group: "policy",
            name: "poddisruptionbudget",
        };
        ApiError::forbidden(subject, name, why)
    };
    let allowed = count("disruptionsAllowed");
    if allowed < 0 {
        return Err(forbidden("pod disruption budget is negative"));
    }
    if status["disruptedPods"]
        .as_object()
        .is_some_and(|pods| pods.len() > MAX_DISRUPTED)
    {
        return Err(forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    if allowed == 0 {
        return Err(ApiError::over_budget(exhausted(name, status), None));
    }
    let mut new = budget.clone();
    let status = &mut new["status"];
    status["disruptionsAllowed"] = json!(allowed - 1);
    if allowed == 1 {
        let about = ("False", "InsufficientPods", String::new());
        crate::definitions::set_condition(status, "DisruptionAllowed", about, now);
        let generation = status["observedGeneration"].clone();
        for condition in status["conditions"].as_array_mut().into_iter().flatten() {
            if condition["type"] == "DisruptionAllowed" {
                condition["observedGeneration"] = generation.clone();
            }
        }
    }
    if !status["disruptedPods"].is_object() {
        status["disruptedPods"] = json!({});
    }
    status["disruptedPods"][pod] = json!(now);
    Ok(new)
}

fn being_processed(budget: &str) -> String {
    format!("The disruption budget {budget} is still being processed by the server.")
}

/// Why a budget allows nothing.
fn exhausted(name: &str, status: &Value) -> String {
    let failed = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "DisruptionAllowed" && condition["reason"] == "SyncFailed");
    if let Some(condition) = failed {
        let why = condition["message"].as_str().unwrap_or_default();
        return format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {why}"
        );
    }
    let count = |key: &str| status[key].as_i64().unwrap_or_default();
    let (needed, healthy) = (count("desiredHealthy"), count("currentHealthy"));
    if healthy <= needed {
        format!("The disruption budget {name} needs {needed} healthy pods and has {healthy} currently")
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }
}

/// Says on a Pod why it goes, before it goes; the version that it has then.
async fn mark(call: &Call, resource: &Resource, wanted: &DeleteOptions) -> Result<Option<String>, ApiError> {
    let info = &call.info;
    let target = Target {
        resource,
        namespace: &info.namespace,
        name: &info.name,
        part: Part::Whole,
    };
    let now = call.server.now_text();
    let marked = update(
        &call.server,
        &target,
        &WriteOptions::internal().judged(),
        |present| {
            check_preconditions(resource, &info.name, present, wanted)?;
            let mut pod = present.clone();
            target_condition(&mut pod["status"], &now);
            Ok(pod)
        },
    )
    .await?;
    Ok(match marked {
        Saved::Stored(stored) => Some(stored.revision.to_string()),
        Saved::Dry(_) | Saved::Gone(_) => None,
    })
}

fn target_condition(status: &mut Value, now: &str) {
    const KIND: &str = "DisruptionTarget";
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(list) = status["conditions"].as_array_mut() else {
        return;
    };
    let present = list.iter().position(|condition| condition["type"] == KIND);
    let since = match present.map(|at| &list[at]) {
        Some(condition) if condition["status"] == "True" => condition["lastTransitionTime"].clone(),
        _ => json!(now),
    };
    let condition = json!({
        "type": KIND, "status": "True", "lastProbeTime": null, "lastTransitionTime": since,
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
    });
    match present {
        Some(at) => list[at] = condition,
        None => list.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(status: Value) -> Value {
        json!({"metadata": {"name": "b", "generation": 2}, "spec": {}, "status": status})
    }

    fn cause(error: &ApiError) -> &str {
        error.details.as_ref().unwrap()["causes"][0]["message"]
            .as_str()
            .unwrap()
    }

    #[test]
    fn a_budget_that_nobody_looked_at_allows_nothing_yet() {
        let error = spend(
            &budget(json!({"observedGeneration": 1, "disruptionsAllowed": 3})),
            "p",
            "now",
        );
        let error = error.unwrap_err();
        assert_eq!((error.code, error.retry_after), (429, Some(10)));
        assert_eq!(
            cause(&error),
            "The disruption budget b is still being processed by the server."
        );
    }

    #[test]
    fn an_empty_budget_says_why() {
        let table = [
            (
                json!({"currentHealthy": 1, "desiredHealthy": 2}),
                "needs 2 healthy pods and has 1 currently",
            ),
            (
                json!({"currentHealthy": 3, "desiredHealthy": 2}),
                "does not allow evicting pods currently",
            ),
            (
                json!({"conditions": [{"type": "DisruptionAllowed", "reason": "SyncFailed", "message": "x"}]}),
                "does not allow evicting pods currently because it failed sync: x",
            ),
        ];
        for (mut status, expected) in table {
            status["observedGeneration"] = json!(2);
            let error = spend(&budget(status), "p", "now").unwrap_err();
            assert_eq!(cause(&error), format!("The disruption budget b {expected}"));
            assert_eq!(error.retry_after, None);
        }
    }

    #[test]
    fn the_last_disruption_is_marked_as_such() {
        let status = |allowed: i64| budget(json!({"observedGeneration": 2, "disruptionsAllowed": allowed}));
        let more = spend(&status(2), "p", "now").unwrap();
        assert_eq!(
            more["status"],
            json!({"observedGeneration": 2, "disruptionsAllowed": 1, "disruptedPods": {"p": "now"}})
        );
        let last = spend(&status(1), "p", "now").unwrap();
        assert_eq!(last["status"]["disruptionsAllowed"], 0);
        assert_eq!(last["status"]["conditions"][0]["reason"], "InsufficientPods");
        assert_eq!(last["status"]["conditions"][0]["observedGeneration"], 2);
    }

    #[test]
    fn a_pod_that_is_not_ready_may_be_free_to_go() {
        let unready = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let healthy = budget(json!({"currentHealthy": 2, "desiredHealthy": 2}));
        let ailing = budget(json!({"currentHealthy": 1, "desiredHealthy": 2}));
        let mut lenient = ailing.clone();
        lenient["spec"]["unhealthyPodEvictionPolicy"] = json!("AlwaysAllow");
        let table = [
            (&healthy, &unready, true),
            (&ailing, &unready, false),
            (&lenient, &unready, true),
            (&healthy, &ready, false),
            (&lenient, &ready, false),
        ];
        for (budget, pod, free) in table {
            assert_eq!(frees_unready(budget, pod), free, "{budget} {pod}");
        }
    }
}
