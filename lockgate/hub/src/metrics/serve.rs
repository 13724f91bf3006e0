//! A small HTTP server for those who watch over the process: `/metrics`, `/healthz` and `/readyz`. Nothing else is served,
//! nothing is written, and connections are few and short-lived.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::Metrics;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// So many connections are served at once; more wait.
const MAX_CONNECTIONS: usize = 32;
/// A request must have begun and its head must be complete within this.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// No connection lasts longer: who scrapes connects again.
const MAX_AGE: Duration = Duration::from_secs(300);

/// The server, until this is dropped.
pub struct Serving {
    /// Where it listens.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves the metrics, and whether the process lives and is ready. Needs a tokio runtime.
pub async fn serve(
    address: SocketAddr,
    metrics: Arc<Metrics>,
    ready: impl Fn() -> bool + Send + Sync + 'static,
) -> io::Result<Serving> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let ready: Arc<dyn Fn() -> bool + Send + Sync> = Arc::new(ready);
    let task = tokio::spawn(accept(listener, metrics, ready));
    Ok(Serving { address, task })
}

async fn accept(listener: TcpListener, metrics: Arc<Metrics>, ready: Arc<dyn Fn() -> bool + Send + Sync>) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // The connections end with this task.
    let mut connections = tokio::task::JoinSet::new();
    // The semaphore is never closed.
    while let Ok(permit) = room.clone().acquire_owned().await {
        while connections.try_join_next().is_some() {}
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, most likely; trying again at once would spin.
                tracing::debug!(%error, "failed to accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (metrics, ready) = (metrics.clone(), ready.clone());
        connections.spawn(async move {
            let _permit = permit;
            let service = service_fn(move |request: Request<Incoming>| {
                let answer = answer(&request, &metrics, &*ready);
                async move { Ok::<_, Infallible>(answer) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_WITHIN)
                .serve_connection(TokioIo::new(stream), service);
            // How a connection ends is the other side's business.
            let _ = tokio::time::timeout(MAX_AGE, connection).await;
        });
    }
}

fn answer<B>(request: &Request<B>, metrics: &Metrics, ready: &dyn Fn() -> bool) -> Response<Full<Bytes>> {
    let (code, content_type, text) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, OPEN_METRICS, metrics.encode()),
        (&Method::GET | &Method::HEAD, "/healthz" | "/livez") => (StatusCode::OK, PLAIN, "ok".into()),
        (&Method::GET | &Method::HEAD, "/readyz") if ready() => (StatusCode::OK, PLAIN, "ok".into()),
        (&Method::GET | &Method::HEAD, "/readyz") => {
            (StatusCode::SERVICE_UNAVAILABLE, PLAIN, "not ready".into())
        }
        _ => (
            StatusCode::NOT_FOUND,
            PLAIN,
            "there are /metrics, /healthz and /readyz".into(),
        ),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = code;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, http::HeaderValue::from_static(content_type));
    response
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: it\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn health_and_metrics_are_served() {
        let ready = Arc::new(AtomicBool::new(false));
        let asked = ready.clone();
        let any = "127.0.0.1:0".parse().unwrap();
        let serving = serve(any, Arc::new(Metrics::new()), move || {
            asked.load(Ordering::Relaxed)
        })
        .await
        .unwrap();
        assert!(get(serving.address, "/healthz").await.starts_with("HTTP/1.1 200"));
        assert!(get(serving.address, "/readyz").await.starts_with("HTTP/1.1 503"));
        ready.store(true, Ordering::Relaxed);
        assert!(get(serving.address, "/readyz").await.starts_with("HTTP/1.1 200"));
        let metrics = get(serving.address, "/metrics").await;
        assert!(
            metrics.contains("openmetrics-text") && metrics.ends_with("# EOF\n"),
            "{metrics}"
        );
        assert!(get(serving.address, "/").await.starts_with("HTTP/1.1 404"));
    }
}
