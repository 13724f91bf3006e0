//! What an operator asks of a rollout: a request on the template, which the controllers answer once. The template itself is
//! not changed by it, nor does the request reach any member.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use jiff::Timestamp;
use lockgate_api::keys;
use lockgate_engine::TemplateId;
use lockgate_engine::gate::record::{Request, RolloutRecord, Verb};
use lockgate_hub::{Link, LinkError};
use serde_json::{Value, json};

use super::holder::{Holder, is_policy};
use crate::connect::{Connection, HubArguments};
use crate::exit::Failure;
use crate::print;
use crate::status::gather::{Question, missing};

/// How long the controllers may take to answer before it is said that they have not.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Which resource.
#[derive(Debug, Args)]
pub(crate) struct ObjectArguments {
    /// Which resource, as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", num_args = 1..=2, required = true)]
    object: Vec<String>,
    /// The namespace [default: the context's]
    #[arg(short, long, value_name = "NS")]
    namespace: Option<String>,
    #[command(flatten)]
    hub: HubArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 1 failure, 2 usage.")]
pub(crate) struct CommandArguments {
    #[command(flatten)]
    pub(crate) of: ObjectArguments,
    /// Why; it is stored with your name, and shown by `lockgate rollout status`
    #[arg(long, value_name = "TEXT", value_parser = crate::suspend::reason)]
    reason: Option<String>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Neither form overrides a suspension. --full counts no failures.\n\n\
        Exit codes: 1 failure, 2 usage."
)]
pub(crate) struct PromoteArguments {
    #[command(flatten)]
    command: CommandArguments,
    /// Start in all clusters that are left
    #[arg(long)]
    full: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The template stays as it is, and is not sent again until somebody changes it, its overrides or its \
        placement.\n\nExit codes: 1 failure, 2 usage."
)]
pub(crate) struct UndoArguments {
    #[command(flatten)]
    command: CommandArguments,
    /// The revision to go to, as `lockgate rollout history` lists it [default: the one before]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    to_revision: Option<i64>,
}

/// Ends a soak, or all of them.
pub(crate) fn promote(arguments: &PromoteArguments) -> Result<ExitCode, Failure> {
    let verb = if arguments.full {
        Verb::PromoteFull
    } else {
        Verb::Promote
    };
    run(&arguments.command, verb, None)
}

/// Goes to an earlier revision.
pub(crate) fn undo(arguments: &UndoArguments) -> Result<ExitCode, Failure> {
    run(&arguments.command, Verb::Undo, arguments.to_revision)
}

/// Asks, and waits until the controllers have seen it.
pub(crate) fn run(arguments: &CommandArguments, verb: Verb, to: Option<i64>) -> Result<ExitCode, Failure> {
    super::tree::block_on(async {
        let found = Found::read(&arguments.of).await?;
        let hub = &found.hub;
        // What is left of a strategy that is gone answers nothing.
        let follows = found.holder.rollout().is_some();
        let Some(record) = RolloutRecord::of(found.holder.metadata()).filter(|_| follows) else {
            return Err(Failure::Other(if is_policy(&found.id) {
                format!(
                    "{} is on no cluster: see lockgate rollout status {}",
                    found.id,
                    argument(&found.id)
                )
            } else {
                format!(
                    "{} follows no strategy: a RolloutPolicy with spec.strategy gives it one",
                    found.id
                )
            }));
        };
        if verb == Verb::Undo {
            check_revision(&found, &record, to).await?;
        }
        let link = Link::new(hub.client.clone());
        let request = Request {
            id: format!("{:x}-{}", Timestamp::now().as_microsecond(), std::process::id()),
            verb,
            to,
            reason: arguments.reason.clone().unwrap_or_default(),
            by: whoami(&link).await,
        };
        // Strings and numbers always encode.
        let text = serde_json::to_string(&request).unwrap_or_default();
        let body = json!({"metadata": {"annotations": {keys::ROLLOUT_REQUEST: text}}});
        link.merge_patch(&found.path, body.to_string().into_bytes())
            .await
            .map_err(|error| Failure::Other(format!("{} did not take it: {error}", hub.url)))?;
        let answered = found.answer(&request).await?;
        print::out(&told(&found.id, &request, &record, answered.as_ref()));
        Ok(ExitCode::SUCCESS)
    })
}

