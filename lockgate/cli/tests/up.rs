//! `lockgate up` as a person or a pipeline uses it: files, ports, exit codes, restarts.

#![expect(clippy::unwrap_used, reason = "a test may end where it likes")]

mod support;

use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use support::{Connection, Fleet, decoded};
use tokio::process::Command;

/// Runs `lockgate up` to its end; its exit code and what it said on stderr.
async fn run(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_lockgate"))
        .arg("up")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn a_command_runs_with_the_kubeconfig_and_lends_its_exit_code() {
    let script =
        r#"grep -q "current-context: hub" "$KUBECONFIG" && grep -q "name: member2" "$KUBECONFIG" && exit 7"#;
    let (code, _) = run(&[
        "--ephemeral",
        "--port",
        "0",
        "--members",
        "2",
        "--",
        "sh",
        "-c",
        script,
    ])
    .await;
    assert_eq!(code, 7);
    let (code, said) = run(&[
        "--ephemeral",
        "--port",
        "0",
        "--members",
        "0",
        "--",
        "/no/such/program",
    ])
    .await;
    assert_eq!(code, 1);
    assert!(said.contains("/no/such/program"), "{said}");
    let (code, _) = run(&[
        "--ephemeral",
        "--port",
        "0",
        "--members",
        "0",
        "--",
        "sh",
        "-c",
        "kill -9 $$",
    ])
    .await;
    assert_eq!(code, 128 + 9);
}

#[tokio::test]
async fn a_port_in_use_has_its_own_exit_code() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (code, said) = run(&["--ephemeral", "--port", &port]).await;
    assert_eq!(code, 3);
    assert!(said.contains(&port) && said.contains("--port"), "{said}");
}

#[tokio::test]
async fn a_directory_that_cannot_be_written_has_its_own_exit_code() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (code, said) = run(&["--data-dir", text(&file.path().join("below"))]).await;
    assert_eq!(code, 4);
    assert!(said.contains("--data-dir"), "{said}");
}

#[tokio::test]
async fn a_second_process_is_kept_out() {
    let directory = tempfile::tempdir().unwrap();
    let _fleet = Fleet::start(&["--members", "0", "--port", "0"], directory.path()).await;
    let (code, said) = run(&["--data-dir", text(directory.path()), "--port", "0"]).await;
    assert_eq!(code, 5);
    assert!(said.contains(text(directory.path())), "{said}");
}

#[tokio::test]
async fn a_damaged_file_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hub.db");
    std::fs::write(&file, b"this was never a database").unwrap();
    let (code, said) = run(&["--data-dir", text(directory.path()), "--port", "0"]).await;
    assert_eq!(code, 6, "{said}");
    assert!(said.contains("hub.db"), "{said}");
    assert_eq!(std::fs::read(&file).unwrap(), b"this was never a database");
}

#[tokio::test]
async fn wrong_usage_is_named() {
    let (code, said) = run(&["--feature-gates", "Nonsense=true"]).await;
    assert_eq!(code, 2);
    assert!(said.contains("Nonsense"), "{said}");
    assert_eq!(run(&["--members", "-1"]).await.0, 2);
    assert_eq!(run(&["--ephemeral", "--data-dir", "x"]).await.0, 2);
}

#[tokio::test]
async fn somebody_elses_kubeconfig_is_touched_only_when_asked() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config");
    let theirs = "apiVersion: v1\nkind: Config\ncurrent-context: prod\ncontexts:\n- name: prod\n  context: {cluster: prod, user: me}\n";
    std::fs::write(&file, theirs).unwrap();
    let common = [
        "--ephemeral",
        "--port",
        "0",
        "--members",
        "1",
        "--kubeconfig",
        text(&file),
    ];
    let (code, said) = run(&[&common[..], &["--", "true"]].concat()).await;
    assert_eq!(code, 2);
    assert!(said.contains("--merge"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), theirs);
    let (code, said) = run(&[&common[..], &["--merge", "--", "true"]].concat()).await;
    assert_eq!(code, 0, "{said}");
    let merged = std::fs::read_to_string(&file).unwrap();
    assert!(
        merged.contains("name: prod") && merged.contains("name: member1"),
        "{merged}"
    );
}

#[tokio::test]
async fn a_restart_brings_everything_back_on_the_same_ports() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--members", "2", "--port", "0"];
    let mut fleet = Fleet::start(&arguments, directory.path()).await;
    let ports = std::fs::read_to_string(directory.path().join("ports.json")).unwrap();
    let config_maps = "/api/v1/namespaces/default/configmaps";
    for cluster in ["hub", "member1", "member2"] {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"in": cluster}});
        let (code, _) = fleet
            .connect(cluster)
            .await
            .send("POST", config_maps, Some(&body))
            .await
            .unwrap();
        assert_eq!(code, 201);
    }
    assert_eq!(fleet.interrupt().await, 0, "Ctrl-C is a clean end");

    let fleet = Fleet::start(&arguments, directory.path()).await;
    assert_eq!(
        std::fs::read_to_string(directory.path().join("ports.json")).unwrap(),
        ports
    );
    for cluster in ["hub", "member1", "member2"] {
        let path = format!("{config_maps}/kept");
        let (code, object) = fleet
            .connect(cluster)
            .await
            .send("GET", &path, None)
            .await
            .unwrap();
        assert_eq!((code, &object["data"]["in"]), (200, &json!(cluster)));
    }
}

