//! Config maps and secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use machinery_value::field::FieldPath;
use serde_json::Value;

use super::report::Report;
use super::rules;
use crate::access::{entries, text};

/// All values of an object together, in bytes.
const SIZE_MAX: usize = 1024 * 1024;

const FROZEN: &str = "field is immutable when `immutable` is set";

/// A ConfigMap.
pub(super) fn config_map(object: &Value, report: &mut Report) {
    let mut size = 0;
    for (key, value) in entries(&object["data"]) {
        let path = FieldPath::new("data").key(key);
        report.messages(&path, key, rules::config_key(key));
        if !object["binaryData"][key].is_null() {
            report.invalid(
                &path,
                &key.as_str().into(),
                "duplicate of key present in binaryData",
            );
        }
        size += text(value).len();
    }
    for (key, value) in entries(&object["binaryData"]) {
        report.messages(
            &FieldPath::new("binaryData").key(key),
            key,
            rules::config_key(key),
        );
        size += decoded_len(text(value));
    }
    if size > SIZE_MAX {
        report.too_long_nowhere(SIZE_MAX);
    }
}

/// How many bytes a base64 text stands for.
fn decoded_len(text: &str) -> usize {
    let text = text.trim_end_matches('=');
    text.len() * 3 / 4
}

/// A ConfigMap that changes.
pub(super) fn config_map_update(new: &Value, old: &Value, report: &mut Report) {
    frozen(new, old, &["data", "binaryData"], report);
}

fn frozen(new: &Value, old: &Value, keys: &[&str], report: &mut Report) {
    if old["immutable"] != Value::Bool(true) {
        return;
    }
    if new["immutable"] != Value::Bool(true) {
        report.forbidden(&FieldPath::new("immutable"), FROZEN);
    }
    for key in keys {
        if !crate::access::same(&new[*key], &old[*key]) {
            report.forbidden(&FieldPath::new(key), FROZEN);
        }
    }
}

/// A Secret.
pub(super) fn secret(object: &Value, report: &mut Report) {
    let path = FieldPath::new("data");
    let data = &object["data"];
    let mut size = 0;
    for (key, value) in entries(data) {
        report.messages(&path.key(key), key, rules::config_key(key));
        size += decoded_len(text(value));
    }
    if size > SIZE_MAX {
        report.too_long(&path, SIZE_MAX);
    }
    let mut needs = |key: &str, there: bool| {
        if !there {
            report.required(&path.key(key), "");
        }
    };
    match text(&object["type"]) {
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            if text(&object["metadata"]["annotations"][key]).is_empty() {
                report.required(&FieldPath::new("metadata").child("annotations").key(key), "");
            }
        }
        "kubernetes.io/dockercfg" => docker(data, ".dockercfg", &path, report),
        "kubernetes.io/dockerconfigjson" => docker(data, ".dockerconfigjson", &path, report),
        "kubernetes.io/basic-auth" => {
            let either = !data["username"].is_null() || !data["password"].is_null();
            needs("username", either);
            needs("password", either);
        }
        "kubernetes.io/ssh-auth" => needs("ssh-privatekey", !text(&data["ssh-privatekey"]).is_empty()),
        "kubernetes.io/tls" => {
            needs("tls.crt", !data["tls.crt"].is_null());
            needs("tls.key", !data["tls.key"].is_null());
        }
        _ => {}
    }
}

/// The credentials of a registry are a JSON object; they are not shown.
fn docker(data: &Value, key: &str, path: &FieldPath, report: &mut Report) {
    let path = path.key(key);
    let Some(encoded) = data[key].as_str() else {
        report.required(&path, "");
        return;
    };
    let Ok(bytes) = STANDARD.decode(encoded) else {
        return;
    };
    let problem = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(_) => "json: cannot unmarshal value into Go value of type map[string]interface {}".to_owned(),
        Err(error) if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Err(_) => {
            let start = bytes
                .iter()
                .find(|byte| !byte.is_ascii_whitespace())
                .copied()
                .unwrap_or(b' ');
            format!(
                "invalid character '{}' looking for beginning of value",
                char::from(start)
            )
        }
    };
    report.invalid(&path, &"<secret contents redacted>".into(), problem);
}

/// A Secret that changes.
pub(super) fn secret_update(new: &Value, old: &Value, report: &mut Report) {
    report.immutable_text(&FieldPath::new("type"), &new["type"], &old["type"]);
    frozen(new, old, &["data"], report);
}
