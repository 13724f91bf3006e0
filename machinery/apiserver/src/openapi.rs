//! OpenAPI v3: every path that is served with its operations, and the schemas that they speak of, with what `kubectl explain` says
//! about them in words of our own. And a v2 that says nothing.

mod paths;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use http::{HeaderMap, HeaderValue, Response, header};
use machinery_value::Value;
use machinery_value::hash::{ValueHash, canonical_hash};
use serde_json::{Map, json};

use crate::body::Body;
use crate::discovery::Document;
use crate::registry::Registry;
use crate::request::Query;
use crate::resource::{Resource, Source, Subresource};
use crate::server::Inner;
use crate::status::ApiError;

/// Answers `/openapi/v3…`.
pub(crate) fn answer(
    server: &Inner,
    path: &str,
    query: &Query,
    headers: &HeaderMap,
) -> Result<Response<Body>, ApiError> {
    let rest = path.trim_start_matches("/openapi/v3").trim_matches('/');
    let custom = server.registry.custom();
    if rest.is_empty() {
        let index = custom.openapi(|| Document::new(&index(&server.registry)).since(custom.since()));
        // JSON by its content, text by its header, as clients know it.
        return Ok(index.answer(headers, "text/plain; charset=utf-8", "no-cache, private"));
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
    let is_named = query.get("hash") == hash(&resources).to_string().to_ascii_uppercase();
    let document = Document::new(&document(&group, &version, &resources)).since(custom.since());
    if !is_named {
        return Ok(document.answer(headers, "application/json", "no-cache, private"));
    }
    // The hash in the address names this very content, so that it may be kept for long.
    let mut response = document.answer(headers, "application/json", "public, immutable");
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
        let hash = hash(&of_version(registry, &resource.group, &resource.version)).to_string();
        let address = format!("/openapi/v3/{path}?hash={}", hash.to_ascii_uppercase());
        paths.insert(path, json!({"serverRelativeURL": address}));
    }
    json!({"paths": paths})
}

/// Counts the changes of how documents are made, so that those of before are not taken for those of now.
const FORM: u32 = 3;

/// The hash of a document, by all that it is made of. Clients keep a document under it for ever, also when another server has
/// taken the address of this one.
fn hash(resources: &[Arc<Resource>]) -> ValueHash {
    static BUILT_IN: OnceLock<String> = OnceLock::new();
    let built_in =
        BUILT_IN.get_or_init(|| canonical_hash(&machinery_kinds::schemas::described()).to_string());
    let parts = resources.iter().map(|resource| {
        let schema = match &resource.source {
            Source::BuiltIn { .. } => Value::Null,
            Source::Custom(custom) => custom_schema(resource, custom.schema.declared()),
        };
        let subresources: Vec<&str> = resource
            .subresources
            .iter()
            .map(|sub| sub.name.as_str())
            .collect();
        json!([
            resource.plural,
            resource.kind,
            resource.list_kind,
            resource.namespaced,
            resource.verbs,
            subresources,
            schema
        ])
    });
    canonical_hash(&json!([FORM, built_in, parts.collect::<Vec<_>>()]))
}

