//! Tables and partial objects: the documents in which a server answers instead of the objects themselves.
//!
//! A [`TableBuilder`] takes objects one by one, so a list never has to exist as one value. What a row carries
//! beside its cells is the client's choice ([`IncludeObject`]); by default it is the object's metadata.

use jiff::Timestamp;
use machinery_value::{Map, Value};
use serde_json::json;

use crate::column::Column;
use crate::crd::CustomColumns;
use crate::printers::{self, Kind};
use crate::view::at;

const META_V1: &str = "meta.k8s.io/v1";

/// How the objects of one resource are printed. Made once for a request, or kept with the resource.
#[derive(Clone)]
pub struct Printer(Source);

#[derive(Clone)]
enum Source {
    Builtin { kind: &'static Kind, version: String },
    Custom(CustomColumns),
}

impl Printer {
    /// The printer of a built-in kind.
    pub fn builtin(group: &str, version: &str, kind: &str) -> Self {
        Self(Source::Builtin {
            kind: Kind::find(group, kind),
            version: version.to_owned(),
        })
    }

    /// The printer of a version of a custom resource.
    pub fn custom(columns: CustomColumns) -> Self {
        Self(Source::Custom(columns))
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        match &self.0 {
            Source::Builtin { kind, .. } => kind.columns(),
            Source::Custom(columns) => columns.columns(),
        }
    }

    /// The cells of one object.
    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        match &self.0 {
            Source::Builtin { kind, version } => kind.cells(version, object, now),
            Source::Custom(columns) => columns.cells(object, now),
        }
    }

    /// What the row says of itself beside its cells.
    fn conditions(&self, object: &Value) -> Option<Value> {
        match &self.0 {
            Source::Builtin { kind, .. } if kind.is_pod() => printers::pod_conditions(object),
            _ => None,
        }
    }

    /// Whether an empty table has no list of rows at all.
    fn omits_empty_rows(&self) -> bool {
        matches!(&self.0, Source::Builtin { kind, .. } if kind.is_plain())
    }
}

/// What each row carries of its object: the query parameter `includeObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// The metadata alone.
    #[default]
    Metadata,
    /// The whole object.
    Object,
    /// Nothing.
    None,
}

impl IncludeObject {
    /// Reads the query parameter, where absent and empty mean the same. The error is the message of the
    /// `BadRequest` to answer with.
    pub fn parse(value: Option<&str>) -> Result<Self, String> {
        match value.unwrap_or_default() {
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            "None" => Ok(Self::None),
            other => Err(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {}: \
                 must be 'Metadata', 'Object', 'None', or empty",
                Value::from(other)
            )),
        }
    }
}

/// The metadata of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListMeta {
    /// The version of the whole list; of the object, for a table of one.
    pub resource_version: String,
    /// The token that fetches the next page; empty on the last one.
    pub r#continue: String,
    /// How many items the following pages have, where that is known.
    pub remaining_item_count: Option<i64>,
}

impl ListMeta {
    /// The metadata of a table that shows one object, or the items of one list value: both keep these fields in
    /// the same place.
    pub fn of(value: &Value) -> Self {
        let text = |path| at(value, path).as_str().unwrap_or_default().to_owned();
        Self {
            resource_version: text("metadata.resourceVersion"),
            r#continue: text("metadata.continue"),
            remaining_item_count: at(value, "metadata.remainingItemCount").as_i64(),
        }
    }

    fn into_json(self) -> Value {
        let mut meta = Map::new();
        for (key, text) in [
            ("resourceVersion", self.resource_version),
            ("continue", self.r#continue),
        ] {
            if !text.is_empty() {
                meta.insert(key.to_owned(), text.into());
            }
        }
        if let Some(count) = self.remaining_item_count {
            meta.insert("remainingItemCount".to_owned(), count.into());
        }
        Value::Object(meta)
    }
}

/// Builds a table row by row.
pub struct TableBuilder<'a> {
    printer: &'a Printer,
    include: IncludeObject,
    now: Timestamp,
    headers: bool,
    rows: Vec<Value>,
}

