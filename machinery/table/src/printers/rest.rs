//! Kinds of the smaller groups.

use machinery_value::Value;

use super::Kind;
use crate::age::human_duration;
use crate::column::{AGE, Column, NAME};
use crate::view::{
    Context, NONE, UNSET, at, condition, deleting, flag_or, int, int_or_string, list, name, present_or, row,
    text, text_or, three_of,
};

pub(super) const KINDS: &[Kind] = &[
    Kind {
        group: "policy",
        kind: "PodDisruptionBudget",
        columns: &[
            NAME,
            Column::string("Min Available"),
            Column::string("Max Unavailable"),
            Column::integer("Allowed Disruptions"),
            AGE,
        ],
        cells: disruption_budget,
    },
    Kind {
        group: "scheduling.k8s.io",
        kind: "PriorityClass",
        columns: &[
            NAME,
            Column::integer("Value"),
            Column::boolean("Global-Default"),
            AGE,
            Column::string("PreemptionPolicy"),
        ],
        cells: priority_class,
    },
    Kind {
        group: "scheduling.k8s.io",
        kind: "Workload",
        columns: &[NAME, AGE],
        cells: name_and_age,
    },
    Kind {
        group: "coordination.k8s.io",
        kind: "Lease",
        columns: &[NAME, Column::string("Holder"), AGE],
        cells: lease,
    },
    Kind {
        group: "coordination.k8s.io",
        kind: "LeaseCandidate",
        columns: &[
            NAME,
            Column::string("LeaseName"),
            Column::string("BinaryVersion"),
            Column::string("EmulationVersion"),
            AGE,
        ],
        cells: lease_candidate,
    },
    Kind {
        group: "node.k8s.io",
        kind: "RuntimeClass",
        columns: &[NAME, Column::string("Handler"), AGE],
        cells: runtime_class,
    },
    Kind {
        group: "flowcontrol.apiserver.k8s.io",
        kind: "FlowSchema",
        columns: &[
            NAME,
            Column::string("PriorityLevel"),
            Column::string("MatchingPrecedence"),
            Column::string("DistinguisherMethod"),
            AGE,
            Column::string("MissingPL"),
        ],
        cells: flow_schema,
    },
    Kind {
        group: "flowcontrol.apiserver.k8s.io",
        kind: "PriorityLevelConfiguration",
        columns: &[
            NAME,
            Column::string("Type"),
            Column::string("NominalConcurrencyShares"),
            Column::string("Queues"),
            Column::string("HandSize"),
            Column::string("QueueLengthLimit"),
            AGE,
        ],
        cells: priority_level,
    },
    Kind {
        group: "certificates.k8s.io",
        kind: "CertificateSigningRequest",
        columns: &[
            NAME,
            AGE,
            Column::string("SignerName"),
            Column::string("Requestor"),
            Column::string("RequestedDuration"),
            Column::string("Condition"),
        ],
        cells: signing_request,
    },
    Kind {
        group: "apiregistration.k8s.io",
        kind: "APIService",
        columns: &[NAME, Column::string("Service"), Column::string("Available"), AGE],
        cells: api_service,
    },
    Kind {
        group: "resource.k8s.io",
        kind: "DeviceClass",
        columns: &[NAME, AGE],
        cells: name_and_age,
    },
    Kind {
        group: "resource.k8s.io",
        kind: "ResourceClaim",
        columns: &[NAME, Column::string("State"), AGE],
        cells: resource_claim,
    },
    Kind {
        group: "resource.k8s.io",
        kind: "ResourceClaimTemplate",
        columns: &[NAME, AGE],
        cells: name_and_age,
    },
    Kind {
        group: "resource.k8s.io",
        kind: "ResourceSlice",
        columns: &[
            NAME,
            Column::string("Node"),
            Column::string("Driver"),
            Column::string("Pool"),
            AGE,
        ],
        cells: resource_slice,
    },
    Kind {
        group: "internal.apiserver.k8s.io",
        kind: "StorageVersion",
        columns: &[
            NAME,
            Column::string("CommonEncodingVersion"),
            Column::string("StorageVersions"),
            AGE,
        ],
        cells: storage_version,
    },
];

fn name_and_age(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![name(object), context.age(object)]
}

fn disruption_budget(object: &Value, context: Context<'_>) -> Vec<Value> {
    let bound = |path| int_or_string(at(object, path)).unwrap_or_else(|| "N/A".to_owned());
    row![
        name(object),
        bound("spec.minAvailable"),
        bound("spec.maxUnavailable"),
        int(object, "status.disruptionsAllowed"),
        context.age(object),
    ]
}

