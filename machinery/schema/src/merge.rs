//! How lists and maps are merged and owned, by their schemas.
//!
//! Strategic merge patches use the patch extensions of built-in kinds, apply uses the list and map types; both
//! take what the schema says and nothing else.

use machinery_value::strategic::{MergeSchema, PatchStrategy};

use crate::schema::{Additional, JsonType, ListType, MapType, SchemaRef};

impl MergeSchema for SchemaRef<'_> {
    fn field(self, name: &str) -> Option<Self> {
        self.property(name)
    }

    fn items(self) -> Option<Self> {
        SchemaRef::items(self)
    }

    fn map_values(self) -> Option<Self> {
        match self.additional_properties() {
            Additional::Schema(schema) => Some(schema),
            _ => None,
        }
    }

    fn patch_strategy(self) -> PatchStrategy {
        SchemaRef::patch_strategy(self)
            .map(PatchStrategy::parse)
            .unwrap_or_default()
    }

    fn merge_key(&self) -> Option<&str> {
        self.patch_merge_key()
    }
}

/// How the parts of a value are owned by field managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership<'a> {
    /// The value has one owner.
    Atomic,
    /// Each field has its own owners.
    Fields,
    /// Each element of a set has its own owners.
    Set,
    /// Each element has its own owners and is known by these keys.
    Keyed(&'a [Box<str>]),
}

impl<'a> SchemaRef<'a> {
    /// How values of this schema are owned: lists are atomic and maps granular unless the schema says otherwise.
    pub fn ownership(self) -> Ownership<'a> {
        match self.json_type() {
            Some(JsonType::Array) => match self.list_type() {
                Some(ListType::Set) => Ownership::Set,
                Some(ListType::Map) if !self.list_map_keys().is_empty() => {
                    Ownership::Keyed(self.list_map_keys())
                }
                _ => Ownership::Atomic,
            },
            Some(JsonType::Object) if self.map_type() != Some(MapType::Atomic) => Ownership::Fields,
            // Without a type, only what keeps unknown fields can be taken apart.
            None if self.preserves_unknown() => Ownership::Fields,
            _ => Ownership::Atomic,
        }
    }
}
