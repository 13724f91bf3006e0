//! `lockgate join`: gives the control plane an account in a cluster, and the hub a Cluster.

mod progress;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use base64::Engine as _;
use clap::Args;
use lockgate_api::{Cluster, Condition};
use lockgate_hub::clusters::join::{JoinError, JoinRequest, check, join_member, refuse_hub};
use lockgate_hub::clusters::rights;
use lockgate_hub::{Link, LinkError, Resource};

use crate::connect::{Connection, Flags, HubArguments, load};
use crate::exit::Failure;
use crate::print;
pub(crate) use progress::Progress;

/// How often a Cluster is looked at while somebody waits for it.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(300);
/// How long a member's token controller may take.
const TOKEN_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 1 failure, 2 usage.")]
pub(crate) struct JoinArguments {
    /// The cluster's name on the hub; at most 48 characters
    #[arg(value_name = "NAME")]
    name: String,
    /// The member's kubeconfig, of somebody who may grant every right there
    #[arg(long, value_name = "FILE")]
    member_kubeconfig: PathBuf,
    /// The context to use in it [default: its current one]
    #[arg(long, value_name = "NAME")]
    member_context: Option<String>,
    /// The URL at which the controllers reach the member [default: that of its kubeconfig]
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Labels of the Cluster, as key=value,other=value
    #[arg(long, value_name = "LABELS", value_delimiter = ',', value_parser = label)]
    labels: Vec<(String, String)>,
    /// Who runs the member
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    provider: String,
    /// Where the member is
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    region: String,
    /// The member's zones, as one,two
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    zone: Vec<String>,
    /// Bring a cluster up to date that has joined under this name: its account, its rights, and a new token
    #[arg(long)]
    refresh: bool,
    /// How long to wait until the member is ready, in seconds; 0 does not wait
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    #[command(flatten)]
    hub: HubArguments,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(format!("{text:?} is not of the form key=value")),
    }
}

/// Joins, and waits until the member is ready.
pub(crate) fn run(arguments: &JoinArguments) -> Result<ExitCode, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Other(format!("failed to start: {e}")))?
        .block_on(join(arguments))
}

async fn join(arguments: &JoinArguments) -> Result<ExitCode, Failure> {
    let config = load(
        Some(&arguments.member_kubeconfig),
        arguments.member_context.as_deref(),
        Flags::MEMBER,
    )
    .await?;
    let mut request = request(arguments, &config)?;
    let member = Connection::new(config)?;
    let hub = arguments.hub.connect().await?;
    if arguments.refresh && arguments.endpoint.is_none() {
        // The controllers may reach it in another way than whoever mends it.
        let present: Option<Cluster> = hub.get(&Resource::clusters().object("", &request.name)).await?;
        let endpoint = present.map(|cluster| cluster.spec.api_endpoint);
        request.endpoint = endpoint.filter(|url| !url.is_empty()).unwrap_or(request.endpoint);
    }
    let links = (Link::new(hub.client.clone()), Link::new(member.client.clone()));
    let refused = |error| failure(error, &hub.url, &member.url);
    refuse_hub(&links.0, &links.1).await.map_err(refused)?;
    let joined = join_member(&links.0, &links.1, &request, &mut |line| {
        print::out(&format!("  {line}\n"));
    })
    .await
    .map_err(refused)?;
    print::out(&granted(&request.name));
    if let Some(until) = joined.token_until {
        print::out(&format!(
            "\nThe token runs out at {until}; the controllers renew it before that.\n"
        ));
    }
    if arguments.timeout == 0 {
        print::out(&format!("\n{} has joined.{}", request.name, next(&request.name)));
        return Ok(ExitCode::SUCCESS);
    }
    let progress = Progress::new();
    let patience = Duration::from_secs(arguments.timeout);
    wait_ready(&links.0, &request.name, patience, &progress).await?;
    print::out(&format!(
        "\n{} has joined and is ready.{}",
        request.name,
        next(&request.name)
    ));
    Ok(ExitCode::SUCCESS)
}

fn next(name: &str) -> String {
    format!("\n\nNext:\n\n  lockgate status\n  kubectl get cluster {name}\n")
}

