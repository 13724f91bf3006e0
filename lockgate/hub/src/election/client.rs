//! Clients that fall silent when a term is over.
//!
//! [`Guard::may_write`] is asked before a request is handed over, and then it waits: for a connection to open, for its turn in
//! it. A process that is stopped meanwhile and goes on much later would still send what it had in hand, and a creation carries
//! no version by which a server could refuse it. So each step of a connection asks again: after the term it takes no step.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use kube::Config;
use kube::client::ClientBuilder;

use super::Guard;

type Connection = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs a client's connections until the term is over.
#[derive(Clone)]
struct WhileLeading(Guard);

impl hyper::rt::Executor<Connection> for WhileLeading {
    fn execute(&self, mut connection: Connection) {
        let guard = self.0.clone();
        tokio::spawn(poll_fn(move |context| {
            if guard.is_over() {
                return Poll::Ready(());
            }
            connection.as_mut().poll(context)
        }));
    }
}

impl Guard {
    /// A client that sends nothing after the term. Do not renew, or give up, a lease with it.
    pub fn client(&self, config: Config) -> Result<kube::Client, kube::Error> {
        match self.0 {
            Some(_) => Ok(ClientBuilder::try_from((config, WhileLeading(self.clone())))?.build()),
            None => kube::Client::try_from(config),
        }
    }
}
