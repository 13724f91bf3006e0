//! JSON values in Lua, and back.
//!
//! Lua has one kind of table and one kind of number. Lists and empty maps are marked on their way in, so that empty ones come
//! back as they went; a number without a fraction is an integer again.

use mlua::{Lua, Table, Value as LuaValue};
use serde_json::{Map, Number, Value};

use crate::fuel::Fuel;

/// How deep values may be nested; what servers store is less deep.
const DEPTH: usize = 100;
/// What a value takes apart from its text, in bytes.
const NODE: usize = 64;
/// The field of a metatable that says whether a table is a list.
const LIST: &str = "__list";
/// The names under which the marking metatables are kept.
const MARKS: [&str; 2] = ["lockgate.list", "lockgate.map"];

/// What marks tables.
struct Marks {
    list: Table,
    map: Table,
}

/// Makes what marks tables.
pub(crate) fn prepare(lua: &Lua) -> mlua::Result<()> {
    for (name, is_list) in MARKS.into_iter().zip([true, false]) {
        let mark = lua.create_table()?;
        mark.raw_set(LIST, is_list)?;
        lua.set_named_registry_value(name, mark)?;
    }
    Ok(())
}

/// A JSON value in Lua. What is null is not there.
pub(crate) fn to_lua(lua: &Lua, value: &Value) -> mlua::Result<LuaValue> {
    let marks = Marks {
        list: lua.named_registry_value(MARKS[0])?,
        map: lua.named_registry_value(MARKS[1])?,
    };
    put(lua, value, &marks, 0)
}

fn put(lua: &Lua, value: &Value, marks: &Marks, depth: usize) -> mlua::Result<LuaValue> {
    if depth > DEPTH {
        return Err(mlua::Error::RuntimeError(
            "a value is nested too deeply".to_owned(),
        ));
    }
    Ok(match value {
        Value::Null => LuaValue::Nil,
        Value::Bool(value) => LuaValue::Boolean(*value),
        Value::Number(number) => LuaValue::Number(number.as_f64().unwrap_or_default()),
        Value::String(text) => LuaValue::String(lua.create_string(text)?),
        Value::Array(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (index, item) in items.iter().enumerate() {
                table.raw_set(index + 1, put(lua, item, marks, depth + 1)?)?;
            }
            table.set_metatable(Some(marks.list.clone()))?;
            LuaValue::Table(table)
        }
        Value::Object(fields) => {
            let table = lua.create_table_with_capacity(0, fields.len())?;
            for (key, field) in fields {
                table.raw_set(key.as_str(), put(lua, field, marks, depth + 1)?)?;
            }
            if fields.is_empty() {
                table.set_metatable(Some(marks.map.clone()))?;
            }
            LuaValue::Table(table)
        }
    })
}

/// A value of Lua as JSON; or what is wrong with it, and where.
///
/// Every value counts, and a table that is in several places counts in each: a few of them, each in the next twice, would
/// otherwise be more than any memory.
pub(crate) fn from_lua(value: &LuaValue, like: &[&Value], fuel: &Fuel) -> Result<Value, String> {
    let taken = take(value, like, &mut String::new(), 0, fuel)?;
    Ok(taken.unwrap_or_else(|| Value::Object(Map::new())))
}

/// How many bytes a value is, more or less.
pub(crate) fn size(value: &Value) -> usize {
    NODE + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(fields) => fields.iter().map(|(key, field)| key.len() + size(field)).sum(),
        _ => 0,
    }
}

