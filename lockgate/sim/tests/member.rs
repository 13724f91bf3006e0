//! A member on an embedded server. Time is tokio's and stands still while anything moves, so that hours pass at once
//! and nothing depends on the speed of the machine.

#![allow(clippy::panic, reason = "it is how a test fails")]

mod member {
    mod budgets;
    pub(crate) mod cluster;
    mod deployments;
    mod fleet;
    mod others;
    mod pods;
}
