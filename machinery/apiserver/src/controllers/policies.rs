//! ValidatingAdmissionPolicies: their status says which generation was looked at, and what is suspicious about it.

use serde_json::json;

use crate::admission::policy::expression_warnings;
use crate::controllers::garbage::change;
use crate::resource::key_prefix;
use crate::server::Inner;
use crate::status::ApiError;

/// Looks at a policy that has changed since the last time.
pub(super) async fn tend(server: &Inner, name: &str) -> Result<(), ApiError> {
    let prefix = key_prefix("admissionregistration.k8s.io", "validatingadmissionpolicies");
    let key = format!("{prefix}{name}");
    let Some(stored) = server.store.get(&key) else {
        return Ok(());
    };
    let policy = stored.value.content();
    let generation = &policy["metadata"]["generation"];
    if policy["status"]["observedGeneration"] == *generation {
        return Ok(());
    }
    let warnings = expression_warnings(&server.registry, &policy);
    let checked = if warnings.is_empty() {
        json!({})
    } else {
        json!({"expressionWarnings": warnings})
    };
    change(server, &key, |present| {
        // Another generation has its own turn.
        if present["metadata"]["generation"] == *generation {
            if !present["status"].is_object() {
                present["status"] = json!({});
            }
            present["status"]["observedGeneration"] = generation.clone();
            present["status"]["typeChecking"] = checked.clone();
        }
    })
    .await
}
