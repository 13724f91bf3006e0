//! What scripts find: Lua's own functions, without those that reach outside, tell addresses, or run long without being
//! counted; those are replaced.

use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value as LuaValue, Variadic};
use serde_json::Value;

use crate::convert;
use crate::fuel::Fuel;
use crate::measured;
use crate::pattern;
use crate::text;
use crate::{HostFunction, Module};

/// What is not there: code from elsewhere, other threads, the collector, randomness.
const GONE: [&str; 13] = [
    "collectgarbage",
    "coroutine",
    "dofile",
    "gcinfo",
    "getfenv",
    "load",
    "loadfile",
    "loadstring",
    "module",
    "newproxy",
    "package",
    "setfenv",
    "_G",
];

/// The name under which Lua's own `pcall` is kept.
const PCALL: &str = "lockgate.pcall";

/// Functions that are written in Lua, so that their loops count.
const PRELUDE: &str = include_str!("prelude.lua");

/// Furnishes a machine.
pub(crate) fn furnish(lua: &Lua, fuel: &Rc<Fuel>, modules: &[Module<'_>], memory: usize) -> mlua::Result<()> {
    convert::prepare(lua)?;
    let globals = lua.globals();
    for name in GONE {
        globals.raw_set(name, LuaValue::Nil)?;
    }
    lua.set_named_registry_value(PCALL, globals.raw_get::<Function>("pcall")?)?;
    let math: Table = globals.raw_get("math")?;
    math.raw_set("random", LuaValue::Nil)?;
    math.raw_set("randomseed", LuaValue::Nil)?;
    let string: Table = globals.raw_get("string")?;
    string.raw_set("dump", LuaValue::Nil)?;
    string.raw_set("gfind", LuaValue::Nil)?;
    string.raw_set("rep", repeat(lua, fuel, memory)?)?;
    pattern::install(lua, &string, fuel, memory)?;
    measured::install(lua, &globals, fuel)?;
    globals.raw_set("print", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
    globals.raw_set("settle", settle(lua, fuel)?)?;
    globals.raw_set("require", require(lua, fuel, modules)?)?;
    lua.load(PRELUDE).set_name("=prelude").exec()
}

/// Calls a function of a script. What it raises is seen as it is, and not as the text that Lua makes of it.
pub(crate) fn protected(lua: &Lua, function: Function, arguments: Vec<LuaValue>) -> mlua::Result<MultiValue> {
    let pcall: Function = lua.named_registry_value(PCALL)?;
    let mut given = MultiValue::from_vec(arguments);
    given.push_front(LuaValue::Function(function));
    let mut answer: MultiValue = pcall.call(given)?;
    match answer.pop_front() {
        Some(LuaValue::Boolean(true)) => Ok(answer),
        _ => Err(text::raised(&answer.pop_front().unwrap_or(LuaValue::Nil))),
    }
}

/// `string.rep`, which the original repeats as often as it is told also for an empty text.
fn repeat(lua: &Lua, fuel: &Rc<Fuel>, memory: usize) -> mlua::Result<Function> {
    let fuel = fuel.clone();
    lua.create_function(move |lua, (text, times): (mlua::LuaString, f64)| {
        let text = text.as_bytes();
        // What is negative, or no number, is never; what is beyond all memory is refused.
        let times = times.clamp(0.0, u32::MAX.into()) as usize;
        let size = text.len().saturating_mul(times);
        if size > memory {
            return Err(mlua::Error::MemoryError("not enough memory".to_owned()));
        }
        fuel.charge(size)?;
        if text.is_empty() {
            return lua.create_string("");
        }
        lua.create_string(text.repeat(times))
    })
}

/// What `pcall` answers: the end of the steps is not caught, and an error of ours is its text. Any other value that was raised
/// stays what it is.
fn settle(lua: &Lua, fuel: &Rc<Fuel>) -> mlua::Result<Function> {
    let fuel = fuel.clone();
    lua.create_function(move |lua, mut answer: MultiValue| {
        if !matches!(answer.front(), Some(LuaValue::Boolean(false))) {
            return Ok(answer);
        }
        if fuel.is_out() {
            return Err(fuel.error());
        }
        if let Some(LuaValue::Error(error)) = answer.get(1) {
            let text = lua.create_string(crate::text::of_error(error))?;
            answer = MultiValue::from_vec(vec![LuaValue::Boolean(false), LuaValue::String(text)]);
        }
        Ok(answer)
    })
}

/// `require`, of the modules that there are.
fn require(lua: &Lua, fuel: &Rc<Fuel>, modules: &[Module<'_>]) -> mlua::Result<Function> {
    let known = lua.create_table()?;
    for module in modules {
        let table = lua.create_table()?;
        for (name, function) in module.functions {
            table.raw_set(*name, host(lua, fuel, name, *function)?)?;
        }
        known.raw_set(module.name, table)?;
    }
    let names: Vec<String> = modules.iter().map(|module| module.name.to_owned()).collect();
    let names = names.join(", ");
    lua.create_function(
        move |_, name: String| match known.raw_get::<LuaValue>(name.as_str())? {
            LuaValue::Nil => Err(mlua::Error::RuntimeError(format!(
                "there is no module {name:?}; there is {names}"
            ))),
            module => Ok(module),
        },
    )
}

/// A function of ours. What it is given and what it answers counts by its size.
fn host(lua: &Lua, fuel: &Rc<Fuel>, name: &str, function: HostFunction) -> mlua::Result<Function> {
    let (fuel, name) = (fuel.clone(), name.to_owned());
    lua.create_function(move |lua, arguments: Variadic<LuaValue>| {
        let failed = |why: String| mlua::Error::RuntimeError(format!("{name}: {why}"));
        let mut values: Vec<Value> = Vec::with_capacity(arguments.len());
        for argument in arguments.iter() {
            values.push(convert::from_lua(argument, &[], &fuel).map_err(failed)?);
        }
        let answer = function(&values).map_err(failed)?;
        fuel.charge(convert::size(&answer))?;
        convert::to_lua(lua, &answer)
    })
}
