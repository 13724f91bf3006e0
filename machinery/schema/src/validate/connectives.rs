//! `allOf`, `anyOf`, `oneOf` and `not`.
//!
//! A branch is first tried silently; only the branch whose errors are shown is walked again for its words. Of
//! several failing branches the server shows the one in which the most checks were made. On update, nothing in a
//! branch is tolerated for being old; the value around it may still be.

use machinery_value::field::FieldErrorKind;
use serde_json::Value;

use super::{Checker, Old};
use crate::go;
use crate::path::Path;
use crate::schema::{SchemaRef, SchemaSet};

impl Checker<'_> {
    pub(super) fn check_connectives(&mut self, schema: SchemaRef<'_>, value: &Value, path: &Path<'_>) -> u32 {
        let Some(logic) = schema.logic() else { return 0 };
        let set: &SchemaSet = schema.set;
        let mut matched = 0;
        if !logic.any_of.is_empty() {
            let branches = logic.any_of.iter().map(|id| set.at(*id));
            let mut closest: Option<(u32, SchemaRef<'_>)> = None;
            let mut valid = None;
            for branch in branches {
                let (passed, count) = self.attempt(branch, value, path);
                if passed {
                    valid = Some(count);
                    break;
                }
                if closest.is_none_or(|(best, _)| count > best) {
                    closest = Some((count, branch));
                }
            }
            match (valid, closest) {
                (Some(count), _) => matched += count,
                (None, closest) => {
                    self.connective(path, "must validate at least one schema (anyOf)");
                    matched += self.show(closest, value, path);
                }
            }
        }
        if !logic.one_of.is_empty() {
            let mut closest: Option<(u32, SchemaRef<'_>)> = None;
            let (mut valid, mut first) = (0, None);
            for branch in logic.one_of.iter().map(|id| set.at(*id)) {
                let (passed, count) = self.attempt(branch, value, path);
                if passed {
                    valid += 1;
                    closest = None;
                    first = first.or(Some(count));
                } else if valid == 0 && closest.is_none_or(|(best, _)| count > best) {
                    closest = Some((count, branch));
                }
            }
            if valid == 1 {
                matched += first.unwrap_or(0);
            } else {
                let found = match valid {
                    0 => "Found none valid".to_owned(),
                    valid => format!("Found {valid} valid alternatives"),
                };
                self.connective(
                    path,
                    &format!("must validate one and only one schema (oneOf). {found}"),
                );
                matched += self.show(closest, value, path);
            }
        }
        if !logic.all_of.is_empty() {
            let mut valid = 0;
            for branch in logic.all_of.iter().map(|id| set.at(*id)) {
                let before = self.failures;
                matched += self.check_node(branch, value, &Old::None, path);
                valid += usize::from(self.failures == before);
            }
            if valid != logic.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                self.connective(path, &format!("must validate all the schemas (allOf){none}"));
            }
        }
        if let Some(not) = logic.not
            && self.attempt(set.at(not), value, path).0
        {
            self.connective(path, "must not validate the schema (not)");
        }
        matched
    }

    fn attempt(&mut self, branch: SchemaRef<'_>, value: &Value, path: &Path<'_>) -> (bool, u32) {
        let before = self.failures;
        self.silent += 1;
        let count = self.check_node(branch, value, &Old::None, path);
        self.silent -= 1;
        let passed = self.failures == before;
        self.failures = before;
        (passed, count)
    }

    fn show(&mut self, closest: Option<(u32, SchemaRef<'_>)>, value: &Value, path: &Path<'_>) -> u32 {
        let Some((count, branch)) = closest else { return 0 };
        if self.silent == 0 {
            self.check_node(branch, value, &Old::None, path);
        }
        count
    }

    /// Errors of connectives carry the path in the message and none of their own.
    fn connective(&mut self, path: &Path<'_>, detail: &str) {
        let prefix = self.prefix.clone();
        self.fail(path, |_, text| {
            go::error(
                FieldErrorKind::Invalid,
                &prefix,
                Some("\"\""),
                &format!("{} {detail}", go::quote(text)),
            )
        });
    }
}
