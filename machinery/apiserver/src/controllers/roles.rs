//! Aggregated ClusterRoles: their rules are those of the roles that they select.

use machinery_store::Range;
use machinery_value::Value;
use serde_json::json;

use crate::controllers::garbage::change;
use crate::resource::key_prefix;
use crate::server::Inner;
use crate::status::ApiError;

/// Writes the rules of every aggregated role that differ from what its parts say.
pub(super) async fn aggregate(server: &Inner) -> Result<(), ApiError> {
    let prefix = key_prefix("rbac.authorization.k8s.io", "clusterroles");
    let Ok(page) = server.store.range(Range {
        prefix: &prefix,
        ..Range::default()
    }) else {
        return Ok(());
    };
    let roles: Vec<(String, Value)> = page
        .entries
        .iter()
        .map(|entry| (entry.key.to_string(), entry.value.content()))
        .collect();
    for (key, role) in &roles {
        let Some(rules) = machinery_auth::rbac::aggregate(role, roles.iter().map(|(_, role)| role)) else {
            continue;
        };
        let rules = json!(rules);
        if role["rules"] != rules {
            change(server, key, |role| role["rules"] = rules.clone()).await?;
        }
    }
    Ok(())
}
