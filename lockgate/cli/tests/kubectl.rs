//! kubectl sessions: what a person types and what they read, compared with a transcript.
//!
//! Each file under `sessions/` is a transcript (its form is described in `kubectl/session.rs`). A session gets a server of
//! its own, an empty home directory, and a shell; whatever must differ from run to run is replaced by a placeholder.
//!
//! - `LOCKGATE_BLESS=1` rewrites the transcripts with what was answered.
//! - `LOCKGATE_SESSIONS_ON_REAL=1` runs the sessions against a real kube-apiserver (`real/get` first) instead of this
//!   binary; together with the former it takes the transcripts from there.
//! - `LOCKGATE_KUBECTL=/path` names the kubectl to use.
//!
//! Where there is no kubectl of at least 1.32 the tests say so on stderr, compare nothing, and pass. So do the sessions that need
//! Helm where it cannot be had.

#[path = "kubectl/normalise.rs"]
mod normalise;
#[path = "kubectl/program.rs"]
mod program;
#[path = "kubectl/server.rs"]
mod server;
#[path = "kubectl/session.rs"]
mod session;
#[path = "kubectl/shell.rs"]
mod shell;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use normalise::Normaliser;
use server::Server;
use session::{On, Session};
use shell::Shell;

/// One test for each transcript, so that `cargo test --test kubectl apply` runs one of them.
macro_rules! sessions {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { play(stringify!($name)); })*
    };
}

sessions! {
    apply
    auth
    bad_input
    cascade
    create
    custom_validation
    definitions
    delete
    describe
    diff
    discovery
    dry_run
    edit
    events
    field_validation
    get
    helm
    helm_wait
    hub_helm
    hub_helm4
    hub_rollout
    kustomize
    label
    lists
    managers
    namespaces
    patch
    replace
    rollout
    scale
    server_side_apply
    set
    token
    wait
    watch
    workloads
}

#[test]
fn every_transcript_is_played() {
    let files: BTreeSet<String> = std::fs::read_dir(directory())
        .expect("the directory of the sessions is there")
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "session"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    let played: BTreeSet<String> = NAMES.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(files, played, "files on the left, tests on the right");
}

#[test]
fn a_transcript_is_written_as_it_is_read() {
    for name in NAMES {
        let text = std::fs::read_to_string(directory().join(format!("{name}.session")))
            .expect("the session can be read");
        assert_eq!(
            Session::parse(&text).expect("a transcript").render(),
            text,
            "{name}"
        );
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions")
}

fn asked_for(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Plays a session on a server of its own, and compares or rewrites its transcript.
fn play(name: &str) {
    let path = directory().join(format!("{name}.session"));
    let text = std::fs::read_to_string(&path).expect("the session can be read");
    let mut session = Session::parse(&text)
        .map_err(|why| format!("{name}: {why}"))
        .expect("a transcript");
    let on = if asked_for("LOCKGATE_SESSIONS_ON_REAL") {
        On::Real
    } else {
        On::Embedded
    };
    if let Some(reason) = session.says_nothing_of(on) {
        return program::say(&format!(
            "session {name} was NOT compared with the {on:?} server: {reason}"
        ));
    }
    let Some(kubectl) = program::kubectl() else { return };
    let mut programs = vec![kubectl];
    for which in ["helm", "helm4"] {
        if session.needs(which) {
            let Some(helm) = program::helm(which) else { return };
            programs.push(helm);
        }
    }

    let scratch = program::scratch(&format!("session-{name}"));
    let server = match on {
        On::Embedded => Server::embedded(&scratch, session.needs("controllers")),
        On::Real => Server::real(&scratch),
    };
    let shell = Shell::new(&scratch, &programs, server.kubeconfig());
    let normaliser = Normaliser::new(shell.directory());

    let bless = asked_for("LOCKGATE_BLESS");
    let mut differences = String::new();
    for step in &mut session.steps {
        let (output, code) = shell.run(&step.command);
        let answer = session::answer(&normaliser.normalise(&output), code);
        if bless {
            step.answer = answer;
        } else if answer != step.answer {
            differences += &session::difference(&path, step, &answer);
        }
    }
    drop(server);
    if bless {
        let rewritten = session.render();
        assert!(
            Session::parse(&rewritten).is_ok_and(|again| again == session),
            "{}: an answer looks like a command or a comment; ask for it in another form",
            path.display()
        );
        std::fs::write(&path, rewritten).expect("the session can be written");
    }
    assert!(differences.is_empty(), "\n{differences}");
    let _ = std::fs::remove_dir_all(&scratch);
}
