//! Whole requests, and what clients show who they are with.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use machinery_apiserver::{ApiServer, Caller, Options};
use machinery_auth::token::bearer_token;
use machinery_auth::{Pki, UserInfo, x509};
use machinery_value::Value;

use super::{hold, parts, seeds, shape, way};
use crate::{Outcome, SEPARATOR, Target};

/// How many requests of an input are sent.
const MAX_REQUESTS: usize = 6;
/// A server is used for so many inputs, since starting one takes longer than most of them; what was made by one is deleted
/// before the next, except for what the fuzzer hides well.
const INPUTS_OF_A_SERVER: usize = 100;
/// The first part of a stream that does not end by itself.
const FIRST_FRAME: Duration = Duration::from_millis(20);

pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "request",
        about: "requests, each with its method, path, content type and accepted types on a line, then its further headers, and its body after that",
        seeds: request_seeds,
        run: requests,
    },
    Target {
        name: "signing-request",
        about: "a request for a certificate: what is in its PEM block, and the same bytes as the whole",
        seeds: signing_request_seeds,
        run: signing_request,
    },
    Target {
        name: "credential",
        about: "a bearer token, and the same bytes as a certificate",
        seeds: credential_seeds,
        run: credential,
    },
];

struct Running {
    runtime: tokio::runtime::Runtime,
    api: ApiServer,
    left: usize,
}

thread_local! {
    static SERVER: RefCell<Option<Running>> = const { RefCell::new(None) };
}

fn pki() -> Result<&'static Arc<Pki>, String> {
    static PKI: OnceLock<Result<Arc<Pki>, String>> = OnceLock::new();
    let made = PKI.get_or_init(|| Pki::ephemeral().map(Arc::new).map_err(|error| error.to_string()));
    made.as_ref().map_err(Clone::clone)
}

fn start() -> Result<Running, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let api = runtime
        .block_on(ApiServer::start(Options::new(pki()?.clone())))
        .map_err(|error| error.to_string())?;
    Ok(Running {
        runtime,
        api,
        left: INPUTS_OF_A_SERVER,
    })
}

fn requests(input: &[u8]) -> Outcome {
    SERVER.with(|server| {
        let mut server = server.borrow_mut();
        let mut running = match server.take() {
            Some(running) if running.left > 0 => running,
            _ => start()?,
        };
        running.left -= 1;
        let mut outcome = 0;
        for part in parts(input).iter().take(MAX_REQUESTS) {
            outcome ^= running.runtime.block_on(send(&running.api, part))?;
        }
        // A server in which something went wrong is not used again.
        *server = Some(running);
        Ok(outcome)
    })
}

async fn send(api: &ApiServer, text: &str) -> Outcome {
    let (head, mut body) = text.split_once('\n').unwrap_or((text, ""));
    let mut further = Vec::new();
    while let Some((name, value, rest)) = further_header(body) {
        further.push((name, value));
        body = rest;
    }
    let mut words = head.split(' ');
    let mut word = || words.next().unwrap_or("");
    let (method, uri, content_type, accept) = (word(), word(), word(), word());
    let user = UserInfo::new("fuzz", ["system:masters"]).authenticated();
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header("content-type", content_type)
        .header("accept", accept)
        .extension(Caller(Arc::new(user)));
    for (name, value) in further {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::from(body.as_bytes().to_vec())));
    let Ok(request) = request else { return Ok(0) };
    let response = api.handle(request).await;
    let code = response.status().as_u16();
    let content = response
        .headers()
        .get("content-type")
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let json = content.starts_with("application/json");
    let mut body = response.into_body();
    // A watch goes on until somebody leaves.
    let whole = if uri.contains("watch") {
        match tokio::time::timeout(FIRST_FRAME, body.frame()).await {
            Ok(Some(Ok(_))) => return Ok(1),
            _ => return Ok(2),
        }
    } else {
        body.collect()
            .await
            .map_err(|error| error.to_string())?
            .to_bytes()
    };
    let value: Value = match serde_json::from_slice(&whole) {
        Ok(value) => value,
        Err(_) if json && method != "HEAD" && !whole.is_empty() => {
            return Err(format!("{head:?}: the answer is no JSON"));
        }
        Err(_) => return Ok(u64::from(code)),
    };
    let message = value["message"].as_str().unwrap_or("");
    // A real server answers 500 too, to applies that do not fit a schema; it never speaks of a panic.
    hold(!message.contains("panic"), message)?;
    hold(
        code < 400 || value["kind"] == "Status",
        "a refusal that is no Status",
    )?;
    Ok(u64::from(code) << 32 ^ if code < 400 { shape(&value) } else { way(message) })
}

