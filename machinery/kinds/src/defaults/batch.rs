//! Jobs.

use serde_json::Value;

use super::pod;
use crate::access::{Object, each, is_empty, make, set, set_text, with};

/// A Job, except for its generated selector (see [`crate::strategy::prepare_create`]).
pub(super) fn job(object: &mut Object) {
    make(object, "spec", |spec| {
        // One pod, unless the client says how many: then only the parallelism is filled in.
        if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
            set(spec, "completions", 1);
        }
        set(spec, "parallelism", 1);
        let per_index = spec.contains_key("backoffLimitPerIndex");
        set(
            spec,
            "backoffLimit",
            if per_index { i64::from(i32::MAX) } else { 6 },
        );
        set(spec, "completionMode", "NonIndexed");
        set(spec, "suspend", false);
        set(spec, "manualSelector", false);
        let replace = if spec.contains_key("podFailurePolicy") {
            "Failed"
        } else {
            "TerminatingOrFailed"
        };
        set(spec, "podReplacementPolicy", replace);
        failure_policy(spec);
        pod::template(spec);
    });
    make(object, "status", |_| {});
    let labels = object
        .get("spec")
        .map(|spec| spec["template"]["metadata"]["labels"].clone());
    if let Some(labels) = labels.filter(Value::is_object) {
        make(object, "metadata", |metadata| {
            if metadata.get("labels").is_none_or(is_empty) {
                metadata.insert("labels".to_owned(), labels);
            }
        });
    }
}

fn failure_policy(spec: &mut Object) {
    with(spec, "podFailurePolicy", |policy| {
        each(policy, "rules", |rule| {
            each(rule, "onPodConditions", |condition| {
                set_text(condition, "status", "True")
            });
        });
    });
}

/// A CronJob: the job inside is a template and gets its defaults when it becomes a Job.
pub(super) fn cron_job(object: &mut Object) {
    make(object, "spec", |spec| {
        set_text(spec, "concurrencyPolicy", "Allow");
        set(spec, "suspend", false);
        set(spec, "successfulJobsHistoryLimit", 3);
        set(spec, "failedJobsHistoryLimit", 1);
        make(spec, "jobTemplate", |template| {
            make(template, "metadata", |_| {});
            make(template, "spec", |job| {
                failure_policy(job);
                pod::template(job);
            });
        });
    });
    make(object, "status", |_| {});
}
