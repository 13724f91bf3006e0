//! OpenAPI v3: enough for kubectl to validate, to choose its patch type and to merge lists. And a v2 that says nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, header};
use machinery_value::Value;
use serde_json::{Map, json};

use crate::body::Body;
use crate::registry::Registry;
use crate::resource::{Resource, Source};
use crate::server::Inner;
use crate::status::ApiError;

/// Answers `/openapi/v3…`.
pub(crate) fn answer(server: &Inner, path: &str, headers: &HeaderMap) -> Result<Response<Body>, ApiError> {
    let rest = path.trim_start_matches("/openapi/v3").trim_matches('/');
    if rest.is_empty() {
        let mut response =
            crate::serve::json_answer(200, crate::negotiate::Accept::default(), &index(&server.registry));
        // JSON by its content, text by its header, as clients know it.
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, plain);
        return Ok(response);
    }
    let (group, version) = match rest.split('/').collect::<Vec<_>>().as_slice() {
        ["api", version] => (String::new(), (*version).to_owned()),
        ["apis", group, version] => ((*group).to_owned(), (*version).to_owned()),
        _ => return Ok(unknown()),
    };
    let resources = of_version(&server.registry, &group, &version);
    if resources.is_empty() {
        return Ok(unknown());
    }
    let document = document(&group, &version, &resources);
    let mut response = crate::discovery::cached(headers, &document, "application/json", "public, immutable");
    // A hash in the address names this very content, so that it may be kept for long.
    response.headers_mut().insert(
        header::EXPIRES,
        HeaderValue::from_static("Thu, 31 Dec 2099 23:59:59 GMT"),
    );
    Ok(response)
}

/// A v2 document without definitions, in the protobuf form that clients ask for.
const EMPTY_V2: &[u8] = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.35.0\x42\x00";

/// Answers `/openapi/v2` with a document that defines nothing.
///
/// kubectl asks for it when the v3 documents do not know a kind (a List, a review, a misspelt one), and gives up without
/// it; a kind that is not in it goes on unchecked, to the server.
pub(crate) fn answer_v2(headers: &HeaderMap) -> Response<Body> {
    let accepted = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    if !accepted.contains("protobuf") {
        let info = json!({"title": "Kubernetes", "version": "v1.35.0"});
        let document = json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}});
        return crate::serve::json_answer(200, crate::negotiate::Accept::default(), &document);
    }
    let mut response = Response::new(Body::full(bytes::Bytes::from_static(EMPTY_V2)));
    let protobuf = HeaderValue::from_static("application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
    response.headers_mut().insert(header::CONTENT_TYPE, protobuf);
    response
}

fn unknown() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = http::StatusCode::NOT_FOUND;
    response
}

fn of_version(registry: &Registry, group: &str, version: &str) -> Vec<Arc<Resource>> {
    registry
        .all()
        .into_iter()
        .filter(|r| r.group == group && r.version == version)
        .collect()
}

/// The list of documents, each with a hash of its content.
fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    for resource in registry.all() {
        let path = if resource.group.is_empty() {
            format!("api/{}", resource.version)
        } else {
            format!("apis/{}/{}", resource.group, resource.version)
        };
        if paths.contains_key(&path) {
            continue;
        }
        let hash = match resource.source {
            // Built-in documents change with the program alone.
            Source::BuiltIn { .. } => format!("{}-{}", env!("CARGO_PKG_VERSION"), resource.version),
            Source::Custom(_) => {
                let resources = of_version(registry, &resource.group, &resource.version);
                let editions: Vec<u32> = resources.iter().map(|r| r.edition()).collect();
                machinery_value::hash::canonical_hash(&json!(editions)).to_string()
            }
        };
        let address = format!("/openapi/v3/{path}?hash={}", hash.to_ascii_uppercase());
        paths.insert(path, json!({"serverRelativeURL": address}));
    }
    json!({"paths": paths})
}

