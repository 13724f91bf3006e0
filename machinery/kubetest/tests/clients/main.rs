//! Clients of other languages against the API server: client-go and controller-runtime, and Python's kubernetes client.
//!
//! The programs are in `clients/`. Each test gives one check of a program a server of its own, over TLS on loopback; a check
//! that fails ends its program with words. `clients/get` obtains what they need; where it cannot, the tests say so on stderr,
//! check nothing, and pass. `LOCKGATE_CLIENTS_ON_REAL=1` runs the same checks against a real kube-apiserver (`real/get` first):
//! what they demand is what that one does.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may end where it likes")]

mod program;
mod server;

/// One test for each check of a program, and one that none is forgotten.
macro_rules! checks {
    ($client:ident, $program:ident: $($name:ident)+) => {
        mod $client {
            use crate::program::{Program, run};

            const NAMES: &[&str] = &[$(stringify!($name)),+];

            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                run(Program::$program, stringify!($name)).await;
            })+

            #[test]
            fn every_check_is_run() {
                if let Some(found) = crate::program::checks(Program::$program) {
                    assert_eq!(found, NAMES, "of the program on the left, run here on the right");
                }
            }
        }
    };
}

checks! { go, Go:
    apply
    conflicts
    definition
    discovery
    election
    events
    informers
    lists
    protobuf
    reconcile
    tokens
    watches
}

checks! { python, Python:
    apply
    crud
    customs
    deletes
    pages
    patches
    tokens
    watches
}
