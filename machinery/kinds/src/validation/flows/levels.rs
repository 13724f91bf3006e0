//! Priority levels.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::conditions;
use crate::access::{is_empty, same, text};
use crate::flows::mandatory_spec;
use crate::validation::report::Report;
use crate::validation::shown;

/// What an older version of the API kept its zeros in.
const KEPT_ZERO: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";
const QUEUES_MAX: i64 = 10_000_000;
/// How many bits of a hash may be used up by dealing queues to a flow.
const HASH_BITS: i64 = 60;

/// A PriorityLevelConfiguration.
pub(in crate::validation) fn priority_level(object: &Value, report: &mut Report) {
    if !object["metadata"]["annotations"][KEPT_ZERO].is_null() {
        let at = FieldPath::new("metadata").child("annotations");
        report.forbidden(&at, format!("annotation '{KEPT_ZERO}' is forbidden"));
    }
    let name = text(&object["metadata"]["name"]);
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    let r#type = text(&spec["type"]);
    if (name == "exempt") != (r#type == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        report.invalid(&path.child("type"), &r#type.into(), detail);
    }
    let (exempt, limited) = (&spec["exempt"], &spec["limited"]);
    match r#type {
        "Exempt" => {
            if !limited.is_null() {
                report.forbidden(&path.child("limited"), "must be nil if the type is not Limited");
            }
            let path = path.child("exempt");
            shares(exempt, &path, report);
            lendable(exempt, &path, report);
        }
        "Limited" => {
            if !exempt.is_null() {
                report.forbidden(&path.child("exempt"), "must be nil if the type is Limited");
            }
            if limited.is_null() {
                report.required(&path.child("limited"), "must not be empty when type is Limited");
            } else {
                limits(limited, &path.child("limited"), report);
            }
        }
        _ => report.not_supported(&path.child("type"), &r#type.into(), &["Exempt", "Limited"]),
    }
    if let Some((fixed, but)) =
        mandatory_spec("PriorityLevelConfiguration", name).map(|fixed| fixed_part(name, fixed))
        && !same(&without(spec, but), &without(fixed, but))
    {
        let but = match but {
            Some(key) => format!(" except the 'spec.{key}' field"),
            None => String::new(),
        };
        let detail = format!("spec of '{name}'{but} must equal the fixed value");
        report.invalid_shown(&path, &shown::priority_level(spec), &detail);
    }
    conditions(object, report);
}

/// What of a mandatory level is fixed: all, but for the numbers of the one that limits nothing.
fn fixed_part<'a>(name: &str, fixed: &'a Value) -> (&'a Value, Option<&'static str>) {
    (fixed, (name == "exempt").then_some("exempt"))
}

fn without(spec: &Value, key: Option<&str>) -> Value {
    let mut spec = spec.clone();
    if let (Some(key), Value::Object(fields)) = (key, &mut spec) {
        fields.remove(key);
    }
    spec
}

fn shares(part: &Value, path: &FieldPath, report: &mut Report) {
    let shares = &part["nominalConcurrencyShares"];
    if shares.as_i64().is_some_and(|shares| shares < 0) {
        let at = path.child("nominalConcurrencyShares");
        report.invalid(&at, shares, "must be a non-negative integer");
    }
}

fn lendable(part: &Value, path: &FieldPath, report: &mut Report) {
    let percent = &part["lendablePercent"];
    if percent
        .as_i64()
        .is_some_and(|percent| !(0..=100).contains(&percent))
    {
        report.invalid(
            &path.child("lendablePercent"),
            percent,
            "must be between 0 and 100, inclusive",
        );
    }
}

fn limits(limited: &Value, path: &FieldPath, report: &mut Report) {
    shares(limited, path, report);
    let at = path.child("limitResponse");
    let response = &limited["limitResponse"];
    let queuing = &response["queuing"];
    match text(&response["type"]) {
        "Reject" => {
            if !queuing.is_null() {
                let detail = "must be nil if limited.limitResponse.type is not Limited";
                report.forbidden(&at.child("queuing"), detail);
            }
        }
        "Queue" => {
            if queuing.is_null() {
                let detail = "must not be empty if limited.limitResponse.type is Limited";
                report.required(&at.child("queuing"), detail);
            } else {
                queues(queuing, &at.child("queuing"), report);
            }
        }
        other => report.not_supported(&at.child("type"), &other.into(), &["Queue", "Reject"]),
    }
    lendable(limited, path, report);
    let percent = &limited["borrowingLimitPercent"];
    if percent.as_i64().is_some_and(|percent| percent < 0) {
        report.invalid(
            &path.child("borrowingLimitPercent"),
            percent,
            "if specified, must be a non-negative integer",
        );
    }
}

fn queues(queuing: &Value, path: &FieldPath, report: &mut Report) {
    let number = |key: &str| {
        if is_empty(&queuing[key]) {
            0
        } else {
            queuing[key].as_i64().unwrap_or_default()
        }
    };
    let (queues, hand, length) = (number("queues"), number("handSize"), number("queueLengthLimit"));
    let mut refuse = |key: &str, value: i64, detail: String| {
        report.invalid(&path.child(key), &value.into(), detail);
    };
    if length <= 0 {
        refuse("queueLengthLimit", length, "must be positive".to_owned());
    }
    if queues <= 0 {
        refuse("queues", queues, "must be positive".to_owned());
    } else if queues > QUEUES_MAX {
        refuse("queues", queues, format!("must not be greater than {QUEUES_MAX}"));
    }
    if hand <= 0 {
        refuse("handSize", hand, "must be positive".to_owned());
    } else if hand > queues {
        refuse(
            "handSize",
            hand,
            format!("should not be greater than queues ({queues})"),
        );
    } else if needs_more_bits(queues, hand) {
        refuse(
            "handSize",
            hand,
            format!(
                "required entropy bits of deckSize {queues} and handSize {hand} should not be greater than {HASH_BITS}"
            ),
        );
    }
}

/// Whether a hand out of so many queues takes more bits than a hash has to give.
#[expect(
    clippy::cast_precision_loss,
    reason = "both numbers have at most 24 bits where it matters, and a float has 52"
)]
fn needs_more_bits(queues: i64, hand: i64) -> bool {
    ((queues as f64).log2() * hand as f64).ceil() > HASH_BITS as f64
}
