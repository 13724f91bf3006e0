//! The API over HTTP: one `tower::Service`, used over TLS and in process alike.

mod binding;
mod deletes;
mod eviction;
mod lists;
mod patch;
mod resources;
mod respond;
mod reviews;
mod subresources;
mod watch;
mod writes;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use machinery_auth::rbac::{forbidden_details, forbidden_message};
use machinery_auth::{Attributes, Decision, UserInfo};

use crate::audit::{Record, Trail};
use crate::authenticate::{Caller, ISSUER};
use crate::body::Body;
use crate::negotiate::Accept;
use crate::places::Full;
use crate::request::{Query, RequestInfo};
use crate::server::{ApiServer, Inner};
use crate::status::ApiError;
use crate::{discovery, openapi};

/// The largest request body.
const MAX_BODY: usize = 3 * 1024 * 1024;

/// A request, taken apart and let in.
pub(crate) struct Call {
    pub(crate) server: Arc<Inner>,
    pub(crate) user: Arc<UserInfo>,
    pub(crate) info: RequestInfo,
    pub(crate) query: Query,
    pub(crate) headers: http::HeaderMap,
    /// Where to note what is to be logged, if anything is.
    pub(crate) trail: Option<Trail>,
}

impl ApiServer {
    /// A service whose requests are `user`'s, for callers in this process.
    pub fn as_user(&self, user: UserInfo) -> AsUser {
        AsUser {
            server: self.clone(),
            user: Arc::new(user),
        }
    }

    /// Answers one request.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        // An error is written in the client's encoding, too, if that can be made out at all.
        let encoding = Accept::parse(request.headers())
            .map(|accept| accept.encoding)
            .unwrap_or_default();
        // Whoever follows its requests through several servers names them itself.
        let audit_id = request
            .headers()
            .get("audit-id")
            .filter(|id| !id.is_empty())
            .cloned()
            .or_else(|| HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()).ok());
        let record = Record::begin(&self.inner, &request, audit_id.as_ref());
        let trail = record.as_ref().map(Record::trail);
        let is_told = trail.is_some() && Accept::takes_status(request.headers());
        let mut response = match self.answer(request, trail).await {
            Ok(response) => response,
            Err(error) => {
                if let Some(trail) = trail.filter(|_| is_told) {
                    trail.answers(error.to_status());
                }
                error.into_response(Accept {
                    encoding,
                    ..Accept::default()
                })
            }
        };
        let headers = response.headers_mut();
        headers
            .entry(header::CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-cache, private"));
        if let Some(id) = audit_id {
            headers.insert("audit-id", id);
        }
        match record {
            Some(record) => record.answered(response),
            None => response,
        }
    }

    async fn answer<B>(&self, request: Request<B>, trail: Option<&Trail>) -> Result<Response<Body>, ApiError>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let (parts, body) = request.into_parts();
        let query = Query::parse(parts.uri.query());
        let info = RequestInfo::parse(&parts.method, parts.uri.path(), &query);
        if let Some(trail) = trail {
            trail.asked(&info);
        }
        let user = self
            .inner
            .authenticator
            .authenticate(&self.inner, &parts.headers, &parts.extensions)?;
        if let Some(trail) = trail {
            trail.sent_by(&user);
        }
        // Whoever acts for others takes places of its own.
        let _place = if is_free(&info) {
            None
        } else {
            let place = self.inner.places.take(&user.name).await;
            Some(place.map_err(|Full| ApiError::too_many_requests())?)
        };
        let user = impersonate(&self.inner, user, &parts.headers, trail)?;
        authorize(&self.inner, &user, &info, trail)?;
        let context = Call {
            server: self.inner.clone(),
            user,
            info,
            query,
            headers: parts.headers,
            trail: trail.cloned(),
        };
        if context.info.is_resource {
            // Who sends nothing keeps its place from others for so long and no longer.
            let body = tokio::time::timeout(self.inner.body_within, collect(body)).await;
            let body = body.map_err(|_| ApiError::body_too_slow())??;
            resources::dispatch(&context, &parts.method, body).await
        } else {
            bare_path(&context, &parts.method)
        }
    }
}

/// Whether we are well must be known above all when there is much to do. Everything else takes one of a bounded number of
/// places until its answer begins. Long answers are made part by part, at places of their own.
fn is_free(info: &RequestInfo) -> bool {
    !info.is_resource && is_health(&info.path)
}

fn is_health(path: &str) -> bool {
    matches!(
        path.trim_end_matches('/'),
        "/healthz" | "/livez" | "/readyz" | "/healthz/ping" | "/livez/ping" | "/readyz/ping"
    )
}

async fn collect<B>(body: B) -> Result<Bytes, ApiError>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large(format!(
            "Request entity too large: limit is {MAX_BODY}"
        ))),
        Err(error) => Err(ApiError::bad_request(format!("failed to read the body: {error}"))),
    }
}

