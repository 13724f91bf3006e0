//! The built-in kinds of Kubernetes: catalog, schemas, defaults, validation.
//!
//! Everything here is a pure function over JSON values, and holds for Kubernetes 1.35. An object on its way in goes
//! through [`defaults::apply`], then [`strategy::prepare_create`] or [`strategy::prepare_update`], then
//! [`validation::validate_create`] or [`validation::validate_update`], in that order, as in kube-apiserver.
//!
//! Objects arrive decoded: unknown fields and nulls are gone and types are right. Presence is never assumed.

mod access;
pub mod catalog;
pub mod defaults;
pub mod flows;
pub mod schemas;
pub mod strategy;
pub mod validation;
pub mod warnings;
pub mod words;

/// The group, version and kind of an object; the core group is "".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gvk<'a> {
    /// The API group, "" for the core group.
    pub group: &'a str,
    /// The version, such as `v1`.
    pub version: &'a str,
    /// The kind, such as `Pod`.
    pub kind: &'a str,
}

impl<'a> Gvk<'a> {
    /// Names a kind.
    pub fn new(group: &'a str, version: &'a str, kind: &'a str) -> Self {
        Self { group, version, kind }
    }
}
