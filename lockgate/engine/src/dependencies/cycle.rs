//! Whether what a template needs comes back to it. That is no mistake here, and whoever wrote it should know.

use std::collections::{HashMap, VecDeque};

use crate::object::TemplateId;

/// How many templates are looked at on the way. A longer way is not found.
const LONGEST: usize = 1000;

/// The shortest way from a template over what it needs back to itself, which is its end; none if there is none.
pub fn cycle(from: &TemplateId, needs: impl Fn(&TemplateId) -> Vec<TemplateId>) -> Option<Vec<TemplateId>> {
    let mut reached_from: HashMap<TemplateId, Option<TemplateId>> = HashMap::new();
    let mut next: VecDeque<(Option<TemplateId>, TemplateId)> =
        needs(from).into_iter().map(|id| (None, id)).collect();
    while let Some((before, id)) = next.pop_front() {
        if id == *from {
            let mut way = vec![id];
            let mut at = before;
            while let Some(id) = at {
                at = reached_from.get(&id).cloned().flatten();
                way.push(id);
            }
            way.reverse();
            return Some(way);
        }
        if reached_from.len() >= LONGEST || reached_from.contains_key(&id) {
            continue;
        }
        next.extend(needs(&id).into_iter().map(|more| (Some(id.clone()), more)));
        reached_from.insert(id, before);
    }
    None
}

/// What is said of it.
pub fn tell_cycle(from: &TemplateId, way: &[TemplateId]) -> String {
    let way: Vec<String> = way.iter().map(ToString::to_string).collect();
    format!(
        "{from} needs {}: each goes where a policy places it or one that names it, and no further",
        way.join(", which needs ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_way_back_is_found() {
        let id = |name: &str| TemplateId {
            kind: "Boat".to_owned(),
            name: name.to_owned(),
            ..TemplateId::default()
        };
        for (edges, way) in [
            ("a>b", ""),
            ("a>a", "a"),
            ("a>b b>a", "b a"),
            ("a>b b>c c>b", ""),
            ("a>b b>c c>d d>a b>a", "b a"),
            ("a>b b>c c>a", "b c a"),
        ] {
            let needs = |of: &TemplateId| {
                let edges = edges.split(' ').filter_map(|edge| edge.split_once('>'));
                let of_it = edges.filter(|(from, _)| *from == of.name);
                of_it.map(|(_, to)| id(to)).collect()
            };
            let found = cycle(&id("a"), needs).unwrap_or_default();
            let names: Vec<&str> = found.iter().map(|id| id.name.as_str()).collect();
            assert_eq!(names.join(" "), way, "{edges}");
        }
        let told = tell_cycle(&id("a"), &[id("b"), id("a")]);
        assert!(
            told.starts_with("Boat a needs Boat b, which needs Boat a: "),
            "{told}"
        );
        // A way without an end is not followed for ever.
        let forever = |of: &TemplateId| vec![id(&format!("{}x", of.name))];
        assert_eq!(cycle(&id("a"), forever), None);
    }
}