/// What the member's kubeconfig and the arguments say, checked.
fn request(arguments: &JoinArguments, config: &kube::Config) -> Result<JoinRequest, Failure> {
    let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
    if config.tls_server_name.is_some() {
        return Err(Failure::Usage(format!(
            "{} names a tls-server-name for {url}, which a Cluster cannot: name a URL that the certificate is for with \
             --endpoint, in a context without it",
            arguments.member_kubeconfig.display()
        )));
    }
    let mut labels = BTreeMap::new();
    for (key, value) in &arguments.labels {
        if labels.insert(key.clone(), value.clone()).is_some() {
            return Err(Failure::Usage(format!("the label {key:?} is given twice")));
        }
    }
    let endpoint = arguments.endpoint.clone().unwrap_or(url);
    let parsed = endpoint.parse::<http::Uri>();
    if !parsed.is_ok_and(|uri| matches!(uri.scheme_str(), Some("https" | "http")) && uri.host().is_some()) {
        return Err(Failure::Usage(format!("{endpoint:?} is no URL of an API server")));
    }
    let proxy = config.proxy_url.as_ref();
    let request = JoinRequest {
        name: arguments.name.clone(),
        endpoint,
        ca_bundle: config.root_cert.as_deref().map(to_pem),
        insecure: config.accept_invalid_certs,
        proxy_url: proxy
            .map(|url| url.to_string().trim_end_matches('/').to_owned())
            .unwrap_or_default(),
        labels,
        provider: arguments.provider.clone(),
        region: arguments.region.clone(),
        zones: arguments.zone.clone(),
        token_patience: TOKEN_PATIENCE,
        refresh: arguments.refresh,
        renew_token: arguments.refresh,
    };
    check(&request).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(request)
}

fn to_pem(certificates: &[Vec<u8>]) -> String {
    let mut pem = String::new();
    for certificate in certificates {
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        let text = base64::engine::general_purpose::STANDARD.encode(certificate);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, more) = rest.split_at(rest.len().min(64));
            pem.push_str(line);
            pem.push('\n');
            rest = more;
        }
        pem.push_str("-----END CERTIFICATE-----\n");
    }
    pem
}

/// What went wrong, with the server that it happened on.
fn failure(error: JoinError, hub: &str, member: &str) -> Failure {
    let unreachable = |who: &str, url: &str, why: &str| {
        Failure::Other(format!(
            "failed to reach the {who} at {url}: {why}; is it running, and is this the right kubeconfig?"
        ))
    };
    match &error {
        JoinError::Invalid(_) => Failure::Usage(error.to_string()),
        JoinError::Member {
            error: LinkError::Unreachable(why),
            ..
        } => unreachable("member", member, why),
        JoinError::Hub {
            error: LinkError::Unreachable(why),
            ..
        } => unreachable("hub", hub, why),
        _ => Failure::Other(error.to_string()),
    }
}

/// The rights that the account has, as YAML.
fn granted(name: &str) -> String {
    let rules = machinery_value::encode::to_yaml(&rights::rules());
    let rules: String = rules.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "\nRights of ServiceAccount {}/{} in the member:\n\n{rules}",
        rights::MEMBER_NAMESPACE,
        rights::account_name(name)
    )
}

/// Returns when the cluster is ready.
async fn wait_ready(link: &Link, name: &str, patience: Duration, progress: &Progress) -> Result<(), Failure> {
    let path = Resource::clusters().object("", name);
    let begun = tokio::time::Instant::now();
    loop {
        let body = link
            .get(&path)
            .await
            .map_err(|error| Failure::Other(format!("failed to read Cluster {name}: {error}")))?;
        let cluster: Cluster = serde_json::from_slice(&body)
            .map_err(|error| Failure::Other(format!("failed to read Cluster {name}: {error}")))?;
        let ready = Condition::find(&cluster.status.conditions, lockgate_engine::cluster::READY);
        if ready.is_some_and(Condition::is_true) {
            progress.clear();
            return Ok(());
        }
        let why = ready.map_or("no controller has looked at it yet", |ready| {
            ready.message.as_str()
        });
        if begun.elapsed() >= patience {
            progress.clear();
            let hint = if ready.is_none() {
                "; does `lockgate controller` run?"
            } else {
                "; the controllers go on trying"
            };
            return Err(Failure::Other(format!(
                "{name} has joined, but is not ready after {} s: {why}{hint}",
                patience.as_secs()
            )));
        }
        progress.show(&format!("waiting for {name}: {why}"));
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
