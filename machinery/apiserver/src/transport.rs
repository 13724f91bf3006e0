//! The API over TLS: accepts connections, learns who is at the other end, and serves HTTP/1.1 and HTTP/2.

mod opening;
mod together;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use machinery_auth::x509::X509Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::audit::Remote;
use crate::authenticate::{Peer, UnknownPeer};
use crate::server::ApiServer;
use opening::Opening;

/// A client that does not finish its handshake by then is let go.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long HTTP/1.1 may take for the headers of a request, or for the next request.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a client that speaks HTTP/2 is asked whether it is still there, and how long it may take to answer: one that
/// went without a word keeps no place.
const PING_EVERY: Duration = Duration::from_secs(30);
const PONG_WITHIN: Duration = Duration::from_secs(15);
/// The most connections at a time.
const MAX_CONNECTIONS: usize = 10_000;

/// A server that listens; it stops when this is dropped.
pub struct Listening {
    /// Where.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ApiServer {
    /// Serves the API on `listener`, with TLS.
    pub fn listen(
        &self,
        listener: TcpListener,
        tls: Arc<rustls::ServerConfig>,
    ) -> std::io::Result<Listening> {
        let address = listener.local_addr()?;
        let server = self.clone();
        let task = tokio::spawn(async move {
            let acceptor = TlsAcceptor::from(tls);
            let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let Ok(place) = places.clone().acquire_owned().await else {
                    return;
                };
                let (stream, remote) = match listener.accept().await {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        // Out of file descriptors, most likely: the next one may do better.
                        tracing::warn!(%error, "failed to accept a connection");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                };
                while connections.try_join_next().is_some() {}
                let (acceptor, server) = (acceptor.clone(), server.clone());
                connections.spawn(async move {
                    serve_connection(acceptor, server, stream, remote).await;
                    drop(place);
                });
            }
        });
        Ok(Listening { address, task })
    }
}

async fn serve_connection(acceptor: TlsAcceptor, server: ApiServer, stream: TcpStream, remote: SocketAddr) {
    let _ = stream.set_nodelay(true);
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await else {
        return;
    };
    let clients = &server.inner.authenticator.clients;
    let shown = stream.get_ref().1.peer_certificates();
    let peer = match shown.map(|chain| clients.verify(chain)) {
        Some(Ok(certificate)) => Some(Ok(Peer(Arc::new(certificate)))),
        // Such a certificate is as good as none.
        None | Some(Err(X509Error::NoCommonName)) => None,
        Some(Err(_)) => Some(Err(UnknownPeer)),
    };
    let stream = Opening::new(stream, server.inner.first_bytes_within);
    let service = hyper::service::service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
        match &peer {
            Some(Ok(peer)) => drop(request.extensions_mut().insert(peer.clone())),
            Some(Err(unknown)) => drop(request.extensions_mut().insert(*unknown)),
            None => {}
        }
        if server.inner.audit.is_some() {
            request.extensions_mut().insert(Remote(remote.ip()));
        }
        let server = server.clone();
        async move { Ok::<_, std::convert::Infallible>(server.handle(request).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PONG_WITHIN)
        .max_concurrent_streams(1000);
    let served = together::serve(stream, |stream| {
        builder.serve_connection(TokioIo::new(stream), service)
    });
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection ended");
    }
}
