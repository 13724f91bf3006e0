//! `lockgate pending`: what waits for a change of its own, since when, and what it would do. Derived from the hub's objects,
//! so that it costs nothing where nobody looks.

use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;

use crate::exit::Failure;
use crate::print::{self, Paint};
use crate::waiting::gather::gather;
use crate::waiting::{Output, Which, show};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        lockgate pending -A                    everything that waits\n  \
        lockgate pending --policy web          what waits for the policy web\n  \
        lockgate pending deployment/web -n shop -o json\n\n\
        APPLIED is the policy and generation that was activated last, CURRENT what owns the template now.\n\
        Exit codes: 0 also when nothing waits; 1 failure, also when the policy or the template does not exist; 2 usage.")]
pub(crate) struct PendingArguments {
    #[command(flatten)]
    which: Which,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Output,
    /// Tables without their first line
    #[arg(long)]
    no_headers: bool,
}

/// Shows what waits.
pub(crate) fn run(arguments: &PendingArguments) -> Result<ExitCode, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Other(format!("failed to start: {e}")))?
        .block_on(pending(arguments))
}

async fn pending(arguments: &PendingArguments) -> Result<ExitCode, Failure> {
    let hub = arguments.which.hub.connect().await?;
    let found = gather(&hub, &arguments.which, false).await?;
    let is_table = matches!(arguments.output, Output::Table | Output::Wide);
    if is_table && found.rows.is_empty() {
        print::out(&match found.matched {
            0 => "nothing is propagated here, so that nothing waits; see lockgate status\n".to_owned(),
            1 => "nothing waits: the template is as its policy says\n".to_owned(),
            matched => format!("nothing waits: {matched} templates are as their policies say\n"),
        });
        return Ok(ExitCode::SUCCESS);
    }
    let paint = Paint::stdout();
    let mut text = show::render(
        &found,
        arguments.output,
        !arguments.no_headers,
        paint,
        Timestamp::now(),
    );
    if is_table && !arguments.no_headers {
        text.push_str(&format!(
            "\n{} of {} wait; next: lockgate activate{} --dry-run\n",
            found.rows.len(),
            found.matched,
            again(&arguments.which)
        ));
    }
    print::out(&text);
    Ok(ExitCode::SUCCESS)
}

/// The same selection, for another command.
fn again(which: &Which) -> String {
    let mut text = String::new();
    match which.what.as_slice() {
        [] => text.push_str(" all"),
        words => words.iter().for_each(|word| text.push_str(&format!(" {word}"))),
    }
    let options = [
        ("--policy", &which.policy),
        ("-l", &which.selector),
        ("-n", &which.namespace),
    ];
    for (option, value) in options {
        if let Some(value) = value {
            text.push_str(&format!(" {option} {value}"));
        }
    }
    if which.all_namespaces {
        text.push_str(" -A");
    }
    text
}
