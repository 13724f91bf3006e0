//! Scripts made from a seed.

use crate::script::{Script, ScriptError};

/// The `count` scripts of a seed.
pub fn scripts(_seed: u64, _count: usize) -> Result<Vec<Script>, ScriptError> {
    Ok(Vec::new())
}
