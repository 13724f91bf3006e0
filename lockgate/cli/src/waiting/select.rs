//! Which templates are meant: by kind and name, namespace, labels and policy.

use lockgate_api::{PropagationPolicy, keys};
use lockgate_engine::claim::Claim;
use lockgate_engine::object;
use machinery_value::labels::LabelSelector;
use serde_json::Value;

use crate::exit::Failure;
use crate::status::claim::policy_name;
use crate::status::kinds::{self, Kind};
use crate::waiting::Which;

/// Keys that claims keep as annotations, and that people know as labels.
const CLAIM_KEYS: [&str; 3] = [keys::PP_NAME, keys::PP_NAMESPACE, keys::CPP_NAME];
/// How many names an answer gives.
const SHOWN: usize = 10;

/// Which templates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Of which kind.
    pub(crate) kind: Option<Kind>,
    /// Of which name.
    pub(crate) name: Option<String>,
    /// In which namespace; in all and in none if absent.
    pub(crate) namespace: Option<String>,
    /// Whose.
    policy: Option<Claim>,
    labels: Option<LabelSelector>,
}

impl Selection {
    /// Understands what somebody asked for.
    pub(crate) fn parse(
        which: &Which,
        context_namespace: &str,
        served: &[Kind],
        policies: &[PropagationPolicy],
    ) -> Result<Self, Failure> {
        let (kind, name) = what(&which.what, served)?;
        let labels = which.selector.as_deref().map(LabelSelector::parse).transpose();
        let labels = labels.map_err(|error| Failure::Usage(format!("--selector: {error}")))?;
        let mut namespace = match (&which.namespace, which.all_namespaces) {
            (_, true) => None,
            (Some(namespace), _) => Some(namespace.clone()),
            // What a ClusterPropagationPolicy owns is everywhere.
            (None, _) if labels.as_ref().is_some_and(names_cluster_policy) => None,
            (None, _) => Some(context_namespace.to_owned()),
        };
        let policy = match &which.policy {
            Some(text) => Some(find_policy(text, namespace.as_deref(), policies)?),
            None => None,
        };
        if let Some(policy) = policy.filter(|_| which.namespace.is_none()) {
            namespace = Some(policy.metadata.namespace.clone()).filter(|namespace| !namespace.is_empty());
        }
        if kind.as_ref().is_some_and(|kind| !kind.namespaced) {
            namespace = None;
        }
        if name.is_some() && kind.as_ref().is_some_and(|kind| kind.namespaced) && namespace.is_none() {
            return Err(Failure::Usage(
                "one template is in one namespace: give it with -n, and leave -A out".to_owned(),
            ));
        }
        Ok(Self {
            kind,
            name,
            namespace,
            policy: policy.map(Claim::by),
            labels,
        })
    }

    /// Whether a template is meant.
    pub(crate) fn admits(&self, template: &Value) -> bool {
        let label = |key: &str| {
            object::label(template, key).or_else(|| {
                let known = CLAIM_KEYS.contains(&key) && Claim::on_template(template).is_some();
                object::annotation(template, key).filter(|_| known)
            })
        };
        let inside = self
            .namespace
            .as_ref()
            .is_none_or(|namespace| object::meta_text(template, "namespace") == namespace);
        let owned = self
            .policy
            .as_ref()
            .is_none_or(|policy| Claim::on_template(template).as_ref() == Some(policy));
        inside && owned && self.labels.as_ref().is_none_or(|labels| labels.matches(label))
    }

    /// Whether templates of a kind may be meant.
    pub(crate) fn admits_kind(&self, kind: &Kind) -> bool {
        let same = |wanted: &Kind| wanted.kind == kind.kind && wanted.group == kind.group;
        self.kind.as_ref().is_none_or(same) && (kind.namespaced || self.namespace.is_none())
    }

    /// Whether templates that nobody owns may be meant.
    pub(crate) fn admits_orphans(&self) -> bool {
        self.policy.is_none()
    }
}

fn names_cluster_policy(labels: &LabelSelector) -> bool {
    let requirements = labels.requirements().unwrap_or_default();
    requirements
        .iter()
        .any(|requirement| [keys::CPP_NAME, keys::CPP_ID].contains(&requirement.key()))
}

