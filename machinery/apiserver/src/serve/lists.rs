//! Lists on their way to the client.
//!
//! What is long is made piece by piece, as the client takes it, and in turns with the other long answers. So a client that does
//! not read costs the pointers to what it asked for, and nobody's list keeps others waiting for longer than a piece takes.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream;
use http::Response;
use jiff::Timestamp;
use machinery_table::{
    IncludeObject, ListMeta, Printer, TableBuilder, partial_object_metadata, partial_object_metadata_list,
};
use machinery_value::Value;
use machinery_value::encode::{to_vec, to_yaml};
use serde_json::{Map, json};

use crate::body::Body;
use crate::negotiate::{Accept, Encoding, OFFERED, Shape};
use crate::object::Stored;
use crate::ops::read::Listing;
use crate::places::Turns;
use crate::resource::{Resource, Source};
use crate::serve::{Call, respond};
use crate::status::ApiError;

/// How many bytes are made at once.
pub(super) const PIECE: usize = 64 * 1024;

/// Answers with a list.
pub(crate) async fn answer(
    call: &Call,
    resource: &Arc<Resource>,
    accept: Accept,
    listing: Listing,
) -> Result<Response<Body>, ApiError> {
    match accept.shape {
        Shape::Partial => return Err(respond::wrong_shape(resource, "", "a list", "List")),
        Shape::Discovery => return Err(ApiError::not_acceptable(OFFERED)),
        Shape::Object | Shape::PartialList | Shape::Table => {}
    }
    let view = View {
        printer: respond::printer(resource),
        resource: resource.clone(),
        shape: accept.shape,
        include: match accept.shape {
            Shape::Table => respond::include(call)?,
            _ => IncludeObject::None,
        },
        now: call.server.now(),
        meta: ListMeta {
            resource_version: listing.revision.to_string(),
            r#continue: listing.next.unwrap_or_default(),
            remaining_item_count: listing.remaining.and_then(|n| i64::try_from(n).ok()),
        },
    };
    let items = listing.items;
    let size: usize = items.iter().map(|item| item.value.body().len()).sum();
    let mut turns = Turns::new(&call.server.workplaces, &call.user.name);
    match accept.encoding {
        Encoding::Json if size > PIECE => {
            let pieces = Pieces {
                state: State::Head,
                items: items.into_iter(),
                view,
                turns,
            };
            let body = Body::stream(stream::unfold(pieces, |mut pieces| async move {
                pieces.next().await.map(|piece| (piece, pieces))
            }));
            Ok(respond::with_type(200, body, "application/json"))
        }
        Encoding::Json if accept.shape == Shape::Object => {
            let mut out = BytesMut::from(view.head().as_slice());
            for (index, item) in items.iter().enumerate() {
                view.write(item, index == 0, &mut out);
            }
            out.extend_from_slice(b"]}");
            Ok(respond::json_chunks(200, [out.freeze()]))
        }
        Encoding::Json => Ok(respond::json_value(200, &view.whole(&items))),
        // People read YAML. It is made in one go, and where it keeps nothing else waiting.
        Encoding::Yaml => {
            turns.next().await;
            let made = tokio::task::spawn_blocking(move || to_yaml(&view.whole(&items)));
            let made = made.await.map_err(ApiError::internal)?;
            Ok(respond::with_type(200, Body::full(made), "application/yaml"))
        }
    }
}

/// How a list is to be shown.
struct View {
    resource: Arc<Resource>,
    printer: Printer,
    shape: Shape,
    include: IncludeObject,
    now: Timestamp,
    meta: ListMeta,
}

impl View {
    fn table(&self) -> TableBuilder<'_> {
        TableBuilder::new(&self.printer, self.include, self.now)
    }

    /// The list as one value.
    fn whole(&self, items: &[Stored]) -> Value {
        let resource = &self.resource;
        match self.shape {
            Shape::Table => {
                let mut table = self.table();
                for item in items {
                    table.push(&resource.whole(item));
                }
                table.finish(self.meta.clone())
            }
            Shape::PartialList => {
                let items: Vec<Value> = items.iter().map(|item| resource.whole(item)).collect();
                partial_object_metadata_list(&items, self.meta.clone())
            }
            _ => {
                let items: Vec<Value> = items.iter().map(|item| list_item(resource, item)).collect();
                json!({"kind": resource.list_kind, "apiVersion": resource.api_version(),
                    "metadata": list_metadata(&self.meta, resource.custom().is_some()), "items": items})
            }
        }
    }

    /// What stands before the items of a list that has some.
    fn head(&self) -> Vec<u8> {
        let rows = if self.shape == Shape::Table {
            "rows"
        } else {
            "items"
        };
        let mut empty = self.whole(&[]);
        if let Value::Object(fields) = &mut empty {
            fields.remove(rows);
        }
        let mut head = to_vec(&empty);
        head.pop();
        head.extend_from_slice(format!(",\"{rows}\":[").as_bytes());
        head
    }

    /// Writes one item behind the others.
    fn write(&self, item: &Stored, is_first: bool, out: &mut BytesMut) {
        if !is_first {
            out.extend_from_slice(b",");
        }
        let resource = &self.resource;
        match (self.shape, &resource.source) {
            (Shape::Table, _) => {
                out.extend_from_slice(&to_vec(&self.table().row(&resource.whole(item))));
            }
            (Shape::PartialList, _) => {
                out.extend_from_slice(&to_vec(&partial_object_metadata(&resource.whole(item))));
            }
            // Without a parse, where the stored bytes are what is shown.
            (_, Source::BuiltIn { .. }) if resource.serves_as_stored(&item.value) => {
                out.extend_from_slice(item.value.body());
            }
            (_, Source::BuiltIn { .. }) => out.extend_from_slice(&to_vec(&resource.shown(&item.value))),
            (_, Source::Custom(_)) => {
                for piece in resource.encode(item) {
                    out.extend_from_slice(&piece);
                }
            }
        }
    }
}

/// A long list, while it is sent.
struct Pieces {
    state: State,
    items: std::vec::IntoIter<Stored>,
    view: View,
    turns: Turns,
}

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Items,
    Done,
}

impl Pieces {
    /// The next piece; none after the last.
    async fn next(&mut self) -> Option<Bytes> {
        if self.state == State::Done {
            return None;
        }
        self.turns.next().await;
        let mut out = BytesMut::with_capacity(PIECE + PIECE / 4);
        let mut is_first = self.state == State::Head;
        if is_first {
            out.extend_from_slice(&self.view.head());
        }
        self.state = State::Items;
        while out.len() < PIECE {
            let Some(item) = self.items.next() else {
                out.extend_from_slice(b"]}");
                self.state = State::Done;
                break;
            };
            self.view.write(&item, is_first, &mut out);
            is_first = false;
        }
        self.turns.rest();
        Some(out.freeze())
    }
}

/// Items of built-in lists carry no type, those of custom lists do.
fn list_item(resource: &Resource, item: &Stored) -> Value {
    match resource.source {
        Source::BuiltIn { .. } => resource.shown(&item.value),
        Source::Custom(_) => resource.whole(item),
    }
}

/// Lists of custom resources always say whether they go on.
fn list_metadata(meta: &ListMeta, custom: bool) -> Value {
    let mut out = Map::new();
    out.insert("resourceVersion".into(), json!(meta.resource_version));
    if custom || !meta.r#continue.is_empty() {
        out.insert("continue".into(), json!(meta.r#continue));
    }
    if let Some(remaining) = meta.remaining_item_count {
        out.insert("remainingItemCount".into(), json!(remaining));
    }
    Value::Object(out)
}
