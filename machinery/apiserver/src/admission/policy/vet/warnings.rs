//! What is suspicious about a policy, seen with the schemas of what it is about: told in its status, and refused nobody.

use std::collections::BTreeSet;
use std::sync::Arc;

use machinery_kinds::{Gvk, schemas};
use machinery_schema::cel::{CelType, Struct, View};
use machinery_value::Value;
use serde_json::json;

use super::{items, text, types};
use crate::registry::Registry;
use crate::resource::Resource;

/// How many kinds a policy is looked at with.
const MAX_KINDS: usize = 10;

/// The `expressionWarnings` of a ValidatingAdmissionPolicy.
pub(crate) fn expression_warnings(registry: &Registry, content: &Value) -> Vec<Value> {
    let spec = &content["spec"];
    let kinds = kinds(registry, &spec["matchConstraints"]);
    let param = &spec["paramKind"];
    let param = registry.find_kind(text(&param["apiVersion"]), text(&param["kind"]));
    let params = param.as_deref().and_then(type_of);
    let check = |expression: &str| -> String {
        let checked = kinds.iter().filter_map(|resource| {
            let object = type_of(resource)?;
            let mut scope = types::scope(object, params.clone());
            scope.declare_authorizer();
            let mut variables = Struct {
                name: types::VARIABLES,
                ..Struct::default()
            };
            for variable in items(&spec["variables"]) {
                let ty = scope
                    .check(text(&variable["expression"]))
                    .unwrap_or(CelType::Unknown);
                variables.fields.insert(text(&variable["name"]).to_owned(), ty);
                scope.declare("variables", CelType::Struct(Arc::new(variables.clone())));
            }
            let problem = scope.check(expression).err()?;
            let Resource {
                group, version, kind, ..
            } = &**resource;
            Some(format!("{group}/{version}, Kind={kind}: {problem}\n"))
        });
        checked.collect::<Vec<String>>().join("\n")
    };
    let mut warnings = Vec::new();
    for (index, validation) in items(&spec["validations"]).enumerate() {
        for key in ["expression", "messageExpression"] {
            let expression = text(&validation[key]);
            if expression.is_empty() {
                continue;
            }
            let warning = check(expression);
            if !warning.is_empty() {
                let place = format!("spec.validations[{index}].{key}");
                warnings.push(json!({"fieldRef": place, "warning": warning}));
            }
        }
    }
    warnings
}

/// The kinds that a policy names; one that names all of something is about none in particular.
fn kinds(registry: &Registry, constraints: &Value) -> Vec<Arc<Resource>> {
    let mut found: Vec<Arc<Resource>> = Vec::new();
    for rule in items(&constraints["resourceRules"]) {
        let list = |key: &str| -> BTreeSet<&str> { items(&rule[key]).map(text).collect() };
        let (groups, versions) = (list("apiGroups"), list("apiVersions"));
        if groups.union(&versions).any(|name| name.contains('*')) {
            continue;
        }
        for group in groups {
            for version in &versions {
                for plural in list("resources") {
                    if let Some(resource) = registry.find(group, version, plural)
                        && found.len() < MAX_KINDS
                        && !found.iter().any(|known| Arc::ptr_eq(known, &resource))
                    {
                        found.push(resource);
                    }
                }
            }
        }
    }
    found.sort_by(|a, b| (&a.group, &a.version, &a.kind).cmp(&(&b.group, &b.version, &b.kind)));
    found
}

/// The type of the objects of a resource.
fn type_of(resource: &Resource) -> Option<CelType<'_>> {
    let Some(custom) = resource.custom() else {
        let Resource {
            group, version, kind, ..
        } = resource;
        return schemas::schema(Gvk::new(group, version, kind))
            .map(|schema| CelType::of_schema(schema, View::Policy));
    };
    let declared = custom.schema.root().properties();
    let mut object = Struct {
        name: "object",
        ..Struct::default()
    };
    for (name, schema) in declared {
        let ty = CelType::of_schema(schema, View::Policy);
        object.fields.insert(name.to_owned(), ty);
    }
    for name in ["apiVersion", "kind"] {
        object.fields.insert(name.to_owned(), CelType::Text);
    }
    object.fields.insert("metadata".to_owned(), CelType::Unknown);
    Some(CelType::Struct(Arc::new(object)))
}
