//! Quantities as far as validation compares them.

use std::cmp::Ordering;

use machinery_value::quantity::Quantity;

/// Reads a quantity; the decoder has already seen to its form.
pub(super) fn parse(text: &str) -> Option<Quantity> {
    Quantity::parse(text).ok()
}

/// Whether a quantity counts whole things.
pub(super) fn is_whole(quantity: &Quantity) -> bool {
    quantity.milli() % 1000 == 0
}

/// Which of two amounts is larger; malformed ones are equal to everything.
pub(super) fn compare(left: &str, right: &str) -> Ordering {
    match (parse(left), parse(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => Ordering::Equal,
    }
}
