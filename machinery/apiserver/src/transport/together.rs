//! What is written on a connection is sent together.
//!
//! Many streams share a connection, and each wakes it when it has something to say, so that every event of a watch would be a
//! record of TLS and a call to the kernel of its own. Here what is written waits for one turn of the runtime: until then everybody
//! who was woken by the same event has had a say.

use std::future::{Future, poll_fn};
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much waits at most.
const MOST: usize = 32 << 10;
/// So much at once is sent at once: it gains nothing, and need not be copied.
const LARGE: usize = 8 << 10;
/// How long the last words of a connection may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A stream whose writes wait, for [`serve`].
pub(super) struct Together<T>(Arc<Mutex<Shared<T>>>);

/// Only one task ever holds it, so that nobody waits for the lock.
struct Shared<T> {
    stream: T,
    /// What waits, and how much of it is sent.
    waiting: Vec<u8>,
    sent: usize,
    /// Something was sent and not flushed.
    unflushed: bool,
    /// It has waited for its turn.
    had_turn: bool,
    failed: Option<Error>,
}

/// Serves a connection on a stream until it ends.
pub(super) async fn serve<T, C>(stream: T, connection: impl FnOnce(Together<T>) -> C) -> C::Output
where
    T: AsyncWrite + Unpin,
    C: Future,
{
    let shared = Arc::new(Mutex::new(Shared {
        stream,
        waiting: Vec::new(),
        sent: 0,
        unflushed: false,
        had_turn: false,
        failed: None,
    }));
    let mut connection = pin!(connection(Together(shared.clone())));
    let output = poll_fn(|context| {
        let polled = connection.as_mut().poll(context);
        if polled.is_pending() {
            shared.lock().end_turn(context);
        }
        polled
    })
    .await;
    let last = poll_fn(|context| shared.lock().send(context));
    let _ = tokio::time::timeout(LAST_WORDS, last).await;
    output
}

impl<T: AsyncWrite + Unpin> Shared<T> {
    /// The connection has nothing more to do: what it wrote waits for others, once, and is sent.
    fn end_turn(&mut self, context: &mut Context<'_>) {
        if self.waiting.is_empty() && !self.unflushed {
            return;
        }
        if !self.had_turn {
            self.had_turn = true;
            // Whoever wakes itself goes to the end of the queue.
            context.waker().wake_by_ref();
            return;
        }
        match self.send(context) {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => self.had_turn = false,
            Poll::Ready(Err(error)) => {
                self.failed = Some(error);
                self.waiting.clear();
                self.sent = 0;
                self.unflushed = false;
                context.waker().wake_by_ref();
            }
        }
    }

    /// Sends what waits.
    fn send(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        while self.sent < self.waiting.len() {
            let rest = &self.waiting[self.sent..];
            let count = ready!(Pin::new(&mut self.stream).poll_write(context, rest))?;
            if count == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
            self.sent += count;
            self.unflushed = true;
        }
        // A connection that is idle needs no memory for this.
        self.waiting = Vec::new();
        self.sent = 0;
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// What went wrong when nobody was there to be told.
    fn failure(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Together<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let mut shared = self.0.lock();
        if let Some(error) = shared.failed.take() {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut shared.stream).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Together<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    /// What waits is sent at the end of the turn, and not before.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(self.0.lock().failure())
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut shared = self.0.lock();
        shared.failure()?;
        ready!(shared.send(context))?;
        Pin::new(&mut shared.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let mut shared = self.0.lock();
        shared.failure()?;
        if shared.waiting.len() >= MOST {
            ready!(shared.send(context))?;
        }
        let size = slices.iter().map(|slice| slice.len()).sum();
        if shared.waiting.is_empty() && size >= LARGE {
            shared.unflushed = true;
            return Pin::new(&mut shared.stream).poll_write_vectored(context, slices);
        }
        for slice in slices {
            shared.waiting.extend_from_slice(slice);
        }
        Poll::Ready(Ok(size))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio::sync::mpsc;

    use super::*;

    /// Counts how often it is written to.
    struct Counting(DuplexStream, Arc<AtomicUsize>);

    impl AsyncRead for Counting {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<Result<()>> {
            Pin::new(&mut self.0).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Counting {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<Result<usize>> {
            self.1.fetch_add(1, Ordering::Relaxed);
            Pin::new(&mut self.0).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(context)
        }
    }

    /// Ten writers on one connection, which writes what they say as soon as they say it. What came of it, and in how many writes.
    async fn said(text: &str, room: usize) -> (String, usize) {
        let (mut client, server) = tokio::io::duplex(room);
        let writes = Arc::new(AtomicUsize::new(0));
        let (say, mut heard) = mpsc::unbounded_channel::<String>();
        for number in 0..10 {
            let (say, text) = (say.clone(), format!("{number}{text}"));
            tokio::spawn(async move { say.send(text) });
        }
        drop(say);
        let stream = Counting(server, writes.clone());
        let connection = serve(stream, |mut stream| async move {
            while let Some(text) = heard.recv().await {
                stream.write_all(text.as_bytes()).await.unwrap();
                stream.flush().await.unwrap();
            }
        });
        let connection = tokio::spawn(connection);
        let mut all = String::new();
        client.read_to_string(&mut all).await.unwrap();
        connection.await.unwrap();
        (all, writes.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn what_is_said_in_one_turn_is_sent_together() {
        let (all, writes) = said("a", 1 << 20).await;
        assert_eq!(all, "0a1a2a3a4a5a6a7a8a9a");
        assert_eq!(writes, 1);
    }

    #[tokio::test]
    async fn whoever_reads_slowly_gets_everything() {
        for size in [10, 5_000, 10_000, 50_000] {
            let text = "x".repeat(size);
            let (all, _) = said(&text, 1000).await;
            let expected: String = (0..10).map(|number| format!("{number}{text}")).collect();
            assert!(all == expected, "{size}: {} of {}", all.len(), expected.len());
        }
    }

    #[tokio::test]
    async fn what_waits_is_sent_without_another_word() {
        let (mut client, server) = tokio::io::duplex(1000);
        let connection = serve(server, |mut stream| async move {
            stream.write_all(b"hello").await.unwrap();
            stream.flush().await.unwrap();
            std::future::pending::<()>().await;
        });
        let connection = tokio::spawn(connection);
        let mut buffer = [0; 5];
        client.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"hello");
        connection.abort();
    }

    #[tokio::test]
    async fn who_is_gone_is_told_of() {
        let (client, server) = tokio::io::duplex(1000);
        drop(client);
        let failed = serve(server, |mut stream| async move {
            stream.write_all(b"hello").await.unwrap();
            stream.flush().await.unwrap();
            // Nobody asks for more; that it failed wakes the reader.
            stream.read(&mut [0; 1]).await
        });
        // The other end is closed for reading, too: zero bytes, or the failure.
        assert!(matches!(failed.await, Ok(0) | Err(_)));
    }
}
