//! Reaching an API server as kubectl does: by `--kubeconfig` and `--context`, `$KUBECONFIG`, the home directory, or the
//! service account of the pod that this runs in.

use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::exit::Failure;

/// A server that does not take a connection in this time is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Objects in one page of a list.
const PAGE: usize = 500;
/// Pages of one list at most; a server that gives more is not telling the truth.
const MAX_PAGES: usize = 100_000;

/// The options by which somebody says which server, as messages name them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags {
    kubeconfig: &'static str,
    context: &'static str,
    /// What else helps where there is no kubeconfig.
    instead: &'static str,
}

impl Flags {
    /// Those of [`HubArguments`].
    const HUB: Self = Self {
        kubeconfig: "--kubeconfig",
        context: "--context",
        instead: ", or start a hub with `lockgate up`",
    };
    /// Those of a member that joins.
    pub(crate) const MEMBER: Self = Self {
        kubeconfig: "--member-kubeconfig",
        context: "--member-context",
        instead: "",
    };
}

/// Which hub.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HubArguments {
    /// The hub's kubeconfig [default: $KUBECONFIG, else ~/.kube/config; in a pod its service account]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context to use [default: the kubeconfig's current one]
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

impl HubArguments {
    /// What the arguments lead to.
    pub(crate) async fn config(&self) -> Result<Config, Failure> {
        load(self.kubeconfig.as_deref(), self.context.as_deref(), Flags::HUB).await
    }

    /// A connection; nothing is sent yet.
    pub(crate) async fn connect(&self) -> Result<Connection, Failure> {
        Connection::new(self.config().await?)
    }
}

/// Reads the configuration of a server. Clients made from it do not retry by themselves.
pub(crate) async fn load(
    file: Option<&Path>,
    context: Option<&str>,
    flags: Flags,
) -> Result<Config, Failure> {
    let mut config = if file.is_none() && context.is_none() && in_pod() {
        Config::incluster()
            .map_err(|e| Failure::Other(format!("failed to use the pod's service account: {e}")))?
    } else {
        let kubeconfig = read(file, flags)?;
        check_context(&kubeconfig, file, context, flags)?;
        let options = KubeConfigOptions {
            context: context.map(str::to_owned),
            ..KubeConfigOptions::default()
        };
        Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .map_err(|e| Failure::Usage(format!("failed to use {}: {}", named(file), innermost(&e))))?
    };
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    Ok(config)
}

/// Whether this runs in a pod, and nobody pointed elsewhere.
fn in_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() && std::env::var_os("KUBECONFIG").is_none()
}

fn read(file: Option<&Path>, flags: Flags) -> Result<Kubeconfig, Failure> {
    let read = match file {
        Some(file) => Kubeconfig::read_from(file),
        None => Kubeconfig::read(),
    };
    read.map_err(|e| {
        Failure::Usage(format!(
            "failed to read {}: {}; name another with {}{}",
            named(file),
            innermost(&e),
            flags.kubeconfig,
            flags.instead
        ))
    })
}

fn named(file: Option<&Path>) -> String {
    match file {
        Some(file) => file.display().to_string(),
        None if std::env::var_os("KUBECONFIG").is_some() => "the files of $KUBECONFIG".to_owned(),
        None => "~/.kube/config".to_owned(),
    }
}

/// A context that is not there is answered with those that are.
fn check_context(
    kubeconfig: &Kubeconfig,
    file: Option<&Path>,
    context: Option<&str>,
    flags: Flags,
) -> Result<(), Failure> {
    if kubeconfig.contexts.is_empty() {
        return Err(Failure::Usage(format!(
            "{} has no context; name a kubeconfig that has one with {}{}",
            named(file),
            flags.kubeconfig,
            flags.instead
        )));
    }
    let Some(wanted) = context.or(kubeconfig.current_context.as_deref().filter(|c| !c.is_empty())) else {
        return Err(Failure::Usage(format!(
            "{} has no current context: name one with {} ({})",
            named(file),
            flags.context,
            contexts(kubeconfig)
        )));
    };
    if kubeconfig.contexts.iter().any(|context| context.name == wanted) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{} has no context {wanted:?}; there are {}",
        named(file),
        contexts(kubeconfig)
    )))
}

fn contexts(kubeconfig: &Kubeconfig) -> String {
    const SHOWN: usize = 10;
    let mut names: Vec<_> = kubeconfig.contexts.iter().map(|c| c.name.as_str()).collect();
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// The last link of a chain of errors: the one that says what happened.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// A server that can be asked.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) client: Client,
    /// What the client was made of.
    pub(crate) config: Config,
    /// Its URL, for messages.
    pub(crate) url: String,
    /// The namespace of the context.
    pub(crate) namespace: String,
}

