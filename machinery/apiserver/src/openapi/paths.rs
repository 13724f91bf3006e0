//! The paths of an OpenAPI document: what can be asked of a resource, with which parameters, and what comes back.
//!
//! Names of operations and the places of parameters are as generators of clients expect them: a parameter that all
//! operations of a path have stands at the path, and lists are sorted by name. Media types are those that are read and
//! written here.

use std::collections::BTreeSet;

use machinery_value::Value;
use serde_json::{Map, json};

use crate::resource::{Resource, Source, Subresource};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Query parameters of each kind of request, and their types.
type Parameters = &'static [(&'static str, &'static str)];

const LIST: Parameters = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
const WRITE: Parameters = &[
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
];
const PATCH: Parameters = &[
    ("dryRun", "string"),
    ("fieldManager", "string"),
    ("fieldValidation", "string"),
    ("force", "boolean"),
];
const DELETE: Parameters = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
const DELETE_COLLECTION: Parameters = &[
    ("continue", "string"),
    ("dryRun", "string"),
    ("fieldSelector", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
];

/// The names of the schemas that the paths of a resource speak of.
pub(super) struct Schemas<'a> {
    pub(super) object: &'a str,
    pub(super) list: &'a str,
    /// Of the kind of a subresource, if it has one.
    pub(super) of: &'a dyn Fn(&Subresource) -> Option<String>,
}

/// The document's own entry: the list of resources.
pub(super) fn root(group: &str, version: &str, paths: &mut Map<String, Value>) {
    let names = Names::of(group, version);
    let content = content(
        &["application/json", "application/yaml"],
        &format!("{META}.APIResourceList"),
    );
    let get = json!({
        "tags": [names.tag],
        "operationId": format!("get{}APIResources", names.operation),
        "responses": {"200": {"description": "OK", "content": content}, "401": {"description": "Unauthorized"}},
    });
    paths.insert(format!("{}/", prefix(group, version)), json!({"get": get}));
}

fn prefix(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    }
}

/// How operations of a group and version are named, and filed.
struct Names {
    /// `RbacAuthorizationV1`.
    operation: String,
    /// `rbacAuthorization_v1`.
    tag: String,
}

impl Names {
    fn of(group: &str, version: &str) -> Self {
        let group = match group.trim_end_matches(".k8s.io") {
            "" => "core",
            group => group,
        };
        let camel: String = group.split(['.', '-']).map(title).collect();
        let mut chars = camel.chars();
        let lower: String = chars
            .next()
            .into_iter()
            .flat_map(char::to_lowercase)
            .chain(chars)
            .collect();
        Self {
            operation: format!("{camel}{}", title(version)),
            tag: format!("{lower}_{version}"),
        }
    }
}

fn title(word: &str) -> String {
    let mut chars = word.chars();
    chars
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(chars)
        .collect()
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn content(media_types: &[&str], schema: &str) -> Value {
    let entries = media_types
        .iter()
        .map(|media_type| ((*media_type).to_owned(), json!({"schema": reference(schema)})));
    Value::Object(entries.collect())
}

/// One operation before its parameters are divided between it and its path.
struct Operation {
    method: &'static str,
    value: Value,
    parameters: Parameters,
}

struct Writer<'a> {
    resource: &'a Resource,
    names: Names,
    custom: bool,
}

/// Adds every path of a resource that can be asked here.
pub(super) fn add(resource: &Resource, schemas: &Schemas<'_>, paths: &mut Map<String, Value>) {
    let writer = Writer {
        resource,
        names: Names::of(&resource.group, &resource.version),
        custom: matches!(resource.source, Source::Custom(_)),
    };
    let prefix = prefix(&resource.group, &resource.version);
    let (scope, scoped): (&str, &[&str]) = if resource.namespaced {
        ("/namespaces/{namespace}", &["namespace"])
    } else {
        ("", &[])
    };
    let plural = &resource.plural;
    let collection = format!("{prefix}{scope}/{plural}");
    let has = |verb: &str| resource.verbs.iter().any(|v| v == verb);

    writer.path(paths, &collection, scoped, writer.on_collection(schemas));
    if has("list") && resource.namespaced {
        let everywhere = writer.list(schemas, &format!("{}ForAllNamespaces", resource.kind));
        writer.path(paths, &format!("{prefix}/{plural}"), &[], vec![everywhere]);
    }
    let named: Vec<&str> = ["name"].iter().chain(scoped).copied().collect();
    writer.path(
        paths,
        &format!("{collection}/{{name}}"),
        &named,
        writer.on_object(schemas),
    );
    for sub in &resource.subresources {
        if let Some(schema) = (schemas.of)(sub) {
            let path = format!("{collection}/{{name}}/{}", sub.name);
            writer.path(paths, &path, &named, writer.on_subresource(sub, &schema));
        }
    }
    // The first form of watches; custom resources never had it.
    if has("watch") && !writer.custom {
        let own = writer.own_name();
        let watch = |action, name| writer.watch(action, name);
        let one = watch("watch", own.clone());
        let list = watch("watchlist", format!("{own}List"));
        writer.path(
            paths,
            &format!("{prefix}/watch{scope}/{plural}"),
            scoped,
            vec![list],
        );
        writer.path(
            paths,
            &format!("{prefix}/watch{scope}/{plural}/{{name}}"),
            &named,
            vec![one],
        );
        if resource.namespaced {
            let list = watch("watchlist", format!("{}ListForAllNamespaces", resource.kind));
            writer.path(paths, &format!("{prefix}/watch/{plural}"), &[], vec![list]);
        }
    }
}

