//! How scripts are run: by whom, and not twice for nothing.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use lockgate_script::ScriptError;
use machinery_value::hash::{ValueHash, canonical_hash};
use serde_json::Value;

/// How many questions without an answer are remembered.
const REMEMBERED: usize = 10_000;

/// Whoever runs scripts: they take time, which those who ask cannot always spare where they are.
pub trait Runner: Send + Sync {
    /// Does the work, once, before it returns.
    fn run(&self, work: &mut dyn FnMut());
}

/// What goes along with a script, and is no part of what it says.
#[derive(Clone, Default)]
pub(super) struct Running {
    /// None runs it on the spot.
    pub(super) runner: Option<Arc<dyn Runner>>,
    ended: Arc<Mutex<HashMap<Vec<ValueHash>, ScriptError>>>,
}

impl Running {
    pub(super) fn by(runner: Option<&Arc<dyn Runner>>) -> Self {
        Self {
            runner: runner.cloned(),
            ended: Arc::default(),
        }
    }

    /// Asks a script. One that was ended by its limits is not asked the same again: the answer would be the same, and would
    /// take as long.
    pub(super) fn ask(
        &self,
        arguments: &[&Value],
        call: impl Fn() -> Result<Vec<Value>, ScriptError>,
    ) -> Result<Vec<Value>, ScriptError> {
        let question = || arguments.iter().map(|value| canonical_hash(value)).collect();
        let ended = || self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let known = {
            let ended = ended();
            // Most scripts always end, and nothing is hashed for them.
            (!ended.is_empty()).then(|| ended.get(&question()).cloned())
        };
        if let Some(error) = known.flatten() {
            return Err(error);
        }
        let mut answer = None;
        let mut work = || answer = Some(call());
        match &self.runner {
            Some(runner) => runner.run(&mut work),
            None => work(),
        }
        let answer = answer.unwrap_or_else(|| Err(ScriptError::Failed("nobody has run it".to_owned())));
        if let Err(
            error @ (ScriptError::TooManySteps(_) | ScriptError::TooSlow(_) | ScriptError::TooMuchMemory(_)),
        ) = &answer
        {
            let mut ended = ended();
            if ended.len() >= REMEMBERED {
                ended.clear();
            }
            ended.insert(question(), error.clone());
        }
        answer
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Running")
    }
}

impl PartialEq for Running {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Running {}
