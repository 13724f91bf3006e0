//! The lines of a stream, bounded.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use kube::client::Body;

use crate::link::{LinkError, chain};

/// No line of a watch is longer: an object has at most a few megabytes.
const MAX_LINE: usize = 32 << 20;

/// Reads a body line by line.
pub(super) struct Lines {
    body: Body,
    buffer: BytesMut,
    /// How much of the buffer holds no line's end.
    scanned: usize,
}

impl Lines {
    pub(super) fn new(body: Body) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
            scanned: 0,
        }
    }

    /// The next line, without its end; none when the stream ended. A last line without an end was cut off, and is dropped.
    /// Nothing is lost when this is given up while it waits.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, LinkError> {
        loop {
            let fresh = self.buffer.get(self.scanned..).unwrap_or_default();
            if let Some(at) = fresh.iter().position(|b| *b == b'\n') {
                let line = self.buffer.split_to(self.scanned + at + 1);
                self.scanned = 0;
                return Ok(Some(line.freeze()));
            }
            self.scanned = self.buffer.len();
            if self.scanned > MAX_LINE {
                return Err(LinkError::BadAnswer(format!(
                    "a line longer than {MAX_LINE} bytes"
                )));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(e)) => return Err(LinkError::Unreachable(chain(&e))),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
