//! A connection that must soon say what it speaks.
//!
//! Which version of HTTP a client speaks is made out from its first bytes, and only from then on somebody else watches the time:
//! HTTP/1.1 that of its headers, HTTP/2 whether its pings are answered. Without a deadline before, whoever shakes hands and is
//! silent would keep a place for ever.

use std::future::Future as _;
use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// What a client that speaks HTTP/2 says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream whose reads fail once its first bytes are overdue.
pub(super) struct Opening<T> {
    stream: T,
    /// How much of the preface was read, and when the rest is overdue; none once it is clear what is spoken.
    waiting: Option<(usize, Pin<Box<Sleep>>)>,
}

impl<T> Opening<T> {
    pub(super) fn new(stream: T, within: Duration) -> Self {
        Self {
            stream,
            waiting: Some((0, Box::pin(tokio::time::sleep(within)))),
        }
    }

    /// Takes note of what was read.
    fn note(&mut self, bytes: &[u8]) {
        if let Some((seen, _)) = &mut self.waiting {
            let rest = &PREFACE[*seen..];
            if bytes.len() < rest.len() && rest.starts_with(bytes) {
                *seen += bytes.len();
            } else {
                self.waiting = None;
            }
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Opening<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Pending => match &mut self.waiting {
                Some((_, overdue)) => overdue
                    .as_mut()
                    .poll(context)
                    .map(|()| Err(Error::from(ErrorKind::TimedOut))),
                None => Poll::Pending,
            },
            ready => {
                self.note(&buffer.filled()[before..]);
                ready
            }
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Opening<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[std::io::IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const WITHIN: Duration = Duration::from_secs(30);

    /// What becomes of a connection on which these bytes come, each text after a while, and then nothing.
    async fn read(texts: &[&[u8]]) -> Result<usize> {
        let (mut client, server) = tokio::io::duplex(1024);
        let mut opening = Opening::new(server, WITHIN);
        let mut buffer = [0; 1024];
        for text in texts {
            tokio::time::advance(WITHIN / 4).await;
            client.write_all(text).await?;
            assert_eq!(opening.read(&mut buffer).await?, text.len());
        }
        // Nothing else happens, so the clock goes on by itself to whatever somebody waits for.
        match tokio::time::timeout(WITHIN * 100, opening.read(&mut buffer)).await {
            Ok(read) => read,
            Err(_) => Ok(0),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_say_what_it_speaks_is_let_go() {
        let silent: [&[&[u8]]; 3] = [&[], &[b"P"], &[b"PRI *", b" HTTP/2.0\r\n\r\n"]];
        for texts in silent {
            let error = read(texts).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{texts:?}");
        }
        let known: [&[&[u8]]; 4] = [
            &[b"G"],
            &[b"P", b"O"],
            &[b"PRI * HTTP/1"],
            &[b"PRI * HTTP", PREFACE_END],
        ];
        for texts in known {
            assert_eq!(read(texts).await.unwrap(), 0, "{texts:?}");
        }
    }

    const PREFACE_END: &[u8] = b"/2.0\r\n\r\nSM\r\n\r\nand more";
}