/// `all`, `KIND`, `KIND/NAME` or `KIND NAME`.
fn what(words: &[String], served: &[Kind]) -> Result<(Option<Kind>, Option<String>), Failure> {
    let (kind, name) = match words {
        [] => return Ok((None, None)),
        [word] => match word.split_once('/') {
            Some((kind, name)) => (kind, Some(name)),
            None => (word.as_str(), None),
        },
        [kind, name, ..] => (kind.as_str(), Some(name.as_str())),
    };
    if kind == "all" && name.is_none() {
        return Ok((None, None));
    }
    if kind.is_empty() || name.is_some_and(|name| name.is_empty() || name.contains('/')) {
        return Err(Failure::Usage(format!(
            "{:?} is not of the form KIND/NAME",
            words.join(" ")
        )));
    }
    let kind = kinds::resolve(served, kind).map_err(Failure::Usage)?.clone();
    Ok((Some(kind), name.map(str::to_owned)))
}

/// The policy of a name, with its kind or namespace where the name alone is not enough.
fn find_policy<'a>(
    text: &str,
    namespace: Option<&str>,
    policies: &'a [PropagationPolicy],
) -> Result<&'a PropagationPolicy, Failure> {
    let (scope, name) = text.split_once('/').unwrap_or(("", text));
    let fits = |policy: &&PropagationPolicy| {
        let metadata = &policy.metadata;
        let here = namespace.is_none_or(|namespace| metadata.namespace == namespace);
        metadata.name == name
            && match scope.to_lowercase().as_str() {
                "" => policy.is_cluster_scoped() || here,
                "pp" | "propagationpolicy" | "propagationpolicies" => !policy.is_cluster_scoped() && here,
                "cpp" | "clusterpropagationpolicy" | "clusterpropagationpolicies" => {
                    policy.is_cluster_scoped()
                }
                _ => metadata.namespace == scope,
            }
    };
    let found: Vec<&PropagationPolicy> = policies.iter().filter(fits).collect();
    match found.as_slice() {
        [policy] => Ok(policy),
        [] => {
            let mut names: Vec<String> = policies.iter().map(policy_name).collect();
            let more = names.len().saturating_sub(SHOWN);
            names.truncate(SHOWN);
            let there = match (names.is_empty(), more) {
                (true, _) => "there is none".to_owned(),
                (false, 0) => format!("there are {}", names.join(", ")),
                (false, more) => format!("there are {} and {more} more", names.join(", ")),
            };
            Err(Failure::Other(format!("there is no policy {text:?}; {there}")))
        }
        several => {
            let names: Vec<String> = several.iter().map(|policy| policy_name(policy)).collect();
            Err(Failure::Usage(format!(
                "{text:?} may be {}: say which with NAMESPACE/NAME, pp/NAME or cpp/NAME",
                names.join(" or ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policies() -> Vec<PropagationPolicy> {
        [("shop", "web"), ("", "web"), ("", "all"), ("bank", "api")]
            .map(|(namespace, name)| {
                let metadata =
                    json!({"namespace": namespace, "name": name, "uid": format!("{namespace}-{name}")});
                serde_json::from_value(json!({"metadata": metadata})).unwrap()
            })
            .into()
    }

    fn kinds() -> Vec<Kind> {
        let kind = |group: &str, kind: &str, plural: &str, namespaced| Kind {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: plural.into(),
            singular: kind.to_lowercase(),
            short: Vec::new(),
            namespaced,
        };
        vec![
            kind("apps", "Deployment", "deployments", true),
            kind("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", false),
        ]
    }

    fn which(what: &[&str], edit: impl FnOnce(&mut Which)) -> Which {
        let mut which = Which {
            what: what.iter().map(|word| (*word).to_owned()).collect(),
            ..Which::default()
        };
        edit(&mut which);
        which
    }

    fn parse(which: &Which) -> Result<Selection, String> {
        Selection::parse(which, "shop", &kinds(), &policies()).map_err(|failure| failure.to_string())
    }

    /// A Deployment that a policy owns.
    fn claimed(namespace: &str, policy: &PropagationPolicy) -> Value {
        let mut template =
            json!({"metadata": {"namespace": namespace, "name": "web", "labels": {"app": "web"}}});
        Claim::mark_template(Some(&Claim::by(policy)), &mut template);
        template
    }

    #[test]
    fn the_namespace_is_the_contexts_unless_something_else_is_said() {
        let shown = |which: &Which| parse(which).unwrap().namespace;
        assert_eq!(shown(&which(&["all"], |_| {})).as_deref(), Some("shop"));
        assert_eq!(shown(&which(&[], |w| w.all_namespaces = true)), None);
        assert_eq!(
            shown(&which(&[], |w| w.namespace = Some("bank".into()))).as_deref(),
            Some("bank")
        );
        assert_eq!(shown(&which(&["clusterrole/reader"], |_| {})), None);
        assert_eq!(shown(&which(&[], |w| w.policy = Some("cpp/web".into()))), None);
        assert_eq!(
            shown(&which(&[], |w| w.policy = Some("bank/api".into()))).as_deref(),
            Some("bank")
        );
        let label = "clusterpropagationpolicy.karmada.io/name=all";
        assert_eq!(shown(&which(&["all"], |w| w.selector = Some(label.into()))), None);
    }

    #[test]
    fn the_name_of_a_policy_works_as_a_label() {
        let policies = policies();
        for (text, expected) in [
            ("clusterpropagationpolicy.karmada.io/name=all", true),
            ("clusterpropagationpolicy.karmada.io/name=web", false),
            ("clusterpropagationpolicy.karmada.io/name in (all, web)", true),
            ("propagationpolicy.karmada.io/name=all", false),
            ("app=web,clusterpropagationpolicy.karmada.io/name=all", true),
            ("app=api,clusterpropagationpolicy.karmada.io/name=all", false),
        ] {
            let selection = parse(&which(&["all"], |w| {
                w.selector = Some(text.into());
                w.all_namespaces = true;
            }));
            let selection = selection.unwrap();
            assert_eq!(
                selection.admits(&claimed("bank", &policies[2])),
                expected,
                "{text}"
            );
        }
        let text = "propagationpolicy.karmada.io/name=web,propagationpolicy.karmada.io/namespace=shop";
        let selection = parse(&which(&["all"], |w| w.selector = Some(text.into()))).unwrap();
        assert!(selection.admits(&claimed("shop", &policies[0])));
        assert!(!selection.admits(&claimed("shop", &policies[1])));
    }

    #[test]
    fn a_policy_is_found_by_name_and_asked_for_more_where_that_is_not_enough() {
        let policies = policies();
        let owner = |text: &str| {
            let selection = parse(&which(&[], |w| w.policy = Some(text.into())))?;
            let owned = policies.iter().find(|policy| {
                let namespace = if policy.is_cluster_scoped() {
                    "any"
                } else {
                    &policy.metadata.namespace
                };
                selection.admits(&claimed(namespace, policy))
            });
            Ok::<_, String>(owned.map(policy_name).unwrap_or_default())
        };
        assert_eq!(owner("all").unwrap(), "ClusterPropagationPolicy all");
        assert_eq!(owner("pp/web").unwrap(), "PropagationPolicy shop/web");
        assert_eq!(owner("cpp/web").unwrap(), "ClusterPropagationPolicy web");
        assert_eq!(owner("shop/web").unwrap(), "PropagationPolicy shop/web");
        assert_eq!(owner("bank/api").unwrap(), "PropagationPolicy bank/api");
        assert!(owner("web").unwrap_err().contains("say which"));
        let error = owner("nothing").unwrap_err();
        assert!(
            error.contains("there is no policy \"nothing\"; there are PropagationPolicy shop/web"),
            "{error}"
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (words, part) in [
            (&["deployment/"][..], "not of the form KIND/NAME"),
            (&["deplyoment"], "is it deployment?"),
            (&["a/b/c"], "not of the form"),
        ] {
            let error = parse(&which(words, |_| {})).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let error = parse(&which(&["deployment/web"], |w| w.all_namespaces = true)).unwrap_err();
        assert!(error.contains("give it with -n"), "{error}");
        let error = parse(&which(&[], |w| w.selector = Some("a in (".into()))).unwrap_err();
        assert!(error.starts_with("--selector: "), "{error}");
    }
}
