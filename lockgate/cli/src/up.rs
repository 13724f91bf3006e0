//! `lockgate up`: a hub and member clusters in one process, each an API server on a loopback port of its own.

mod audit;
mod cluster;
mod control;
mod directory;
mod kubeconfig;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use machinery_auth::Pki;

use crate::exit::Failure;
use crate::gates::{self, FeatureGates};
use crate::up::cluster::{Cluster, Role};
use crate::up::directory::{Directory, Ports};

/// The hub's port when nobody says otherwise.
const HUB_PORT: u16 = 7443;
/// The most members that one process starts.
const MAX_MEMBERS: u16 = 1000;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 1 failure, 2 usage, 3 port in use, 4 directory or audit log not writable, 5 directory in use, \
                        6 damaged data; with -- CMD, the command's own."
)]
pub(crate) struct UpArguments {
    /// How many member clusters to start
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=i64::from(MAX_MEMBERS)))]
    members: u16,
    /// Where to keep everything [default: $XDG_DATA_HOME/lockgate]
    #[arg(long, value_name = "DIR", conflicts_with = "ephemeral")]
    data_dir: Option<PathBuf>,
    /// Keep nothing: all state is in memory and gone at the end
    #[arg(long)]
    ephemeral: bool,
    /// Where to write the kubeconfig [default: kubeconfig in the data directory]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Add to the file named by --kubeconfig if it holds entries of others
    #[arg(long, requires = "kubeconfig")]
    merge: bool,
    /// The hub's port; 0 takes any free one [default: the last one, else 7443]
    #[arg(long, value_name = "P")]
    port: Option<u16>,
    /// Feature gates, as Name=true,Other=false
    #[arg(long, value_name = "GATES", default_value = "", hide_default_value = true)]
    feature_gates: FeatureGates,
    /// Only the API servers: no definitions on the hub, no controllers
    #[arg(long)]
    bare: bool,
    /// How long a workload takes to become ready in the members, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    ready_after: u64,
    /// Log every request, a file for each server: hub.log, member1.log, … (see docs/api-server.md)
    #[arg(long, value_name = "FOLDER")]
    audit_log: Option<PathBuf>,
    /// Run this command with KUBECONFIG set, and exit with its code
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

impl UpArguments {
    /// A fleet for one command, of which nothing stays.
    pub(crate) fn for_demo(members: u16, command: Vec<String>) -> Self {
        Self {
            members,
            data_dir: None,
            ephemeral: true,
            kubeconfig: None,
            merge: false,
            port: Some(0),
            feature_gates: FeatureGates::default(),
            bare: false,
            ready_after: 500,
            audit_log: None,
            command,
        }
    }
}

/// Runs until Ctrl-C, or until the command ends.
pub(crate) fn run(arguments: UpArguments) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::Other(format!("failed to start: {e}")))?;
    runtime.block_on(up(arguments))
}

async fn up(arguments: UpArguments) -> Result<ExitCode, Failure> {
    let started = Instant::now();
    let stop = stop_signal()?;
    let directory = Directory::open(arguments.data_dir.as_deref(), arguments.ephemeral)?;
    let pki = Arc::new(directory.pki()?);
    let mut ports = directory.ports()?;
    let clusters = start_clusters(&arguments, &directory, &pki, &mut ports).await?;
    directory.save_ports(&ports)?;

    let target = arguments
        .kubeconfig
        .clone()
        .unwrap_or_else(|| directory.path().join("kubeconfig"));
    kubeconfig::write(&target, &pki, &clusters, arguments.merge)?;
    let gates = arguments.feature_gates.over(gates::UP);
    let (hub, members) = clusters
        .split_first()
        .ok_or_else(|| Failure::Other("there is no hub".into()))?;
    let control = if arguments.bare {
        None
    } else {
        Some(control::start(hub, members, &pki, gates).await?)
    };
    let took = started.elapsed();

    let code = if arguments.command.is_empty() {
        print_banner(&arguments, &directory, &target, &clusters, took);
        stop.await;
        print("\nstopping…");
        ExitCode::SUCCESS
    } else {
        run_command(&arguments.command, &target, stop).await?
    };
    if let Some(control) = control {
        control.stop().await;
    }
    for cluster in clusters {
        cluster.stop().await;
    }
    Ok(code)
}

