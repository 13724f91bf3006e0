//! JSON values in Lua, and back.
//!
//! Lua has one kind of table and one kind of number, and no null in a table. Lists and empty maps are marked on their way in, so
//! that empty ones come back as they went; a table that has nulls remembers where. A number without a fraction is an integer
//! again; one that is too large for a double is what it was, where it is not changed.

use mlua::{Lua, LuaString, Table, Value as LuaValue};
use serde_json::{Map, Number, Value};

use crate::fuel::Fuel;

/// How deep values may be nested; what servers store is less deep.
const DEPTH: usize = 100;
/// What a value takes apart from its text, in bytes.
const NODE: usize = 64;
/// The field of a metatable that says whether a table is a list.
const LIST: &str = "__list";
/// The field of a metatable that says where a table has nulls.
const NULLS: &str = "__nulls";
/// How many values are looked at to tell what one is.
const MOST_ALIKE: usize = 64;
/// From here on not every integer is a double.
const EXACT: f64 = 9_007_199_254_740_992.0;
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
            let nulls = items.iter().zip(1..).filter(|(item, _)| item.is_null());
            let nulls: Vec<LuaValue> = nulls.map(|(_, at)| LuaValue::Number(at.into())).collect();
            let mark = match nulls.is_empty() {
                true => marks.list.clone(),
                false => with_nulls(lua, true, nulls)?,
            };
            table.set_metatable(Some(mark))?;
            LuaValue::Table(table)
        }
        Value::Object(fields) => {
            let table = lua.create_table_with_capacity(0, fields.len())?;
            for (key, field) in fields {
                table.raw_set(key.as_str(), put(lua, field, marks, depth + 1)?)?;
            }
            let mut nulls = Vec::new();
            for (key, _) in fields.iter().filter(|(_, field)| field.is_null()) {
                nulls.push(LuaValue::String(lua.create_string(key)?));
            }
            if fields.is_empty() {
                table.set_metatable(Some(marks.map.clone()))?;
            } else if !nulls.is_empty() {
                table.set_metatable(Some(with_nulls(lua, false, nulls)?))?;
            }
            LuaValue::Table(table)
        }
    })
}

/// What marks one table that has nulls.
fn with_nulls(lua: &Lua, is_list: bool, nulls: Vec<LuaValue>) -> mlua::Result<Table> {
    let mark = lua.create_table()?;
    mark.raw_set(LIST, is_list)?;
    mark.raw_set(NULLS, nulls)?;
    Ok(mark)
}

/// Where a table that came from outside has nulls: the keys of a map, the places in a list. A script may say so too, and it counts.
fn nulls_of<T: mlua::FromLua>(table: &Table, path: &str, fuel: &Fuel) -> Result<Vec<T>, String> {
    let mark = table.metatable();
    let nulls: Vec<T> = mark.and_then(|mark| mark.raw_get(NULLS).ok()).unwrap_or_default();
    fuel.charge(nulls.len().saturating_mul(NODE))
        .map_err(|_| format!("{path:?} is too large"))?;
    Ok(nulls)
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
        LuaValue::Integer(value) => untouched(*value as f64, like).unwrap_or_else(|| Value::from(*value)),
        LuaValue::Number(value) => match untouched(*value, like) {
            Some(number) => number,
            None => number(*value).ok_or_else(|| format!("{} is {value}", place(path)))?,
        },
        LuaValue::String(text) => Value::String(
            text.to_str()
                .map_err(|_| format!("{} is not text", place(path)))?
                .to_owned(),
        ),
        LuaValue::Table(table) => return table_value(table, like, path, depth, fuel),
        other => return Err(format!("{} is a {}", place(path), other.type_name())),
    }))
}

/// The number that a large double was before it went in: the script cannot have meant another.
fn untouched(value: f64, like: &[&Value]) -> Option<Value> {
    if value.abs() < EXACT {
        return None;
    }
    let same = |like: &&&Value| like.is_number() && like.as_f64() == Some(value);
    like.iter().find(same).map(|same| (*same).clone())
}

fn number(value: f64) -> Option<Value> {
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
    if fields.is_empty() && marked.is_none() {
        let is = |of: fn(&Value) -> bool| like.iter().any(|like| of(like));
        return Ok(if is(Value::is_array) {
            Some(Value::Array(Vec::new()))
        } else {
            is(Value::is_object).then(|| Value::Object(Map::new()))
        });
    }
    let indexed = fields
        .iter()
        .filter(|(key, _)| matches!(key, LuaValue::Number(_) | LuaValue::Integer(_)))
        .count();
    let length = path.len();
    if indexed == 0 && !(fields.is_empty() && marked == Some(true)) {
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
        // Only who answers with the same object again says what it had as null.
        for key in nulls_of::<LuaString>(table, path, fuel)? {
            let Ok(key) = key.to_str() else { continue };
            if !map.contains_key(&*key) && like.iter().any(|like| like.get(&*key) == Some(&Value::Null)) {
                map.insert(key.to_owned(), Value::Null);
            }
        }
        return Ok(Some(Value::Object(map)));
    }
    if indexed != fields.len() {
        return Err(format!("{path:?} is half a list and half a map"));
    }
    // Of the lists that it is like, the item in the same place tells first what an item is, and then any other.
    let lists: Vec<&Vec<Value>> = like.iter().filter_map(|like| like.as_array()).collect();
    let others: Vec<&Value> = lists.iter().copied().flatten().take(MOST_ALIKE).collect();
    let nulls = nulls_of::<usize>(table, path, fuel)?;
    let mut items = vec![Value::Null; length_with(&fields, &nulls)];
    for (key, value) in &fields {
        let Some((at, slot)) = index(key).and_then(|at| Some((at, items.get_mut(at)?))) else {
            return Err(format!("{path:?} is a list with gaps"));
        };
        let mut inner: Vec<&Value> = lists.iter().filter_map(|list| list.get(at)).collect();
        inner.extend(&others);
        inner.truncate(MOST_ALIKE);
        path.push_str(&format!("/{}", at + 1));
        *slot = take(value, &inner, path, depth + 1, fuel)?.unwrap_or_else(|| Value::Object(Map::new()));
        path.truncate(length);
    }
    Ok(Some(Value::Array(items)))
}

/// How long a list is: up to the first place where it has neither an item nor a null.
fn length_with(fields: &[(LuaValue, LuaValue)], nulls: &[usize]) -> usize {
    let mut filled = vec![false; fields.len() + nulls.len()];
    let items = fields.iter().filter_map(|(key, _)| index(key));
    for at in items.chain(nulls.iter().filter_map(|at| at.checked_sub(1))) {
        if let Some(place) = filled.get_mut(at) {
            *place = true;
        }
    }
    let end = filled.iter().position(|filled| !filled);
    end.unwrap_or(filled.len())
}

/// The place of an item in a list, if a key is one; Lua counts from one.
fn index(key: &LuaValue) -> Option<usize> {
    let at = match key {
        LuaValue::Integer(at) => usize::try_from(*at).ok()?,
        LuaValue::Number(at) => usize::try_from(number(*at)?.as_u64()?).ok()?,
        _ => return None,
    };
    at.checked_sub(1)
}