/// Lets a user act as another one, if the roles say so.
fn impersonate(
    server: &Inner,
    user: Arc<UserInfo>,
    headers: &http::HeaderMap,
    trail: Option<&Trail>,
) -> Result<Arc<UserInfo>, ApiError> {
    let pairs = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_bytes()));
    let wanted =
        machinery_auth::impersonation::parse(pairs).map_err(|e| ApiError::bad_request(e.to_string()))?;
    let Some(wanted) = wanted else { return Ok(user) };
    let rbac = server.indexes.rbac.read();
    for attributes in wanted.attributes(&user) {
        if !rbac.authorize(&attributes).allowed {
            let mut error = ApiError::forbidden_text(forbidden_message(&attributes, ""));
            error.details = Some(forbidden_details(&attributes));
            return Err(error);
        }
    }
    let user = Arc::new(wanted.user);
    if let Some(trail) = trail {
        trail.counts_as(&user);
    }
    Ok(user)
}

fn authorize(
    server: &Inner,
    user: &UserInfo,
    info: &RequestInfo,
    trail: Option<&Trail>,
) -> Result<(), ApiError> {
    let attributes = if info.is_resource {
        Attributes {
            user,
            verb: info.verb,
            group: &info.group,
            resource: &info.resource,
            subresource: &info.subresource,
            namespace: &info.namespace,
            name: info.target_name(),
            path: None,
        }
    } else {
        Attributes::path(user, info.verb, &info.path)
    };
    let decision = server.indexes.rbac.read().authorize(&attributes);
    if let Some(trail) = trail {
        trail.decided(&decision);
    }
    refuse_unless_allowed(&attributes, &decision)
}

fn refuse_unless_allowed(attributes: &Attributes<'_>, decision: &Decision) -> Result<(), ApiError> {
    if decision.allowed {
        return Ok(());
    }
    let mut error = ApiError::forbidden_text(forbidden_message(attributes, &decision.reason()));
    error.details = Some(forbidden_details(attributes));
    Err(error)
}

/// Whether the caller may make the object that the request was to change: a second question, for what an update makes.
pub(crate) fn authorize_create(call: &Call) -> Result<(), ApiError> {
    let info = &call.info;
    let attributes = Attributes {
        user: &call.user,
        verb: "create",
        group: &info.group,
        resource: &info.resource,
        subresource: &info.subresource,
        namespace: &info.namespace,
        name: &info.name,
        path: None,
    };
    let decision = call.server.indexes.rbac.read().authorize(&attributes);
    refuse_unless_allowed(&attributes, &decision)
}

/// Paths that are not about resources.
fn bare_path(context: &Call, method: &http::Method) -> Result<Response<Body>, ApiError> {
    let path = context.info.path.trim_end_matches('/');
    match path {
        _ if is_health(path) => Ok(text(200, "ok")),
        "/version" => Ok(respond::json_value(200, &discovery::version())),
        "/openid/v1/jwks" => Ok(respond::json_value(
            200,
            &context.server.authenticator.accounts.jwks(),
        )),
        "/.well-known/openid-configuration" => Ok(respond::json_value(
            200,
            &context
                .server
                .authenticator
                .accounts
                .openid_configuration(&format!("{ISSUER}/openid/v1/jwks")),
        )),
        "" => Ok(respond::json_value(
            200,
            &discovery::root_paths(&context.server.registry),
        )),
        _ if method != http::Method::GET
            && (path.starts_with("/api/")
                || path.starts_with("/apis/")
                || path == "/api"
                || path == "/apis") =>
        {
            Err(ApiError::method_not_allowed())
        }
        _ if path == "/api" || path == "/apis" || path.starts_with("/api/") || path.starts_with("/apis/") => {
            discovery::answer(&context.server.registry, path, &context.headers)
        }
        "/openapi/v2" => Ok(openapi::answer_v2(&context.headers)),
        _ if path == "/openapi/v3" || path.starts_with("/openapi/v3/") => {
            openapi::answer(&context.server, path, &context.query, &context.headers)
        }
        _ => Ok(text(404, "404 page not found\n")),
    }
}

pub(crate) use respond::{value as json_answer, warn};

/// A plain text answer.
pub(crate) fn text(code: u16, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::full(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// The server as one user sees it.
#[derive(Clone)]
pub struct AsUser {
    server: ApiServer,
    user: Arc<UserInfo>,
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl<B> tower::Service<Request<B>> for AsUser
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Answer {
        request.extensions_mut().insert(Caller(self.user.clone()));
        let server = self.server.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answer {
        let server = self.clone();
        Box::pin(async move { Ok(server.handle(request).await) })
    }
}
