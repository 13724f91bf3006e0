//! Jobs and what starts them.

use machinery_value::Value;

use super::Kind;
use crate::age;
use crate::column::{AGE, Column, NAME};
use crate::view::{
    Context, NONE, at, condition_is_true, containers, count, deleting, flag_or, int, name, present_or, row,
    selector_cell, text,
};

pub(super) const KINDS: &[Kind] = &[
    Kind {
        group: "batch",
        kind: "Job",
        columns: &[
            NAME,
            Column::string("Status"),
            Column::string("Completions"),
            Column::string("Duration"),
            AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
            Column::wide("Selector"),
        ],
        cells: job,
    },
    Kind {
        group: "batch",
        kind: "CronJob",
        columns: &[
            NAME,
            Column::string("Schedule"),
            Column::string("Timezone"),
            Column::boolean("Suspend"),
            Column::integer("Active"),
            Column::string("Last Schedule"),
            AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
            Column::wide("Selector"),
        ],
        cells: cron_job,
    },
];

fn job(object: &Value, context: Context<'_>) -> Vec<Value> {
    let (names, images) = containers(at(object, "spec.template"));
    row![
        name(object),
        status(object),
        completions(object),
        duration(object, context),
        context.age(object),
        names,
        images,
        selector_cell(at(object, "spec.selector")),
    ]
}

fn status(object: &Value) -> &'static str {
    let is = |r#type| condition_is_true(object, "status.conditions", r#type);
    if is("Complete") {
        "Complete"
    } else if is("Failed") {
        "Failed"
    } else if deleting(object) {
        "Terminating"
    } else if is("Suspended") {
        "Suspended"
    } else if is("FailureTarget") {
        "FailureTarget"
    } else if is("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(object: &Value) -> String {
    let succeeded = int(object, "status.succeeded");
    match (
        at(object, "spec.completions").as_i64(),
        at(object, "spec.parallelism").as_i64(),
    ) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        // A work queue: as many workers as given, done when one of them says so.
        (None, Some(parallelism @ 2..)) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn duration(object: &Value, context: Context<'_>) -> String {
    let time = |path| age::time_of(at(object, path));
    match (time("status.startTime"), time("status.completionTime")) {
        (None, _) => String::new(),
        (start, end) => age::since(start, end.unwrap_or(context.now)),
    }
}

fn cron_job(object: &Value, context: Context<'_>) -> Vec<Value> {
    let (names, images) = containers(at(object, "spec.jobTemplate.spec.template"));
    let last_schedule = match at(object, "status.lastScheduleTime") {
        Value::Null => NONE.to_owned(),
        _ => context.since(object, "status.lastScheduleTime"),
    };
    row![
        name(object),
        text(object, "spec.schedule"),
        present_or(object, "spec.timeZone", NONE),
        if flag_or(object, "spec.suspend", false) {
            "True"
        } else {
            "False"
        },
        count(object, "status.active"),
        last_schedule,
        context.age(object),
        names,
        images,
        selector_cell(at(object, "spec.jobTemplate.spec.selector")),
    ]
}
