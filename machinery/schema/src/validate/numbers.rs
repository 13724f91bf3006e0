//! Bounds of numbers. Integers are compared as integers, with the bound cut to one; the rest as doubles.

use super::Checker;
use crate::go::{self, Num};
use crate::path::Path;
use crate::schema::SchemaRef;

impl Checker<'_> {
    pub(super) fn check_number(&mut self, schema: SchemaRef<'_>, number: Num, path: &Path<'_>) {
        let Some(limits) = schema.limits() else { return };
        if let Some(factor) = limits.multiple_of {
            self.check_multiple(number, factor, path);
        }
        if let Some(bound) = limits.minimum {
            let (below, equal) = (less(number, bound), is_equal(number, bound));
            if below || equal && limits.exclusive_minimum {
                let words = if limits.exclusive_minimum {
                    "greater than"
                } else {
                    "greater than or equal to"
                };
                self.bound(
                    path,
                    &text(number),
                    &format!("should be {words} {}", bound_text(number, bound)),
                );
            }
        }
        if let Some(bound) = limits.maximum {
            let (above, equal) = (greater(number, bound), is_equal(number, bound));
            if above || equal && limits.exclusive_maximum {
                let words = if limits.exclusive_maximum {
                    "less than"
                } else {
                    "less than or equal to"
                };
                self.bound(
                    path,
                    &text(number),
                    &format!("should be {words} {}", bound_text(number, bound)),
                );
            }
        }
    }

    fn check_multiple(&mut self, number: Num, factor: f64, path: &Path<'_>) {
        let shown = bound_text(number, factor);
        let (positive, fits) = match number {
            Num::Int(int) => {
                let factor = factor as i64;
                (factor > 0, factor > 0 && int % factor == 0)
            }
            Num::Float(value) => {
                let quotient = if factor < 1.0 {
                    1.0 / factor * value
                } else {
                    value / factor
                };
                (factor > 0.0, is_whole(quotient))
            }
        };
        if !positive {
            self.fail(path, |field, path| {
                let detail = format!("factor MultipleOf declared for {path} must be positive: {shown}");
                go::error(
                    machinery_value::field::FieldErrorKind::Invalid,
                    field,
                    Some(&shown),
                    &detail,
                )
            });
        } else if !fits {
            self.bound(path, &text(number), &format!("should be a multiple of {shown}"));
        }
    }
}

fn less(number: Num, bound: f64) -> bool {
    match number {
        Num::Int(int) => int < bound as i64,
        Num::Float(float) => float < bound,
    }
}

fn greater(number: Num, bound: f64) -> bool {
    match number {
        Num::Int(int) => int > bound as i64,
        Num::Float(float) => float > bound,
    }
}

fn is_equal(number: Num, bound: f64) -> bool {
    match number {
        Num::Int(int) => int == bound as i64,
        Num::Float(float) => float == bound,
    }
}

fn text(number: Num) -> String {
    match number {
        Num::Int(int) => int.to_string(),
        Num::Float(float) => go::float(float),
    }
}

fn bound_text(number: Num, bound: f64) -> String {
    match number {
        Num::Int(_) => (bound as i64).to_string(),
        Num::Float(_) => go::float(bound),
    }
}

/// Whether a double is a whole number that JSON can carry, with the server's tolerance.
pub(super) fn is_whole(value: f64) -> bool {
    const MAX: f64 = 9_007_199_254_740_991.0;
    if !value.is_finite() || value.abs() > MAX {
        return false;
    }
    let whole = value.trunc();
    if value == whole {
        return true;
    }
    // Only what is above the whole number counts as close to it: the server cuts, it does not round.
    let magnitude = value.abs() + whole.abs();
    whole != 0.0 && (value - whole).abs() / magnitude < 1e-9
}
