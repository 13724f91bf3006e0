//! Reads: one object, or a page of a list from one snapshot.

use std::num::{IntErrorKind, ParseIntError};

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use machinery_store::{Range, ReadError};
use machinery_value::field::{FieldError, FieldPath};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::object::Stored;
use crate::ops::select::Selection;
use crate::places::Turns;
use crate::request::Query;
use crate::resource::Resource;
use crate::serve::Call;
use crate::server::Inner;
use crate::status::{ApiError, Subject};

/// How many entries of the store are looked at in one step of a filtered page.
const SCAN: usize = 512;
/// How many of them before others have their turn: a selector may have to parse each.
const TURN: usize = 128;

/// A page of a list.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) items: Vec<Stored>,
    /// The revision of the snapshot.
    pub(crate) revision: u64,
    /// The token of the next page, when there is one.
    pub(crate) next: Option<String>,
    /// How many objects follow, when that is known.
    pub(crate) remaining: Option<usize>,
}

/// One object.
pub(crate) fn get(
    server: &Inner,
    resource: &Resource,
    namespace: &str,
    name: &str,
    query: &Query,
) -> Result<Stored, ApiError> {
    let version = parse_version(query.get("resourceVersion")).map_err(ApiError::unclassified)?;
    not_in_the_future(server, version)?;
    server
        .store
        .get(&resource.key(namespace, name))
        .ok_or_else(|| ApiError::not_found(resource.subject(), name))
}

/// A list, whole or one page of it.
pub(crate) async fn list(
    call: &Call,
    resource: &Resource,
    selection: &Selection,
) -> Result<Listing, ApiError> {
    let (server, namespace) = (&*call.server, call.info.namespace.as_str());
    let request = ListRequest::parse(&call.query)?;
    not_in_the_future(server, request.version)?;
    let prefix = resource.collection(namespace);
    let (at, after) = match &request.token {
        Some(token) => (
            (token.rv > 0).then_some(token.rv as u64),
            Some(format!("{prefix}{}", token.key())),
        ),
        None if request.exact => (request.version, None),
        None => (None, None),
    };
    let limit = if request.cached_any() { 0 } else { request.limit };
    let expired = |_: ReadError| match &request.token {
        Some(token) => token.expired(),
        None => ApiError::expired("The resourceVersion for the provided list is too old."),
    };
    if selection.is_everything() {
        let page = server
            .store
            .range(Range {
                prefix: &prefix,
                after: after.as_deref(),
                limit,
                at,
            })
            .map_err(expired)?;
        let next = (page.remaining > 0)
            .then(|| {
                page.entries
                    .last()
                    .map(|last| Token::after(&prefix, &last.key, page.revision).encode())
            })
            .flatten();
        let remaining = next.is_some().then_some(page.remaining);
        return Ok(Listing {
            items: page.entries,
            revision: page.revision,
            next,
            remaining,
        });
    }
    if let (Some(name), None, false) = (
        &selection.name,
        &request.token,
        resource.namespaced && namespace.is_empty(),
    ) {
        // A selector for one name is a look-up.
        let key = resource.key(namespace, name);
        let page = server
            .store
            .range(Range {
                prefix: &key,
                after: None,
                limit: 1,
                at,
            })
            .map_err(expired)?;
        let items = page
            .entries
            .into_iter()
            .filter(|e| *e.key == *key && selection.matches(resource, e))
            .collect();
        return Ok(Listing {
            items,
            revision: page.revision,
            next: None,
            remaining: None,
        });
    }
    // Filtered pages: look at the store step by step, all at the first step's snapshot.
    let (mut items, mut revision, mut after, mut at) = (Vec::new(), 0, after, at);
    let (mut looked_at, mut turns) = (0_usize, Turns::new(&server.workplaces, &call.user.name));
    loop {
        let step = if limit == 0 { 0 } else { SCAN };
        let page = server
            .store
            .range(Range {
                prefix: &prefix,
                after: after.as_deref(),
                limit: step,
                at,
            })
            .map_err(expired)?;
        revision = if revision == 0 { page.revision } else { revision };
        at = Some(revision);
        let more_after = page.remaining > 0;
        let last_key = page.entries.last().map(|e| e.key.to_string());
        let mut entries = page.entries.into_iter().peekable();
        while let Some(entry) = entries.next() {
            if looked_at.is_multiple_of(TURN) {
                turns.next().await;
            }
            looked_at += 1;
            if !selection.matches(resource, &entry) {
                continue;
            }
            items.push(entry);
            if limit == 0 || items.len() < limit {
                continue;
            }
            // A full page is followed by another if there is anything behind it, whether that matches or not.
            let next = items
                .last()
                .filter(|_| more_after || entries.peek().is_some())
                .map(|last| Token::after(&prefix, &last.key, revision).encode());
            return Ok(Listing {
                items,
                revision,
                next,
                remaining: None,
            });
        }
        match last_key {
            Some(key) if more_after => after = Some(key),
            _ => {
                return Ok(Listing {
                    items,
                    revision,
                    next: None,
                    remaining: None,
                });
            }
        }
    }
}

/// What a list asks for, apart from its selectors.
#[derive(Debug)]
struct ListRequest {
    limit: usize,
    token: Option<Token>,
    version: Option<u64>,
    exact: bool,
}