async fn start_clusters(
    arguments: &UpArguments,
    directory: &Directory,
    pki: &Arc<Pki>,
    ports: &mut Ports,
) -> Result<Vec<Cluster>, Failure> {
    let delay = Duration::from_millis(arguments.ready_after);
    // A port that was any free one stays the same from then on.
    let hub_port = match arguments.port {
        Some(0) => ports.get("hub").unwrap_or(0),
        Some(port) => port,
        None => ports.get("hub").unwrap_or(HUB_PORT),
    };
    let mut wanted = vec![("hub".to_owned(), Role::Hub, hub_port)];
    wanted.extend((1..=arguments.members).map(|number| {
        let name = format!("member{number}");
        let port = ports.get(&name).unwrap_or(0);
        (name, Role::Member { delay }, port)
    }));
    let starting = wanted.iter().map(|(name, role, port)| async {
        let audit = match &arguments.audit_log {
            Some(folder) => Some(audit::open(folder, name)?),
            None => None,
        };
        Cluster::start(name, *role, *port, directory, pki, audit).await
    });
    let clusters = futures::future::try_join_all(starting).await?;
    for cluster in &clusters {
        ports.set(&cluster.name, cluster.port());
    }
    Ok(clusters)
}

/// Resolves at the first Ctrl-C or SIGTERM.
pub(crate) fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen =
        |kind| signal(kind).map_err(|e| Failure::Other(format!("failed to listen for signals: {e}")));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

async fn run_command(
    command: &[String],
    kubeconfig: &std::path::Path,
    stop: impl Future<Output = ()>,
) -> Result<ExitCode, Failure> {
    let (program, rest) = command
        .split_first()
        .ok_or_else(|| Failure::Usage("no command after --".into()))?;
    let mut child = tokio::process::Command::new(program)
        .args(rest)
        .env("KUBECONFIG", kubeconfig)
        .kill_on_drop(true)
        .spawn()
        .map_err(|e| Failure::Other(format!("failed to run {program:?}: {e}")))?;
    let status = tokio::select! {
        status = child.wait() => status,
        () = stop => {
            // The terminal has told the command too; it gets the time to end.
            match tokio::time::timeout(Duration::from_secs(10), child.wait()).await {
                Ok(status) => status,
                Err(_) => { let _ = child.kill().await; child.wait().await }
            }
        }
    };
    let status = status.map_err(|e| Failure::Other(format!("failed to wait for {program:?}: {e}")))?;
    use std::os::unix::process::ExitStatusExt as _;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

fn print_banner(
    arguments: &UpArguments,
    directory: &Directory,
    kubeconfig: &std::path::Path,
    clusters: &[Cluster],
    took: Duration,
) {
    let width = clusters.iter().map(|c| c.name.len()).max().unwrap_or(3);
    print(&format!(
        "Lockgate {} is up ({} ms)\n",
        env!("CARGO_PKG_VERSION"),
        took.as_millis()
    ));
    const SHOWN: usize = 6;
    for cluster in clusters.iter().take(SHOWN) {
        print(&format!("  {:width$}  {}", cluster.name, cluster.url()));
    }
    if clusters.len() > SHOWN {
        print(&format!("  … and {} more", clusters.len() - SHOWN));
    }
    let kept = if arguments.ephemeral {
        "in memory only".to_owned()
    } else {
        directory.path().display().to_string()
    };
    print(&format!(
        "\n  data        {kept}\n  kubeconfig  {}",
        kubeconfig.display()
    ));
    if let Some(folder) = &arguments.audit_log {
        print(&format!("  audit log   {}", folder.display()));
    }
    print(&format!(
        "\nNext, in another terminal:\n\n  export KUBECONFIG={}\n  kubectl get clusters\n{}\nCtrl-C stops it.",
        kubeconfig.display(),
        if arguments.members > 0 {
            "  kubectl --context member1 get nodes\n"
        } else {
            ""
        },
    ));
}

/// Prints a line for people; a closed pipe is no reason to fail.
fn print(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "{line}");
}
