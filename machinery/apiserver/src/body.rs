//! Response bodies: bytes that are there already, or a stream of them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http_body::{Frame, SizeHint};

use crate::audit::Record;

/// The body of a response.
pub struct Body {
    content: Inner,
    /// What is to be logged when it ends.
    _record: Option<Record>,
}

enum Inner {
    Chunks(VecDeque<Bytes>),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    /// A body without content.
    pub fn empty() -> Self {
        Self::of(Inner::Chunks(VecDeque::new()))
    }

    /// A body of one piece.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self::chunks([bytes.into()])
    }

    /// A body of several pieces, sent without copying them together.
    pub fn chunks(chunks: impl IntoIterator<Item = Bytes>) -> Self {
        Self::of(Inner::Chunks(
            chunks.into_iter().filter(|c| !c.is_empty()).collect(),
        ))
    }

    /// A body that goes on as long as the stream does.
    pub fn stream(stream: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::of(Inner::Stream(Box::pin(stream)))
    }

    fn of(content: Inner) -> Self {
        Self {
            content,
            _record: None,
        }
    }

    /// The same, whose end is the end of a request that is logged.
    pub(crate) fn recorded(self, record: Record) -> Self {
        Self {
            _record: Some(record),
            ..self
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.content {
            Inner::Chunks(chunks) => Poll::Ready(chunks.pop_front().map(|c| Ok(Frame::data(c)))),
            Inner::Stream(stream) => stream
                .as_mut()
                .poll_next(cx)
                .map(|item| item.map(|c| Ok(Frame::data(c)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Inner::Chunks(chunks) if chunks.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Inner::Chunks(chunks) => SizeHint::with_exact(chunks.iter().map(|c| c.len() as u64).sum()),
            Inner::Stream(_) => SizeHint::default(),
        }
    }
}