impl<'a> TableBuilder<'a> {
    /// A table with headers and without rows.
    pub fn new(printer: &'a Printer, include: IncludeObject, now: Timestamp) -> Self {
        Self {
            printer,
            include,
            now,
            headers: true,
            rows: Vec::new(),
        }
    }

    /// Whether the table says what its columns are. In a watch only the first one does.
    #[must_use]
    pub fn headers(mut self, headers: bool) -> Self {
        self.headers = headers;
        self
    }

    /// Adds the row of an object.
    pub fn push(&mut self, object: &Value) {
        let row = self.row(object);
        self.rows.push(row);
    }

    /// The row of an object, for whoever writes the rows of a long table one by one.
    pub fn row(&self, object: &Value) -> Value {
        let mut row = Map::new();
        row.insert(
            "cells".to_owned(),
            Value::Array(self.printer.cells(object, self.now)),
        );
        if let Some(conditions) = self.printer.conditions(object) {
            row.insert("conditions".to_owned(), conditions);
        }
        let carried = match self.include {
            IncludeObject::Object => object.clone(),
            IncludeObject::None if !ends_initial_events(object) => Value::Null,
            IncludeObject::Metadata | IncludeObject::None => partial_object_metadata(object),
        };
        row.insert("object".to_owned(), carried);
        Value::Object(row)
    }

    /// The finished table.
    pub fn finish(self, meta: ListMeta) -> Value {
        let columns = match self.headers {
            true => Value::Array(self.printer.columns().iter().map(Column::to_json).collect()),
            false => Value::Null,
        };
        let rows = match self.rows.is_empty() && self.printer.omits_empty_rows() {
            true => Value::Null,
            false => Value::Array(self.rows),
        };
        json!({
            "kind": "Table",
            "apiVersion": META_V1,
            "metadata": meta.into_json(),
            "columnDefinitions": columns,
            "rows": rows,
        })
    }
}

/// A client that asked for a bookmark at the end of the initial events recognizes it by an annotation, so that one
/// is never stripped of its metadata.
fn ends_initial_events(object: &Value) -> bool {
    at(object, "metadata.annotations")
        .get("k8s.io/initial-events-end")
        .is_some_and(|value| value == "true")
}

/// The table of a single object: the answer to a get, and the object of a watch event. (`Status` objects, such as
/// those of error events, are never turned into tables.)
pub fn object_table(
    printer: &Printer,
    object: &Value,
    include: IncludeObject,
    headers: bool,
    now: Timestamp,
) -> Value {
    let mut table = TableBuilder::new(printer, include, now).headers(headers);
    table.push(object);
    table.finish(ListMeta {
        resource_version: ListMeta::of(object).resource_version,
        ..ListMeta::default()
    })
}

/// The table of a list value, with the list's metadata.
pub fn list_table(printer: &Printer, list: &Value, include: IncludeObject, now: Timestamp) -> Value {
    let mut table = TableBuilder::new(printer, include, now);
    for item in at(list, "items").as_array().into_iter().flatten() {
        table.push(item);
    }
    table.finish(ListMeta::of(list))
}

/// An annotation that is a field of the object in the real server's memory, and so none of its metadata.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// The object's metadata without the object.
pub fn partial_object_metadata(object: &Value) -> Value {
    let mut metadata = object
        .get("metadata")
        .cloned()
        .unwrap_or_else(|| Value::Object(Map::new()));
    if object["kind"] == "DaemonSet"
        && let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
    {
        annotations.remove(TEMPLATE_GENERATION);
        if annotations.is_empty()
            && let Value::Object(fields) = &mut metadata
        {
            fields.remove("annotations");
        }
    }
    json!({"kind": "PartialObjectMetadata", "apiVersion": META_V1, "metadata": metadata})
}

/// The metadata of many objects. The items of an empty list are null.
pub fn partial_object_metadata_list<'a>(
    objects: impl IntoIterator<Item = &'a Value>,
    meta: ListMeta,
) -> Value {
    let items: Vec<Value> = objects.into_iter().map(partial_object_metadata).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": META_V1,
        "metadata": meta.into_json(),
        "items": (!items.is_empty()).then_some(items),
    })
}

#[cfg(test)]
mod tests;
