//! `matches`: regular expressions in the server's dialect.
//!
//! The engine's own function compiles its pattern on every call, which in a loop takes longer than everything else and
//! counts against no budget. Here compiled patterns are kept, a few for each thread, and both compiling and matching cost.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use kube_cel::cel::extractors::This;
use kube_cel::cel::objects::ResolveResult;
use kube_cel::cel::{ExecutionError, Value};
use regex::Regex;

use super::runtime::spend;
use crate::validate::pattern::translate;

/// Patterns that are kept. Nearly all are literals of a few expressions.
const KEPT: usize = 128;

/// What compiling costs for each byte of a pattern, in nodes visited.
const COMPILE_COST: usize = 64;

thread_local! {
    static COMPILED: RefCell<HashMap<Arc<String>, Regex>> = RefCell::new(HashMap::new());
}

/// Whether the pattern is found in the text.
pub(super) fn matches(This(text): This<Arc<String>>, pattern: Arc<String>) -> ResolveResult {
    // A tenth of the text times a quarter of the pattern, as the server reckons.
    spend((text.len() / 10 + 1).saturating_mul(pattern.len() / 4 + 1))?;
    COMPILED.with_borrow_mut(|compiled| {
        if let Some(regex) = compiled.get(&pattern) {
            return Ok(Value::Bool(regex.is_match(&text)));
        }
        spend(pattern.len().saturating_mul(COMPILE_COST))?;
        let regex = Regex::new(&translate(&pattern)).map_err(|error| {
            ExecutionError::function_error("matches", format!("'{pattern}' not a valid regex:\n{error}"))
        })?;
        let found = regex.is_match(&text);
        if compiled.len() >= KEPT {
            compiled.clear();
        }
        compiled.insert(pattern, regex);
        Ok(Value::Bool(found))
    })
}
