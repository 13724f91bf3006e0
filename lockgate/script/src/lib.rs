//! Lua 5.1 scripts as pure functions.
//!
//! A script defines a function; [`call`] runs it on JSON values and answers with JSON values. What always holds:
//! - Equal scripts and arguments give equal answers, unless the clock ends them. There is no clock, no randomness, no file, no address, and nothing is
//!   kept from one call to the next: each call has a machine of its own.
//! - A call ends: it has so many steps and so much memory. Every loop of the language and of its library counts, and what goes
//!   through long texts or large tables counts by their size; a clock is the last bound.
//! - No script makes a panic. What goes wrong is a [`ScriptError`].

mod convert;
mod fuel;
mod measured;
mod pattern;
mod sandbox;
#[cfg(test)]
mod tests;
mod text;

use std::rc::Rc;
use std::time::Duration;

use mlua::{Function, Lua, LuaOptions, StdLib};
use serde_json::Value;
use thiserror::Error;

use fuel::Fuel;

/// What one call may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many instructions it may take.
    pub steps: u64,
    /// How many bytes it may hold.
    pub memory: usize,
    /// How many characters the script may have.
    pub source: usize,
    /// How long it may work. The steps end nearly every call first; this one ends what they cannot count.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 2_000_000,
            memory: 64 * 1024 * 1024,
            source: 256 * 1024,
            time: Duration::from_millis(500),
        }
    }
}

/// A function that scripts may call: arguments in, a value out, or what is wrong with them.
pub type HostFunction = fn(&[Value]) -> Result<Value, String>;

/// A module that scripts may require.
#[derive(Clone, Copy, Debug)]
pub struct Module<'a> {
    /// What they require.
    pub name: &'a str,
    /// Its functions.
    pub functions: &'a [(&'a str, HostFunction)],
}

/// Why a call has no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ScriptError {
    /// It is no Lua.
    #[error("the script cannot be read: {0}")]
    Syntax(String),
    /// It raised an error.
    #[error("the script failed: {0}")]
    Failed(String),
    /// It took too long.
    #[error("the script takes more than {0} steps: does it loop?")]
    TooManySteps(u64),
    /// It took few steps, and long.
    #[error("the script takes more than {0:?}: does it build long texts?")]
    TooSlow(Duration),
    /// It held too much.
    #[error("the script takes more than {0} bytes of memory")]
    TooMuchMemory(usize),
    /// It does not define what is called.
    #[error("the script defines no function {0}")]
    NoFunction(String),
    /// It is too long.
    #[error("the script has {size} bytes, and at most {limit} are read")]
    TooLong {
        /// How many it has.
        size: usize,
        /// How many it may have.
        limit: usize,
    },
    /// What it answers is no value of JSON.
    #[error("the script answers with nonsense: {0}")]
    Nonsense(String),
}

/// Whether a script can be read and defines a function; it is not run further than to its definitions.
pub fn check(
    source: &str,
    function: &str,
    modules: &[Module<'_>],
    limits: Limits,
) -> Result<(), ScriptError> {
    let machine = Machine::new(source, modules, limits)?;
    machine.function(function).map(drop)
}

/// Calls a function of a script.
///
/// An empty table is a list or a map by what it came from; one that the script made itself is what `like` has in its place,
/// and is left out where that has nothing. A number that is too large for a double, and equal to what `like` has in its place as
/// far as doubles tell, is what `like` has.
pub fn call(
    source: &str,
    function: &str,
    arguments: &[&Value],
    like: &[&Value],
    modules: &[Module<'_>],
    limits: Limits,
) -> Result<Vec<Value>, ScriptError> {
    let machine = Machine::new(source, modules, limits)?;
    let function = machine.function(function)?;
    machine
        .run(|| {
            let mut values = Vec::with_capacity(arguments.len());
            for argument in arguments {
                values.push(convert::to_lua(&machine.lua, argument)?);
            }
            sandbox::protected(&machine.lua, function, values)
        })?
        .into_iter()
        .map(|value| {
            convert::from_lua(&value, like, &machine.fuel).map_err(|why| match machine.fuel.is_out() {
                true => machine.ended(),
                false => ScriptError::Nonsense(why),
            })
        })
        .collect()
}

/// One script, loaded.
struct Machine {
    lua: Lua,
    fuel: Rc<Fuel>,
    limits: Limits,
}

impl Machine {
    fn new(source: &str, modules: &[Module<'_>], limits: Limits) -> Result<Self, ScriptError> {
        if source.len() > limits.source {
            return Err(ScriptError::TooLong {
                size: source.len(),
                limit: limits.source,
            });
        }
        let fuel = Rc::new(Fuel::new(limits.steps, limits.time));
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua =
            Lua::new_with(libraries, LuaOptions::new()).map_err(|e| ScriptError::Failed(e.to_string()))?;
        let machine = Self { lua, fuel, limits };
        machine.run(|| {
            machine.lua.set_memory_limit(limits.memory)?;
            fuel::watch(&machine.lua, &machine.fuel)?;
            sandbox::furnish(&machine.lua, &machine.fuel, modules, limits.memory)
        })?;
        let chunk = machine
            .lua
            .load(source)
            .set_name("=script")
            .set_mode(mlua::chunk::ChunkMode::Text)
            .into_function()
            .map_err(|error| match machine.told(&error) {
                ScriptError::Failed(why) => ScriptError::Syntax(why),
                other => other,
            })?;
        machine.run(|| sandbox::protected(&machine.lua, chunk, Vec::new()))?;
        Ok(machine)
    }

    fn function(&self, name: &str) -> Result<Function, ScriptError> {
        let missing = || ScriptError::NoFunction(name.to_owned());
        self.lua
            .globals()
            .raw_get::<Function>(name)
            .map_err(|_| missing())
    }

    fn run<T>(&self, work: impl FnOnce() -> mlua::Result<T>) -> Result<T, ScriptError> {
        work().map_err(|error| self.told(&error))
    }

    /// Why nothing is left.
    fn ended(&self) -> ScriptError {
        match self.fuel.is_late() {
            true => ScriptError::TooSlow(self.limits.time),
            false => ScriptError::TooManySteps(self.limits.steps),
        }
    }

    /// What an error of the machine means.
    fn told(&self, error: &mlua::Error) -> ScriptError {
        if self.fuel.is_out() {
            return self.ended();
        }
        if is_memory(error) {
            return ScriptError::TooMuchMemory(self.limits.memory);
        }
        ScriptError::Failed(text::of_error(error))
    }
}

fn is_memory(error: &mlua::Error) -> bool {
    match error {
        mlua::Error::MemoryError(_) => true,
        mlua::Error::CallbackError { cause, .. } => is_memory(cause),
        mlua::Error::RuntimeError(text) => text.starts_with("not enough memory"),
        _ => false,
    }
}
