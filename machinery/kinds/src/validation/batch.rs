//! Jobs and cron jobs.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::{IMMUTABLE, Report};
use super::{cron, pod, rules, selector, shown};
use crate::access::{object_at, same, text};

/// A Job.
pub(super) fn job(object: &Value, report: &mut Report) {
    generated_selector(object, report);
    let path = FieldPath::new("spec");
    spec_with_selector(&object["spec"], &path, report);
    let completions = object["spec"]["completions"].as_i64().unwrap_or_default();
    if text(&object["spec"]["completionMode"]) == "Indexed" && completions > 0 {
        let name = text(&object["metadata"]["name"]);
        let host = format!("{name}-{}", completions - 1);
        if !rules::dns_label(&host).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {host}");
            report.invalid(&FieldPath::new("metadata").child("name"), &name.into(), detail);
        }
    }
}

fn generated_selector(job: &Value, report: &mut Report) {
    let spec = &job["spec"];
    if spec["manualSelector"] == Value::Bool(true) || spec["selector"].is_null() {
        return;
    }
    let (uid, name) = (text(&job["metadata"]["uid"]), text(&job["metadata"]["name"]));
    let path = FieldPath::new("spec")
        .child("template")
        .child("metadata")
        .child("labels");
    let labels = &spec["template"]["metadata"]["labels"];
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    for (key, value) in expected {
        match labels[key].as_str() {
            None => report.required(&path.key(key), &format!("must be '{value}'")),
            Some(now) if now != value => {
                report.invalid(&path.key(key), labels, format!("must be '{value}'"));
            }
            Some(_) => {}
        }
    }
    let own: Value = expected
        .iter()
        .map(|(key, value)| ((*key).to_owned(), Value::from(*value)))
        .collect();
    if selector::matches(&spec["selector"], &own) == Some(false) {
        let at = FieldPath::new("spec").child("selector");
        report.invalid_shown(
            &at,
            &shown::selector(&spec["selector"]),
            "`selector` not auto-generated",
        );
    }
}

fn spec_with_selector(spec: &Value, path: &FieldPath, report: &mut Report) {
    job_spec(spec, path, report);
    if spec["selector"].is_null() {
        report.required(&path.child("selector"), "");
    } else {
        selector::check(&spec["selector"], &path.child("selector"), report);
    }
    let labels = &spec["template"]["metadata"]["labels"];
    if selector::matches(&spec["selector"], labels) == Some(false) {
        let at = path.child("template").child("metadata").child("labels");
        report.invalid(&at, labels, "`selector` does not match template `labels`");
    }
}

fn job_spec(spec: &Value, path: &FieldPath, report: &mut Report) {
    const NUMBERS: [&str; 7] = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    for key in NUMBERS {
        report.nonnegative(&path.child(key), &spec[key]);
    }
    if !spec["maxFailedIndexes"].is_null() && spec["backoffLimitPerIndex"].is_null() {
        report.required(
            &path.child("backoffLimitPerIndex"),
            "when maxFailedIndexes is specified",
        );
    }
    report.optional_choice(
        &path.child("completionMode"),
        &spec["completionMode"],
        &["NonIndexed", "Indexed"],
    );
    if text(&spec["completionMode"]) == "Indexed" {
        if spec["completions"].is_null() {
            report.required(&path.child("completions"), "when completion mode is Indexed");
        }
    } else if matches!(text(&spec["completionMode"]), "" | "NonIndexed") {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if !spec[key].is_null() {
                report.invalid(&path.child(key), &spec[key], "requires indexed completion mode");
            }
        }
    }
    let replace = ["Failed", "TerminatingOrFailed"];
    let allowed = if spec["podFailurePolicy"].is_null() {
        &replace[..]
    } else {
        &replace[..1]
    };
    report.optional_choice(
        &path.child("podReplacementPolicy"),
        &spec["podReplacementPolicy"],
        allowed,
    );
    let template = path.child("template");
    pod::template(&spec["template"], &[], &template, report);
    let restart = &spec["template"]["spec"]["restartPolicy"];
    let at = template.child("spec").child("restartPolicy");
    match text(restart) {
        "Always" | "" => report.required(&at, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if !spec["podFailurePolicy"].is_null() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            report.invalid(&at, restart, detail);
        }
        "OnFailure" | "Never" => {}
        _ => report.not_supported(&at, restart, &["OnFailure", "Never"]),
    }
}

/// A Job that changes.
pub(super) fn job_update(new: &Value, old: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let (new_spec, old_spec) = (&new["spec"], &old["spec"]);
    spec_with_selector(new_spec, &path, report);
    completions(new_spec, old_spec, &path.child("completions"), report);
    if !same(&new_spec["selector"], &old_spec["selector"]) {
        report.invalid_shown(
            &path.child("selector"),
            &shown::selector(&new_spec["selector"]),
            IMMUTABLE,
        );
    }
    template_update(new_spec, old, &path.child("template"), report);
    for key in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        report.immutable(&path.child(key), &new_spec[key], &old_spec[key]);
    }
}

