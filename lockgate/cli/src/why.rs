//! `lockgate why KIND/NAME`: for every cluster, whether a template or a placement selects it, what keeps it out, and what
//! would help. It reads the hub's objects and decides as the controllers do, so that it says the same, also when nobody runs
//! them.

mod gather;
mod show;
mod template;

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use lockgate_engine::TemplateId;

use crate::connect::HubArguments;
use crate::exit::Failure;
use crate::print::{self, Paint};
use crate::status::gather::Question;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        lockgate why deployment/web -n shop                     every cluster, for a template\n  \
        lockgate why placement/web -n shop                      every cluster, for a placement\n  \
        lockgate why deployment/web -n shop --cluster member1   one of them\n  \
        lockgate why placement/web -n shop -o json\n\n\
        Exit codes: 0 when it could be told, 1 failure, also when there is no such object or cluster, 2 usage.")]
pub(crate) struct WhyArguments {
    /// Which template or placement, as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", num_args = 1..=2, required = true)]
    object: Vec<String>,
    /// The namespace [default: the context's]
    #[arg(short, long, value_name = "NS")]
    namespace: Option<String>,
    /// Only this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// The form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "table")]
    output: Output,
    /// Tables without their first line
    #[arg(long)]
    no_headers: bool,
    #[command(flatten)]
    hub: HubArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Wide,
    Json,
    Yaml,
}

/// Says why.
pub(crate) fn run(arguments: &WhyArguments) -> Result<ExitCode, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Other(format!("failed to start: {e}")))?
        .block_on(why(arguments))
}

async fn why(arguments: &WhyArguments) -> Result<ExitCode, Failure> {
    let Some(name) = placement(&arguments.object)? else {
        return why_template(arguments).await;
    };
    let hub = arguments.hub.connect().await?;
    let namespace = arguments.namespace.as_deref().unwrap_or(&hub.namespace);
    let objects = gather::gather(&hub, namespace, name).await?;
    let mut answer = objects.answer(jiff::Timestamp::now());
    if let Some(cluster) = &arguments.cluster {
        answer.clusters.retain(|explained| explained.cluster == *cluster);
        if answer.clusters.is_empty() {
            return Err(Failure::Other(format!(
                "there is no ManagedCluster {cluster:?}; see kubectl get managedclusters"
            )));
        }
    }
    print::out(&match arguments.output {
        Output::Table => show::table(&answer, false, !arguments.no_headers, Paint::stdout()),
        Output::Wide => show::table(&answer, true, !arguments.no_headers, Paint::stdout()),
        Output::Json => format!("{:#}\n", show::value(&answer)),
        Output::Yaml => machinery_value::encode::to_yaml(&show::value(&answer)),
    });
    Ok(ExitCode::SUCCESS)
}

async fn why_template(arguments: &WhyArguments) -> Result<ExitCode, Failure> {
    let hub = arguments.hub.connect().await?;
    let question = Question::parse(&arguments.object, arguments.namespace.as_deref(), &hub).await?;
    let Question::Object {
        kind,
        namespace,
        name,
    } = question
    else {
        return Err(Failure::Usage("say which one: KIND/NAME".to_owned()));
    };
    let id = TemplateId {
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        namespace,
        name,
    };
    let objects = crate::status::gather::read_for(&hub, &id.namespace).await?;
    let mut answer = template::Answer::of(&id, &objects)?;
    if let Some(cluster) = &arguments.cluster {
        answer.clusters.retain(|one| one.cluster == *cluster);
        if answer.clusters.is_empty() {
            return Err(Failure::Other(match &answer.left_out {
                Some(left_out) if objects.hides("clusters") => {
                    format!("it does not go to {cluster:?}, and why cannot be told; {left_out}")
                }
                _ => format!("there is no Cluster {cluster:?}; see kubectl get clusters"),
            }));
        }
    }
    print::out(&match arguments.output {
        Output::Table | Output::Wide => answer.table(!arguments.no_headers, Paint::stdout()),
        Output::Json => format!("{:#}\n", answer.value()),
        Output::Yaml => machinery_value::encode::to_yaml(&answer.value()),
    });
    Ok(ExitCode::SUCCESS)
}

/// The name of the placement that somebody asks about; none if it is about something else.
fn placement(words: &[String]) -> Result<Option<&str>, Failure> {
    let (kind, name) = match words {
        [word] => word.split_once('/').unwrap_or((word, "")),
        [kind, name, ..] => (kind.as_str(), name.as_str()),
        [] => ("", ""),
    };
    let is_placement = matches!(
        kind.to_lowercase().as_str(),
        "placement"
            | "placements"
            | "placement.cluster.open-cluster-management.io"
            | "placements.cluster.open-cluster-management.io"
    );
    if !is_placement {
        return Ok(None);
    }
    if name.is_empty() || name.contains('/') {
        return Err(Failure::Usage("say which one, as in placement/web".to_owned()));
    }
    Ok(Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_a_placement() {
        let words = |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        for text in [
            "placement/web",
            "placements/web",
            "placement web",
            "Placement/web",
        ] {
            assert_eq!(
                placement(&words(text)).map_err(|e| e.to_string()),
                Ok(Some("web")),
                "{text}"
            );
        }
        for text in ["web", "deployment/web", "deployment web"] {
            assert_eq!(
                placement(&words(text)).map_err(|e| e.to_string()),
                Ok(None),
                "{text}"
            );
        }
        for text in ["placement/", "placement", "placement/a/b"] {
            assert!(placement(&words(text)).is_err(), "{text}");
        }
    }
}
