//! Grades of nodes (`spec.resourceModels` of a Cluster): from which free amounts on a node is of a grade.
//!
//! A node is of the highest grade of which it has every amount, so that a node of a grade has at least what the grade begins
//! with. Models that cannot be read are none.

use std::collections::BTreeMap;

use lockgate_api::Cluster;
use lockgate_api::cluster::usual_models;
use serde_json::{Value, json};

use super::capacity::counted;

/// The grades of a cluster's nodes, from the smallest on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Models(Vec<Grade>);

/// What nodes of a grade have at least: thousandths of CPUs, whole units of everything else.
type Grade = Vec<(String, i64)>;

impl Models {
    /// The grades that a cluster's nodes have.
    pub fn of(cluster: &Cluster) -> Option<Self> {
        let list = cluster.spec.rest.get("resourceModels")?.as_array()?;
        Self::read(list)
    }

    fn read(list: &[Value]) -> Option<Self> {
        let mut grades: Vec<(i64, Grade)> = Vec::with_capacity(list.len());
        for model in list {
            let mut least = Grade::new();
            for range in model["ranges"].as_array()? {
                let name = range["name"].as_str()?;
                least.push((name.to_owned(), counted(name, &range["min"])?));
            }
            grades.push((model["grade"].as_i64()?, least));
        }
        grades.sort_by_key(|(grade, _)| *grade);
        (!grades.is_empty()).then(|| Self(grades.into_iter().map(|(_, least)| least).collect()))
    }

    /// Whether they are those of a cluster of which nobody has said otherwise.
    pub fn are_usual(&self) -> bool {
        Self::read(&usual_models()).as_ref() == Some(self)
    }

    /// The grades, each with what its nodes have at least.
    pub(crate) fn grades(&self) -> &[Grade] {
        &self.0
    }

    /// The grade of a node that has this free; none if it has less than the smallest asks for.
    fn grade(&self, free: &BTreeMap<String, i64>) -> Option<usize> {
        let has = |(name, least): &(String, i64)| free.get(name).copied().unwrap_or(0) >= *least;
        self.0.iter().rposition(|grade| grade.iter().all(has))
    }

    /// `allocatableModelings` for nodes that have this free.
    pub(super) fn count<'a>(&self, nodes: impl Iterator<Item = &'a BTreeMap<String, i64>>) -> Value {
        let mut counts = vec![0_u64; self.0.len()];
        for grade in nodes.filter_map(|free| self.grade(free)) {
            counts[grade] += 1;
        }
        let counts = counts.iter().enumerate();
        counts
            .map(|(grade, count)| json!({"grade": grade, "count": count}))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(list: Value) -> Option<Models> {
        let mut cluster = Cluster::default();
        cluster.spec.rest.insert("resourceModels".to_owned(), list);
        Models::of(&cluster)
    }

    #[test]
    fn nodes_have_the_grade_of_what_they_have_least_of() {
        let usual = models(json!(usual_models())).unwrap();
        assert!(usual.are_usual());
        for (cpu, memory, grade) in [
            (0, 0, 0),
            (999, 64 << 30, 0),
            (1000, 4 << 30, 1),
            (64_000, 5 << 30, 1),
            (2000, 16 << 30, 2),
            (200_000, 2 << 40, 8),
        ] {
            let free = BTreeMap::from([("cpu".to_owned(), cpu), ("memory".to_owned(), memory)]);
            assert_eq!(usual.grade(&free), Some(grade), "{cpu} {memory}");
        }
        assert_eq!(usual.grade(&BTreeMap::new()), Some(0));
    }

    #[test]
    fn what_cannot_be_read_is_no_model() {
        for bad in [
            json!(null),
            json!([]),
            json!([{"grade": 0}]),
            json!([{"grade": 0, "ranges": [{"name": "cpu", "min": "much", "max": "2"}]}]),
            json!([{"ranges": []}]),
        ] {
            assert_eq!(models(bad.clone()), None, "{bad}");
        }
        let own = json!([
            {"grade": 1, "ranges": [{"name": "cpu", "min": 3, "max": "9"}]},
            {"grade": 0, "ranges": [{"name": "cpu", "min": "0", "max": "3"}]},
        ]);
        let own = models(own).unwrap();
        assert!(!own.are_usual());
        let free = BTreeMap::from([("cpu".to_owned(), 3000)]);
        assert_eq!(
            own.grade(&free),
            Some(1),
            "the order in which they are written does not matter"
        );
    }
}
