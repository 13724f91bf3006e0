//! The table of Go types.
//!
//! It is read once, on first use, into one arena; names are borrowed from the embedded file. A [`TypeRef`] is an
//! index into the arena and costs nothing to copy.

use std::ops::Range;
use std::sync::OnceLock;

use serde::Deserialize;

static SOURCE: &str = include_str!("../data/gotypes.json");
static TABLE: OnceLock<Table> = OnceLock::new();

const OMIT_EMPTY: u8 = 1;
const OMIT_ZERO: u8 = 2;
const INLINE: u8 = 4;

/// A Go type of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeRef(u32);

/// The type of a kind, or `None` for one that is not built in.
///
/// Options such as `DeleteOptions` belong to every group: clients send them with the version of the object.
pub fn lookup(group: &str, version: &str, kind: &str) -> Option<TypeRef> {
    let table = table();
    let find = |group, version| {
        let found = table
            .kinds
            .binary_search_by(|k| (k.0, k.1, k.2).cmp(&(group, version, kind)));
        found.ok().map(|at| TypeRef(table.kinds[at].3))
    };
    find(group, version).or_else(|| {
        if table.shared.contains(&kind) {
            find("meta.k8s.io", "v1")
        } else {
            None
        }
    })
}

/// Every kind of the table as group, version, kind and type, in that order.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str, &'static str, TypeRef)> {
    table()
        .kinds
        .iter()
        .map(|&(group, version, kind, ty)| (group, version, kind, TypeRef(ty)))
}

impl TypeRef {
    /// The type's name as Go prints it, such as `v1.PodSpec`.
    pub fn go_name(self) -> &'static str {
        self.get().name
    }

    pub(crate) fn get(self) -> &'static Type {
        &table().types[self.0 as usize]
    }
}

/// What rule a type decodes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    String,
    Int32,
    Int64,
    Float64,
    Bytes,
    Pointer,
    Slice,
    /// A slice that protobuf wraps into a message with the items in field 1.
    SliceMessage,
    Map,
    Struct,
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// Any JSON: RawExtension, FieldsV1, and the JSON of schemas.
    Raw,
    SchemaOrArray,
    SchemaOrBool,
    SchemaOrStrings,
}

impl Kind {
    fn parse(letter: &str) -> Option<Self> {
        Some(match letter {
            "bool" => Self::Bool,
            "string" => Self::String,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "float64" => Self::Float64,
            "bytes" => Self::Bytes,
            "*" => Self::Pointer,
            "[" => Self::Slice,
            "[m" => Self::SliceMessage,
            "map" => Self::Map,
            "{" => Self::Struct,
            "T" => Self::Time,
            "M" => Self::MicroTime,
            "Q" => Self::Quantity,
            "I" => Self::IntOrString,
            "R" | "F" | "J" => Self::Raw,
            "A" => Self::SchemaOrArray,
            "B" => Self::SchemaOrBool,
            "S" => Self::SchemaOrStrings,
            _ => return None,
        })
    }

    /// Whether Go's `omitempty` can leave out a value of this kind; it never does for structs.
    fn has_empty(self) -> bool {
        use Kind::*;
        matches!(
            self,
            Bool | String | Int32 | Int64 | Float64 | Bytes | Pointer | Slice | SliceMessage | Map
        )
    }
}

/// One type of the arena.
pub(crate) struct Type {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    elem: u32,
    declared: Range<u32>,
    flat: Range<u32>,
}

impl Type {
    /// What a pointer, slice or map is of.
    pub(crate) fn elem(&self) -> TypeRef {
        TypeRef(self.elem)
    }

    /// The fields as declared, for protobuf.
    pub(crate) fn declared(&self) -> &'static [Declared] {
        &table().declared[self.declared.start as usize..self.declared.end as usize]
    }

    /// The fields as JSON sees them: embedded structs opened, sorted by name.
    pub(crate) fn fields(&self) -> &'static [Field] {
        &table().flat[self.flat.start as usize..self.flat.end as usize]
    }

    /// The name without its package, as Go's decoder names a struct.
    pub(crate) fn short_name(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, name)| name)
    }
}

/// A field as the struct declares it.
pub(crate) struct Declared {
    /// The JSON name; the Go name where there is none.
    pub(crate) name: &'static str,
    pub(crate) ty: TypeRef,
    /// The protobuf number; 0 when protobuf does not have the field.
    pub(crate) number: u32,
    pub(crate) inline: bool,
    flags: u8,
}

/// A field as JSON sees it.
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) ty: TypeRef,
    /// The Go names of the embedded structs that hold the field, joined by dots; mostly empty.
    pub(crate) via: Box<str>,
    /// Whether an empty scalar, slice or map is left out.
    pub(crate) omit_empty: bool,
    /// Whether the zero value is written, so that the field is there even when the input lacks it.
    pub(crate) writes_zero: bool,
}

struct Table {
    kinds: Vec<(&'static str, &'static str, &'static str, u32)>,
    shared: Vec<&'static str>,
    types: Vec<Type>,
    declared: Vec<Declared>,
    flat: Vec<Field>,
}

/// Name, type, flags and protobuf number.
type SourceField<'a> = (&'a str, u32, u8, u32);
/// Rule, name, element, and fields.
type SourceType<'a> = (&'a str, &'a str, u32, Vec<SourceField<'a>>);

