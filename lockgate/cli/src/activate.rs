//! `lockgate activate`: what waits is activated now, on purpose.
//!
//! A request is an annotation on each template, which names it; the controllers answer by activating the template and
//! keeping the request's name in the binding's record. Nothing that users write is touched, so that it is safe beside
//! GitOps, and a command that is cut off leaves requests that are either made or not made.

use std::cell::Cell;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use futures::StreamExt as _;
use jiff::Timestamp;
use lockgate_api::{Binding, keys};
use lockgate_bench::Progress;
use lockgate_engine::claim::Record;
use lockgate_hub::{Link, LinkError};
use serde_json::{Value, json};

use crate::connect::Connection;
use crate::exit::Failure;
use crate::join::LOOK_EVERY;
use crate::print::{self, Paint};
use crate::waiting::gather::{Found, Row, gather};
use crate::waiting::{Output, Which, show};

/// How many requests are under way at once.
const AT_ONCE: usize = 16;
/// As shells have it for what Ctrl-C ends.
const INTERRUPTED: u8 = 130;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        lockgate activate deployment/web -n shop        one template\n  \
        lockgate activate all -n shop --dry-run         what a whole namespace would do\n  \
        lockgate activate --policy web --batch 10 --pause 1m\n  \
        lockgate activate all -l clusterpropagationpolicy.karmada.io/name=web\n\n\
        Exit codes: 0 all that waited is activated, also if nothing did; 1 failure, also if no template matches, the\n\
        policy does not exist, or something is not activated in time; 2 usage; 130 interrupted.")]
pub(crate) struct ActivateArguments {
    #[command(flatten)]
    which: Which,
    /// Only show what would move where
    #[arg(long)]
    dry_run: bool,
    /// Also templates that do not wait: with the feature gate StaticPolicy they are matched again from scratch
    #[arg(long)]
    rematch: bool,
    /// How many templates to activate at a time [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// How long to wait between batches, as 30s or 5m
    #[arg(long, value_name = "D", value_parser = duration, requires = "batch", default_value = "0s")]
    pause: Duration,
    /// How long one batch may take, as 30s or 5m; 0s does not wait at all
    #[arg(long, value_name = "D", value_parser = duration, default_value = "5m")]
    timeout: Duration,
}

/// `30s`, `5m`, `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed: jiff::SignedDuration = text
        .parse()
        .map_err(|_| format!("{text:?} is not a time like 30s, 5m or 1h30m"))?;
    Duration::try_from(parsed).map_err(|_| format!("{text:?} is less than nothing"))
}

/// Activates what waits.
pub(crate) fn run(arguments: &ActivateArguments) -> Result<ExitCode, Failure> {
    let which = &arguments.which;
    let nothing_said = which.what.is_empty()
        && which.policy.is_none()
        && which.selector.is_none()
        && which.namespace.is_none()
        && !which.all_namespaces;
    if nothing_said {
        return Err(Failure::Usage(
            "say what to activate: all, KIND, KIND/NAME, --policy POLICY or -l LABELS; lockgate pending shows what waits"
                .to_owned(),
        ));
    }
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Other(format!("failed to start: {e}")))?
        .block_on(activate(arguments))
}