fn priority_class(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        int(object, "value"),
        flag_or(object, "globalDefault", false),
        context.age(object),
        present_or(object, "preemptionPolicy", "PreemptLowerPriority"),
    ]
}

fn lease(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        text(object, "spec.holderIdentity"),
        context.age(object)
    ]
}

fn lease_candidate(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        text(object, "spec.leaseName"),
        text(object, "spec.binaryVersion"),
        text(object, "spec.emulationVersion"),
        context.age(object),
    ]
}

fn runtime_class(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![name(object), text(object, "handler"), context.age(object)]
}

fn flow_schema(object: &Value, context: Context<'_>) -> Vec<Value> {
    let method = match at(object, "spec.distinguisherMethod") {
        Value::Null => NONE,
        method => text(method, "type"),
    };
    let dangling = condition(object, "status.conditions", "Dangling");
    row![
        name(object),
        text(object, "spec.priorityLevelConfiguration.name"),
        int(object, "spec.matchingPrecedence"),
        method,
        context.age(object),
        dangling.map_or("?", |condition| text(condition, "status")),
    ]
}

fn priority_level(object: &Value, context: Context<'_>) -> Vec<Value> {
    let limited = at(object, "spec.limited");
    let queuing = at(limited, "limitResponse.queuing");
    let number = |part: &Value, field| match part {
        Value::Null => Value::from(NONE),
        _ => Value::from(int(part, field)),
    };
    row![
        name(object),
        text(object, "spec.type"),
        number(limited, "nominalConcurrencyShares"),
        number(queuing, "queues"),
        number(queuing, "handSize"),
        number(queuing, "queueLengthLimit"),
        context.age(object),
    ]
}

fn signing_request(object: &Value, context: Context<'_>) -> Vec<Value> {
    let has = |r#type| condition(object, "status.conditions", r#type).is_some();
    let mut state = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        state += ",Failed";
    }
    if !text(object, "status.certificate").is_empty() {
        state += ",Issued";
    }
    let duration = at(object, "spec.expirationSeconds").as_i64().map_or_else(
        || NONE.to_owned(),
        |seconds| human_duration(jiff::SignedDuration::from_secs(seconds)),
    );
    row![
        name(object),
        context.age(object),
        text_or(object, "spec.signerName", NONE),
        text(object, "spec.username"),
        duration,
        state,
    ]
}

fn api_service(object: &Value, context: Context<'_>) -> Vec<Value> {
    let service = match at(object, "spec.service") {
        Value::Null => "Local".to_owned(),
        service => format!("{}/{}", text(service, "namespace"), text(service, "name")),
    };
    let available = condition(object, "status.conditions", "Available").map_or_else(
        || "Unknown".to_owned(),
        |available| match (text(available, "status"), text(available, "reason")) {
            ("True", _) => "True".to_owned(),
            (status, "") => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        },
    );
    row![name(object), service, available, context.age(object)]
}

fn resource_claim(object: &Value, context: Context<'_>) -> Vec<Value> {
    let allocated = !at(object, "status.allocation").is_null();
    let states = [
        (deleting(object), "deleted"),
        (!allocated && !deleting(object), "pending"),
        (allocated, "allocated"),
        (
            allocated && !list(object, "status.reservedFor").is_empty(),
            "reserved",
        ),
    ];
    let states: Vec<&str> = states
        .iter()
        .filter(|(holds, _)| *holds)
        .map(|(_, state)| *state)
        .collect();
    row![name(object), states.join(","), context.age(object)]
}

fn resource_slice(object: &Value, context: Context<'_>) -> Vec<Value> {
    row![
        name(object),
        text(object, "spec.nodeName"),
        text(object, "spec.driver"),
        text(object, "spec.pool.name"),
        context.age(object),
    ]
}

fn storage_version(object: &Value, context: Context<'_>) -> Vec<Value> {
    let versions: Vec<String> = list(object, "status.storageVersions")
        .iter()
        .map(|version| {
            format!(
                "{}={}",
                text(version, "apiServerID"),
                text(version, "encodingVersion")
            )
        })
        .collect();
    row![
        name(object),
        present_or(object, "status.commonEncodingVersion", UNSET),
        three_of(&versions),
        context.age(object),
    ]
}
