//! ClusterAffinity: a set of clusters, by labels, by fields, by name.

use std::fmt;

use lockgate_api::placement::SelectorRequirement;
use lockgate_api::{Cluster, ClusterAffinity};
use machinery_value::labels::{LabelSelector, Requirement};

use super::compile_labels;

/// Whether a cluster belongs to an affinity. For many clusters, compile the affinity once.
pub fn matches_cluster(affinity: &ClusterAffinity, cluster: &Cluster) -> bool {
    CompiledAffinity::new(affinity).matches(cluster)
}

/// An affinity in the form that is matched often.
///
/// Every part that is given must match, and a cluster that is excluded never does. An affinity with a part that cannot
/// be read matches nothing.
#[derive(Clone, Debug)]
pub struct CompiledAffinity {
    labels: LabelSelector,
    fields: Vec<FieldRule>,
    /// Sorted.
    names: Vec<String>,
    /// Sorted.
    exclude: Vec<String>,
    invalid: Option<String>,
}

impl CompiledAffinity {
    /// Compiles an affinity.
    pub fn new(affinity: &ClusterAffinity) -> Self {
        let mut invalid = None;
        let labels = match affinity.label_selector.as_ref().map(compile_labels) {
            None => LabelSelector::everything(),
            Some(Ok(labels)) => labels,
            Some(Err(error)) => {
                invalid = Some(format!("its label selector is not valid: {error}"));
                LabelSelector::nothing()
            }
        };
        let mut fields = Vec::new();
        for expression in affinity
            .field_selector
            .iter()
            .flat_map(|selector| &selector.match_expressions)
        {
            match FieldRule::new(expression) {
                Ok(rule) => fields.push(rule),
                Err(why) => invalid = invalid.or(Some(format!("its field selector is not valid: {why}"))),
            }
        }
        Self {
            labels,
            fields,
            names: sorted(&affinity.cluster_names),
            exclude: sorted(&affinity.exclude_clusters),
            invalid,
        }
    }

    /// Whether a cluster belongs to it.
    pub fn matches(&self, cluster: &Cluster) -> bool {
        self.mismatch(cluster).is_none()
    }

    /// Why a cluster does not belong to it, in words that follow "because", and what would help; `None` if it does.
    pub fn why_not(&self, cluster: &Cluster) -> Option<(String, &'static str)> {
        let mismatch = self.mismatch(cluster)?;
        let help = match mismatch {
            Mismatch::Invalid(_) => "correct the selector",
            Mismatch::Excluded => "take it out of exclude",
            Mismatch::NotNamed => "add it to clusterNames",
            Mismatch::Label { .. } => "change the cluster's labels, or the selector",
            Mismatch::Field { .. } => "change the Cluster's field, or the selector",
        };
        Some((mismatch.to_string(), help))
    }

    fn mismatch<'a>(&'a self, cluster: &'a Cluster) -> Option<Mismatch<'a>> {
        let name = &cluster.metadata.name;
        if let Some(why) = &self.invalid {
            return Some(Mismatch::Invalid(why));
        }
        if self.exclude.binary_search(name).is_ok() {
            return Some(Mismatch::Excluded);
        }
        if !self.names.is_empty() && self.names.binary_search(name).is_err() {
            return Some(Mismatch::NotNamed);
        }
        let unfulfilled =
            |requirement: &&Requirement| !requirement.matches(cluster.metadata.label(requirement.key()));
        if let Some(requirement) = self
            .labels
            .requirements()
            .unwrap_or_default()
            .iter()
            .find(unfulfilled)
        {
            return Some(Mismatch::Label {
                requirement,
                value: cluster.metadata.label(requirement.key()),
            });
        }
        self.fields
            .iter()
            .find(|rule| !rule.matches(cluster))
            .map(|rule| Mismatch::Field { rule, cluster })
    }
}

fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

/// The first part of an affinity that a cluster fails.
enum Mismatch<'a> {
    Invalid(&'a str),
    Excluded,
    NotNamed,
    Label {
        requirement: &'a Requirement,
        value: Option<&'a str>,
    },
    Field {
        rule: &'a FieldRule,
        cluster: &'a Cluster,
    },
}

impl fmt::Display for Mismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => f.write_str(why),
            Self::Excluded => f.write_str("it excludes the cluster by name"),
            Self::NotNamed => f.write_str("the cluster is not one of those that it names"),
            Self::Label { requirement, value } => {
                write!(f, "it asks for the label {requirement}, and ")?;
                match value {
                    Some(value) => write!(f, "the cluster has {}={value}", requirement.key()),
                    None => write!(f, "the cluster has no label {}", requirement.key()),
                }
            }
            Self::Field { rule, cluster } => {
                let (field, operator) = (rule.field.name(), if rule.negated { "not in" } else { "in" });
                write!(
                    f,
                    "it asks for a {field} {operator} ({}), and ",
                    rule.values.join(",")
                )?;
                match rule.field.of(cluster) {
                    [] => write!(f, "the cluster has no {field}"),
                    values => write!(f, "the cluster's is {}", values.join(",")),
                }
            }
        }
    }
}

/// A property of clusters that placements speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Provider,
    Region,
    Zone,
}

impl Field {
    /// The field of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "provider" => Some(Self::Provider),
            "region" => Some(Self::Region),
            "zone" => Some(Self::Zone),
            _ => None,
        }
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::Region => "region",
            Self::Zone => "zone",
        }
    }

    /// A cluster's values. Empty ones count as absent; the older `zone` counts where `zones` is not set.
    pub(crate) fn of(self, cluster: &Cluster) -> &[String] {
        let spec = &cluster.spec;
        let single = match self {
            Self::Provider => &spec.provider,
            Self::Region => &spec.region,
            Self::Zone if spec.zones.is_empty() => &spec.zone,
            Self::Zone => return &spec.zones,
        };
        match single.is_empty() {
            true => &[],
            false => std::slice::from_ref(single),
        }
    }

    /// A cluster's values, each once.
    pub(crate) fn each(self, cluster: &Cluster) -> impl Iterator<Item = &str> {
        let all = self.of(cluster);
        let is_new = |(place, value): &(usize, &String)| !all[..*place].contains(value);
        all.iter()
            .enumerate()
            .filter(is_new)
            .map(|(_, value)| value.as_str())
    }
}

/// A field must have one of some values, or none of them.
#[derive(Clone, Debug)]
struct FieldRule {
    field: Field,
    negated: bool,
    values: Vec<String>,
}

impl FieldRule {
    fn new(expression: &SelectorRequirement) -> Result<Self, String> {
        let field = Field::parse(&expression.key)
            .ok_or_else(|| format!("{:?} is not provider, region or zone", expression.key))?;
        let negated = match expression.operator.as_str() {
            "In" => false,
            "NotIn" => true,
            other => return Err(format!("{other:?} is not In or NotIn")),
        };
        if expression.values.is_empty() {
            return Err(format!("{} has no values", expression.key));
        }
        Ok(Self {
            field,
            negated,
            values: expression.values.clone(),
        })
    }

    /// One common value is enough for In, and too much for NotIn.
    fn matches(&self, cluster: &Cluster) -> bool {
        let common = self
            .field
            .of(cluster)
            .iter()
            .any(|value| self.values.contains(value));
        common != self.negated
    }
}
