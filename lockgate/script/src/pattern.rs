//! Lua's patterns: `string.find`, `match`, `gmatch` and `gsub`, with every step counted. The originals try some patterns for
//! longer than anybody waits.

mod engine;

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Function, Lua, LuaString, MultiValue, Table, Value as LuaValue};

use crate::fuel::Fuel;
use engine::{Bad, Capture, Found, Pattern};

/// Puts the functions into the table of strings.
pub(crate) fn install(lua: &Lua, string: &Table, fuel: &Rc<Fuel>, memory: usize) -> mlua::Result<()> {
    string.raw_set("find", find(lua, fuel, true)?)?;
    string.raw_set("match", find(lua, fuel, false)?)?;
    string.raw_set("gmatch", every(lua, fuel)?)?;
    string.raw_set("gsub", replace(lua, fuel, memory)?)
}

impl From<Bad> for mlua::Error {
    fn from(bad: Bad) -> Self {
        Self::RuntimeError(bad.message().to_owned())
    }
}

/// Where a search begins: the first is 1, and what is negative counts from the end.
fn start(init: Option<f64>, length: usize) -> usize {
    match init.unwrap_or(1.0) {
        at if at > 0.0 => (at as usize - 1).min(length + 1),
        at if at < 0.0 => (length as f64 + at).max(0.0) as usize,
        _ => 0,
    }
}

/// `string.find` and `string.match`.
fn find(lua: &Lua, fuel: &Rc<Fuel>, places: bool) -> mlua::Result<Function> {
    let fuel = fuel.clone();
    type Arguments = (LuaString, LuaString, Option<f64>, Option<bool>);
    lua.create_function(move |lua, (text, pattern, init, plain): Arguments| {
        let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
        let nothing = || MultiValue::from_vec(vec![LuaValue::Nil]);
        let from = start(init, text.len());
        if from > text.len() {
            return Ok(nothing());
        }
        let plain = places && plain.unwrap_or(false);
        let pattern = Pattern::new(&pattern, plain);
        let Some(found) = pattern.find(&text, from, &fuel)? else {
            return Ok(nothing());
        };
        let mut answer = Vec::new();
        if places {
            answer.push(LuaValue::Number(position(found.start)));
            answer.push(LuaValue::Number(position(found.end) - 1.0));
            for capture in &found.captures {
                answer.push(captured(lua, &text, capture)?);
            }
        } else {
            answer = whole_or_captures(lua, &text, &found)?;
        }
        Ok(MultiValue::from_vec(answer))
    })
}

/// `string.gmatch`.
fn every(lua: &Lua, fuel: &Rc<Fuel>) -> mlua::Result<Function> {
    let fuel = fuel.clone();
    lua.create_function(move |lua, (text, pattern): (LuaString, LuaString)| {
        let fuel = fuel.clone();
        let at = Cell::new(Some(0));
        lua.create_function(move |lua, _: MultiValue| {
            let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
            // An anchor means nothing here.
            let pattern = Pattern::unanchored(&pattern);
            let found = match at.get() {
                Some(from) if from <= text.len() => pattern.find(&text, from, &fuel)?,
                _ => None,
            };
            let Some(found) = found else {
                at.set(None);
                return Ok(MultiValue::from_vec(vec![LuaValue::Nil]));
            };
            let empty = usize::from(found.end == found.start);
            at.set(Some(found.end + empty));
            Ok(MultiValue::from_vec(whole_or_captures(lua, &text, &found)?))
        })
    })
}

