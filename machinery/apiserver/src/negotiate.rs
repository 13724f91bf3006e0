//! Content negotiation: what a client sends, and what it wants back.

use http::{HeaderMap, header};

use crate::status::ApiError;

/// How an answer is shaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Shape {
    /// The object or list itself.
    #[default]
    Object,
    /// A `Table` of `meta.k8s.io/v1`.
    Table,
    /// Metadata only, one object.
    Partial,
    /// Metadata only, a list.
    PartialList,
    /// The aggregated discovery document.
    Discovery,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    /// JSON.
    #[default]
    Json,
    /// YAML.
    Yaml,
}

/// What the client accepts, as the best that we can give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Accept {
    /// The shape of the answer.
    pub(crate) shape: Shape,
    /// Its encoding.
    pub(crate) encoding: Encoding,
}

/// What we write.
pub(crate) const OFFERED: &[&str] = &["application/json", "application/yaml"];

impl Accept {
    /// The first of the listed media types that we can write, in the client's order.
    pub(crate) fn parse(headers: &HeaderMap) -> Result<Self, ApiError> {
        let (mut listed, mut readable) = (false, false);
        for value in headers.get_all(header::ACCEPT) {
            let Ok(value) = value.to_str() else { continue };
            for clause in value.split(',').map(str::trim).filter(|c| !c.is_empty()) {
                listed = true;
                readable |= encoding(clause.split(';').next().unwrap_or("").trim()).is_some();
                if let Some(accept) = Self::clause(clause) {
                    return Ok(accept);
                }
            }
        }
        match (listed, readable) {
            (false, _) => Ok(Self::default()),
            // A media type that we write, but not in that shape.
            (true, true) => Err(ApiError::not_acceptable(OFFERED)),
            (true, false) => Err(ApiError::unroutable_accept(OFFERED)),
        }
    }

    /// Whether a refusal can be written as the client wants it: a `Status` has no other shape than its own. Any other client
    /// gets it all the same, as JSON.
    pub(crate) fn takes_status(headers: &HeaderMap) -> bool {
        let mut clauses = headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .filter(|clause| !clause.is_empty())
            .peekable();
        clauses.peek().is_none()
            || clauses.any(|clause| Self::clause(clause).is_some_and(|accept| accept.shape == Shape::Object))
    }

    fn clause(clause: &str) -> Option<Self> {
        let mut parts = clause.split(';').map(str::trim);
        let encoding = encoding(parts.next()?)?;
        let (mut kind, mut group, mut version) = ("", "", "");
        for parameter in parts {
            match parameter.split_once('=') {
                Some(("as", v)) => kind = v,
                Some(("g", v)) => group = v,
                Some(("v", v)) => version = v,
                _ => {}
            }
        }
        let shape = match (kind, group, version) {
            ("", _, _) => Shape::Object,
            ("Table", "meta.k8s.io", "v1") => Shape::Table,
            ("PartialObjectMetadata", "meta.k8s.io", "v1") => Shape::Partial,
            ("PartialObjectMetadataList", "meta.k8s.io", "v1") => Shape::PartialList,
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Shape::Discovery,
            _ => return None,
        };
        Some(Self { shape, encoding })
    }
}

/// How a media type is written, if we can.
fn encoding(media_type: &str) -> Option<Encoding> {
    match media_type {
        "application/json" | "*/*" | "application/*" => Some(Encoding::Json),
        "application/yaml" => Some(Encoding::Yaml),
        _ => None,
    }
}

/// The format of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFormat {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Kubernetes' protobuf envelope.
    Protobuf,
}

/// What we read in bodies of objects and options.
pub(crate) const READABLE: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];

/// The media type of a request, lower-case and without parameters; empty when none was given.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|v| v.to_str().ok())
        .and_then(|v| v.split(';').next())
        .map(|v| v.trim().to_ascii_lowercase())
        .unwrap_or_default()
}

/// The format of an object's body.
pub(crate) fn body_format(headers: &HeaderMap) -> Result<BodyFormat, ApiError> {
    match media_type(headers).as_str() {
        "" | "application/json" => Ok(BodyFormat::Json),
        "application/yaml" => Ok(BodyFormat::Yaml),
        "application/vnd.kubernetes.protobuf" => Ok(BodyFormat::Protobuf),
        _ => Err(ApiError::unsupported_media_type(READABLE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(text: &str) -> Result<Accept, u16> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, text.parse().unwrap());
        Accept::parse(&headers).map_err(|e| e.code)
    }

    #[test]
    fn the_first_readable_clause_wins() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(accept(table).unwrap().shape, Shape::Table);
        assert_eq!(
            accept("application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json")
                .unwrap()
                .shape,
            Shape::Object
        );
        assert_eq!(
            accept("application/vnd.kubernetes.protobuf,application/json").unwrap(),
            Accept::default()
        );
        assert_eq!(accept("application/yaml").unwrap().encoding, Encoding::Yaml);
        assert_eq!(accept("*/*").unwrap(), Accept::default());
        assert_eq!(accept("application/vnd.kubernetes.protobuf"), Err(406));
    }
}
