//! Webhooks and admission policies, as far as they are checked without compiling expressions.

use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::{rules, selector};
use crate::access::{items, text};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const FAILURES: [&str; 2] = ["Fail", "Ignore"];
const MATCHES: [&str; 2] = ["Equivalent", "Exact"];

/// A ValidatingWebhookConfiguration or MutatingWebhookConfiguration.
pub(super) fn webhooks(object: &Value, report: &mut Report) {
    let mut names = std::collections::BTreeSet::new();
    for (index, hook) in items(&object["webhooks"]).iter().enumerate() {
        let path = FieldPath::new("webhooks").index(index);
        webhook(hook, &path, report);
        let versions = items(&hook["admissionReviewVersions"]);
        let at = path.child("admissionReviewVersions");
        if versions.is_empty() {
            report.required(&at, "must specify one of v1, v1beta1");
        } else if !versions
            .iter()
            .any(|version| matches!(text(version), "v1" | "v1beta1"))
        {
            let detail = "must include at least one of v1, v1beta1";
            report.invalid(&at, &hook["admissionReviewVersions"], detail);
        }
        let name = text(&hook["name"]);
        if !name.is_empty() && !names.insert(name) {
            report.duplicate(&path.child("name"), &name.into());
        }
    }
}

fn webhook(hook: &Value, path: &FieldPath, report: &mut Report) {
    qualified_host(&hook["name"], &path.child("name"), report);
    for (index, rule) in items(&hook["rules"]).iter().enumerate() {
        rule_with_operations(rule, &path.child("rules").index(index), report);
    }
    report.optional_choice(&path.child("failurePolicy"), &hook["failurePolicy"], &FAILURES);
    report.optional_choice(&path.child("matchPolicy"), &hook["matchPolicy"], &MATCHES);
    if hook["sideEffects"].is_null() {
        report.required(
            &path.child("sideEffects"),
            "must specify one of None, NoneOnDryRun",
        );
    }
    report.optional_choice(
        &path.child("sideEffects"),
        &hook["sideEffects"],
        &["None", "NoneOnDryRun"],
    );
    let timeout = &hook["timeoutSeconds"];
    if timeout
        .as_i64()
        .is_some_and(|seconds| !(1..=30).contains(&seconds))
    {
        report.invalid(
            &path.child("timeoutSeconds"),
            timeout,
            "the timeout value must be between 1 and 30 seconds",
        );
    }
    for key in ["namespaceSelector", "objectSelector"] {
        selector::check(&hook[key], &path.child(key), report);
    }
    let client = &hook["clientConfig"];
    let at = path.child("clientConfig");
    match (!client["url"].is_null(), !client["service"].is_null()) {
        (true, true) | (false, false) => report.required(&at, "exactly one of url or service is required"),
        (true, false) => {
            if !text(&client["url"]).starts_with("https://") {
                let scheme = text(&client["url"]).split("://").next().unwrap_or_default();
                let detail = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
                report.invalid(&at.child("url"), &scheme.into(), detail);
            }
        }
        (false, true) => {
            for key in ["name", "namespace"] {
                if text(&client["service"][key]).is_empty() {
                    report.required(
                        &at.child("service").child(key),
                        &format!("service {key} is required"),
                    );
                }
            }
        }
    }
}

/// A name of at least three parts, such as `hook.example.com`.
fn qualified_host(value: &Value, path: &FieldPath, report: &mut Report) {
    let name = text(value);
    if name.is_empty() {
        report.required(path, "");
        return;
    }
    let messages = rules::dns_subdomain(name);
    if !messages.is_empty() {
        report.invalid(path, value, messages.join(","));
    } else if name.split('.').count() < 3 {
        report.invalid(
            path,
            value,
            "should be a domain with at least three segments separated by dots",
        );
    }
}

fn rule_with_operations(rule: &Value, path: &FieldPath, report: &mut Report) {
    let wild = |list: &Value| items(list).len() > 1 && items(list).iter().any(|one| text(one) == "*");
    let operations = items(&rule["operations"]);
    let at = path.child("operations");
    if operations.is_empty() {
        report.required(&at, "");
    }
    if wild(&rule["operations"]) {
        report.invalid(
            &at,
            &rule["operations"],
            "if '*' is present, must not specify other operations",
        );
    }
    for (index, operation) in operations.iter().enumerate() {
        report.optional_choice(&at.index(index), operation, &OPERATIONS);
    }
    for (key, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        if items(&rule[key]).is_empty() {
            report.required(&path.child(key), "");
        }
        if wild(&rule[key]) {
            let detail = format!("if '*' is present, must not specify other {what}");
            report.invalid(&path.child(key), &rule[key], detail);
        }
    }
    for (index, version) in items(&rule["apiVersions"]).iter().enumerate() {
        if text(version).is_empty() {
            report.required(&path.child("apiVersions").index(index), "");
        }
    }
    if items(&rule["resources"]).is_empty() {
        report.required(&path.child("resources"), "");
    }
    report.optional_choice(
        &path.child("scope"),
        &rule["scope"],
        &["*", "Cluster", "Namespaced"],
    );
}