/// None for an empty table of which nobody knows what it is.
fn take(
    value: &LuaValue,
    like: &[&Value],
    path: &mut String,
    depth: usize,
    fuel: &Fuel,
) -> Result<Option<Value>, String> {
    let place = |path: &str| {
        if path.is_empty() {
            "the answer".to_owned()
        } else {
            path.to_owned()
        }
    };
    if depth > DEPTH {
        return Err(format!("{} is nested too deeply, or in itself", place(path)));
    }
    let bytes = match value {
        LuaValue::String(text) => text.as_bytes().len(),
        _ => 0,
    };
    fuel.charge(NODE + bytes)
        .map_err(|_| format!("{} is too large", place(path)))?;
    Ok(Some(match value {
        LuaValue::Nil => Value::Null,
        LuaValue::Boolean(value) => Value::Bool(*value),
        LuaValue::Integer(value) => Value::from(*value),
        LuaValue::Number(value) => number(*value).ok_or_else(|| format!("{} is {value}", place(path)))?,
        LuaValue::String(text) => Value::String(
            text.to_str()
                .map_err(|_| format!("{} is not text", place(path)))?
                .to_owned(),
        ),
        LuaValue::Table(table) => return table_value(table, like, path, depth, fuel),
        other => return Err(format!("{} is a {}", place(path), other.type_name())),
    }))
}

fn number(value: f64) -> Option<Value> {
    // Every integer up to here is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Some(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number)
}

fn table_value(
    table: &Table,
    like: &[&Value],
    path: &mut String,
    depth: usize,
    fuel: &Fuel,
) -> Result<Option<Value>, String> {
    let failed = |error: mlua::Error| error.to_string();
    let marked: Option<bool> = table.metatable().and_then(|mark| mark.raw_get(LIST).ok());
    let mut fields: Vec<(LuaValue, LuaValue)> = Vec::new();
    table
        .for_each(|key: LuaValue, value: LuaValue| {
            fields.push((key, value));
            Ok(())
        })
        .map_err(failed)?;
    if fields.is_empty() {
        let is = |of: fn(&Value) -> bool| like.iter().any(|like| of(like));
        return Ok(match marked {
            Some(true) => Some(Value::Array(Vec::new())),
            Some(false) => Some(Value::Object(Map::new())),
            None if is(Value::is_array) => Some(Value::Array(Vec::new())),
            None if is(Value::is_object) => Some(Value::Object(Map::new())),
            None => None,
        });
    }
    let indexed = fields
        .iter()
        .filter(|(key, _)| matches!(key, LuaValue::Number(_) | LuaValue::Integer(_)))
        .count();
    let length = path.len();
    if indexed == 0 {
        let mut map = Map::new();
        for (key, value) in &fields {
            let key = match key {
                LuaValue::String(key) => key
                    .to_str()
                    .map_err(|_| format!("a key of {path} is not text"))?
                    .to_owned(),
                other => return Err(format!("a key of {path:?} is a {}", other.type_name())),
            };
            path.push('/');
            path.push_str(&key);
            let inner: Vec<&Value> = like.iter().filter_map(|like| like.get(&key)).collect();
            let value = take(value, &inner, path, depth + 1, fuel)?;
            path.truncate(length);
            if let Some(value) = value {
                map.insert(key, value);
            }
        }
        return Ok(Some(Value::Object(map)));
    }
    if indexed != fields.len() {
        return Err(format!("{path:?} is half a list and half a map"));
    }
    // Of the lists that it is like, any item may tell what an item is.
    let inner: Vec<&Value> = like
        .iter()
        .filter_map(|like| like.as_array())
        .flatten()
        .take(64)
        .collect();
    let mut items = vec![Value::Null; fields.len()];
    for (key, value) in &fields {
        let at = match key {
            LuaValue::Integer(at) => usize::try_from(*at).ok(),
            LuaValue::Number(at) => number(*at)
                .and_then(|at| at.as_u64())
                .and_then(|at| usize::try_from(at).ok()),
            _ => None,
        };
        let Some(slot) = at
            .and_then(|at| at.checked_sub(1))
            .and_then(|at| items.get_mut(at))
        else {
            return Err(format!("{path:?} is a list with gaps"));
        };
        path.push_str(&format!("/{}", at.unwrap_or_default()));
        *slot = take(value, &inner, path, depth + 1, fuel)?.unwrap_or_else(|| Value::Object(Map::new()));
        path.truncate(length);
    }
    Ok(Some(Value::Array(items)))
}
