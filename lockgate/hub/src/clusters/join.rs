//! How a cluster joins: an account with its rights and token in the member, a Secret and a Cluster on the hub.
//!
//! Every step may be done again, so that a join that broke off is simply repeated. The Cluster comes last: the hub never knows
//! a member that it has no token for.

mod objects;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use lockgate_api::ocm::CLUSTER_NAMESPACE;
use lockgate_api::{Cluster, keys};
use lockgate_engine::claim::in_cluster_namespace;
use lockgate_engine::object;
use machinery_value::names;
use serde::Deserialize;
use serde_json::{Value, json};

use self::objects::{cluster_object, describe, ensure, hub_secret, parse};
use crate::clusters::{rights, token};
use crate::connect::secret_text;
use crate::link::{Link, LinkError};
use crate::resource::{Resource, push_escaped};

/// Execution namespaces carry the name behind a prefix, and a namespace's name is at most 63 characters long.
const MAX_NAME: usize = 48;
/// How often the token Secret is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A cluster that shall join.
#[derive(Clone, Debug, Default)]
pub struct JoinRequest {
    /// Its name on the hub.
    pub name: String,
    /// The URL at which the controllers reach it.
    pub endpoint: String,
    /// The certificates that it is checked against, PEM; none checks against those that the system trusts.
    pub ca_bundle: Option<String>,
    /// Whether its certificate is not checked.
    pub insecure: bool,
    /// A proxy on the way to it.
    pub proxy_url: String,
    /// Labels of the Cluster.
    pub labels: BTreeMap<String, String>,
    /// Who runs it.
    pub provider: String,
    /// Where it is.
    pub region: String,
    /// Its zones.
    pub zones: Vec<String>,
    /// How long the member's token controller may take before a token that runs out is asked for; zero does not ask it.
    pub token_patience: Duration,
    /// Whether a cluster that has joined under this name already is brought up to date, instead of refused.
    pub refresh: bool,
    /// Whether such a cluster gets a new token although the hub has one: nobody can tell whether the member still takes it.
    pub renew_token: bool,
}

/// A cluster that joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The uid of its `kube-system` namespace.
    pub id: String,
    /// When its token runs out; the controllers renew it before that. `None` if it does not.
    pub token_until: Option<Timestamp>,
    /// Whether the Cluster is new.
    pub created: bool,
}

/// Why a cluster could not join.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// What was asked for cannot be.
    #[error("{0}")]
    Invalid(String),
    /// The member has joined already.
    #[error(
        "this cluster has joined already, as {0:?}: bring that one up to date (lockgate join {0} --refresh), or unjoin it first"
    )]
    AlreadyJoined(String),
    /// The member is about to leave.
    #[error("the cluster {0:?} is leaving: wait until it is gone")]
    Leaving(String),
    /// Another member has this name.
    #[error("the name {0:?} is taken by another cluster: choose another name")]
    NameTaken(String),
    /// The member is the hub.
    #[error(
        "this cluster is the hub itself: its objects are the templates, and would be copies of themselves. Name a member's kubeconfig or \
         context"
    )]
    IsHub,
    /// The hub does not know Clusters.
    #[error(
        "the hub does not serve Clusters: install the definitions with `lockgate crds | kubectl apply --server-side -f -`"
    )]
    NoDefinitions,
    /// The member refused something, or did not answer.
    #[error("failed to {doing} in the member: {error}")]
    Member {
        /// What was tried.
        doing: String,
        /// What came of it.
        error: LinkError,
    },
    /// The hub refused something, or did not answer.
    #[error("failed to {doing} on the hub: {error}")]
    Hub {
        /// What was tried.
        doing: String,
        /// What came of it.
        error: LinkError,
    },
}

fn member(doing: impl Into<String>) -> impl FnOnce(LinkError) -> JoinError {
    let doing = doing.into();
    |error| JoinError::Member { doing, error }
}

fn hub(doing: impl Into<String>) -> impl FnOnce(LinkError) -> JoinError {
    let doing = doing.into();
    |error| match error {
        LinkError::NotServed => JoinError::NoDefinitions,
        error => JoinError::Hub { doing, error },
    }
}

/// Checks a request as far as it can be checked without asking anybody.
pub fn check(request: &JoinRequest) -> Result<(), JoinError> {
    let refuse = |what: &str, value: &str, problems: Vec<String>| match problems.into_iter().next() {
        None => Ok(()),
        Some(problem) => Err(JoinError::Invalid(format!("{what} {value:?}: {problem}"))),
    };
    refuse("the name", &request.name, names::dns1123_label(&request.name))?;
    if request.name.len() > MAX_NAME {
        return Err(JoinError::Invalid(format!(
            "the name {:?} has {} characters: at most {MAX_NAME} are possible",
            request.name,
            request.name.len()
        )));
    }
    for (key, value) in &request.labels {
        refuse("the label", key, names::qualified_name(key))?;
        refuse("the label value", value, names::label_value(value))?;
    }
    let fields = [("--provider", &request.provider), ("--region", &request.region)];
    for (what, value) in fields
        .into_iter()
        .chain(request.zones.iter().map(|zone| ("--zone", zone)))
    {
        refuse(what, value, names::label_value(value))?;
    }
    if request.endpoint.is_empty() {
        return Err(JoinError::Invalid("the member has no URL".to_owned()));
    }
    Ok(())
}