/// `string.gsub`.
fn replace(lua: &Lua, fuel: &Rc<Fuel>, memory: usize) -> mlua::Result<Function> {
    let fuel = fuel.clone();
    type Arguments = (LuaString, LuaString, LuaValue, Option<f64>);
    lua.create_function(move |lua, (text, pattern, with, most): Arguments| {
        let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
        let anchored = pattern.first() == Some(&b'^');
        let pattern = Pattern::new(&pattern, false);
        let most = most.unwrap_or(f64::INFINITY);
        let (mut made, mut count, mut at) = (Vec::new(), 0.0, 0);
        while count < most && at <= text.len() {
            let found = pattern.at(&text, at, &fuel)?;
            match &found {
                Some(found) => {
                    count += 1.0;
                    let new = replacement(lua, &text, found, &with)?;
                    fuel.charge(new.len())?;
                    if made.len() + new.len() > memory {
                        return Err(mlua::Error::MemoryError("not enough memory".to_owned()));
                    }
                    made.extend(new);
                }
                None if at < text.len() => made.push(text[at]),
                None => {}
            }
            at = match found {
                Some(found) if found.end > at => found.end,
                Some(_) => {
                    made.extend(text.get(at));
                    at + 1
                }
                None => at + 1,
            };
            if anchored {
                break;
            }
        }
        made.extend(text.get(at..).unwrap_or_default());
        Ok((lua.create_string(&made)?, count))
    })
}

/// What stands in the place of what was found.
fn replacement(lua: &Lua, text: &[u8], found: &Found, with: &LuaValue) -> mlua::Result<Vec<u8>> {
    let whole = &text[found.start..found.end];
    let first = || match found.captures.first() {
        Some(capture) => captured(lua, text, capture),
        None => Ok(LuaValue::String(lua.create_string(whole)?)),
    };
    let answer = match with {
        LuaValue::String(with) => return expanded(lua, text, found, &with.as_bytes()),
        LuaValue::Number(_) | LuaValue::Integer(_) => {
            let with = lua.coerce_string(with.clone())?;
            return Ok(with.map(|with| with.as_bytes().to_vec()).unwrap_or_default());
        }
        LuaValue::Table(table) => table.get::<LuaValue>(first()?)?,
        LuaValue::Function(function) => {
            let arguments = MultiValue::from_vec(whole_or_captures(lua, text, found)?);
            function.call::<LuaValue>(arguments)?
        }
        _ => {
            return Err(mlua::Error::RuntimeError(
                "gsub replaces by a text, a table or a function".to_owned(),
            ));
        }
    };
    match answer {
        LuaValue::Nil | LuaValue::Boolean(false) => Ok(whole.to_vec()),
        other => match lua.coerce_string(other)? {
            Some(text) => Ok(text.as_bytes().to_vec()),
            None => Err(mlua::Error::RuntimeError(
                "gsub got a replacement that is no text".to_owned(),
            )),
        },
    }
}

/// A replacing text, with `%0` to `%9` filled in.
fn expanded(lua: &Lua, text: &[u8], found: &Found, with: &[u8]) -> mlua::Result<Vec<u8>> {
    let mut made = Vec::with_capacity(with.len());
    let mut bytes = with.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            made.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'0') => made.extend(&text[found.start..found.end]),
            Some(digit @ b'1'..=b'9') => {
                let index = usize::from(digit - b'1');
                match found.captures.get(index) {
                    Some(capture) => {
                        let value = captured(lua, text, capture)?;
                        let value = lua.coerce_string(value)?;
                        made.extend(value.map(|value| value.as_bytes().to_vec()).unwrap_or_default());
                    }
                    None if index == 0 => made.extend(&text[found.start..found.end]),
                    None => return Err(mlua::Error::RuntimeError("invalid capture index".to_owned())),
                }
            }
            Some(&other) => made.push(other),
            None => return Err(mlua::Error::RuntimeError("a replacement ends in %".to_owned())),
        }
    }
    Ok(made)
}

fn whole_or_captures(lua: &Lua, text: &[u8], found: &Found) -> mlua::Result<Vec<LuaValue>> {
    if found.captures.is_empty() {
        return Ok(vec![LuaValue::String(
            lua.create_string(&text[found.start..found.end])?,
        )]);
    }
    found
        .captures
        .iter()
        .map(|capture| captured(lua, text, capture))
        .collect()
}

fn captured(lua: &Lua, text: &[u8], capture: &Capture) -> mlua::Result<LuaValue> {
    Ok(match *capture {
        Capture::Place(at) => LuaValue::Number(position(at)),
        Capture::Span(start, end) => LuaValue::String(lua.create_string(&text[start..end])?),
        Capture::Open(_) => return Err(Bad::Unfinished.into()),
    })
}

/// A place as Lua counts.
fn position(at: usize) -> f64 {
    let at = at as f64;
    at + 1.0
}
