//! What the rules of a definition may cost: each for itself, and all of them together.

use machinery_value::field::{FieldError, FieldPath};

/// What one rule may cost.
const OF_ONE: u64 = 10_000_000;
/// What all rules of a version may cost.
const OF_ALL: u64 = 100_000_000;
/// How many of the most expensive rules are named when they are too expensive together.
const NAMED: usize = 4;

/// What was found to cost how much.
#[derive(Default)]
pub(super) struct Costs {
    total: u64,
    expensive: Vec<(FieldPath, u64)>,
}

impl Costs {
    /// Takes note of a rule, or of its message expression, and says whether it costs too much.
    pub(super) fn observe(&mut self, path: &FieldPath, what: &str, cost: u64) -> Option<FieldError> {
        self.total = self.total.saturating_add(cost);
        if cost >= OF_ALL / 100 {
            self.expensive.push((path.clone(), cost));
            self.expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.expensive.truncate(NAMED);
        }
        (cost > OF_ONE).then(|| FieldError::forbidden(path, exceeds(what, cost, OF_ONE)))
    }

    /// Says if all together cost too much.
    pub(super) fn check(self, path: &FieldPath, errors: &mut Vec<FieldError>) {
        if self.total <= OF_ALL {
            return;
        }
        for (path, _) in &self.expensive {
            let detail =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            errors.push(FieldError::forbidden(path, detail));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(path, exceeds(what, self.total, OF_ALL)));
    }
}

fn exceeds(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength \
         where arrays, maps, and strings are declared)"
    )
}
