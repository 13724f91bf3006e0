//! Which kind somebody means: `deployment`, `deploy`, `deployments.apps`, or any kind that a definition adds.

use kube::core::discovery::v2::APIGroupDiscoveryList;

use crate::connect::Connection;
use crate::exit::Failure;

/// A kind that the hub serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short: Vec<String>,
    pub(crate) namespaced: bool,
}

impl Kind {
    /// Group and version as objects carry them.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The path of an object of this kind.
    pub(crate) fn path(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection(Some(namespace)))
    }

    /// The path of all objects of this kind, or of those in a namespace.
    pub(crate) fn collection(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        let place = match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("namespaces/{namespace}/"),
            None => String::new(),
        };
        format!("/{root}/{}/{place}{}", self.api_version(), self.plural)
    }

    fn is_called(&self, name: &str) -> bool {
        self.plural == name
            || self.singular == name
            || self.kind.eq_ignore_ascii_case(name)
            || self.short.iter().any(|short| short == name)
    }
}

/// Every kind that the hub serves, the versions of a group in its order.
pub(crate) async fn served(hub: &Connection) -> Result<Vec<Kind>, Failure> {
    let failed = |error: kube::Error| hub.failure("/apis", &error);
    let core = hub
        .client
        .list_core_api_versions_aggregated()
        .await
        .map_err(failed)?;
    let others = hub.client.list_api_groups_aggregated().await.map_err(failed)?;
    Ok([core, others].into_iter().flat_map(kinds).collect())
}

fn kinds(list: APIGroupDiscoveryList) -> impl Iterator<Item = Kind> {
    list.items.into_iter().flat_map(|item| {
        let group = item
            .metadata
            .and_then(|metadata| metadata.name)
            .unwrap_or_default();
        item.versions.into_iter().flat_map(move |version| {
            let (group, number) = (group.clone(), version.version.unwrap_or_default());
            version.resources.into_iter().map(move |resource| Kind {
                group: group.clone(),
                version: number.clone(),
                kind: resource
                    .response_kind
                    .and_then(|kind| kind.kind)
                    .unwrap_or_default(),
                plural: resource.resource.unwrap_or_default(),
                singular: resource.singular_resource.unwrap_or_default(),
                short: resource.short_names,
                namespaced: resource.scope.as_deref() == Some("Namespaced"),
            })
        })
    })
}

/// The kind that `text` means: a name alone, with its group, or with version and group.
pub(crate) fn resolve<'a>(kinds: &'a [Kind], text: &str) -> Result<&'a Kind, String> {
    let wanted = text.to_lowercase();
    let (name, rest) = wanted.split_once('.').unwrap_or((&wanted, ""));
    let fits = |kind: &&Kind| {
        kind.is_called(name)
            && (rest.is_empty() || kind.group == rest || format!("{}.{}", kind.version, kind.group) == rest)
    };
    if let Some(kind) = kinds.iter().find(fits) {
        return Ok(kind);
    }
    Err(match near(kinds, name).as_slice() {
        [] => format!("the hub does not serve {text:?}: see `kubectl api-resources`"),
        near => format!("the hub does not serve {text:?}; is it {}?", near.join(" or ")),
    })
}

/// The kinds whose names are nearly that, nearest first.
fn near(kinds: &[Kind], name: &str) -> Vec<String> {
    const SHOWN: usize = 3;
    let mut found: Vec<(usize, String)> = kinds
        .iter()
        .filter_map(|kind| {
            let names = [&kind.plural, &kind.singular].into_iter().chain(&kind.short);
            let distance = names.map(|other| distance(name, other)).min()?;
            // A third of the letters may be wrong; of a short name, one.
            (distance <= (name.len() / 3).max(1)).then(|| (distance, kind.singular_or_plural()))
        })
        .collect();
    found.sort();
    let mut names: Vec<String> = Vec::new();
    for (_, name) in found {
        if !names.contains(&name) && names.len() < SHOWN {
            names.push(name);
        }
    }
    names
}

impl Kind {
    fn singular_or_plural(&self) -> String {
        if self.singular.is_empty() {
            self.plural.clone()
        } else {
            self.singular.clone()
        }
    }
}

/// How many letters must be changed, added or left out to make one word of another.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(group: &str, version: &str, kind: &str, plural: &str, short: &[&str], namespaced: bool) -> Kind {
        Kind {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            singular: kind.to_lowercase(),
            short: short.iter().map(|s| (*s).to_owned()).collect(),
            namespaced,
        }
    }

    fn some() -> Vec<Kind> {
        vec![
            kind("", "v1", "ConfigMap", "configmaps", &["cm"], true),
            kind("apps", "v1", "Deployment", "deployments", &["deploy"], true),
            kind("extensions.example.org", "v1", "Ingress", "ingresses", &[], true),
            kind("networking.k8s.io", "v1", "Ingress", "ingresses", &["ing"], true),
            kind(
                "rbac.authorization.k8s.io",
                "v1",
                "ClusterRole",
                "clusterroles",
                &[],
                false,
            ),
            kind("example.org", "v2", "Widget", "widgets", &["wd"], true),
            kind("example.org", "v1", "Widget", "widgets", &["wd"], true),
        ]
    }

    #[test]
    fn a_kind_has_many_names() {
        let kinds = some();
        for (text, path) in [
            ("deployment", "/apis/apps/v1/namespaces/shop/deployments/x"),
            ("deploy", "/apis/apps/v1/namespaces/shop/deployments/x"),
            ("Deployments", "/apis/apps/v1/namespaces/shop/deployments/x"),
            ("deployments.apps", "/apis/apps/v1/namespaces/shop/deployments/x"),
            (
                "deployment.v1.apps",
                "/apis/apps/v1/namespaces/shop/deployments/x",
            ),
            ("cm", "/api/v1/namespaces/shop/configmaps/x"),
            ("clusterrole", "/apis/rbac.authorization.k8s.io/v1/clusterroles/x"),
            (
                "ingress",
                "/apis/extensions.example.org/v1/namespaces/shop/ingresses/x",
            ),
            (
                "ingress.networking.k8s.io",
                "/apis/networking.k8s.io/v1/namespaces/shop/ingresses/x",
            ),
            ("widget", "/apis/example.org/v2/namespaces/shop/widgets/x"),
            (
                "widgets.v1.example.org",
                "/apis/example.org/v1/namespaces/shop/widgets/x",
            ),
        ] {
            assert_eq!(resolve(&kinds, text).unwrap().path("shop", "x"), path, "{text}");
        }
    }

    #[test]
    fn an_unknown_kind_gets_the_near_ones() {
        let kinds = some();
        for (text, message) in [
            (
                "deplyoment",
                "the hub does not serve \"deplyoment\"; is it deployment?",
            ),
            ("widgit", "the hub does not serve \"widgit\"; is it widget?"),
            (
                "deployments.batch",
                "the hub does not serve \"deployments.batch\"; is it deployment?",
            ),
            (
                "nonsense",
                "the hub does not serve \"nonsense\": see `kubectl api-resources`",
            ),
        ] {
            assert_eq!(resolve(&kinds, text).unwrap_err(), message);
        }
    }

    #[test]
    fn words_and_their_distance() {
        for (a, b, far) in [
            ("", "", 0),
            ("web", "", 3),
            ("web", "web", 0),
            ("wbe", "web", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), far, "{a} {b}");
        }
    }
}
