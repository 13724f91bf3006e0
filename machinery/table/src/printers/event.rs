//! Events, in both of the groups that serve them.

use machinery_value::Value;

use super::Kind;
use crate::age;
use crate::column::{Column, WIDE_NAME};
use crate::view::{Context, at, int, name, row, text, text_or};

const COLUMNS: &[Column] = &[
    Column::string("Last Seen"),
    Column::string("Type"),
    Column::string("Reason"),
    Column::string("Object"),
    Column::wide("Subobject"),
    Column::wide("Source"),
    Column::string("Message"),
    Column::wide("First Seen"),
    Column::wide("Count"),
    WIDE_NAME,
];

pub(super) const KINDS: &[Kind] = &[
    Kind {
        group: "",
        kind: "Event",
        columns: COLUMNS,
        cells: core_event,
    },
    Kind {
        group: "events.k8s.io",
        kind: "Event",
        columns: COLUMNS,
        cells: new_event,
    },
];

/// Where one of the two groups keeps what both have.
struct Fields {
    object: &'static str,
    message: &'static str,
    source: &'static str,
    controller: &'static str,
    first: &'static str,
    last: &'static str,
    count: &'static str,
}

fn core_event(object: &Value, context: Context<'_>) -> Vec<Value> {
    let fields = Fields {
        object: "involvedObject",
        message: "message",
        source: "source",
        controller: "reportingComponent",
        first: "firstTimestamp",
        last: "lastTimestamp",
        count: "count",
    };
    event(object, &fields, context)
}

fn new_event(object: &Value, context: Context<'_>) -> Vec<Value> {
    let fields = Fields {
        object: "regarding",
        message: "note",
        source: "deprecatedSource",
        controller: "reportingController",
        first: "deprecatedFirstTimestamp",
        last: "deprecatedLastTimestamp",
        count: "deprecatedCount",
    };
    event(object, &fields, context)
}

fn event(object: &Value, fields: &Fields, context: Context<'_>) -> Vec<Value> {
    let time = |path| age::time_of(at(object, path));
    let first = time(fields.first).or_else(|| time("eventTime"));
    let mut last = time(fields.last).or(first);
    // An event that was written once and is no series has no count.
    let mut count = int(object, fields.count).max(1);
    if !at(object, "series").is_null() {
        last = time("series.lastObservedTime");
        count = int(object, "series.count");
    }

    let regarding = at(object, fields.object);
    let kind = text(regarding, "kind").to_lowercase();
    let target = match text(regarding, "name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };

    let source = at(object, fields.source);
    let component = text_or(source, "component", text(object, fields.controller));
    let source = match text_or(source, "host", text(object, "reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    };

    row![
        age::since(last, context.now),
        text(object, "type"),
        text(object, "reason"),
        target,
        text(regarding, "fieldPath"),
        source,
        text(object, fields.message).trim(),
        age::since(first, context.now),
        count,
        name(object),
    ]
}
