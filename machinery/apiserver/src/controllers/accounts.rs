//! Service accounts: the default one of each namespace, and tokens kept in Secrets.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use machinery_auth::token::ObjectRef;
use serde_json::json;

use crate::authenticate::core_object;
use crate::controllers::Place;
use crate::controllers::garbage::{change, ignore_missing};
use crate::meta;
use crate::ops::WriteOptions;
use crate::ops::create::create;
use crate::ops::delete::{DeleteOptions, delete};
use crate::registry::built_in;
use crate::server::Inner;
use crate::status::ApiError;

/// The account that a Pod has when it names none.
pub(super) const DEFAULT: &str = "default";

const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// Makes the default account of a namespace.
pub(super) async fn ensure_default(server: &Inner, namespace: &str) -> Result<(), ApiError> {
    let Some(accounts) = built_in().find("", "v1", "serviceaccounts") else {
        return Ok(());
    };
    if server.store.get(&accounts.key(namespace, DEFAULT)).is_some() {
        return Ok(());
    }
    let content = json!({"metadata": {"name": DEFAULT}});
    let options = WriteOptions::controller("service-account-controller");
    match create(server, accounts, namespace, content, &options).await {
        Err(error) if error.reason == "AlreadyExists" || error.reason == "Forbidden" => Ok(()),
        other => ignore_missing(other),
    }
}

/// Fills a Secret of the token type, or removes it when its account is gone.
pub(super) async fn token_secret(server: &Inner, key: &str) -> Result<(), ApiError> {
    let place = Place::of(key);
    let Some(secret) = core_object(server, "secrets", place.namespace, place.name) else {
        return Ok(());
    };
    if secret["type"] != TOKEN_TYPE || meta::is_deleting(&secret) {
        return Ok(());
    }
    let annotation = |name: &str| {
        secret["metadata"]["annotations"][name]
            .as_str()
            .unwrap_or("")
            .to_owned()
    };
    let (name, wanted_uid) = (annotation(ACCOUNT_NAME), annotation(ACCOUNT_UID));
    let account = core_object(server, "serviceaccounts", place.namespace, &name);
    let account = account.filter(|a| wanted_uid.is_empty() || wanted_uid == meta::uid(a));
    let Some(account) = account else {
        let Some(secrets) = built_in().find("", "v1", "secrets") else {
            return Ok(());
        };
        let wanted = DeleteOptions {
            uid: Some(meta::uid(&secret).to_owned()),
            ..DeleteOptions::default()
        };
        return ignore_missing(
            delete(
                server,
                secrets,
                place.namespace,
                place.name,
                &wanted,
                &WriteOptions::controllers(),
            )
            .await,
        );
    };
    let complete = ["token", "ca.crt", "namespace"]
        .iter()
        .all(|k| secret["data"][*k].is_string());
    if complete && !wanted_uid.is_empty() {
        return Ok(());
    }
    let owner = ObjectRef {
        name,
        uid: meta::uid(&account).to_owned(),
    };
    let Some(token) = server
        .authenticator
        .accounts
        .issue_legacy(place.namespace, &owner, place.name)
    else {
        return Err(ApiError::internal("failed to sign a token"));
    };
    let namespace = place.namespace.to_owned();
    change(server, key, |secret| {
        let fill = [
            ("token", token.as_bytes()),
            ("ca.crt", server.ca_pem.as_bytes()),
            ("namespace", namespace.as_bytes()),
        ];
        for (field, bytes) in fill {
            if !secret["data"][field].is_string() {
                secret["data"][field] = json!(STANDARD.encode(bytes));
            }
        }
        secret["metadata"]["annotations"][ACCOUNT_UID] = json!(owner.uid);
    })
    .await
}