impl ListRequest {
    fn parse(query: &Query) -> Result<Self, ApiError> {
        let raw_limit = query.get("limit");
        let limit: i64 = if raw_limit.is_empty() {
            0
        } else {
            raw_limit.parse().map_err(|error: ParseIntError| {
                let why = match error.kind() {
                    IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                    _ => "invalid syntax",
                };
                ApiError::bad_request(format!("strconv.ParseInt: parsing \"{raw_limit}\": {why}"))
            })?
        };
        let version_text = query.get("resourceVersion");
        let matching = query.get("resourceVersionMatch");
        let token_text = query.get("continue");
        let mut errors = Vec::new();
        let forbid = |field: &str, why: &str| FieldError::forbidden(&FieldPath::from(field), why);
        if query.has("sendInitialEvents") {
            errors.push(forbid(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        if !matching.is_empty() {
            if version_text.is_empty() {
                errors.push(forbid(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if !token_text.is_empty() {
                errors.push(forbid(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
            if !matches!(matching, "Exact" | "NotOlderThan") {
                errors.push(FieldError::not_supported(
                    &FieldPath::from("resourceVersionMatch"),
                    &json!(matching),
                    &["Exact", "NotOlderThan", ""],
                ));
            }
            if matching == "Exact" && version_text == "0" {
                errors.push(forbid(
                    "resourceVersionMatch",
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid(
                Subject {
                    group: "meta.k8s.io",
                    name: "ListOptions",
                },
                "",
                &errors,
            ));
        }
        let version = parse_version(version_text)
            .map_err(|why| ApiError::bad_request(format!("invalid resource version: {why}")))?;
        let token = (!token_text.is_empty())
            .then(|| Token::decode(token_text))
            .transpose()?;
        if token.is_some() && !version_text.is_empty() && version_text != "0" {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let limit = usize::try_from(limit).unwrap_or(0);
        // The old rule: a page of a given version without a match rule is that very version.
        let exact =
            matching == "Exact" || (matching.is_empty() && limit > 0 && version.is_some_and(|v| v > 0));
        Ok(Self {
            limit,
            token,
            version,
            exact,
        })
    }

    /// `resourceVersion=0` is answered from what is at hand, whole, as the real server's cache does.
    fn cached_any(&self) -> bool {
        self.version == Some(0) && self.token.is_none()
    }
}

/// A resource version in a query; none when it is not given. The error is Go's, for the caller to put into words.
pub(crate) fn parse_version(text: &str) -> Result<Option<u64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse::<u64>().map(Some).map_err(|_| {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        let why = if digits {
            "value out of range"
        } else {
            "invalid syntax"
        };
        format!("resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {why}")
    })
}

/// A version that nobody has seen yet cannot be waited for here.
fn not_in_the_future(server: &Inner, version: Option<u64>) -> Result<(), ApiError> {
    let current = server.store.revision();
    match version {
        Some(wanted) if wanted > current => Err(ApiError::too_large_resource_version(wanted, current)),
        _ => Ok(()),
    }
}

/// Where a list goes on, and in which snapshot.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Token {
    v: String,
    rv: i64,
    start: String,
}

/// As forgiving as Go's decoder about the bits after the last byte.
const LENIENT: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// What clients know of a token that is no base64.
fn in_words(error: &base64::DecodeError) -> String {
    use base64::DecodeError::{InvalidByte, InvalidLastSymbol, InvalidLength, InvalidPadding};
    let at = match error {
        InvalidByte(at, _) | InvalidLastSymbol(at, _) => *at,
        InvalidLength(length) => length.saturating_sub(1),
        InvalidPadding => 0,
    };
    format!("illegal base64 data at input byte {at}")
}

impl Token {
    fn after(prefix: &str, key: &str, revision: u64) -> Self {
        let rest = key.strip_prefix(prefix).unwrap_or(key);
        Self {
            v: TOKEN_VERSION.into(),
            rv: revision as i64,
            start: format!("{rest}\0"),
        }
    }

    fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn decode(text: &str) -> Result<Self, ApiError> {
        let refuse = |why: String| {
            ApiError::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let bytes = LENIENT
            .decode(text.trim_end_matches('='))
            .map_err(|e| refuse(in_words(&e)))?;
        let value = machinery_value::decode::from_json(&bytes)
            .map_err(|e| refuse(e.to_string()))?
            .value;
        let token: Self = serde_json::from_value(value).map_err(|e| refuse(e.to_string()))?;
        if token.v != TOKEN_VERSION {
            return Err(refuse(format!(
                "server does not recognize this encoded version {}",
                token.v
            )));
        }
        if token.start.is_empty() {
            return Err(refuse(
                "encoded start key empty (version meta.k8s.io/v1)".to_owned(),
            ));
        }
        if token.start.contains("..") {
            return Err(refuse(format!("invalid continue token: {}", token.start)));
        }
        Ok(token)
    }

    /// The last key of the page before, relative to the collection.
    fn key(&self) -> &str {
        self.start.trim_start_matches('/').trim_end_matches('\0')
    }

    fn expired(&self) -> ApiError {
        let mut error = ApiError::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        );
        let anew = Self {
            v: TOKEN_VERSION.into(),
            rv: -1,
            start: format!("{}\0", self.key()),
        };
        error.continue_token = Some(anew.encode());
        error
    }
}
