//! Structural schemas as kube-apiserver handles them: prune, default, validate, CEL rules, list types and merge
//! keys.
//!
//! A [`SchemaSet`] is built once, from one CRD schema or from the components of an OpenAPI document, and shared.
//! A [`SchemaRef`] points at one node of it and is what every walk takes. [`CustomSchema`] puts the walks in the
//! order in which the server runs them for a custom resource.
//!
//! What always holds: a walk over an object allocates no path unless it has something to say about it; patterns
//! and rules are compiled when the schema is built, never while an object is checked; `$ref` cycles are followed
//! only as deep as the object goes.

pub mod cel;
pub mod default;
pub mod merge;
pub mod meta;
pub mod prune;
pub mod schema;
pub mod structural;
pub mod validate;

mod custom;
mod go;
mod path;

pub use custom::CustomSchema;
pub use default::apply_defaults;
pub use prune::prune;
pub use schema::{Additional, JsonType, ListType, MapType, SchemaError, SchemaRef, SchemaSet};
pub use structural::{StructuralOptions, check_crd_schema};