/// Whoever follows a Cluster to its Secret reaches the member with what is there, and may do there what the control plane may.
#[tokio::test]
async fn a_clusters_secret_leads_to_its_member() {
    let directory = tempfile::tempdir().unwrap();
    let fleet = Fleet::start(&["--members", "2", "--port", "0"], directory.path()).await;
    let mut hub = fleet.connect("hub").await;
    for member in ["member1", "member2"] {
        let path = format!("/apis/cluster.karmada.io/v1alpha1/clusters/{member}");
        let (code, cluster) = hub.send("GET", &path, None).await.unwrap();
        assert_eq!(code, 200, "{cluster}");
        let spec = &cluster["spec"];
        let to = |field: &str| spec["secretRef"][field].as_str().unwrap().to_owned();
        let path = format!("/api/v1/namespaces/{}/secrets/{}", to("namespace"), to("name"));
        let (code, secret) = hub.send("GET", &path, None).await.unwrap();
        assert_eq!(code, 200, "{secret}");
        let token = String::from_utf8(decoded(&secret["data"]["token"])).unwrap();
        let authority = decoded(&secret["data"]["caBundle"]);
        let address = spec["apiEndpoint"].as_str().unwrap();
        let mut to_member = Connection::open(address, &authority, None, Some(token)).await;
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mark"}, "data": {"of": member}});
        let config_maps = "/api/v1/namespaces/default/configmaps";
        let (code, answer) = to_member.send("POST", config_maps, Some(&body)).await.unwrap();
        assert_eq!(code, 201, "{answer}");
        let mut known = fleet.connect(member).await;
        let (_, mark) = known
            .send("GET", &format!("{config_maps}/mark"), None)
            .await
            .unwrap();
        assert_eq!(mark["data"]["of"], member);
    }
}

#[tokio::test]
async fn keys_are_readable_by_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let _fleet = Fleet::start(&["--members", "0", "--port", "0"], directory.path()).await;
    for file in [
        "kubeconfig",
        "pki/ca.key",
        "pki/apiserver.key",
        "pki/sa.key",
        "hub.db",
    ] {
        let mode = std::fs::metadata(directory.path().join(file))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{file} has mode {mode:o}");
    }
}

#[tokio::test]
async fn requests_are_logged_in_a_file_for_each_server() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("logs/audit");
    let arguments = ["--members", "1", "--port", "0", "--audit-log", text(&folder)];
    for start in 1..=2 {
        let mut fleet = Fleet::start(&arguments, directory.path()).await;
        for cluster in ["hub", "member1"] {
            let mut connection = fleet.connect(cluster).await;
            connection
                .send("GET", "/api/v1/namespaces/default/configmaps/none", None)
                .await;
        }
        assert_eq!(fleet.interrupt().await, 0);
        for cluster in ["hub", "member1"] {
            let file = folder.join(format!("{cluster}.log"));
            let mode = std::fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{mode:o}");
            let log = std::fs::read_to_string(&file).unwrap();
            let asked = log.lines().filter(|line| {
                let event: serde_json::Value = serde_json::from_str(line).unwrap();
                event["objectRef"]["name"] == "none"
                    && event["user"]["username"] == "lockgate-admin"
                    && event["sourceIPs"] == json!(["127.0.0.1"])
            });
            assert_eq!(asked.count(), start, "{cluster}");
        }
    }
    let (code, said) = run(&[
        "--ephemeral",
        "--port",
        "0",
        "--audit-log",
        text(&folder.join("hub.log")),
    ])
    .await;
    assert_eq!(code, 4);
    assert!(said.contains("--audit-log"), "{said}");
}

#[tokio::test]
async fn a_fleet_that_runs_can_be_measured_through_its_hub() {
    // Who errs is told before anything is written, so that the next try finds an empty hub.
    let script = r#""$0" bench hub --hub "$KUBECONFIG" --member stranger="$KUBECONFIG#member1" --process up=$PPID && exit 3
        "$0" bench hub --hub "$KUBECONFIG" --member member1="$KUBECONFIG#member1" --member member2="$KUBECONFIG#member2" \
        --process up=$PPID --templates 3 --rest 0.2 --json >"$1""#;
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report.json");
    let (code, said) = run(&[
        "--ephemeral",
        "--port",
        "0",
        "--members",
        "2",
        "--",
        "sh",
        "-c",
        script,
        env!("CARGO_BIN_EXE_lockgate"),
        text(&report),
    ])
    .await;
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("the hub has no cluster stranger"), "{said}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
    let phases: Vec<&str> = report["phases"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|phase| phase["name"].as_str())
        .collect();
    assert_eq!(
        phases,
        [
            "create",
            "single objects",
            "touch",
            "retarget",
            "restore",
            "delete"
        ],
        "{said}"
    );
}
