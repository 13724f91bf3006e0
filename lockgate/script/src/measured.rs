//! Functions of Lua's library that go through their texts once: they count by what they go through.

use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value as LuaValue};

use crate::fuel::Fuel;

/// Those whose work is the length of the texts that they are given.
const OF_STRINGS: [&str; 6] = ["byte", "format", "lower", "reverse", "sub", "upper"];

/// Puts them in the place of the originals.
pub(crate) fn install(lua: &Lua, globals: &Table, fuel: &Rc<Fuel>) -> mlua::Result<()> {
    let string: Table = globals.raw_get("string")?;
    for name in OF_STRINGS {
        string.raw_set(name, by_arguments(lua, string.raw_get(name)?, fuel)?)?;
    }
    globals.raw_set("tonumber", by_arguments(lua, globals.raw_get("tonumber")?, fuel)?)?;
    globals.raw_set("unpack", by_answer(lua, globals.raw_get("unpack")?, fuel)?)?;
    let table: Table = globals.raw_get("table")?;
    table.raw_set("concat", joined(lua, table.raw_get("concat")?, fuel)?)
}

fn by_arguments(lua: &Lua, original: Function, fuel: &Rc<Fuel>) -> mlua::Result<Function> {
    let fuel = fuel.clone();
    lua.create_function(move |lua, arguments: MultiValue| {
        fuel.charge(arguments.iter().map(length).sum())?;
        placed(lua, original.call::<MultiValue>(arguments))
    })
}

/// What answers with a part of a list is bounded by Lua's stack, and that is long enough to be counted.
fn by_answer(lua: &Lua, original: Function, fuel: &Rc<Fuel>) -> mlua::Result<Function> {
    let fuel = fuel.clone();
    lua.create_function(move |lua, arguments: MultiValue| {
        let answer = placed(lua, original.call::<MultiValue>(arguments))?;
        fuel.charge(answer.len().saturating_mul(16))?;
        Ok(answer)
    })
}

/// `table.concat`: a text for every item, and the whole. One call is bounded by the memory.
fn joined(lua: &Lua, original: Function, fuel: &Rc<Fuel>) -> mlua::Result<Function> {
    let fuel = fuel.clone();
    lua.create_function(move |lua, arguments: MultiValue| {
        let items = match arguments.front() {
            Some(LuaValue::Table(list)) => list.raw_len(),
            _ => 0,
        };
        fuel.charge(items.saturating_mul(16))?;
        let answer = placed(lua, original.call::<MultiValue>(arguments))?;
        fuel.charge(answer.iter().map(length).sum())?;
        Ok(answer)
    })
}

fn length(value: &LuaValue) -> usize {
    match value {
        LuaValue::String(text) => text.as_bytes().len(),
        _ => 0,
    }
}

/// An error with the line of the script: the original only sees who called it, and that is us.
fn placed<T>(lua: &Lua, answer: mlua::Result<T>) -> mlua::Result<T> {
    answer.map_err(|error| match &error {
        mlua::Error::RuntimeError(_) => {
            let line = lua.inspect_stack(1, |caller| caller.current_line()).flatten();
            match line {
                Some(line) => {
                    mlua::Error::RuntimeError(format!("script:{line}: {}", crate::text::of_error(&error)))
                }
                None => error,
            }
        }
        _ => error,
    })
}
