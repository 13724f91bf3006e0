//! What errors say to people.

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
