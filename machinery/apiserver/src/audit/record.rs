//! The record of one request: begun when it comes, written when it is over.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderValue, Request, Response};

use super::event::{Facts, Stage, addresses, agent, is_small_talk, line};
use super::trail::Trail;
use crate::body::Body;
use crate::server::Inner;

/// Put into a request's extensions by the TLS transport, if there is a log: the client's address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remote(pub(crate) IpAddr);

/// A request that will be logged. Its last line is written when this is dropped.
pub(crate) struct Record {
    server: Arc<Inner>,
    trail: Trail,
    is_over: bool,
}

impl Record {
    /// Begins one, if there is a log and the request belongs there.
    pub(crate) fn begin<B>(
        server: &Arc<Inner>,
        request: &Request<B>,
        id: Option<&HeaderValue>,
    ) -> Option<Self> {
        server.audit.as_ref()?;
        let uri = request.uri();
        if is_small_talk(uri.path()) {
            return None;
        }
        let remote = request.extensions().get::<Remote>();
        let facts = Facts {
            id: id
                .map(|id| String::from_utf8_lossy(id.as_bytes()).into_owned())
                .unwrap_or_default(),
            uri: uri
                .path_and_query()
                .map_or_else(|| uri.path().to_owned(), ToString::to_string),
            received: server.now(),
            agent: agent(request.headers()),
            addresses: addresses(request.headers(), remote.map(|Remote(address)| *address)),
            ..Facts::default()
        };
        Some(Self {
            server: server.clone(),
            trail: Trail::new(facts),
            is_over: false,
        })
    }

    /// For those who have something to add.
    pub(crate) fn trail(&self) -> &Trail {
        &self.trail
    }

    /// That there is an answer. One that goes on is logged now, and again when it ends.
    pub(crate) fn answered(mut self, response: Response<Body>) -> Response<Body> {
        let (is_known, is_long) = {
            let mut facts = self.trail.0.lock();
            facts.code = Some(response.status().as_u16());
            (facts.user.is_some(), facts.is_long)
        };
        if !is_known {
            // Whoever is turned away at the door gets one line, and that says so at once.
            self.write(Stage::ResponseStarted);
            self.is_over = true;
        } else if is_long {
            self.write(Stage::ResponseStarted);
            return response.map(|body| body.recorded(self));
        }
        response
    }

    fn write(&self, stage: Stage) {
        if let Some(log) = &self.server.audit {
            log.write(&line(&self.trail.0.lock(), stage, self.server.now()));
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.is_over {
            self.write(Stage::ResponseComplete);
        }
    }
}
