//! The tables of custom resources, as their definition declares them.
//!
//! The name always comes first. A column whose path finds nothing, or whose value is not of the column's type,
//! has a null cell. The first result of a path is the cell; the rest are not shown.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use machinery_value::jsonpath::JsonPath;
use machinery_value::{Number, Value};

use crate::age;
use crate::column::{CREATED_DESCRIPTION, Column, NAME};
use crate::gotext::cell_text;
use crate::view::{int, list, name, text, text_or};

/// The columns of one version of a custom resource, ready for printing. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CustomColumns(Arc<Columns>);

#[derive(Debug)]
struct Columns {
    columns: Vec<Column>,
    /// The paths of the columns after the name.
    paths: Vec<JsonPath>,
}

impl CustomColumns {
    /// Reads `additionalPrinterColumns` of a version of a definition (an entry of `spec.versions`). Without any,
    /// the table shows name and age. Reading stops before a column whose path is not valid, which no stored
    /// definition has.
    pub fn of_version(version: &Value) -> Self {
        let mut columns = vec![NAME];
        let mut paths = Vec::new();
        let declared = list(version, "additionalPrinterColumns");
        for column in declared {
            let path = text(column, "jsonPath");
            let Ok(parsed) = JsonPath::parse(path) else { break };
            let description = match text(column, "description") {
                "" => format!("Custom resource definition column (in JSONPath format): {path}"),
                description => description.to_owned(),
            };
            paths.push(parsed);
            columns.push(Column {
                name: Cow::Owned(text(column, "name").to_owned()),
                r#type: Cow::Owned(text_or(column, "type", "string").to_owned()),
                format: Cow::Owned(text(column, "format").to_owned()),
                description: Cow::Owned(description),
                priority: i32::try_from(int(column, "priority")).unwrap_or(i32::MAX),
            });
        }
        if declared.is_empty()
            && let Ok(path) = JsonPath::parse(".metadata.creationTimestamp")
        {
            paths.push(path);
            columns.push(Column {
                name: Cow::Borrowed("Age"),
                r#type: Cow::Borrowed("date"),
                format: Cow::Borrowed(""),
                description: Cow::Borrowed(CREATED_DESCRIPTION),
                priority: 0,
            });
        }
        Self(Arc::new(Columns { columns, paths }))
    }

    /// The columns, the name first.
    pub fn columns(&self) -> &[Column] {
        &self.0.columns
    }

    /// The cells of one object.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let mut cells = vec![Value::from(name(object))];
        let columns = self.0.columns.iter().skip(1);
        cells.extend(columns.zip(&self.0.paths).map(|(column, path)| {
            path.first(object)
                .map_or(Value::Null, |value| cell(&column.r#type, value, now))
        }));
        cells
    }
}

/// The cell of a value in a column of the type.
fn cell(r#type: &str, value: &Value, now: Timestamp) -> Value {
    match (r#type, value) {
        ("string", value) => cell_text(value).into(),
        ("integer", Value::Number(number)) => whole(number),
        ("number", Value::Number(number)) => Value::Number(number.clone()),
        ("boolean", Value::Bool(flag)) => (*flag).into(),
        ("date", Value::String(text)) => age::date_cell(text, now).into(),
        _ => Value::Null,
    }
}

/// A number without its fraction.
fn whole(number: &Number) -> Value {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole.into(),
        (None, Some(float)) if float.abs() < 9_223_372_036_854_775_808.0 => (float as i64).into(),
        // What does not fit is the least number, as processors have it.
        (None, Some(_)) => i64::MIN.into(),
        (None, None) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn now() -> Timestamp {
        "2026-01-02T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn declared_columns_follow_the_name() {
        let version = json!({"additionalPrinterColumns": [
            {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "description": "How it looks.", "priority": 1},
            {"name": "When", "type": "string", "format": "date-time", "jsonPath": ".spec.when"},
        ]});
        let columns = CustomColumns::of_version(&version);
        let shown: Vec<_> = columns
            .columns()
            .iter()
            .map(|c| (&*c.name, &*c.r#type, &*c.format, &*c.description, c.priority))
            .collect();
        assert_eq!(shown[0].0, "Name");
        assert!(shown[0].3.starts_with("Name must be unique within a namespace."));
        let path = "Custom resource definition column (in JSONPath format): ";
        assert_eq!(
            &shown[1..],
            &[
                ("Replicas", "integer", "", &*format!("{path}.spec.replicas"), 0),
                ("Color", "string", "", "How it looks.", 1),
                ("When", "string", "date-time", &*format!("{path}.spec.when"), 0),
            ]
        );
        let object = json!({"metadata": {"name": "w"}, "spec": {"replicas": 3}});
        assert_eq!(
            columns.cells(&object, now()),
            vec![json!("w"), json!(3), json!(null), json!(null)]
        );
    }

    #[test]
    fn without_columns_there_are_name_and_age() {
        for version in [json!({}), json!({"additionalPrinterColumns": []})] {
            let columns = CustomColumns::of_version(&version);
            let names: Vec<_> = columns.columns().iter().map(|c| (&*c.name, &*c.r#type)).collect();
            assert_eq!(names, [("Name", "string"), ("Age", "date")]);
            let object = json!({"metadata": {"name": "w", "creationTimestamp": "2026-01-01T23:00:00Z"}});
            assert_eq!(columns.cells(&object, now()), vec![json!("w"), json!("60m")]);
        }
    }

    #[test]
    fn a_value_of_another_type_is_null() {
        let cases = [
            ("integer", json!(5), json!(5)),
            ("integer", json!(5.9), json!(5)),
            ("integer", json!(1e20), json!(i64::MIN)),
            ("integer", json!(u64::MAX), json!(i64::MIN)),
            ("integer", json!("5"), json!(null)),
            ("number", json!(5), json!(5)),
            ("number", json!(5.5), json!(5.5)),
            ("number", json!("5.5"), json!(null)),
            ("boolean", json!(true), json!(true)),
            ("boolean", json!("true"), json!(null)),
            ("date", json!("2026-01-01T23:59:00Z"), json!("60s")),
            ("date", json!("soon"), json!("<invalid>")),
            ("date", json!(""), json!("<unknown>")),
            ("date", json!(7), json!(null)),
            ("date", json!(null), json!(null)),
            ("string", json!(7), json!("7")),
            ("string", json!(false), json!("false")),
            ("string", json!({"a": ["b"]}), json!("{\"a\":[\"b\"]}")),
            ("string", json!(null), json!("<no value>")),
        ];
        for (r#type, value, want) in cases {
            assert_eq!(cell(r#type, &value, now()), want, "{type} {value}");
        }
    }
}
