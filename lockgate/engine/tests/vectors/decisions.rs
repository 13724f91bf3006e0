//! Whole decisions, and the parts that they are made of.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use lockgate_api::RolloutStrategy;
use lockgate_engine::gate::decision::{Decision, Verdict, overall};
use lockgate_engine::gate::rollout::decide;
use lockgate_engine::gate::rules::{List, Rules, StrategyError, nearest};
use lockgate_engine::gate::standing::{Standing, Status};
use lockgate_engine::observe::overall_compliance;
use serde_json::{Map, Value, json};

use crate::grouping::groups;
use crate::{expected, same};

/// The moment at which every case is decided.
fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn since(item: &Value) -> Option<Timestamp> {
    item["age_s"]
        .as_i64()
        .map(|age| now() - SignedDuration::from_secs(age))
}

/// A strategy as the cases write it.
fn strategy(case: &Value) -> RolloutStrategy {
    let mut config = Map::new();
    for (from, to) in [
        ("max_failures", "maxFailures"),
        ("max_concurrency", "maxConcurrency"),
        ("progress_deadline", "progressDeadline"),
    ] {
        if let Some(value) = case.get(from) {
            config.insert(to.to_owned(), value.clone());
        }
    }
    if let Some(seconds) = case.get("min_success_s") {
        config.insert("minSuccessTime".to_owned(), json!(format!("{seconds}s")));
    }
    if let Some(entries) = case["mandatory"].as_array() {
        let entry = |entry: &Value| json!({ "groupName": entry["name"].as_str().unwrap_or(""), "groupIndex": entry["index"] });
        config.insert(
            "mandatoryDecisionGroups".to_owned(),
            entries.iter().map(entry).collect(),
        );
    }
    let kind = case["type"].as_str().unwrap_or_default();
    let part = match kind {
        "Progressive" => "progressive",
        "ProgressivePerGroup" => "progressivePerGroup",
        _ => "all",
    };
    serde_json::from_value(json!({ "type": kind, part: config })).unwrap()
}

pub(crate) fn rollout(case: &Value) -> Result<(), String> {
    let groups = groups(&case["groups"]);
    let existing = case["existing"].as_array().unwrap();
    let standings: Vec<Standing<'_>> = existing
        .iter()
        .map(|item| Standing {
            cluster: item["cluster"].as_str().unwrap(),
            status: Status::from_name(item["status"].as_str().unwrap()),
            since: since(item),
        })
        .collect();
    let expected = expected(case);
    let rules = match Rules::read(&strategy(&case["strategy"])) {
        Ok(rules) => rules,
        Err(error) => return refused(&error, expected),
    };
    let decision = decide(&groups, &rules, &standings, now());
    // Recommended answers have no order; neither has one that the library gives in the order of its input.
    let names: Vec<&str> = standings.iter().map(|standing| standing.cluster).collect();
    let strategy = &case["strategy"];
    let grouped = strategy["type"] == "ProgressivePerGroup" || strategy.get("mandatory").is_some();
    let by_input = grouped && !names.is_sorted();
    let ordered = case.get("recommended").is_none() && !by_input;
    compare(&decision, expected, ordered)
}

fn refused(error: &StrategyError, expected: &Value) -> Result<(), String> {
    let kind = match error {
        StrategyError::Type(_) => "type",
        StrategyError::Threshold { .. } => "percent",
        StrategyError::Duration { .. } => "format",
    };
    match expected["error"].as_str() {
        Some(wanted) if wanted == kind => Ok(()),
        // Words of the case's own, such as for a type that is none.
        Some(wanted) if !["percent", "format"].contains(&wanted) => Ok(()),
        _ => same("answer", &json!({ "error": kind }), expected),
    }
}