/// Refuses a member that is the hub: its objects are the templates, and whoever removed the copies would delete those. Who may
/// not look on the hub is told nothing.
pub async fn refuse_hub(hub_link: &Link, member_link: &Link) -> Result<(), JoinError> {
    let member = cluster_id(member_link).await?;
    match cluster_id(hub_link).await {
        Ok(hub) if hub == member => Err(JoinError::IsHub),
        _ => Ok(()),
    }
}

/// Lets a cluster join. `report` is told each thing that was done.
pub async fn join_member(
    hub_link: &Link,
    member_link: &Link,
    request: &JoinRequest,
    report: &mut (dyn FnMut(&str) + Send),
) -> Result<Joined, JoinError> {
    check(request)?;
    let id = cluster_id(member_link).await?;
    let known = known_clusters(hub_link).await?;
    let present = known.iter().find(|cluster| cluster.metadata.name == request.name);
    match present {
        Some(present) if present.spec.id != id => return Err(JoinError::NameTaken(request.name.clone())),
        Some(present) if present.metadata.deleting() => {
            return Err(JoinError::Leaving(request.name.clone()));
        }
        Some(_) if !request.refresh => return Err(JoinError::AlreadyJoined(request.name.clone())),
        _ => {}
    }
    if let Some(other) = known
        .iter()
        .find(|cluster| cluster.spec.id == id && cluster.metadata.name != request.name)
    {
        return Err(JoinError::AlreadyJoined(other.metadata.name.clone()));
    }
    if present.is_none() {
        tell_reserved(hub_link, &request.name, report).await;
    }

    prepare_member(member_link, request, report).await?;
    let token = obtain_token(hub_link, member_link, request, present.is_some(), report).await?;
    let token_until = token::Claims::of(&token).map(|claims| claims.expires());

    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": keys::CLUSTER_NAMESPACE, "labels": {keys::SYSTEM: "true"}},
    });
    ensure(hub_link, &Resource::namespaces(), "", namespace)
        .await
        .map_err(hub(format!("make namespace {}", keys::CLUSTER_NAMESPACE)))?;
    let secret = hub_secret(request, &token);
    ensure(hub_link, &Resource::secrets(), keys::CLUSTER_NAMESPACE, secret)
        .await
        .map_err(hub(format!(
            "write Secret {}/{}",
            keys::CLUSTER_NAMESPACE,
            request.name
        )))?;
    report(&format!(
        "hub: Secret {}/{}",
        keys::CLUSTER_NAMESPACE,
        request.name
    ));
    ensure(hub_link, &Resource::clusters(), "", cluster_object(request, &id))
        .await
        .map_err(hub(format!("write Cluster {}", request.name)))?;
    report(&format!("hub: Cluster {}", request.name));
    Ok(Joined {
        id,
        token_until,
        created: present.is_none(),
    })
}

/// Says that a namespace which somebody has is the cluster's from now on. Who may not look is not told, and joins all the same.
async fn tell_reserved(link: &Link, name: &str, report: &mut (dyn FnMut(&str) + Send)) {
    let Ok(body) = link.get(&Resource::namespaces().object("", name)).await else {
        return;
    };
    let namespace: Value = parse(&body).unwrap_or_default();
    if object::label(&namespace, CLUSTER_NAMESPACE).is_none() {
        report(&format!("hub: {}", in_cluster_namespace(name)));
    }
}

/// What tells one cluster from all others.
async fn cluster_id(link: &Link) -> Result<String, JoinError> {
    let doing = "read namespace kube-system";
    let body = link
        .get(&Resource::namespaces().object("", "kube-system"))
        .await
        .map_err(member(doing))?;
    let object: Value = parse(&body).map_err(member(doing))?;
    match object["metadata"]["uid"].as_str() {
        Some(uid) if !uid.is_empty() => Ok(uid.to_owned()),
        _ => Err(member(doing)(LinkError::BadAnswer("it has no uid".to_owned()))),
    }
}

async fn known_clusters(link: &Link) -> Result<Vec<Cluster>, JoinError> {
    #[derive(Deserialize)]
    struct Page {
        #[serde(default)]
        metadata: Value,
        items: Vec<Cluster>,
    }
    let collection = Resource::clusters().collection("");
    let (mut all, mut path) = (Vec::new(), format!("{collection}?limit=500"));
    loop {
        let body = link.get(&path).await.map_err(hub("list Clusters"))?;
        let page: Page = parse(&body).map_err(hub("list Clusters"))?;
        all.extend(page.items);
        match page.metadata["continue"].as_str() {
            Some(next) if !next.is_empty() => {
                path = format!("{collection}?limit=500&continue=");
                push_escaped(&mut path, next);
            }
            _ => return Ok(all),
        }
    }
}