impl Writer<'_> {
    fn has(&self, verb: &str) -> bool {
        self.resource.verbs.iter().any(|v| v == verb)
    }

    /// `NamespacedPod`, or `Node`.
    fn own_name(&self) -> String {
        let scope = if self.resource.namespaced {
            "Namespaced"
        } else {
            ""
        };
        format!("{scope}{}", self.resource.kind)
    }

    fn gvk(&self) -> Value {
        let Resource {
            group, version, kind, ..
        } = self.resource;
        json!({"group": group, "version": version, "kind": kind})
    }

    /// What one operation answers, for each code.
    fn responses(&self, codes: &[(&str, &str)], media_types: &[&str], schema: &str) -> Value {
        let mut responses = Map::new();
        for (code, phrase) in codes {
            let answer = json!({"description": phrase, "content": content(media_types, schema)});
            responses.insert((*code).to_owned(), answer);
        }
        responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
        Value::Object(responses)
    }

    fn operation(
        &self,
        (method, action): (&'static str, &str),
        id: String,
        parameters: Parameters,
        (codes, schema): (&[(&str, &str)], &str),
    ) -> Operation {
        let streams = matches!(action, "list" | "watch" | "watchlist") && !self.custom;
        let media_types: &[&str] = if streams {
            &[
                "application/json",
                "application/json;stream=watch",
                "application/yaml",
            ]
        } else {
            &["application/json", "application/yaml"]
        };
        let value = json!({
            "tags": [self.names.tag],
            "operationId": id,
            "responses": self.responses(codes, media_types, schema),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self.gvk(),
        });
        Operation {
            method,
            value,
            parameters,
        }
    }

    /// A body of a create, an update or a delete.
    fn body(&self, schema: &str, required: bool) -> Value {
        let media_types: &[&str] = if self.custom {
            &["application/json", "application/yaml"]
        } else {
            &["*/*"]
        };
        let mut body = json!({"content": content(media_types, schema)});
        if required {
            body["required"] = json!(true);
        }
        body
    }

    fn list(&self, schemas: &Schemas<'_>, name: &str) -> Operation {
        let id = format!("list{}{name}", self.names.operation);
        self.operation(("get", "list"), id, LIST, (&[("200", "OK")], schemas.list))
    }

    fn watch(&self, action: &str, name: String) -> Operation {
        let id = format!("watch{}{name}", self.names.operation);
        let event = format!("{META}.WatchEvent");
        self.operation(("get", action), id, LIST, (&[("200", "OK")], &event))
    }

    fn on_collection(&self, schemas: &Schemas<'_>) -> Vec<Operation> {
        let (operation, own) = (&self.names.operation, self.own_name());
        let mut found = Vec::new();
        if self.has("list") {
            found.push(self.list(schemas, &own));
        }
        if self.has("create") {
            found.push(self.create(format!("create{operation}{own}"), schemas.object));
        }
        if self.has("deletecollection") {
            let id = format!("delete{operation}Collection{own}");
            let parameters = if self.custom { LIST } else { DELETE_COLLECTION };
            let status = format!("{META}.Status");
            let mut delete = self.operation(
                ("delete", "deletecollection"),
                id,
                parameters,
                (&[("200", "OK")], &status),
            );
            if !self.custom {
                delete.value["requestBody"] = self.body(&format!("{META}.DeleteOptions"), false);
            }
            found.push(delete);
        }
        found
    }

    fn create(&self, id: String, schema: &str) -> Operation {
        let codes = [("200", "OK"), ("201", "Created"), ("202", "Accepted")];
        let mut create = self.operation(("post", "post"), id, WRITE, (&codes, schema));
        create.value["requestBody"] = self.body(schema, true);
        create
    }

    fn read(&self, id: String, schema: &str) -> Operation {
        let parameters: Parameters = if self.custom {
            &[("resourceVersion", "string")]
        } else {
            &[]
        };
        self.operation(("get", "get"), id, parameters, (&[("200", "OK")], schema))
    }

    fn replace(&self, id: String, schema: &str) -> Operation {
        let codes = [("200", "OK"), ("201", "Created")];
        let mut replace = self.operation(("put", "put"), id, WRITE, (&codes, schema));
        replace.value["requestBody"] = self.body(schema, true);
        replace
    }

    fn patch(&self, id: String, schema: &str) -> Operation {
        let all = [("200", "OK"), ("201", "Created")];
        let codes = if self.custom { &all[..1] } else { &all[..] };
        let mut patch = self.operation(("patch", "patch"), id, PATCH, (codes, schema));
        let all = [
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
        ];
        let media_types = if self.custom { &all[..3] } else { &all[..] };
        let body = json!({"content": content(media_types, &format!("{META}.Patch")), "required": true});
        patch.value["requestBody"] = body;
        patch
    }

    fn on_object(&self, schemas: &Schemas<'_>) -> Vec<Operation> {
        let (operation, own) = (&self.names.operation, self.own_name());
        let mut found = Vec::new();
        if self.has("get") {
            found.push(self.read(format!("read{operation}{own}"), schemas.object));
        }
        if self.has("update") {
            found.push(self.replace(format!("replace{operation}{own}"), schemas.object));
        }
        if self.has("patch") {
            found.push(self.patch(format!("patch{operation}{own}"), schemas.object));
        }
        if self.has("delete") {
            let status = format!("{META}.Status");
            let schema = if self.resource.returns_deleted() {
                schemas.object
            } else {
                &status
            };
            let mut delete = self.operation(
                ("delete", "delete"),
                format!("delete{operation}{own}"),
                DELETE,
                (&[("200", "OK"), ("202", "Accepted")], schema),
            );
            delete.value["requestBody"] = self.body(&format!("{META}.DeleteOptions"), false);
            found.push(delete);
        }
        found
    }

    fn on_subresource(&self, sub: &Subresource, schema: &str) -> Vec<Operation> {
        let name = |verb: &str| {
            let (operation, own) = (&self.names.operation, self.own_name());
            format!("{verb}{operation}{own}{}", title(&sub.name))
        };
        let mut found = Vec::new();
        for verb in &sub.verbs {
            let mut operation = match verb.as_str() {
                "get" => self.read(name("read"), schema),
                "update" => self.replace(name("replace"), schema),
                "patch" => self.patch(name("patch"), schema),
                "create" => self.create(name("create"), schema),
                _ => continue,
            };
            // Custom resources are named by their own kind, whatever the subresource shows.
            if !self.custom {
                operation.value["x-kubernetes-group-version-kind"] =
                    json!({"group": sub.group, "version": sub.version, "kind": sub.kind});
            }
            found.push(operation);
        }
        found
    }

    /// Writes a path, with the parameters that all of its operations have.
    fn path(
        &self,
        paths: &mut Map<String, Value>,
        path: &str,
        variables: &[&str],
        operations: Vec<Operation>,
    ) {
        if operations.is_empty() {
            return;
        }
        let sets: Vec<BTreeSet<_>> = operations
            .iter()
            .map(|operation| operation.parameters.iter().collect())
            .collect();
        let shared: BTreeSet<&(&str, &str)> = sets[0]
            .iter()
            .filter(|parameter| sets.iter().all(|set| set.contains(*parameter)))
            .copied()
            .collect();
        let query = |(name, kind): &(&str, &str)| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}});
        let mut common: Vec<Value> = variables
            .iter()
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}}))
            .chain(shared.iter().map(|parameter| query(parameter)))
            .chain([query(&("pretty", "string"))])
            .collect();
        common.sort_by_key(|parameter| parameter["name"].to_string());
        let mut entry = Map::new();
        for operation in operations {
            let own: Vec<Value> = operation
                .parameters
                .iter()
                .filter(|parameter| !shared.contains(parameter))
                .map(query)
                .collect();
            let mut value = operation.value;
            if !own.is_empty() {
                value["parameters"] = Value::Array(own);
            }
            entry.insert(operation.method.to_owned(), value);
        }
        entry.insert("parameters".to_owned(), Value::Array(common));
        paths.insert(path.to_owned(), Value::Object(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_named_by_group_and_version() {
        for (group, version, operation, tag) in [
            ("", "v1", "CoreV1", "core_v1"),
            ("apps", "v1", "AppsV1", "apps_v1"),
            (
                "rbac.authorization.k8s.io",
                "v1",
                "RbacAuthorizationV1",
                "rbacAuthorization_v1",
            ),
            (
                "shop.example.com",
                "v1beta1",
                "ShopExampleComV1beta1",
                "shopExampleCom_v1beta1",
            ),
        ] {
            let names = Names::of(group, version);
            assert_eq!((names.operation.as_str(), names.tag.as_str()), (operation, tag));
        }
    }
}
