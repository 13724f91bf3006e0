//! What one replica needs, as a script tells it: what bindings have a place for, with amounts that are amounts.
//!
//! Whether it fits is decided by the schema of the bindings themselves, so that no server refuses what was taken here.

use std::sync::LazyLock;

use lockgate_api::definitions;
use machinery_schema::CustomSchema;
use machinery_value::quantity::Quantity;
use serde_json::{Value, json};

use super::{InterpretError, Operation, Script};
use crate::cluster::counted;

/// The field of a binding, and of its components, that says what a replica needs.
const FIELD: &str = "replicaRequirements";

/// What a binding says of one replica of its template.
static OF_TEMPLATES: LazyLock<CustomSchema> = LazyLock::new(|| schema(|spec| &spec[FIELD]));
/// What it says of one replica of a component.
static OF_COMPONENTS: LazyLock<CustomSchema> =
    LazyLock::new(|| schema(|spec| &spec["components"]["items"]["properties"][FIELD]));

/// The schema of an object that has nothing but this part of a binding's spec.
fn schema(part: fn(&Value) -> &Value) -> CustomSchema {
    let definitions = definitions::crds();
    let binding = definitions
        .iter()
        .find(|definition| definition["spec"]["names"]["kind"] == "ResourceBinding")
        .expect("bindings are defined by this project");
    let spec = &binding["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let part = part(&spec["properties"]);
    CustomSchema::new(&json!({"type": "object", "properties": {FIELD: part}}))
        .expect("the definitions of this project are sound")
}

/// What one replica needs; none if it needs nothing. What bindings have no place for is left out, as servers do.
pub(super) fn read(script: &Script, told: Option<&Value>) -> Result<Option<Value>, InterpretError> {
    let mut needs = match told {
        None | Some(Value::Null) => return Ok(None),
        Some(needs @ Value::Object(_)) => needs.clone(),
        Some(other) => return Err(script.nonsense(std::slice::from_ref(other), "what a replica needs")),
    };
    let (_, function) = script.operation.names();
    match needs.get_mut("resourceRequest") {
        None | Some(Value::Null) => {}
        Some(Value::Object(request)) => {
            for (name, amount) in request {
                if counted(name, amount).is_none_or(|amount| amount < 0) {
                    return Err(script.wrong(&format!(
                        "{function} says that a replica needs {name} {amount}, which is no amount"
                    )));
                }
                put_as_quantity(amount);
            }
        }
        Some(_) => {
            return Err(script.wrong(&format!(
                "{function} must return a resourceRequest of resources and their amounts"
            )));
        }
    }
    let schema = match script.operation {
        Operation::Components => &OF_COMPONENTS,
        _ => &OF_TEMPLATES,
    };
    let mut told = json!({ FIELD: needs });
    schema.prune(&mut told);
    if let Some(error) = schema.validate(&told, None).first() {
        return Err(script.wrong(&format!(
            "{function} must return what a replica needs as bindings say it: {error}"
        )));
    }
    let needs = told[FIELD].take();
    Ok(needs
        .as_object()
        .is_some_and(|needs| !needs.is_empty())
        .then_some(needs))
}

/// Has an amount be a text if it is a number that bindings do not take: one with a fraction, or a very large one. To nine
/// places, which quantities have, so that what a sum of doubles is too much is nothing more of the resource.
fn put_as_quantity(amount: &mut Value) {
    let Some(number) = amount.as_f64().filter(|_| !amount.is_i64()) else {
        return;
    };
    if let Ok(quantity) = Quantity::parse(&format!("{number:.9}")) {
        *amount = Value::String(quantity.to_string());
    }
}