#[derive(Deserialize)]
struct Source<'a> {
    #[serde(borrow)]
    shared: Vec<&'a str>,
    kinds: Vec<(&'a str, &'a str, &'a str, u32)>,
    types: Vec<SourceType<'a>>,
}

fn table() -> &'static Table {
    TABLE.get_or_init(|| load(SOURCE).expect("the embedded table is generated, and a test loads it"))
}

fn load(text: &'static str) -> Option<Table> {
    let source: Source<'static> = serde_json::from_str(text).ok()?;
    let count = source.types.len() as u32;
    let mut table = Table {
        kinds: source.kinds,
        shared: source.shared,
        types: Vec::with_capacity(source.types.len()),
        declared: Vec::with_capacity(source.types.iter().map(|t| t.3.len()).sum()),
        flat: Vec::new(),
    };
    for (letter, name, elem, fields) in source.types {
        let start = table.declared.len() as u32;
        for (name, ty, flags, number) in fields {
            let inline = flags & INLINE != 0;
            table.declared.push(Declared {
                name,
                ty: within(ty, count)?,
                number,
                inline,
                flags,
            });
        }
        let declared = start..table.declared.len() as u32;
        let kind = Kind::parse(letter)?;
        table.types.push(Type {
            kind,
            name,
            elem: within(elem, count)?.0,
            declared,
            flat: 0..0,
        });
    }
    for at in 0..table.types.len() {
        if table.types[at].kind == Kind::Struct {
            let start = table.flat.len();
            flatten(&table.types, &table.declared, at, "", &mut table.flat);
            table.flat[start..].sort_by_key(|f| f.name);
            table.types[at].flat = start as u32..table.flat.len() as u32;
        }
    }
    table.kinds.iter().all(|k| k.3 < count).then_some(table)
}

fn within(ty: u32, count: u32) -> Option<TypeRef> {
    (ty < count).then_some(TypeRef(ty))
}

fn flatten(types: &[Type], declared: &[Declared], at: usize, via: &str, out: &mut Vec<Field>) {
    for index in types[at].declared.clone() {
        let field = &declared[index as usize];
        let target = field.ty.0 as usize;
        if field.inline {
            let via = if via.is_empty() {
                field.name.to_owned()
            } else {
                format!("{via}.{}", field.name)
            };
            flatten(types, declared, target, &via, out);
            continue;
        }
        let has_empty = types[target].kind.has_empty();
        out.push(Field {
            name: field.name,
            ty: field.ty,
            via: via.into(),
            omit_empty: has_empty && field.flags & OMIT_EMPTY != 0,
            writes_zero: field.flags
                & if has_empty {
                    OMIT_EMPTY | OMIT_ZERO
                } else {
                    OMIT_ZERO
                }
                == 0,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_table_loads_in_little_time_and_memory() {
        let start = Instant::now();
        let table = load(SOURCE).expect("loads");
        let took = start.elapsed();
        let bytes = table.types.capacity() * size_of::<Type>()
            + table.declared.capacity() * size_of::<Declared>()
            + table.flat.capacity() * size_of::<Field>();
        println!(
            "{} types, {} fields, {bytes} bytes, {took:?}",
            table.types.len(),
            table.flat.len()
        );
        assert!(bytes < 512 * 1024, "{bytes} bytes");
        assert!(took.as_millis() < 500, "{took:?}");
    }

    #[test]
    fn kinds_are_found_by_their_group_and_options_by_any() {
        let cases = [
            ("apps", "v1", "Deployment", Some("v1.Deployment")),
            ("", "v1", "Pod", Some("v1.Pod")),
            ("policy", "v1", "Eviction", Some("v1.Eviction")),
            (
                "autoscaling",
                "v2",
                "HorizontalPodAutoscaler",
                Some("v2.HorizontalPodAutoscaler"),
            ),
            (
                "apiextensions.k8s.io",
                "v1",
                "CustomResourceDefinition",
                Some("v1.CustomResourceDefinition"),
            ),
            ("apps", "v1", "DeleteOptions", Some("v1.DeleteOptions")),
            ("example.com", "v3", "DeleteOptions", Some("v1.DeleteOptions")),
            ("apps", "v1beta1", "Deployment", None),
            ("", "v1", "Deployment", None),
        ];
        for (group, version, kind, want) in cases {
            assert_eq!(
                lookup(group, version, kind).map(TypeRef::go_name),
                want,
                "{group}/{version}/{kind}"
            );
        }
    }

    #[test]
    fn lists_are_sorted_and_numbers_unique() {
        let table = table();
        assert!(table.kinds.is_sorted());
        for ty in &table.types {
            assert!(ty.fields().is_sorted_by(|a, b| a.name < b.name), "{}", ty.name);
            let mut numbers: Vec<u32> = ty
                .declared()
                .iter()
                .map(|f| f.number)
                .filter(|n| *n != 0)
                .collect();
            let count = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), count, "{}", ty.name);
        }
    }
}
