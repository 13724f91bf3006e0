//! The module `kube` that scripts may require: quantities, and what pods need.

use lockgate_script::Module;
use machinery_value::quantity::{Format, Quantity};
use serde_json::{Value, json};

use crate::dependencies::pod_dependencies;
use crate::render::{no_amount, requirements};

/// The module.
pub(super) const MODULE: Module<'static> = Module {
    name: "kube",
    functions: &[
        ("resourceAdd", resource_add),
        ("accuratePodRequirements", pod_requirements),
        ("getPodDependencies", dependencies_of_pod),
        ("getResourceQuantity", amount),
    ],
};

/// A quantity; nothing is 0.
fn quantity(value: &Value) -> Result<Option<Quantity>, String> {
    let text = match value {
        Value::Null => return Ok(None),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err("a quantity is a text such as 100m".to_owned()),
    };
    Quantity::parse(&text)
        .map(Some)
        .map_err(|error| format!("{text:?} is no quantity: {error}"))
}

/// `resourceAdd(a, b, …)`: the sum of quantities, as a quantity.
fn resource_add(arguments: &[Value]) -> Result<Value, String> {
    let mut sum: Option<Quantity> = None;
    for argument in arguments {
        if let Some(more) = quantity(argument)? {
            sum = Some(match sum {
                None => more,
                Some(sum) => sum.checked_add(&more).ok_or("the sum is too large")?,
            });
        }
    }
    let sum = sum.unwrap_or_else(|| Quantity::from_units(0, Format::DecimalSi));
    Ok(Value::String(sum.to_string()))
}

/// `accuratePodRequirements(podTemplate)`: what one pod needs of a cluster.
fn pod_requirements(arguments: &[Value]) -> Result<Value, String> {
    let [template] = arguments else {
        return Err("it takes one pod template".to_owned());
    };
    match no_amount(&template["spec"]) {
        Some(why) => Err(why),
        None => Ok(requirements(&template["spec"]).unwrap_or(Value::Null)),
    }
}

/// `getPodDependencies(podTemplate, namespace)`: what a pod refers to.
fn dependencies_of_pod(arguments: &[Value]) -> Result<Value, String> {
    let (template, namespace) = match arguments {
        [template] | [template, Value::Null] => (template, "default"),
        [template, Value::String(namespace)] => (template, namespace.as_str()),
        _ => return Err("it takes a pod template and a namespace".to_owned()),
    };
    let mut found = Vec::new();
    pod_dependencies(&template["spec"], namespace, &mut found);
    Ok(json!(found))
}

/// `getResourceQuantity(quantity)`: the amount as a number.
fn amount(arguments: &[Value]) -> Result<Value, String> {
    let [argument] = arguments else {
        return Err("it takes one quantity".to_owned());
    };
    let Some(quantity) = quantity(argument)? else {
        return Ok(json!(0));
    };
    if quantity.is_negative() {
        return Err(format!("{quantity} is less than nothing"));
    }
    // Whole units are exact; below one thousandth nothing is asked for.
    let units = quantity.units();
    let milli = quantity.milli();
    let amount = if milli < 1_000_000_000 {
        milli as f64 / 1000.0
    } else {
        units as f64
    };
    Ok(json!(amount))
}
