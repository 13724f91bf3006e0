//! `lockgate why placement/NAME`: for every cluster, whether a placement selects it, and what keeps it out. It reads the hub's
//! objects and decides as the controllers do, so that it says the same, also when nobody runs them.

mod gather;
mod show;

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::connect::HubArguments;
use crate::exit::Failure;
use crate::print::{self, Paint};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        lockgate why placement/web -n shop                     every cluster\n  \
        lockgate why placement/web -n shop --cluster member1   one of them\n  \
        lockgate why placement/web -n shop -o json\n\n\
        Exit codes: 0 when it could be told, 1 failure, also when there is no such placement or cluster, 2 usage.")]
pub(crate) struct WhyArguments {
    /// Which placement, as placement/NAME or placement NAME
    #[arg(value_name = "placement/NAME", num_args = 1..=2, required = true)]
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
    let name = placement(&arguments.object)?;
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

/// The name of the placement that somebody asks about.
fn placement(words: &[String]) -> Result<&str, Failure> {
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
        return Err(Failure::Usage(format!(
            "why explains placements, as in placement/web, and not {kind:?}; for templates, policies and clusters there is `lockgate status KIND/NAME`"
        )));
    }
    if name.is_empty() || name.contains('/') {
        return Err(Failure::Usage("say which one, as in placement/web".to_owned()));
    }
    Ok(name)
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
                Ok("web"),
                "{text}"
            );
        }
        for text in [
            "web",
            "deployment/web",
            "placement/",
            "placement",
            "placement/a/b",
        ] {
            assert!(placement(&words(text)).is_err(), "{text}");
        }
    }
}