/// What came of a request, in a sentence or two.
fn told(id: &TemplateId, request: &Request, before: &RolloutRecord, after: Option<&RolloutRecord>) -> String {
    let next = format!("\nNext: lockgate rollout status {}\n", argument(id));
    let Some(after) = after else {
        return format!(
            "Asked for, and not answered yet: the controllers may be down. The request stays.\n{next}"
        );
    };
    let revision = before.revision;
    // A way back from before is not what came of this.
    let turned = after.back.as_ref().filter(|_| after.back != before.back);
    let text = match (request.verb, turned) {
        (Verb::Pause, _) => format!("{id}: nothing more starts until it is resumed."),
        (Verb::Resume, _) => format!("{id}: it goes on."),
        (Verb::Promote, _) => format!("{id}: the present soak or wait of revision {revision} is over."),
        (Verb::PromoteFull, _) => format!("{id}: revision {revision} goes to all clusters that are left."),
        (Verb::Retry, _) => format!("{id}: what failed in revision {revision} starts again."),
        (Verb::Abort, Some(back)) => match &back.to {
            Some(to) => format!(
                "{id}: revision {} is given up, and its clusters go back to revision {}.\n\
                 It is not sent again until somebody changes it.",
                back.from, to.revision
            ),
            None => format!(
                "{id}: revision {} is given up. No revision has succeeded everywhere before, so that clusters stay as they are.",
                back.from
            ),
        },
        (Verb::Abort, None) => match after.back.as_ref().filter(|back| !back.forward) {
            Some(back) => format!(
                "{id}: revision {} was given up before, and there is nothing more to give up.",
                back.from
            ),
            None => format!("{id}: revision {revision} is everywhere, and there is nothing to give up."),
        },
        (Verb::Undo, Some(back)) => match &back.to {
            Some(to) => format!(
                "{id}: revision {} goes out in the usual order.\n\
                 What the template says is not sent until somebody changes it.",
                to.revision
            ),
            None => format!("{id}: the revision is gone."),
        },
        (Verb::Undo, None) => format!("{id}: there is no such revision: nothing is done."),
    };
    format!("{text}\n{next}")
}

/// How a resource is named on the command line.
pub(crate) fn argument(id: &TemplateId) -> String {
    let kind = id.kind.to_lowercase();
    match id.namespace.as_str() {
        "" => format!("{kind}/{}", id.name),
        namespace => format!("{kind}/{} -n {namespace}", id.name),
    }
}

/// Who asks, as the hub knows them.
async fn whoami(link: &Link) -> String {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let name = match link.create(path, review.to_string().into_bytes()).await {
        Ok(answer) => serde_json::from_slice::<Value>(&answer).ok().and_then(|review| {
            review["status"]["userInfo"]["username"]
                .as_str()
                .map(str::to_owned)
        }),
        Err(error) => {
            tracing::debug!(%error, "the hub does not say who asks");
            None
        }
    };
    name.or_else(|| std::env::var("USER").ok()).unwrap_or_default()
}

async fn check_revision(found: &Found, record: &RolloutRecord, to: Option<i64>) -> Result<(), Failure> {
    let revisions = super::history::revisions(found).await?;
    let there = match to {
        Some(to) => revisions.iter().any(|revision| revision.number == to),
        None => revisions
            .iter()
            .any(|revision| revision.digest != record.digest && !revision.given_up),
    };
    if there {
        return Ok(());
    }
    let known: Vec<String> = revisions
        .iter()
        .map(|revision| revision.number.to_string())
        .collect();
    let what = to.map_or_else(
        || "there is no earlier revision that was not given up".to_owned(),
        |to| format!("there is no revision {to}"),
    );
    let kept = if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    };
    Err(Failure::Other(format!("{what} of {}; kept: {kept}", found.id)))
}

/// A resource that is propagated.
pub(crate) struct Found {
    pub(crate) hub: Connection,
    pub(crate) id: TemplateId,
    /// Its path.
    path: String,
    pub(crate) holder: Holder,
}

impl Found {
    /// Finds what the arguments name.
    pub(crate) async fn read(arguments: &ObjectArguments) -> Result<Self, Failure> {
        let hub = arguments.hub.connect().await?;
        let question = Question::parse(&arguments.object, arguments.namespace.as_deref(), &hub).await?;
        let Question::Object {
            kind,
            namespace,
            name,
        } = question
        else {
            return Err(Failure::Usage("say which resource: KIND/NAME".into()));
        };
        let path = kind.path(&namespace, &name);
        if hub.get::<Value>(&path).await?.is_none() {
            return Err(missing(&kind, &namespace, &name));
        }
        let id = TemplateId {
            api_version: kind.api_version(),
            kind: kind.kind,
            namespace,
            name,
        };
        let Some(holder) = Holder::read(&hub, &id).await? else {
            return Err(Failure::Other(format!(
                "{id} has no binding: no policy propagates it. See lockgate status {}",
                argument(&id)
            )));
        };
        Ok(Self {
            hub,
            id,
            path,
            holder,
        })
    }

    /// Looks again; whether it is still there.
    pub(crate) async fn refresh(&mut self) -> Result<bool, Failure> {
        match Holder::read(&self.hub, &self.id).await? {
            Some(holder) => {
                self.holder = holder;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Waits until the controllers have seen a request.
    async fn answer(&self, request: &Request) -> Result<Option<RolloutRecord>, Failure> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let holder = Holder::read(&self.hub, &self.id).await?;
            let record = holder.and_then(|holder| RolloutRecord::of(holder.metadata()));
            let seen = |record: &RolloutRecord| {
                let command = record.command.as_ref();
                command.is_some_and(|command| command.request.id == request.id)
            };
            if record.as_ref().is_some_and(seen) {
                return Ok(record);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(None)
    }
}

/// What a server answered that refused a list.
pub(crate) fn unreadable(hub: &Connection, what: &str, error: &LinkError) -> Failure {
    Failure::Other(format!("{} does not give its {what}: {error}", hub.url))
}