async fn prepare_member(
    link: &Link,
    request: &JoinRequest,
    report: &mut (dyn FnMut(&str) + Send),
) -> Result<(), JoinError> {
    let name = &request.name;
    let accounts = Resource::new("", "v1", "serviceaccounts", "ServiceAccount", true);
    let group = "rbac.authorization.k8s.io";
    let roles = Resource::new(group, "v1", "clusterroles", "ClusterRole", false);
    let bindings = Resource::new(group, "v1", "clusterrolebindings", "ClusterRoleBinding", false);
    let space =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": rights::MEMBER_NAMESPACE}});
    let objects = [
        (Resource::namespaces(), "", space),
        (accounts, rights::MEMBER_NAMESPACE, rights::account(name)),
        (roles, "", rights::role(name)),
        (bindings, "", rights::binding(name)),
    ];
    for (resource, namespace, object) in objects {
        let what = describe(&object);
        ensure(link, &resource, namespace, object)
            .await
            .map_err(member(format!("make {what}")))?;
        report(&format!("member: {what}"));
    }
    Ok(())
}

/// A token that does not run out if the member has a token controller; else the longest that it gives.
async fn obtain_token(
    hub_link: &Link,
    member_link: &Link,
    request: &JoinRequest,
    joined_before: bool,
    report: &mut (dyn FnMut(&str) + Send),
) -> Result<String, JoinError> {
    if joined_before
        && !request.renew_token
        && let Some(token) = present_token(hub_link, &request.name).await
    {
        return Ok(token);
    }
    let (namespace, account) = (rights::MEMBER_NAMESPACE, rights::account_name(&request.name));
    if !request.token_patience.is_zero()
        && let Some(token) = lasting_token(member_link, request).await?
    {
        report(&format!(
            "member: Secret {namespace}/{}, a token that does not run out",
            rights::token_secret_name(&request.name)
        ));
        return Ok(token);
    }
    let token = token::request(member_link, namespace, &account)
        .await
        .map_err(member(format!(
            "get a token of ServiceAccount {namespace}/{account}"
        )))?;
    let until = token::Claims::of(&token).map(|claims| crate::clock::seconds(claims.expires()));
    report(&match until {
        Some(until) => format!("member: a token until {until}; the controllers renew it"),
        None => "member: a token".to_owned(),
    });
    Ok(token)
}

/// The token that the hub has already, unless it must be renewed anyway.
async fn present_token(link: &Link, name: &str) -> Option<String> {
    let path = Resource::secrets().object(keys::CLUSTER_NAMESPACE, name);
    let secret: Value = parse(&link.get(&path).await.ok()?).ok()?;
    let token = secret_text(&secret, "token").ok()??;
    let stale = token::Claims::of(&token).is_some_and(|claims| claims.renewal_due(Timestamp::now()));
    (!stale).then_some(token)
}

async fn lasting_token(link: &Link, request: &JoinRequest) -> Result<Option<String>, JoinError> {
    let name = rights::token_secret_name(&request.name);
    let doing = format!("make Secret {}/{name}", rights::MEMBER_NAMESPACE);
    let secrets = Resource::secrets();
    let object = rights::token_secret(&request.name);
    ensure(link, &secrets, rights::MEMBER_NAMESPACE, object)
        .await
        .map_err(member(doing.clone()))?;
    let path = secrets.object(rights::MEMBER_NAMESPACE, &name);
    let begun = tokio::time::Instant::now();
    // Most servers fill it in a moment.
    let mut wait = LOOK_EVERY / 32;
    loop {
        let body = link.get(&path).await.map_err(member(doing.clone()))?;
        let secret: Value = parse(&body).map_err(member(doing.clone()))?;
        if let Some(token) = secret_text(&secret, "token").ok().flatten() {
            return Ok(Some(token));
        }
        if begun.elapsed() >= request.token_patience {
            break;
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LOOK_EVERY);
    }
    // Nobody fills it: an empty Secret would only puzzle people.
    let _ = link.delete(&path, &crate::link::DeleteOptions::default()).await;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_requests_are_refused_before_anybody_is_asked() {
        type Change = fn(&mut JoinRequest);
        let cases: [(&str, Change); 7] = [
            ("lowercase", |r| r.name = "Member".into()),
            ("at most 48", |r| r.name = "m".repeat(49)),
            ("the label \"a b\"", |r| {
                r.labels.insert("a b".into(), "x".into());
            }),
            ("the label value", |r| {
                r.labels.insert("a".into(), "-".into());
            }),
            ("--region", |r| r.region = "no spaces".into()),
            ("--zone", |r| r.zones = vec!["ok".into(), "not/ok".into()]),
            ("no URL", |r| r.endpoint.clear()),
        ];
        let good = JoinRequest {
            name: "m".repeat(48),
            endpoint: "https://member.example".into(),
            ..JoinRequest::default()
        };
        assert_eq!(check(&good), Ok(()));
        for (expected, change) in cases {
            let mut request = good.clone();
            change(&mut request);
            let error = check(&request).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