/// The document of one group and version.
fn document(group: &str, version: &str, resources: &[Arc<Resource>]) -> Value {
    // Hardly anybody asks twice, so the components are read for each document and not kept.
    let components = machinery_kinds::schemas::described();
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    let mut is_custom = false;
    for resource in resources {
        let name = schema_name(resource, &components);
        let mut list = format!("{name}List");
        if let Source::Custom(custom) = &resource.source {
            list = json_name(&resource.group, &resource.version, &resource.list_kind);
            is_custom = true;
            schemas.insert(list.clone(), custom_list(resource, &name));
            schemas.insert(name.clone(), custom_schema(resource, custom.schema.declared()));
        }
        let of = |sub: &Subresource| subresource_schema(sub, &components);
        let names = paths::Schemas {
            object: &name,
            list: &list,
            of: &of,
        };
        paths::add(resource, &names, &mut paths);
    }
    if !is_custom {
        paths::root(group, version, &mut paths);
    }
    let mut open = BTreeSet::new();
    paths.values().for_each(|path| references(path, &mut open));
    schemas.values().for_each(|schema| references(schema, &mut open));
    copy_with_references(&components, open, &mut schemas);
    let mut document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.35"},
        "paths": paths,
        "components": {"schemas": schemas},
    });
    if is_custom {
        document["info"] = json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"});
    } else {
        document["components"]["securitySchemes"] =
            json!({"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}});
    }
    document
}

/// The schema of what a subresource shows, if that can be asked for here: nobody connects to a container.
fn subresource_schema(sub: &Subresource, components: &Value) -> Option<String> {
    let connects = ["attach", "exec", "portforward", "proxy", "log"];
    if connects.contains(&sub.name.as_str()) {
        return None;
    }
    let wanted = json!({"group": sub.group, "version": sub.version, "kind": sub.kind});
    let own = json_name(&sub.group, &sub.version, &sub.kind);
    Some(component(&wanted, components).unwrap_or(own))
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// The component of a built-in kind carries its type; a custom one gets a name from it.
fn schema_name(resource: &Resource, components: &Value) -> String {
    if let Source::BuiltIn { .. } = resource.source {
        let wanted = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
        if let Some(name) = component(&wanted, components) {
            return name;
        }
    }
    json_name(&resource.group, &resource.version, &resource.kind)
}

/// The built-in schema of a group, version and kind.
fn component(wanted: &Value, components: &Value) -> Option<String> {
    let mut all = components.as_object().into_iter().flatten();
    let found = all.find(|(_, schema)| {
        schema["x-kubernetes-group-version-kind"]
            .as_array()
            .is_some_and(|list| list.contains(wanted))
    });
    found.map(|(name, _)| name.clone())
}

/// The name of a custom kind's schema: its group turned round, its version and its name.
fn json_name(group: &str, version: &str, kind: &str) -> String {
    let mut reversed: Vec<&str> = group.split('.').collect();
    reversed.reverse();
    format!("{}.{version}.{kind}", reversed.join("."))
}

/// Copies the built-in schemas of these names and all that they refer to.
fn copy_with_references(components: &Value, mut open: BTreeSet<String>, into: &mut Map<String, Value>) {
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
    for (field, mut about) in [
        ("apiVersion", json!({"type": "string"})),
        ("kind", json!({"type": "string"})),
        (
            "metadata",
            json!({"allOf": [{"$ref": format!("#/components/schemas/{OBJECT_META}")}]}),
        ),
    ] {
        if let Some(told) = machinery_kinds::words::common(field) {
            about["description"] = told.into();
        }
        schema["properties"][field] = about;
    }
    publish(&mut schema);
    schema["x-kubernetes-group-version-kind"] =
        json!([{"group": resource.group, "version": resource.version, "kind": resource.kind}]);
    add_selectable(resource, &mut schema);
    schema
}

/// A schema as clients read it: that a value is a number or a text is said in words that they know.
fn publish(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(publish);
            if map.get("x-kubernetes-int-or-string") == Some(&json!(true)) {
                map.entry("anyOf")
                    .or_insert_with(|| json!([{"type": "integer"}, {"type": "string"}]));
            }
        }
        Value::Array(list) => list.iter_mut().for_each(publish),
        _ => {}
    }
}

/// The fields that objects can be selected by.
fn add_selectable(resource: &Resource, schema: &mut Value) {
    let selectable = resource.custom().map(|custom| custom.selectable.as_slice());
    let fields: Vec<Value> = selectable
        .unwrap_or_default()
        .iter()
        .map(|(name, _)| json!({"fieldPath": name}))
        .collect();
    if !fields.is_empty() {
        schema["x-kubernetes-selectable-fields"] = Value::Array(fields);
    }
}

/// The list of a custom kind.
fn custom_list(resource: &Resource, item: &str) -> Value {
    let mut schema = json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": format!("#/components/schemas/{item}")}},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": format!("#/components/schemas/{LIST_META}")}]},
        },
        "x-kubernetes-group-version-kind":
            [{"group": resource.group, "version": resource.version, "kind": resource.list_kind}],
    });
    add_selectable(resource, &mut schema);
    schema
}
