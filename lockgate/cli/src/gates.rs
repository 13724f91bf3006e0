//! Feature gates: `--feature-gates Name=true,Other=false`. What nobody sets is as the command that takes them says.

use std::collections::BTreeMap;
use std::str::FromStr;

use lockgate_engine::Gates;

/// The gates that the controllers know.
const KNOWN: &[&str] = &[
    "Failover",
    "MultiplePodTemplatesScheduling",
    "NoClusterFitRemoves",
    "PropagateDeps",
    "PropagationPolicyPreemption",
    "StatefulFailoverInjection",
    "StaticPolicy",
    "WorkloadAffinity",
];

/// Gates that somebody set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FeatureGates(BTreeMap<String, bool>);

impl FromStr for FeatureGates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut gates = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| format!("{part:?} is not of the form Name=true"))?;
            if !KNOWN.contains(&name) {
                return Err(format!(
                    "there is no feature gate {name:?}; there are {}",
                    KNOWN.join(", ")
                ));
            }
            let value = value
                .parse()
                .map_err(|_| format!("{name} is either true or false, not {value:?}"))?;
            gates.insert(name.to_owned(), value);
        }
        Ok(Self(gates))
    }
}

impl FeatureGates {
    /// The gates as decisions see them: those that were set, and the rest as in `defaults`.
    pub(crate) fn over(&self, defaults: Gates) -> Gates {
        let gate = |name: &str, default: bool| self.0.get(name).copied().unwrap_or(default);
        Gates {
            failover: gate("Failover", defaults.failover),
            multiple_pod_templates: gate("MultiplePodTemplatesScheduling", defaults.multiple_pod_templates),
            no_cluster_fit_removes: gate("NoClusterFitRemoves", defaults.no_cluster_fit_removes),
            preemption: gate("PropagationPolicyPreemption", defaults.preemption),
            propagate_deps: gate("PropagateDeps", defaults.propagate_deps),
            static_policy: gate("StaticPolicy", defaults.static_policy),
            stateful_failover: gate("StatefulFailoverInjection", defaults.stateful_failover),
            workload_affinity: gate("WorkloadAffinity", defaults.workload_affinity),
        }
    }
}

/// The defaults of `lockgate controller`: as released control planes have them, so that taking one over moves nothing.
pub(crate) const CONTROLLER: Gates = Gates {
    failover: false,
    multiple_pod_templates: false,
    no_cluster_fit_removes: false,
    preemption: false,
    propagate_deps: true,
    static_policy: false,
    stateful_failover: false,
    workload_affinity: false,
};

/// The defaults of `lockgate up`, where people try things: preemption is on.
pub(crate) const UP: Gates = Gates {
    preemption: true,
    ..CONTROLLER
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_wins_over_the_defaults() {
        let gates = |text: &str, defaults| text.parse::<FeatureGates>().unwrap().over(defaults);
        assert_eq!(gates("", CONTROLLER), Gates::default());
        assert!(gates("", UP).preemption);
        assert!(!gates("PropagateDeps=false", CONTROLLER).propagate_deps);
        assert!(!gates("PropagationPolicyPreemption=false", UP).preemption);
        let all = KNOWN
            .iter()
            .map(|name| format!("{name}=true"))
            .collect::<Vec<_>>()
            .join(",");
        assert_eq!(
            gates(&all, CONTROLLER),
            Gates {
                failover: true,
                multiple_pod_templates: true,
                no_cluster_fit_removes: true,
                preemption: true,
                propagate_deps: true,
                static_policy: true,
                stateful_failover: true,
                workload_affinity: true,
            },
            "every known gate is one that decisions look at"
        );
    }

    #[test]
    fn gates_are_named_and_set() {
        let gates: FeatureGates = "StaticPolicy=true,Failover=false".parse().unwrap();
        assert_eq!(gates.0.get("StaticPolicy"), Some(&true));
        assert_eq!(gates.0.get("Failover"), Some(&false));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| text.parse::<FeatureGates>().unwrap_err();
        assert!(error("Nonsense=true").contains("there are Failover"));
        assert!(error("StaticPolicy").contains("Name=true"));
        assert!(error("StaticPolicy=yes").contains("either true or false"));
    }
}
