//! What errors say to people.

use mlua::{Error, Function, LuaString, Value};

/// The longest message that is kept, in characters.
const LONGEST: usize = 500;

/// An error's own words: where in the script, and what; without a trace of calls.
pub(crate) fn of_error(error: &mlua::Error) -> String {
    let text = match error {
        mlua::Error::CallbackError { cause, .. } => return of_error(cause),
        mlua::Error::RuntimeError(text) => text.clone(),
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        other => other.to_string(),
    };
    let text = text.split("\nstack traceback:").next().unwrap_or_default().trim();
    let kept: String = text.chars().filter(|c| !c.is_control()).take(LONGEST).collect();
    kept
}

/// A value that a script raised, as an error. One that is no text is told by what it is: the text of a table is its address,
/// and equal calls would tell different errors.
pub(crate) fn raised(value: &Value) -> Error {
    let text = match value {
        Value::Error(error) => return (**error).clone(),
        Value::String(text) => text.to_string_lossy(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Nil => "an error that is nil".to_owned(),
        other => own_words(other).unwrap_or_else(|| format!("an error that is a {}", other.type_name())),
    };
    Error::RuntimeError(text)
}

/// What a table says of itself, if it knows how to.
fn own_words(value: &Value) -> Option<String> {
    let tell: Function = value.as_table()?.metatable()?.raw_get("__tostring").ok()?;
    let words: LuaString = tell.call(value).ok()?;
    Some(words.to_string_lossy())
}