/// A header at the start of what follows the first line, and the rest.
fn further_header(text: &str) -> Option<(&str, &str, &str)> {
    const FURTHER: [&str; 3] = ["impersonate-", "audit-id", "if-"];
    let (line, rest) = text.split_once('\n')?;
    let (name, value) = line.split_once(": ")?;
    let lower = name.to_ascii_lowercase();
    FURTHER
        .iter()
        .any(|start| lower.starts_with(start))
        .then_some((name, value, rest))
}

fn request_seeds() -> Vec<Vec<u8>> {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    const JSON: &str = "application/json application/json";
    let create = format!(
        "POST {MAPS}?fieldManager=a {JSON}\n{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"a\",\"labels\":{{\"x\":\"y\"}}}},\"data\":{{\"k\":\"v\"}}}}"
    );
    let sequences: [&[String]; 8] = [
        &["POST /apis/authentication.k8s.io/v1/selfsubjectreviews application/json application/json\nImpersonate-User: ann\nImpersonate-Group: devs\nImpersonate-Group: system:authenticated\nImpersonate-Uid: 42\nImpersonate-Extra-acme.io%2fproject: one\nAudit-Id: 7\n{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"SelfSubjectReview\"}".to_owned(), format!("GET {MAPS} - application/json\nImpersonate-User: system:serviceaccount:default:default\nAudit-Id: x\n"), "GET /openapi/v3 - application/json\nIf-None-Match: \"x\"\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n".to_owned()],
        &[create.clone(), format!("PATCH {MAPS}/a application/apply-patch+yaml application/json\napiVersion: v1\nkind: ConfigMap\ndata: {{k: w}}\n"), format!("DELETE {MAPS}/a {JSON}\n{{\"propagationPolicy\":\"Foreground\"}}")],
        &[create.clone(), format!("PATCH {MAPS}/a?fieldManager=m&force=true application/apply-patch+yaml application/yaml\n{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"a\"}},\"data\":{{\"k\":\"w\"}}}}"), format!("PATCH {MAPS}/a?dryRun=All application/json-patch+json */*\n[{{\"op\":\"replace\",\"path\":\"/data/k\",\"value\":\"z\"}}]")],
        &[format!("GET {MAPS}?labelSelector=x+in+(y,z)&fieldSelector=metadata.name!=b&limit=1 - application/json;as=Table;v=v1;g=meta.k8s.io,application/json\n"), format!("GET {MAPS}?watch=1&resourceVersion=0&allowWatchBookmarks=true - application/json\n"), format!("DELETE {MAPS}?labelSelector=x {JSON}\n")],
        &["POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions application/json application/json\n{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"ws.e.io\"},\"spec\":{\"group\":\"e.io\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"ws\",\"kind\":\"W\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"subresources\":{\"status\":{},\"scale\":{\"specReplicasPath\":\".spec.r\",\"statusReplicasPath\":\".status.r\"}},\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{\"r\":{\"type\":\"integer\"}}}}}}}]}}".to_owned(), "POST /apis/e.io/v1/namespaces/default/ws application/yaml application/json\napiVersion: e.io/v1\nkind: W\nmetadata: {name: a}\nspec: {r: 1}\n".to_owned(), "PATCH /apis/e.io/v1/namespaces/default/ws/a/scale application/merge-patch+json application/json\n{\"spec\":{\"replicas\":3}}".to_owned(), "GET /openapi/v3/apis/e.io/v1 - application/json\n".to_owned()],
        &["POST /apis/apps/v1/namespaces/default/deployments?fieldValidation=Strict application/json application/json\n{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"generateName\":\"d-\"},\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}".to_owned(), "GET /apis/apps/v1/deployments - application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1\n".to_owned()],
        &["POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews application/json application/json\n{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\",\"spec\":{\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\"}}}".to_owned(), "POST /api/v1/namespaces/default/serviceaccounts/default/token application/json application/json\n{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenRequest\",\"spec\":{\"audiences\":[\"a\"],\"expirationSeconds\":600}}".to_owned()],
        &["POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies application/json application/json\n{\"apiVersion\":\"admissionregistration.k8s.io/v1\",\"kind\":\"ValidatingAdmissionPolicy\",\"metadata\":{\"name\":\"p\"},\"spec\":{\"matchConstraints\":{\"resourceRules\":[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"operations\":[\"*\"],\"resources\":[\"configmaps\"]}]},\"variables\":[{\"name\":\"d\",\"expression\":\"object.data\"}],\"validations\":[{\"expression\":\"!has(variables.d.bad)\",\"messageExpression\":\"'bad ' + object.metadata.name\"}]}}".to_owned(), "POST /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings application/json application/json\n{\"apiVersion\":\"admissionregistration.k8s.io/v1\",\"kind\":\"ValidatingAdmissionPolicyBinding\",\"metadata\":{\"name\":\"b\"},\"spec\":{\"policyName\":\"p\",\"validationActions\":[\"Deny\"]}}".to_owned(), create],
    ];
    sequences
        .iter()
        .map(|sequence| sequence.join(SEPARATOR).into_bytes())
        .collect()
}