/// A ValidatingAdmissionPolicy.
pub(super) fn policy(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    report.choice(&path.child("failurePolicy"), &spec["failurePolicy"], &FAILURES);
    if !spec["paramKind"].is_null() {
        for key in ["apiVersion", "kind"] {
            if text(&spec["paramKind"][key]).is_empty() {
                report.required(&path.child("paramKind").child(key), "");
            }
        }
    }
    let at = path.child("matchConstraints");
    if spec["matchConstraints"].is_null() {
        report.required(&at, "");
    } else {
        match_resources(&spec["matchConstraints"], &at, report);
        if items(&spec["matchConstraints"]["resourceRules"]).is_empty() {
            report.required(&at.child("resourceRules"), "");
        }
    }
    let validations = items(&spec["validations"]);
    if validations.is_empty() && items(&spec["auditAnnotations"]).is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        report.required(&path.child("validations"), detail);
        report.required(&path.child("auditAnnotations"), detail);
    }
    for (index, validation) in validations.iter().enumerate() {
        let path = path.child("validations").index(index);
        if text(&validation["expression"]).trim().is_empty() {
            report.required(&path.child("expression"), "expression is not specified");
        }
        let message = text(&validation["message"]);
        if !message.is_empty() && message.trim().is_empty() {
            report.invalid(
                &path.child("message"),
                &message.into(),
                "must be non-empty if specified",
            );
        } else if message.trim().contains('\n') {
            report.invalid(
                &path.child("message"),
                &message.into(),
                "must not contain line breaks",
            );
        }
        let reasons = ["Forbidden", "Invalid", "RequestEntityTooLarge"];
        report.optional_choice(&path.child("reason"), &validation["reason"], &reasons);
    }
}

fn match_resources(resources: &Value, path: &FieldPath, report: &mut Report) {
    report.choice(&path.child("matchPolicy"), &resources["matchPolicy"], &MATCHES);
    for key in ["namespaceSelector", "objectSelector"] {
        if resources[key].is_null() {
            report.required(&path.child(key), "");
        } else {
            selector::check(&resources[key], &path.child(key), report);
        }
    }
    for key in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in items(&resources[key]).iter().enumerate() {
            rule_with_operations(rule, &path.child(key).index(index), report);
        }
    }
}

/// A ValidatingAdmissionPolicyBinding.
pub(super) fn policy_binding(object: &Value, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    match text(&spec["policyName"]) {
        "" => report.required(&path.child("policyName"), ""),
        name => report.messages(&path.child("policyName"), name, rules::dns_subdomain(name)),
    }
    let param = &spec["paramRef"];
    if !param.is_null() {
        let path = path.child("paramRef");
        let named = !text(&param["name"]).is_empty();
        if named && !param["selector"].is_null() {
            report.forbidden(&path.child("name"), "name and selector are mutually exclusive");
            report.forbidden(
                &path.child("selector"),
                "name and selector are mutually exclusive",
            );
        }
        if !named && param["selector"].is_null() {
            report.required(&path, "one of name or selector must be specified");
        }
        let actions = ["Deny", "Allow"];
        report.choice(
            &path.child("parameterNotFoundAction"),
            &param["parameterNotFoundAction"],
            &actions,
        );
    }
    if !spec["matchResources"].is_null() {
        match_resources(&spec["matchResources"], &path.child("matchResources"), report);
    }
    actions(
        &spec["validationActions"],
        &path.child("validationActions"),
        report,
    );
}

fn actions(list: &Value, path: &FieldPath, report: &mut Report) {
    let mut seen = std::collections::BTreeSet::new();
    for (index, action) in items(list).iter().enumerate() {
        report.optional_choice(&path.index(index), action, &["Audit", "Deny", "Warn"]);
        if !seen.insert(text(action)) {
            report.duplicate(&path.index(index), action);
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the \
                      API response and headers serves no purpose)";
        report.invalid(path, list, detail);
    }
    if items(list).is_empty() {
        report.required(path, "at least one validation action is required");
    }
}
