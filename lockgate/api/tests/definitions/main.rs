//! The definitions on the embedded server and on a real kube-apiserver: both install them without a warning, refuse the same
//! objects with messages that name the field, accept what people apply, and fill in the same defaults.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end where it likes")]

mod accepted;
mod access;
mod admission;
mod harness;
mod install;
mod ocm;
mod refused;
mod stored;
mod tables;

use harness::Server;

/// Everything, in an order in which later checks may use what earlier ones made.
async fn all(server: &Server) {
    install::check(server).await;
    refused::check(server).await;
    admission::check(server).await;
    accepted::check(server).await;
    stored::check(server).await;
    tables::check(server).await;
    ocm::check(server).await;
    access::check(server).await;
}

#[tokio::test]
async fn on_the_embedded_server() {
    all(&Server::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_real_server() {
    match Server::real().await {
        Some((server, _running)) => all(&server).await,
        None => {
            eprintln!("NOTHING WAS CHECKED: a real kube-apiserver cannot be had here (see real/README.md)")
        }
    }
}