fn compare(decision: &Decision<'_>, expected: &Value, ordered: bool) -> Result<(), String> {
    if expected.get("error").is_some() {
        return Err(format!("expected {expected}, and it was accepted"));
    }
    let listed: Vec<Value> = decision.rollout().map(record).collect();
    let wanted = expected["to_rollout"].as_array().unwrap().clone();
    if ordered {
        same("to_rollout", &json!(listed), &json!(wanted))?;
    } else {
        same("to_rollout", &sorted(listed), &sorted(wanted))?;
    }
    let timed_out = decision.timed_out().map(record).collect();
    let wanted = expected["timed_out"].as_array().unwrap().clone();
    same("timed_out", &sorted(timed_out), &sorted(wanted))?;
    // What is removed is handed back as it came, so that its group is of no interest.
    let removed = decision.removed.iter().map(|standing| {
        let mut item = json!({ "cluster": standing.cluster, "status": standing.status.name() });
        put(&mut item, "age_s", standing.since, |since| {
            now().duration_since(since)
        });
        item
    });
    let mut wanted = expected["removed"].as_array().unwrap().clone();
    for item in &mut wanted {
        item.as_object_mut().unwrap().remove("group");
    }
    same("removed", &sorted(removed.collect()), &sorted(wanted))?;
    let breach = json!(decision.breach.is_some());
    same("max_failure_breach", &breach, &expected["max_failure_breach"])?;
    let recheck = decision.recheck_after.map(|after| after.as_secs());
    same("recheck_after_s", &json!(recheck), &expected["recheck_after_s"])
}

fn record(verdict: &Verdict<'_>) -> Value {
    let mut item =
        json!({ "cluster": verdict.cluster, "group": verdict.group.index, "status": verdict.status.name() });
    put(&mut item, "age_s", verdict.since, |since| {
        now().duration_since(since)
    });
    put(&mut item, "recheck_in_s", verdict.due, |due| {
        due.duration_since(now())
    });
    item
}

fn put(
    item: &mut Value,
    field: &str,
    time: Option<Timestamp>,
    distance: impl Fn(Timestamp) -> SignedDuration,
) {
    if let Some(time) = time {
        item[field] = json!(distance(time).as_secs());
    }
}

fn sorted(mut items: Vec<Value>) -> Value {
    items.sort_by_key(|item| item["cluster"].as_str().unwrap().to_owned());
    json!(items)
}

pub(crate) fn classify_one_cluster(case: &Value) -> Result<(), String> {
    let mut text = json!({ "type": "Progressive" });
    for name in ["min_success_s", "progress_deadline"] {
        if !case[name].is_null() {
            text[name] = case[name].clone();
        }
    }
    let rules = Rules::read(&strategy(&text)).map_err(|error| error.to_string())?;
    let status = Status::from_name(case["status"].as_str().unwrap());
    let class = rules.classify(status, since(case), now());
    let list = match class.list {
        List::Rollout => "rollout",
        List::TimedOut => "timed_out",
        List::Neither => "neither",
    };
    let recheck = class.due.map(|due| due.duration_since(now()).as_secs());
    let found = json!({ "list": list, "status": class.status.name(), "recheck_in_s": recheck });
    same("class", &found, expected(case))
}

pub(crate) fn nearest_recheck(case: &Value) -> Result<(), String> {
    let times = case["recheck_in_s"].as_array().unwrap().iter();
    let due = times.filter_map(|seconds| Some(now() + SignedDuration::from_secs(seconds.as_i64()?)));
    let found = nearest(due, now()).as_ref().map(Duration::as_secs);
    same("nearest", &json!(found), expected(case))
}

pub(crate) fn root_compliance(case: &Value) -> Result<(), String> {
    let words = case["clusters"].as_array().unwrap().iter();
    let found = overall_compliance(words.map(|word| word.as_str().unwrap()));
    same("compliance", &json!(found), expected(case))
}

pub(crate) fn root_rollout(case: &Value) -> Result<(), String> {
    let statuses: Vec<Status> = case["clusters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| Status::from_name(name.as_str().unwrap()))
        .collect();
    let found = |breach| {
        let found = overall(statuses.iter().copied(), breach);
        json!(found.map_or("", |overall| overall.name()))
    };
    same("status", &found(false), expected(case))?;
    match case.get("expect_if_breach") {
        Some(expected) => same("status after a breach", &found(true), expected),
        None => Ok(()),
    }
}