/// Requests as openssl makes them: with organisations as UTF8Strings, and as a BMPString.
const SIGNING_REQUESTS: [&str; 2] = [
    "MIHxMIGYAgEAMDYxDDAKBgNVBAMMA2FubjENMAsGA1UECgwEZGV2czEXMBUGA1UECgwOc3lzdGVtOm1hc3RlcnMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQstTGLF8c7U+i5EDmg83VLKt54GnckmK/yZKFZs+D96AFBIJ9L7pL3ZGg2MlImScKhJ6U5LguM6hE2+J0YF9WYoAAwCgYIKoZIzj0EAwIDSAAwRQIhAO9eSx3oHZS4QaxXS4cnzhQDiTmLryFZPRUtM3HIeaO7AiBwNyTqaaV+2WXHJExCDoTLYkf4taENjrBipHxQhJFT5w==",
    "MIHfMIGGAgEAMCQxDzANBgNVBAMeBgBhAG4AbjERMA8GA1UECh4IAGQAZQB2AHMwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQstTGLF8c7U+i5EDmg83VLKt54GnckmK/yZKFZs+D96AFBIJ9L7pL3ZGg2MlImScKhJ6U5LguM6hE2+J0YF9WYoAAwCgYIKoZIzj0EAwIDSAAwRQIgT2Nv/W7EfM6+ClqF0x7qVS6Yjxn84qvym7IQJEDaP+ECIQCLqfF9m5FD8hpZ9KQ8PA/zfoi7KzTM4aeKXLf2VSaeag==",
];

fn signing_request_seeds() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = SIGNING_REQUESTS.iter().map(|text| base64(text)).collect();
    all.extend(SIGNING_REQUESTS.map(|text| pem(text).into_bytes()));
    all
}

fn pem(body: &str) -> String {
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{body}\n-----END CERTIFICATE REQUEST-----\n")
}

/// Read as PEM, and in a block of PEM: mutations of the outer form seldom leave the inner one alone.
fn signing_request(input: &[u8]) -> Outcome {
    let read = |pem: &[u8]| match x509::SigningRequest::parse(pem) {
        Ok(request) => way(&request.organizations.join("\n")),
        Err(error) => way(&error.to_string()),
    };
    Ok(read(input) ^ read(pem(&encode(input)).as_bytes()).rotate_left(1))
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .chain([&0, &0])
            .take(3)
            .fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        for at in 0..4usize {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn credential_seeds() -> Vec<Vec<u8>> {
    let mut all = seeds(&[
        "Bearer eyJhbGciOiJFUzI1NiIsImtpZCI6ImEifQ.eyJpc3MiOiJhIiwiYXVkIjpbImIiXSwiZXhwIjoxLCJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6YTpiIn0.AAAA",
        "bearer  a.b.c",
    ]);
    // The content of a certificate is of one's own making; only its form counts here.
    if let Ok(Ok((pem, _))) = pki().map(|pki| pki.client_cert("user", &["group"])) {
        let body: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
        all.push(base64(&body));
    }
    all
}

/// Decodes what the authority wrote, which is well formed.
fn base64(text: &str) -> Vec<u8> {
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0u32, 0);
    for digit in text
        .bytes()
        .filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte))
    {
        bits = bits << 6 | digit as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}

fn credential(input: &[u8]) -> Outcome {
    let now = Timestamp::from_second(1_600_000_000).unwrap_or_default();
    let certificate = match x509::user(input, now) {
        Ok(user) => user.name,
        Err(error) => error.to_string(),
    };
    let text = String::from_utf8_lossy(input);
    let token = bearer_token(&text).unwrap_or(&text);
    let verified = match pki()?.service_account_tokens().verify(token, &[], now) {
        Ok(_) => return Err("a token that nobody signed".to_owned()),
        Err(error) => error.to_string(),
    };
    Ok(way(&certificate) ^ way(&verified))
}
