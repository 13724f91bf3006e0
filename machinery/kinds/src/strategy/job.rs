//! The selector that the server makes for a job.

use serde_json::{Value, json};

use super::put;
use crate::access::{Object, make, text};

/// Labels the pods of a job with its uid and name, and selects them by the uid, unless the client selects them.
pub(super) fn generate_selector(fields: &mut Object) {
    let meta = fields.get("metadata").cloned().unwrap_or_default();
    // Labels that a job took from its template stay the same as those.
    let template = fields
        .get("spec")
        .map(|spec| spec["template"]["metadata"]["labels"].clone());
    let shared = template.is_some_and(|labels| labels.is_object() && labels == meta["labels"]);
    let (uid, name) = (text(&meta["uid"]).to_owned(), text(&meta["name"]).to_owned());
    make(fields, "spec", |spec| {
        if spec.get("manualSelector") == Some(&Value::Bool(true)) || uid.is_empty() {
            return;
        }
        make(spec, "template", |template| {
            make(template, "metadata", |meta| {
                make(meta, "labels", |labels| {
                    // The client may have set these; a wrong value is for validation to find.
                    for (key, value) in [
                        ("job-name", &name),
                        ("batch.kubernetes.io/job-name", &name),
                        ("controller-uid", &uid),
                        ("batch.kubernetes.io/controller-uid", &uid),
                    ] {
                        labels.entry(key).or_insert_with(|| value.as_str().into());
                    }
                });
            });
        });
        let own = json!(uid);
        make(spec, "selector", |selector| {
            make(selector, "matchLabels", |labels| {
                labels.entry("batch.kubernetes.io/controller-uid").or_insert(own);
            });
        });
    });
    if shared {
        let labels = fields
            .get("spec")
            .map(|spec| spec["template"]["metadata"]["labels"].clone());
        make(fields, "metadata", |meta| {
            put(meta, "labels", labels.unwrap_or_default())
        });
    }
}