impl Connection {
    pub(crate) fn new(config: Config) -> Result<Self, Failure> {
        let url = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let namespace = config.default_namespace.clone();
        let client = Client::try_from(config.clone()).map_err(|e| {
            Failure::Other(format!(
                "failed to set up a connection to {url}: {}",
                innermost(&e)
            ))
        })?;
        Ok(Self {
            client,
            config,
            url,
            namespace,
        })
    }

    /// One object; none if it, or its kind, is not there.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Failure> {
        let request = http::Request::get(path)
            .body(Vec::new())
            .map_err(|e| Failure::Other(format!("{path:?} is no path: {e}")))?;
        match self.client.request(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(self.failure(path, &error)),
        }
    }

    /// Every object of a collection, page by page; none if the kind is not served.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        collection: &str,
        query: &str,
        mut each: impl FnMut(T),
    ) -> Result<bool, Failure> {
        let mut token = String::new();
        for _ in 0..MAX_PAGES {
            let path = format!("{collection}?limit={PAGE}{query}{token}");
            let Some(page) = self.get::<Page<T>>(&path).await? else {
                return Ok(false);
            };
            page.items.into_iter().for_each(&mut each);
            if page.metadata.r#continue.is_empty() {
                return Ok(true);
            }
            token = format!("&continue={}", page.metadata.r#continue);
        }
        Err(Failure::Other(format!("{collection} does not end")))
    }

    /// What went wrong with a request, in words.
    pub(crate) fn failure(&self, path: &str, error: &kube::Error) -> Failure {
        let path = path.split('?').next().unwrap_or(path);
        if let kube::Error::Api(status) = error
            && status.code == 403
        {
            return Failure::Forbidden(format!("{} refused {path}: {}", self.url, status.message));
        }
        Failure::Other(match error {
            kube::Error::Api(status) => format!("{} refused {path}: {}", self.url, status.message),
            kube::Error::SerdeError(error) => {
                format!("{} answered {path} with something else: {error}", self.url)
            }
            error => format!(
                "failed to reach {}: {}; is it running, and is this the right kubeconfig?",
                self.url,
                error.source().map_or_else(|| error.to_string(), innermost)
            ),
        })
    }
}

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

#[derive(Default, Deserialize)]
struct PageMeta {
    #[serde(default)]
    r#continue: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "apiVersion: v1\nkind: Config\ncurrent-context: hub\n\
        clusters: [{name: hub, cluster: {server: 'https://127.0.0.1:1'}}]\n\
        contexts: [{name: hub, context: {cluster: hub, user: hub, namespace: shop}}, {name: member1, context: {cluster: hub, user: hub}}]\n\
        users: [{name: hub, user: {}}]\n";

    async fn loaded(text: &str, context: Option<&str>) -> Result<Config, String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config");
        std::fs::write(&file, text).unwrap();
        load(Some(&file), context, Flags::HUB)
            .await
            .map_err(|e| e.to_string())
    }

    #[tokio::test]
    async fn the_current_context_and_a_named_one() {
        let config = loaded(TWO, None).await.unwrap();
        assert_eq!(config.default_namespace, "shop");
        assert!(!config.default_retry);
        assert_eq!(
            loaded(TWO, Some("member1")).await.unwrap().default_namespace,
            "default"
        );
    }

    #[tokio::test]
    async fn what_is_not_there_is_named() {
        let error = loaded(TWO, Some("nowhere")).await.unwrap_err();
        assert!(
            error.contains("no context \"nowhere\"; there are hub, member1"),
            "{error}"
        );
        let error = loaded(&TWO.replace("current-context: hub\n", ""), None)
            .await
            .unwrap_err();
        assert!(
            error.contains("no current context: name one with --context (hub, member1)"),
            "{error}"
        );
        let error = load(Some(Path::new("/nowhere/config")), None, Flags::HUB)
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("failed to read /nowhere/config: No such file"),
            "{error}"
        );
        assert!(
            error.ends_with("; name another with --kubeconfig, or start a hub with `lockgate up`"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn a_member_is_named_by_its_own_options() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config");
        for (text, part) in [
            (None, "; name another with --member-kubeconfig"),
            (
                Some("a: b\n".to_owned()),
                " has no context; name a kubeconfig that has one with --member-kubeconfig",
            ),
            (
                Some(TWO.replace("current-context: hub\n", "")),
                " has no current context: name one with --member-context (hub, member1)",
            ),
        ] {
            if let Some(text) = text {
                std::fs::write(&file, text).unwrap();
            }
            let error = load(Some(&file), None, Flags::MEMBER)
                .await
                .unwrap_err()
                .to_string();
            assert!(error.ends_with(part), "{error}");
        }
    }

    #[tokio::test]
    async fn a_server_that_is_not_there() {
        let connection = Connection::new(loaded(TWO, None).await.unwrap()).unwrap();
        let error = connection
            .get::<serde_json::Value>("/version")
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("failed to reach https://127.0.0.1:1: "),
            "{error}"
        );
        assert!(error.contains("is it running"), "{error}");
    }
}
