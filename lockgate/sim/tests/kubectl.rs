//! kubectl's rollout commands against a member. Not run by default, because it needs kubectl:
//! `cargo test -p lockgate-sim --test kubectl -- --ignored`.

#![allow(clippy::panic, reason = "it is how a test fails")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lockgate_sim::{Member, SimOptions};
use machinery_apiserver::{ApiServer, Options};
use machinery_auth::Pki;
use tokio::net::TcpListener;
use tokio::process::Command;

fn write_kubeconfig(directory: &Path, pki: &Pki, port: u16) {
    let (certificate, key) = pki
        .client_cert("admin", &["system:masters"])
        .expect("a certificate can be made");
    for (name, content) in [
        ("ca.pem", pki.ca_pem()),
        ("admin.pem", &certificate),
        ("admin.key", &key),
    ] {
        std::fs::write(directory.join(name), content).expect("a file can be written");
    }
    let config = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: m\n\
         clusters: [{{name: m, cluster: {{server: 'https://127.0.0.1:{port}', certificate-authority: ca.pem}}}}]\n\
         users: [{{name: m, user: {{client-certificate: admin.pem, client-key: admin.key}}}}]\n\
         contexts: [{{name: m, context: {{cluster: m, user: m}}}}]\n"
    );
    std::fs::write(directory.join("config"), config).expect("a file can be written");
}

/// Runs kubectl; returns whether it succeeded and what it said.
async fn kubectl(directory: &Path, line: &str) -> (bool, String) {
    let command = Command::new("kubectl")
        .args(line.split_whitespace())
        .env("KUBECONFIG", directory.join("config"))
        .env("HOME", directory)
        .output();
    let output = tokio::time::timeout(Duration::from_secs(60), command)
        .await
        .expect("kubectl ends");
    let output = output.expect("kubectl is installed");
    let text = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    (output.status.success(), text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs kubectl"]
async fn rollouts() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let pki = Arc::new(Pki::ephemeral().expect("keys can be made"));
    let server = ApiServer::start(Options::new(pki.clone()))
        .await
        .expect("a server starts in memory");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let listening = server.listen(listener, pki.server_config()).expect("it listens");
    write_kubeconfig(directory.path(), &pki, listening.address.port());
    let options = SimOptions {
        delay: Duration::from_millis(200),
        ..SimOptions::default()
    };
    let _member = Member::start(&server, options);

    // A command, whether it succeeds, and what it says among other things.
    let table = [
        (
            "create deployment web --image=web:1 --replicas=3",
            true,
            "deployment.apps/web created",
        ),
        ("rollout status deployment/web", true, "successfully rolled out"),
        ("set image deployment/web web=web:2", true, "image updated"),
        ("rollout status deployment/web", true, "successfully rolled out"),
        ("rollout history deployment/web", true, "2         <none>"),
        ("rollout history deployment/web --revision=1", true, "web:1"),
        ("set image deployment/web web=web:fail", true, "image updated"),
        (
            "rollout status deployment/web --timeout=3s",
            false,
            "timed out waiting",
        ),
        ("rollout undo deployment/web", true, "rolled back"),
        ("rollout status deployment/web", true, "successfully rolled out"),
        ("get deployment web -o jsonpath={..image}", true, "web:2"),
        ("rollout restart deployment/web", true, "restarted"),
        ("rollout status deployment/web", true, "successfully rolled out"),
        ("scale deployment web --replicas=5", true, "scaled"),
        (
            "wait deployment/web --for=jsonpath={.status.availableReplicas}=5 --timeout=30s",
            true,
            "condition met",
        ),
        (
            "wait pod -l app=web --for=condition=Ready --timeout=30s",
            true,
            "condition met",
        ),
        ("get pods -o wide", true, "Running"),
        (
            "drain node-1 --ignore-daemonsets --force --timeout=30s",
            true,
            "drained",
        ),
        ("rollout status deployment/web", true, "successfully rolled out"),
        ("get nodes", true, "Ready,SchedulingDisabled"),
        ("create job work --image=work:1", true, "created"),
        (
            "wait job/work --for=condition=Complete --timeout=30s",
            true,
            "condition met",
        ),
        (
            "expose deployment web --port=80 --type=LoadBalancer",
            true,
            "exposed",
        ),
        (
            "wait service/web --for=jsonpath={.status.loadBalancer.ingress[0].ip} --timeout=30s",
            true,
            "condition met",
        ),
        (
            "delete deployment web --cascade=foreground --timeout=30s",
            true,
            "deleted",
        ),
        ("get pods -l app=web", true, "No resources found"),
    ];
    for (line, succeeds, says) in table {
        let (succeeded, text) = kubectl(directory.path(), line).await;
        assert!(
            succeeded == succeeds && text.contains(says),
            "kubectl {line}\nsucceeded: {succeeded}\n{text}"
        );
    }
}
