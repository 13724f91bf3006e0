//! The workloads of the `apps` group.

use machinery_value::Value;

use super::Kind;
use crate::column::{AGE, Column, NAME};
use crate::view::{
    Context, NONE, at, containers, flag_or, int, int_or, labels, list, name, row, selector, selector_cell,
    text,
};

pub(super) const KINDS: &[Kind] = &[
    Kind {
        group: "apps",
        kind: "Deployment",
        columns: &[
            NAME,
            Column::string("Ready"),
            Column::string("Up-to-date"),
            Column::string("Available"),
            AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
            Column::wide("Selector"),
        ],
        cells: deployment,
    },
    Kind {
        group: "apps",
        kind: "ReplicaSet",
        columns: &[
            NAME,
            Column::integer("Desired"),
            Column::integer("Current"),
            Column::integer("Ready"),
            AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
            Column::wide("Selector"),
        ],
        cells: replica_set,
    },
    Kind {
        group: "apps",
        kind: "StatefulSet",
        columns: &[
            NAME,
            Column::string("Ready"),
            AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
        ],
        cells: stateful_set,
    },
    Kind {
        group: "apps",
        kind: "DaemonSet",
        columns: &[
            NAME,
            Column::integer("Desired"),
            Column::integer("Current"),
            Column::integer("Ready"),
            Column::integer("Up-to-date"),
            Column::integer("Available"),
            Column::string("Node Selector"),
            AGE,
            Column::wide("Containers"),
            Column::wide("Images"),
            Column::wide("Selector"),
        ],
        cells: daemon_set,
    },
    Kind {
        group: "apps",
        kind: "ControllerRevision",
        columns: &[
            NAME,
            Column::string("Controller"),
            Column::string("Revision"),
            AGE,
        ],
        cells: controller_revision,
    },
];

fn ready_of_desired(object: &Value) -> String {
    format!(
        "{}/{}",
        int(object, "status.readyReplicas"),
        int_or(object, "spec.replicas", 1)
    )
}

fn deployment(object: &Value, context: Context<'_>) -> Vec<Value> {
    let (names, images) = containers(at(object, "spec.template"));
    row![
        name(object),
        ready_of_desired(object),
        int(object, "status.updatedReplicas"),
        int(object, "status.availableReplicas"),
        context.age(object),
        names,
        images,
        // Deployments alone leave an empty selector blank and name an invalid one so.
        selector(at(object, "spec.selector")).unwrap_or_else(|| "<invalid>".to_owned()),
    ]
}

fn replica_set(object: &Value, context: Context<'_>) -> Vec<Value> {
    let (names, images) = containers(at(object, "spec.template"));
    row![
        name(object),
        int_or(object, "spec.replicas", 1),
        int(object, "status.replicas"),
        int(object, "status.readyReplicas"),
        context.age(object),
        names,
        images,
        selector_cell(at(object, "spec.selector")),
    ]
}

fn stateful_set(object: &Value, context: Context<'_>) -> Vec<Value> {
    let (names, images) = containers(at(object, "spec.template"));
    row![
        name(object),
        ready_of_desired(object),
        context.age(object),
        names,
        images
    ]
}

fn daemon_set(object: &Value, context: Context<'_>) -> Vec<Value> {
    let (names, images) = containers(at(object, "spec.template"));
    row![
        name(object),
        int(object, "status.desiredNumberScheduled"),
        int(object, "status.currentNumberScheduled"),
        int(object, "status.numberReady"),
        int(object, "status.updatedNumberScheduled"),
        int(object, "status.numberAvailable"),
        labels(at(object, "spec.template.spec.nodeSelector")),
        context.age(object),
        names,
        images,
        selector_cell(at(object, "spec.selector")),
    ]
}

fn controller_revision(object: &Value, context: Context<'_>) -> Vec<Value> {
    let mut owners = list(object, "metadata.ownerReferences").iter();
    let controller = match owners.find(|owner| flag_or(owner, "controller", false)) {
        None => NONE.to_owned(),
        Some(owner) => {
            let kind = match text(owner, "apiVersion").split_once('/') {
                Some((group, _)) => format!("{}.{group}", text(owner, "kind")),
                None => text(owner, "kind").to_owned(),
            };
            format!("{}/{}", kind.to_lowercase(), text(owner, "name"))
        }
    };
    row![
        name(object),
        controller,
        int(object, "revision"),
        context.age(object)
    ]
}
