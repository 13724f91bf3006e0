//! Feature gates: `--feature-gates Name=true,Other=false`.

use std::collections::BTreeMap;
use std::str::FromStr;

/// The gates that the controllers know.
const KNOWN: &[&str] = &[
    "Failover",
    "NoClusterFitRemoves",
    "PropagationPolicyPreemption",
    "StaticPolicy",
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

#[cfg(test)]
mod tests {
    use super::*;

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