async fn activate(arguments: &ActivateArguments) -> Result<ExitCode, Failure> {
    let hub = arguments.which.hub.connect().await?;
    let mut found = gather(&hub, &arguments.which, arguments.rematch).await?;
    if found.matched == 0 {
        return Err(Failure::Other(
            "no propagated template matches; lockgate status shows what is propagated".to_owned(),
        ));
    }
    let before = found.rows.len();
    found.rows.retain(|row| row.pending.effect.is_some());
    let without = before - found.rows.len();
    let note = match without {
        0 => String::new(),
        1 => "1 template has no policy that matches, and waits for one\n".to_owned(),
        without => format!("{without} templates have no policy that matches, and wait for one\n"),
    };
    if found.rows.is_empty() {
        let up_to_date = found.matched - without;
        let text = match up_to_date {
            0 => String::new(),
            count => format!("nothing waits: {} as policies say\n", are(count)),
        };
        print::out(&format!("{text}{note}"));
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.dry_run {
        let table = show::render(&found, Output::Table, true, Paint::stdout(), Timestamp::now());
        let summary = show::summary(&found.rows);
        print::out(&format!(
            "{table}\n{note}{summary}; nothing was asked for (dry run)\n"
        ));
        return Ok(ExitCode::SUCCESS);
    }
    print::out(&note);
    let run = Run {
        hub: &hub,
        link: Link::new(hub.client.clone()),
        request: format!(
            "{}-{}",
            Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ"),
            std::process::id()
        ),
        asked: Cell::new(0),
        gone: Cell::new(0),
        done: Cell::new(0),
        progress: Progress::start("activating", found.rows.len()),
    };
    let finished = tokio::select! {
        result = run.all(arguments, &found) => Some(result),
        _ = tokio::signal::ctrl_c() => None,
    };
    drop(run.progress);
    let (asked, done, gone, all) = (run.asked.get(), run.done.get(), run.gone.get(), found.rows.len());
    match finished {
        None => {
            print::out(&format!(
                "stopped: asked for {asked} of {}, {done} of them are activated; the rest waits as before, and the same \
                 command goes on\n",
                show::templates(all)
            ));
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Some(result) => result?,
    }
    if gone > 0 {
        print::out(&format!("{} gone meanwhile\n", are(gone)));
    }
    print::out(&match arguments.timeout.is_zero() {
        true => format!(
            "asked for {}; lockgate pending shows what still waits\n",
            show::templates(asked)
        ),
        false => format!("activated {}\n", show::templates(done)),
    });
    Ok(ExitCode::SUCCESS)
}

fn are(count: usize) -> String {
    match count {
        1 => "1 template is".to_owned(),
        count => format!("{count} templates are"),
    }
}

/// One request for many templates.
struct Run<'a> {
    hub: &'a Connection,
    link: Link,
    /// The name of the request.
    request: String,
    /// How many were asked for, are gone, and are activated.
    asked: Cell<usize>,
    gone: Cell<usize>,
    done: Cell<usize>,
    progress: Progress,
}

impl Run<'_> {
    async fn all(&self, arguments: &ActivateArguments, found: &Found) -> Result<(), Failure> {
        let size = arguments.batch.map_or(found.rows.len(), |size| size as usize);
        for (number, batch) in found.rows.chunks(size).enumerate() {
            if number > 0 {
                tokio::time::sleep(arguments.pause).await;
            }
            let asked = self.ask(batch).await?;
            if !arguments.timeout.is_zero() {
                self.wait(asked, arguments.timeout).await?;
            }
        }
        Ok(())
    }

    /// Asks for a batch. Answers those that are there.
    async fn ask<'r>(&self, batch: &'r [Row]) -> Result<Vec<&'r Row>, Failure> {
        let body = json!({"metadata": {"annotations": {keys::ACTIVATE: self.request}}}).to_string();
        let requests = batch.iter().map(|row| {
            let body = body.clone().into_bytes();
            async move { (row, self.link.merge_patch(&row.path, body).await) }
        });
        let mut answers = futures::stream::iter(requests).buffered(AT_ONCE);
        let mut asked = Vec::with_capacity(batch.len());
        while let Some((row, answer)) = answers.next().await {
            match answer {
                Ok(_) => {
                    self.asked.set(self.asked.get() + 1);
                    asked.push(row);
                }
                Err(LinkError::NotFound) => self.gone.set(self.gone.get() + 1),
                Err(error) => {
                    return Err(Failure::Other(format!(
                        "failed to ask for {}: {error}; asked for {} before, which stays asked for",
                        row.pending.id,
                        self.asked.get()
                    )));
                }
            }
        }
        Ok(asked)
    }

    /// Waits until what was asked for is activated.
    async fn wait(&self, mut asked: Vec<&Row>, timeout: Duration) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            let mut left = Vec::new();
            for row in asked {
                // Those that are asked first are activated first: behind one that is not, few are.
                let answered = left.len() < AT_ONCE && self.is_answered(row).await?;
                if answered {
                    self.done.set(self.done.get() + 1);
                    self.progress.advance(1);
                } else {
                    left.push(row);
                }
            }
            let Some(first) = left.first() else { return Ok(()) };
            if begun.elapsed() > timeout {
                return Err(Failure::Other(format!(
                    "{} not activated after {} s, {} among them; the request stays, and the controllers may be down or \
                     wait for something: see lockgate status",
                    are(left.len()),
                    timeout.as_secs(),
                    first.pending.id
                )));
            }
            asked = left;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Whether the record of a template says that the request was answered, or the template is gone.
    async fn is_answered(&self, row: &Row) -> Result<bool, Failure> {
        let Some(binding) = self.hub.get::<Binding>(&row.binding_path).await? else {
            // Without a binding it is not activated, or gone altogether.
            let template: Option<Value> = self.hub.get(&row.path).await?;
            return Ok(template.is_none());
        };
        let record = Record::find(&Value::Null, Some(&binding));
        Ok(record.and_then(|record| record.request).as_ref() == Some(&self.request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        assert!(duration("soon").unwrap_err().contains("like 30s"));
        assert!(duration("-5s").unwrap_err().contains("less than nothing"));
    }
}