/// The document of one group and version.
fn document(group: &str, version: &str, resources: &[Arc<Resource>]) -> Value {
    // Hardly anybody asks twice, so the components are read for each document and not kept.
    let components = machinery_kinds::schemas::components();
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for resource in resources {
        let name = schema_name(resource, &components);
        match &resource.source {
            Source::BuiltIn { .. } => copy_with_references(&components, &name, &mut schemas),
            Source::Custom(custom) => {
                schemas.insert(name.clone(), custom_schema(resource, custom.schema.declared()));
                copy_with_references(&components, OBJECT_META, &mut schemas);
            }
        }
        add_paths(resource, &name, &mut paths);
    }
    let title = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    json!({
        "openapi": "3.0.0",
        "info": {"title": format!("Kubernetes {title}"), "version": "v1.35.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The component of a built-in kind carries its type; a custom one gets a name from it.
fn schema_name(resource: &Resource, components: &Value) -> String {
    if let Source::BuiltIn { .. } = resource.source {
        let wanted = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
        let found = components.as_object().into_iter().flatten().find(|(_, schema)| {
            schema["x-kubernetes-group-version-kind"]
                .as_array()
                .is_some_and(|list| list.contains(&wanted))
        });
        if let Some((name, _)) = found {
            return name.clone();
        }
    }
    let mut reversed: Vec<&str> = resource.group.split('.').collect();
    reversed.reverse();
    format!("{}.{}.{}", reversed.join("."), resource.version, resource.kind)
}

/// Copies a built-in schema and all that it refers to.
fn copy_with_references(components: &Value, name: &str, into: &mut Map<String, Value>) {
    let mut open: BTreeSet<String> = BTreeSet::from([name.to_owned()]);
    while let Some(name) = open.pop_first() {
        if into.contains_key(&name) {
            continue;
        }
        let Some(schema) = components.get(&name) else {
            continue;
        };
        references(schema, &mut open);
        into.insert(name, schema.clone());
    }
}

fn references(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::String(target)) = map.get("$ref") {
                found.insert(target.trim_start_matches("#/components/schemas/").to_owned());
            }
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

fn custom_schema(resource: &Resource, declared: &Value) -> Value {
    let mut schema = if declared.is_object() {
        declared.clone()
    } else {
        json!({"type": "object"})
    };
    for (field, about) in [
        ("apiVersion", json!({"type": "string"})),
        ("kind", json!({"type": "string"})),
    ] {
        schema["properties"][field] = about;
    }
    schema["properties"]["metadata"] =
        json!({"allOf": [{"$ref": format!("#/components/schemas/{OBJECT_META}")}]});
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": resource.group, "version": resource.version, "kind": resource.kind}]);
    schema
}

/// The operations whose parameters and types kubectl looks at.
fn add_paths(resource: &Resource, schema: &str, paths: &mut Map<String, Value>) {
    let root = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let collection = if resource.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("{root}/{}", resource.plural)
    };
    let gvk = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let reference = json!({"$ref": format!("#/components/schemas/{schema}")});
    let query = |name: &str, kind: &str| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}});
    let answer =
        json!({"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}});
    let body = json!({"content": {"*/*": {"schema": reference}}});
    let write_parameters = json!([
        query("dryRun", "string"),
        query("fieldManager", "string"),
        query("fieldValidation", "string")
    ]);
    let operation = |action: &str, parameters: Value, body: Option<Value>| {
        let mut operation = json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk,
            "parameters": parameters, "responses": answer,
        });
        if let Some(body) = body {
            operation["requestBody"] = body;
        }
        operation
    };
    let has = |verb: &str| resource.verbs.iter().any(|v| v == verb);
    let mut on_collection = Map::new();
    if has("list") {
        on_collection.insert(
            "get".into(),
            operation(
                "list",
                json!([query("labelSelector", "string"), query("fieldSelector", "string")]),
                None,
            ),
        );
    }
    if has("create") {
        on_collection.insert(
            "post".into(),
            operation("post", write_parameters.clone(), Some(body.clone())),
        );
    }
    if !on_collection.is_empty() {
        paths.insert(collection.clone(), Value::Object(on_collection));
    }
    let mut on_object = Map::new();
    if has("get") {
        on_object.insert("get".into(), operation("get", json!([]), None));
    }
    if has("update") {
        on_object.insert(
            "put".into(),
            operation("put", write_parameters.clone(), Some(body)),
        );
    }
    if has("patch") {
        let patch = json!({"schema": {"type": "object"}});
        let mut content =
            json!({"application/json-patch+json": patch, "application/merge-patch+json": patch});
        if matches!(resource.source, Source::BuiltIn { .. }) {
            content["application/strategic-merge-patch+json"] = patch;
        }
        on_object.insert(
            "patch".into(),
            operation("patch", write_parameters, Some(json!({"content": content}))),
        );
    }
    if has("delete") {
        on_object.insert(
            "delete".into(),
            operation("delete", json!([query("dryRun", "string")]), None),
        );
    }
    if !on_object.is_empty() {
        paths.insert(format!("{collection}/{{name}}"), Value::Object(on_object));
    }
}
