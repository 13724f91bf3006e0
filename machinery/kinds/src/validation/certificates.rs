//! Requests for certificates. Whether the request itself can be read, and was signed with its key, is for the caller to
//! see: it takes cryptography.

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::rules;
use crate::access::{is_empty, items, same, text};

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// The conditions that somebody decides by, and that stay once they are there.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

/// The way on which a request changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Object,
    Status,
    Approval,
}

/// A new CertificateSigningRequest.
pub(super) fn signing_request(object: &Value, report: &mut Report) {
    whole(object, None, report);
}

fn whole(object: &Value, old: Option<&Value>, report: &mut Report) {
    let path = FieldPath::new("spec");
    let spec = &object["spec"];
    usages(&spec["usages"], &path.child("usages"), report);
    signer(text(&spec["signerName"]), &path.child("signerName"), report);
    let seconds = &spec["expirationSeconds"];
    if seconds.as_i64().is_some_and(|seconds| seconds < 600) {
        report.invalid(
            &path.child("expirationSeconds"),
            seconds,
            "may not specify a duration less than 600 seconds (10 minutes)",
        );
    }
    conditions(object, old, report);
    let certificate = &object["status"]["certificate"];
    if !old.is_some_and(|old| same(&old["status"]["certificate"], certificate))
        && let Some(problem) = certificate_problem(text(certificate))
    {
        let at = FieldPath::new("status").child("certificate");
        report.invalid(&at, &"<certificate data>".into(), problem);
    }
}

fn usages(usages: &Value, path: &FieldPath, report: &mut Report) {
    if is_empty(usages) {
        report.required(path, "");
    }
    for (index, usage) in items(usages).iter().enumerate() {
        if !USAGES.contains(&text(usage)) {
            report.not_supported(&path.index(index), usage, &USAGES);
        }
    }
    let mut seen = BTreeSet::new();
    for (index, usage) in items(usages).iter().enumerate() {
        if !seen.insert(text(usage)) {
            report.duplicate(&path.index(index), usage);
        }
    }
}

/// Who signs: a domain, a slash, and a name.
fn signer(name: &str, path: &FieldPath, report: &mut Report) {
    if name == "kubernetes.io/legacy-unknown" {
        let detail = "the legacy signerName is not allowed via this API version";
        report.invalid(path, &name.into(), detail);
        return;
    }
    if name.is_empty() {
        report.required(path, "");
        return;
    }
    let parts: Vec<&str> = name.split('/').collect();
    let [domain, rest] = parts[..] else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        report.invalid(path, &name.into(), detail);
        return;
    };
    if domain.len() > 253 {
        report.too_long(path, 253);
    }
    let labels = |whole: &str, check: fn(&str) -> Vec<String>, report: &mut Report| {
        let wrong = whole.split('.').map(|label| (label, check(label)));
        // One wrong label is enough: what follows would read the same.
        if let Some((label, messages)) = wrong.into_iter().find(|(_, messages)| !messages.is_empty()) {
            for message in messages {
                let detail = format!("validating label {label:?}: {message}");
                report.invalid(path, &whole.into(), detail);
            }
        }
    };
    labels(domain, rules::dns_label, report);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        report.invalid(path, &domain.into(), detail);
    }
    labels(rest, rules::dns_subdomain, report);
    let (rest_max, name_max) = (253 + 63 + 1, 253 + 1 + 253 + 63 + 1);
    if name.len() > name_max {
        report.too_long(path, rest_max);
    }
}

fn of_type<'a>(object: &'a Value, r#type: &str) -> Vec<&'a Value> {
    items(&object["status"]["conditions"])
        .iter()
        .filter(|condition| text(&condition["type"]) == r#type)
        .collect()
}

fn conditions(object: &Value, old: Option<&Value>, report: &mut Report) {
    let path = FieldPath::new("status").child("conditions");
    let is_both = |object: &Value| {
        DECISIONS
            .iter()
            .all(|decision| !of_type(object, decision).is_empty())
    };
    let had_both = old.is_some_and(is_both);
    let mut decided = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for (index, condition) in items(&object["status"]["conditions"]).iter().enumerate() {
        let path_here = path.index(index);
        let r#type = text(&condition["type"]);
        if r#type.is_empty() {
            report.required(&path_here.child("type"), "");
        }
        let allowed: &[&str] = if matches!(r#type, "Approved" | "Denied" | "Failed") {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        report.choice(&path_here.child("status"), &condition["status"], allowed);
        if DECISIONS.contains(&r#type) {
            decided.insert(r#type);
            if decided.len() == DECISIONS.len() && !had_both {
                let detail = "Approved and Denied conditions are mutually exclusive";
                report.invalid(&path, &r#type.into(), detail);
            }
        }
        if !seen.insert(r#type) {
            report.duplicate(&path_here.child("type"), &r#type.into());
        }
    }
}

/// What is wrong with a certificate: PEM blocks of certificates and nothing else.
fn certificate_problem(encoded: &str) -> Option<String> {
    let bytes = STANDARD.decode(encoded).ok()?;
    if bytes.is_empty() {
        return None;
    }
    let written = String::from_utf8_lossy(&bytes);
    let mut blocks = 0;
    for start in written.match_indices("-----BEGIN ").map(|(at, _)| at) {
        let label = written[start + "-----BEGIN ".len()..].split("-----").next()?;
        if label != "CERTIFICATE" {
            return Some(format!(
                "only CERTIFICATE PEM blocks are allowed, found {label:?}"
            ));
        }
        blocks += 1;
    }
    (blocks == 0).then(|| "must contain at least one CERTIFICATE PEM block".to_owned())
}

/// A CertificateSigningRequest that changes.
pub(super) fn signing_request_update(new: &Value, old: &Value, way: Way, report: &mut Report) {
    whole(new, Some(old), report);
    let path = FieldPath::new("status").child("conditions");
    for r#type in ["Approved", "Denied", "Failed"] {
        if of_type(new, r#type).len() < of_type(old, r#type).len() {
            let detail = format!("updates may not remove a condition of type {type:?}");
            report.forbidden(&path, detail);
        }
    }
    if way != Way::Approval {
        for r#type in DECISIONS {
            let (now, before) = (of_type(new, r#type), of_type(old, r#type));
            if now.len() > before.len() {
                let detail = format!("updates may not add a condition of type {type:?}");
                report.forbidden(&path, detail);
            } else if now.len() == before.len() && now != before {
                let detail = format!("updates may not modify a condition of type {type:?}");
                report.forbidden(&path, detail);
            }
        }
    }
    let certificate = |object: &Value| object["status"]["certificate"].clone();
    if !same(&certificate(new), &certificate(old)) {
        let path = FieldPath::new("status").child("certificate");
        if way != Way::Status {
            report.forbidden(&path, "updates may not set certificate content");
        } else if !is_empty(&certificate(old)) {
            report.forbidden(&path, "updates may not modify existing certificate content");
        }
    }
}
