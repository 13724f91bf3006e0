//! The kinds that a member serves, as its status lists them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lockgate_api::Condition;
use lockgate_api::cluster::{ApiEnablement, ApiResource};

/// The type of the condition.
pub const COMPLETE_ENABLEMENTS: &str = "CompleteAPIEnablements";

/// One kind that a member said it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served<'a> {
    /// Its apiVersion.
    pub api_version: &'a str,
    /// Its plural name; subresources are not listed.
    pub name: &'a str,
    /// Its kind.
    pub kind: &'a str,
}

/// The list and its condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Sorted by apiVersion, then by name.
    pub enablements: Vec<ApiEnablement>,
    /// Whether the member told all.
    pub condition: Condition,
}

/// The list after a discovery. `failed` names the groups (`apps`) or group versions (`apps/v1`) that did not answer: what was
/// known of them stays. A member that served nothing at all has told nothing, so that the whole list stays.
pub fn collect<'a>(
    served: impl IntoIterator<Item = Served<'a>>,
    failed: &[String],
    previous: &[ApiEnablement],
    now: Timestamp,
) -> Collected {
    let mut lists: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for kind in served {
        if !kind.name.contains('/') {
            lists
                .entry(kind.api_version)
                .or_default()
                .push((kind.name, kind.kind));
        }
    }
    let count = lists.len();
    let mut enablements: Vec<ApiEnablement> = lists
        .into_iter()
        .map(|(api_version, mut kinds)| {
            kinds.sort_unstable();
            kinds.dedup();
            ApiEnablement {
                group_version: api_version.to_owned(),
                resources: kinds
                    .into_iter()
                    .map(|(name, kind)| ApiResource {
                        name: name.to_owned(),
                        kind: kind.to_owned(),
                    })
                    .collect(),
            }
        })
        .collect();
    let (status, reason, message) = if count == 0 {
        enablements = previous.to_vec();
        (
            "False",
            "Empty",
            "collected empty APIEnablements from the cluster".to_owned(),
        )
    } else if failed.is_empty() {
        (
            "True",
            "Complete",
            "collected complete APIEnablements from the cluster".to_owned(),
        )
    } else {
        let kept: Vec<ApiEnablement> = previous
            .iter()
            .filter(|old| {
                did_not_answer(failed, &old.group_version)
                    && !enablements
                        .iter()
                        .any(|new| new.group_version == old.group_version)
            })
            .cloned()
            .collect();
        enablements.extend(kept);
        enablements.sort_by(|a, b| a.group_version.cmp(&b.group_version));
        (
            "False",
            "Partial",
            format!("might collect partial APIEnablements({count}) from the cluster"),
        )
    };
    Collected {
        enablements,
        condition: Condition {
            kind: COMPLETE_ENABLEMENTS.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: seconds(now),
            observed_generation: None,
        },
    }
}

fn did_not_answer(failed: &[String], api_version: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    failed
        .iter()
        .any(|failed| failed == api_version || failed == group)
}

/// RFC 3339 with whole seconds, as conditions carry it.
pub(super) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `apps/v1=deployments:Deployment,daemonsets:DaemonSet v1=pods:Pod`
    fn parse(text: &str) -> Vec<ApiEnablement> {
        text.split_whitespace()
            .map(|list| {
                let (version, kinds) = list.split_once('=').expect("version=kinds");
                ApiEnablement {
                    group_version: version.to_owned(),
                    resources: kinds
                        .split(',')
                        .map(|kind| {
                            let (name, kind) = kind.split_once(':').expect("name:Kind");
                            ApiResource {
                                name: name.to_owned(),
                                kind: kind.to_owned(),
                            }
                        })
                        .collect(),
                }
            })
            .collect()
    }

    #[test]
    fn what_a_member_could_not_tell_is_kept() {
        struct Case {
            served: &'static str,
            failed: &'static [&'static str],
            previous: &'static str,
            expected: &'static str,
            reason: &'static str,
        }
        let cases = [
            Case {
                served: "v1=pods:Pod,pods/log:Pod,nodes:Node apps/v1=deployments:Deployment",
                failed: &[],
                previous: "old/v1=things:Thing",
                expected: "apps/v1=deployments:Deployment v1=nodes:Node,pods:Pod",
                reason: "Complete",
            },
            Case {
                served: "v1=pods:Pod",
                failed: &["metrics.k8s.io/v1beta1"],
                previous: "gone/v1=x:X metrics.k8s.io/v1=m:M metrics.k8s.io/v1beta1=nodes:NodeMetrics",
                expected: "metrics.k8s.io/v1beta1=nodes:NodeMetrics v1=pods:Pod",
                reason: "Partial",
            },
            Case {
                served: "v1=pods:Pod",
                failed: &["metrics.k8s.io"],
                previous: "metrics.k8s.io/v1=m:M metrics.k8s.io/v1beta1=nodes:NodeMetrics v1=old:Old",
                expected: "metrics.k8s.io/v1=m:M metrics.k8s.io/v1beta1=nodes:NodeMetrics v1=pods:Pod",
                reason: "Partial",
            },
            Case {
                served: "",
                failed: &[],
                previous: "v1=pods:Pod",
                expected: "v1=pods:Pod",
                reason: "Empty",
            },
        ];
        for case in cases {
            let lists = parse(case.served);
            let served = lists.iter().flat_map(|list| {
                list.resources.iter().map(|kind| Served {
                    api_version: &list.group_version,
                    name: &kind.name,
                    kind: &kind.kind,
                })
            });
            let failed: Vec<String> = case.failed.iter().map(|f| (*f).to_owned()).collect();
            let collected = collect(served, &failed, &parse(case.previous), Timestamp::UNIX_EPOCH);
            assert_eq!(collected.enablements, parse(case.expected), "{}", case.served);
            assert_eq!(collected.condition.reason, case.reason);
            assert_eq!(collected.condition.is_true(), case.reason == "Complete");
        }
    }
}
