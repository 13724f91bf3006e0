//! Definitions of custom resources.

use super::service;
use crate::access::{Object, make, set_text, text, with};

/// A CustomResourceDefinition: names follow from the kind.
pub(super) fn definition(object: &mut Object) {
    make(object, "spec", |spec| {
        make(spec, "names", |names| {
            let kind = names.get("kind").map(text).unwrap_or_default().to_owned();
            set_text(names, "singular", &kind.to_lowercase());
            if !kind.is_empty() {
                set_text(names, "listKind", &format!("{kind}List"));
            }
        });
        make(spec, "conversion", |conversion| {
            set_text(conversion, "strategy", "None");
            with(conversion, "webhook", |hook| {
                with(hook, "clientConfig", |client| {
                    service::reference(client, "service")
                });
            });
        });
    });
}