fn completions(new: &Value, old: &Value, path: &FieldPath, report: &mut Report) {
    if text(&new["completionMode"]) != "Indexed" {
        report.immutable(path, &new["completions"], &old["completions"]);
    } else if !same(&new["completions"], &old["completions"])
        && !new["completions"].is_null()
        && new["completions"] != new["parallelism"]
    {
        report.invalid(
            path,
            &new["completions"],
            "can only be modified in tandem with spec.parallelism",
        );
    }
}

/// The template is fixed, except for where pods run while the job is suspended and has never started.
fn template_update(new: &Value, old: &Value, path: &FieldPath, report: &mut Report) {
    let old_spec = &old["spec"];
    let suspended = old_spec["suspend"] == Value::Bool(true);
    let movable = suspended && old["status"]["startTime"].is_null();
    let fixed = |spec: &Value| {
        let mut template = spec["template"].clone();
        if !movable {
            return template;
        }
        if let Some(meta) = object_at(&mut template, "metadata") {
            meta.remove("labels");
            meta.remove("annotations");
        }
        if let Some(pod) = object_at(&mut template, "spec") {
            for key in ["nodeSelector", "tolerations", "schedulingGates"] {
                pod.remove(key);
            }
            if let Some(Value::Object(affinity)) = pod.get_mut("affinity") {
                affinity.remove("nodeAffinity");
            }
        }
        template
    };
    if !same(&fixed(new), &fixed(old_spec)) {
        report.invalid(path, &new["template"], IMMUTABLE);
    }
}

/// A CronJob.
pub(super) fn cron_job(object: &Value, old: Option<&Value>, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    let schedule = text(&spec["schedule"]);
    let at = path.child("schedule");
    if schedule.is_empty() {
        report.required(&at, "");
    } else {
        if let Err(problem) = cron::parse(schedule) {
            report.invalid(&at, &schedule.into(), problem);
        }
        let before = old.is_some_and(|old| text(&old["spec"]["schedule"]).contains("TZ"));
        if schedule.contains("TZ") {
            if !before {
                let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
                report.invalid(&at, &schedule.into(), detail);
            } else if !spec["timeZone"].is_null() {
                let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
                report.invalid(&at, &schedule.into(), detail);
            }
        }
    }
    report.nonnegative(
        &path.child("startingDeadlineSeconds"),
        &spec["startingDeadlineSeconds"],
    );
    if old.is_none_or(|old| old["spec"]["timeZone"] != spec["timeZone"]) {
        time_zone(&spec["timeZone"], &path.child("timeZone"), report);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    report.choice(
        &path.child("concurrencyPolicy"),
        &spec["concurrencyPolicy"],
        &policies,
    );
    let at = path.child("jobTemplate").child("spec");
    let job = &spec["jobTemplate"]["spec"];
    job_spec(job, &at, report);
    if !job["selector"].is_null() {
        let shown = shown::selector(&job["selector"]);
        report.invalid_shown(&at.child("selector"), &shown, "`selector` will be auto-generated");
    }
    if job["manualSelector"] == Value::Bool(true) {
        report.not_supported(
            &at.child("manualSelector"),
            &job["manualSelector"],
            &["nil", "false"],
        );
    }
    report.nonnegative(
        &path.child("successfulJobsHistoryLimit"),
        &spec["successfulJobsHistoryLimit"],
    );
    report.nonnegative(
        &path.child("failedJobsHistoryLimit"),
        &spec["failedJobsHistoryLimit"],
    );
    let name = text(&object["metadata"]["name"]);
    if old.is_none() && name.len() > 52 {
        let at = FieldPath::new("metadata").child("name");
        report.invalid(&at, &name.into(), "must be no more than 52 characters");
    }
}

/// The form of a time zone's name; whether it exists is not known here.
fn time_zone(zone: &Value, path: &FieldPath, report: &mut Report) {
    let Some(name) = zone.as_str() else { return };
    if name.is_empty() {
        report.invalid(path, zone, "timeZone must be nil or non-empty string");
        return;
    }
    let sound = |part: &str| {
        !matches!(part, "." | "..")
            && !part.starts_with('-')
            && (1..=14).contains(&part.len())
            && part
                .bytes()
                .all(|c| c.is_ascii_alphanumeric() || b".-_+".contains(&c))
    };
    if !name.split('/').all(sound) {
        report.invalid(path, zone, format!("unknown time zone {name}"));
    } else if name.eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        report.invalid(path, zone, detail);
    }
}
