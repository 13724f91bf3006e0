//! `lockgate crds`: the definitions that a hub needs, as YAML for `kubectl apply --server-side -f -`.

use std::process::ExitCode;

use crate::exit::Failure;
use crate::print;

/// Prints every definition, in the order in which they are applied.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    print::out(&lockgate_api::definitions::to_yaml_stream());
    Ok(ExitCode::SUCCESS)
}

/// What a hub without the definitions is told.
pub(crate) fn missing(url: &str) -> String {
    format!(
        "{url} does not know Lockgate's kinds: install them with `lockgate crds | kubectl apply --server-side -f -`"
    )
}
