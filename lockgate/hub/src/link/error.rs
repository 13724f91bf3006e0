//! Why a request failed, as far as the caller may act on it.

use std::time::Duration;

use serde::Deserialize;

/// The longest message of a server that is kept, in bytes.
const MESSAGE: usize = 4096;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// This object does not exist; of a creation, its namespace does not.
    #[error("not found")]
    NotFound,
    /// The server does not know the path: it does not serve the kind, or not yet.
    #[error("not served")]
    NotServed,
    /// An object of that name exists.
    #[error("already exists")]
    AlreadyExists,
    /// The object is not the version, or not the object, that was meant.
    #[error("conflict")]
    Conflict,
    /// The version that was asked for is no longer known.
    #[error("gone: that version is no longer known")]
    Gone,
    /// The server has too much to do, or a budget forbids it for now.
    #[error("too many requests: {message}")]
    TooManyRequests {
        /// When to ask again, if the server said so.
        retry_after: Option<Duration>,
        /// What the server said.
        message: String,
    },
    /// Any other refusal. A code of 0 never left this process.
    #[error("refused with {code} {reason}: {message}")]
    Refused {
        /// The status code.
        code: u16,
        /// The reason in one word.
        reason: String,
        /// What the server said.
        message: String,
    },
    /// There was no whole answer. A write may have been done all the same.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// The answer cannot be read.
    #[error("bad answer: {0}")]
    BadAnswer(String),
}

impl LinkError {
    /// Whether the same request may succeed later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::TooManyRequests { .. } | Self::Unreachable(_) | Self::Gone | Self::NotServed => true,
            Self::Refused { code, .. } => *code >= 500 || *code == 408,
            Self::NotFound | Self::AlreadyExists | Self::Conflict | Self::BadAnswer(_) => false,
        }
    }

    /// Whether the server says no to this request, and not that it cannot answer any just now.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            // Credentials that are no longer good, somebody who sends elsewhere, a request that took too long and a server's own
            // trouble say nothing of it.
            Self::Refused { code, .. } => (400..500).contains(code) && !matches!(*code, 401 | 408),
            Self::NotServed | Self::NotFound | Self::BadAnswer(_) => true,
            Self::TooManyRequests { .. }
            | Self::Unreachable(_)
            | Self::Gone
            | Self::AlreadyExists
            | Self::Conflict => false,
        }
    }

    /// Whether the server says no to what was written: it cannot be read, is too large, or does not fit the schema.
    pub(crate) fn is_about_content(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                code: 400 | 413 | 422,
                ..
            }
        )
    }

    /// How long the server wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooManyRequests { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Reads an answer that is no success. The body is a `Status`, or whatever a proxy made of it.
    pub(crate) fn of_answer(code: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let status: Status = serde_json::from_slice(body).unwrap_or_default();
        status.error(code, retry_after, body)
    }

    /// Reads the `Status` inside an `ERROR` event.
    pub(crate) fn of_event(body: &[u8]) -> Self {
        let status: Status = serde_json::from_slice(body).unwrap_or_default();
        let code = status.code;
        status.error(code, None, body)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    reason: String,
    message: String,
    code: u16,
    details: Option<Details>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    name: String,
    retry_after_seconds: u64,
}

impl Status {
    fn error(self, code: u16, header: Option<Duration>, body: &[u8]) -> LinkError {
        let details = self.details.unwrap_or_default();
        let message = if self.message.is_empty() {
            excerpt(body)
        } else {
            let mut message = self.message;
            message.truncate(message.floor_char_boundary(MESSAGE));
            message
        };
        match code {
            404 if !details.name.is_empty() => LinkError::NotFound,
            404 => LinkError::NotServed,
            409 if self.reason == "AlreadyExists" => LinkError::AlreadyExists,
            409 => LinkError::Conflict,
            410 => LinkError::Gone,
            // What etcd says of an object that is larger than it takes; a server passes it on as trouble of its own.
            500 if message.contains("request is too large") => LinkError::Refused {
                code: 413,
                reason: "RequestEntityTooLarge".to_owned(),
                message,
            },
            429 => {
                let seconds = details.retry_after_seconds;
                LinkError::TooManyRequests {
                    retry_after: (seconds > 0).then(|| Duration::from_secs(seconds)).or(header),
                    message,
                }
            }
            code => LinkError::Refused {
                code,
                reason: self.reason,
                message,
            },
        }
    }
}

/// The start of a body that is no `Status`.
fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(200)])
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_in_trouble_refuses_nothing() {
        for (code, refuses) in [
            (400, true),
            (403, true),
            (405, true),
            (302, false),
            (401, false),
            (408, false),
            (500, false),
            (503, false),
            (504, false),
        ] {
            let error = LinkError::of_answer(code, None, b"no");
            assert_eq!(error.is_refusal(), refuses, "{code}: {error}");
        }
        assert!(!LinkError::Unreachable("gone".to_owned()).is_refusal());
    }

    #[test]
    fn an_object_that_the_store_behind_a_server_does_not_take_is_refused() {
        let answer = br#"{"kind":"Status","status":"Failure","message":"etcdserver: request is too large","code":500}"#;
        let error = LinkError::of_answer(500, None, answer);
        assert!(
            error.is_refusal() && error.is_about_content() && !error.is_transient(),
            "{error}"
        );
    }
}
