//! Objects compared with templates.

use lockgate_engine::comply::Compliance;
use lockgate_engine::comply::compare::{Mode, compare_field};
use serde_json::{Value, json};

use super::same;

/// One field, strictly and leniently, and what would be sent.
pub(crate) fn object_match(case: &Value) -> Result<(), String> {
    let compliance = match case["compliance_type"].as_str().unwrap() {
        "musthave" => Compliance::MustHave,
        "mustonlyhave" => Compliance::MustOnlyHave,
        other => return Err(format!("unknown complianceType {other:?}")),
    };
    let compare = |mode| compare_field(&case["template_value"], &case["live_value"], compliance, mode);
    let (strict, lenient) = (compare(Mode::Strict)?, compare(Mode::Lenient)?);
    let word = |matches: bool| if matches { "match" } else { "mismatch" };
    let found = json!({
        "result": word(strict.found.matches),
        "needs_dry_run": strict.found.needs_dry_run(),
    });
    same("named_strict", &found, &case["named_strict"])?;
    same("merged_value", &strict.merged, &case["merged_value"])?;
    let found = json!({"result": word(lenient.found.matches)});
    same("unnamed_lenient", &found, &case["unnamed_lenient"])
}

/// Answers that are wrong for a case, as the fields that are replaced in it.
pub(crate) fn wrong_answers(case: &Value) -> Vec<Value> {
    let turned = |result: &Value| if *result == "match" { "mismatch" } else { "match" };
    let strict = &case["named_strict"];
    let dry_run = strict["needs_dry_run"] == true;
    vec![
        json!({"named_strict": {"result": turned(&strict["result"]), "needs_dry_run": dry_run}}),
        json!({"named_strict": {"result": strict["result"], "needs_dry_run": !dry_run}}),
        json!({"unnamed_lenient": {"result": turned(&case["unnamed_lenient"]["result"])}}),
        json!({"merged_value": {"other": case["merged_value"]}}),
    ]
}
