//! What a strict reader says of a JSON body, in the order in which it comes upon it.
//!
//! A value that was read keeps neither the order of its keys nor what a repeated key held before, so the bytes are read
//! once more, along the type. Only a body in which something is wrong is worth that.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::MAX_UNKNOWN;
use crate::types::{Kind, Type, TypeRef};

/// What is to say of the fields of `body` that `ty` does not have, or that appear twice: each once, the first hundred.
///
/// What is inside an unknown field, or inside a type that parses itself, is not looked at, as in Go.
pub fn strict_findings(ty: TypeRef, body: &[u8]) -> Vec<String> {
    let mut finder = Finder::default();
    let mut reader = serde_json::Deserializer::from_slice(body);
    // A body that cannot be read was refused before; what was found up to there is as good as any.
    Seed {
        ty,
        finder: &mut finder,
    }
    .deserialize(&mut reader)
    .ok();
    finder.findings
}

#[derive(Default)]
struct Finder {
    findings: Vec<String>,
    /// The path of the value at hand.
    path: String,
}

impl Finder {
    /// Appends a key to the path; returns where it began.
    fn enter(&mut self, key: &str) -> usize {
        let start = self.path.len();
        if start > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        start
    }

    fn note(&mut self, what: &str) {
        let finding = format!("{what} field \"{}\"", self.path);
        if self.findings.len() < MAX_UNKNOWN && !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

struct Seed<'a> {
    ty: TypeRef,
    finder: &'a mut Finder,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let mut ty = self.ty.get();
        while ty.kind == Kind::Pointer {
            ty = ty.elem().get();
        }
        let finder = self.finder;
        match ty.kind {
            Kind::Struct | Kind::Map | Kind::Slice | Kind::SliceMessage => {
                deserializer.deserialize_any(Walk { ty, finder })
            }
            _ => serde::Deserialize::deserialize(deserializer).map(|IgnoredAny| ()),
        }
    }
}

/// A container of its type, or whatever stands in its place.
struct Walk<'a> {
    ty: &'static Type,
    finder: &'a mut Finder,
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let Self { ty, finder } = self;
        let mut seen = BTreeSet::new();
        while let Some(key) = access.next_key::<String>()? {
            let start = finder.enter(&key);
            let inner = match ty.kind {
                Kind::Struct => {
                    let known = ty.fields();
                    let found = known.binary_search_by(|field| field.name.cmp(&key));
                    found.ok().map(|at| known[at].ty)
                }
                Kind::Map => Some(ty.elem()),
                // A wrong type, which is refused as such.
                _ => None,
            };
            match inner {
                Some(ty) => {
                    if !seen.insert(key) {
                        finder.note("duplicate");
                    }
                    access.next_value_seed(Seed { ty, finder })?;
                }
                None => {
                    if ty.kind == Kind::Struct {
                        finder.note("unknown");
                    }
                    access.next_value::<IgnoredAny>()?;
                }
            }
            finder.path.truncate(start);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        let Self { ty, finder } = self;
        if !matches!(ty.kind, Kind::Slice | Kind::SliceMessage) {
            while access.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        let start = finder.path.len();
        for index in 0_usize.. {
            finder.path.push_str(&format!("[{index}]"));
            let seed = Seed {
                ty: ty.elem(),
                finder,
            };
            let more = access.next_element_seed(seed)?.is_some();
            finder.path.truncate(start);
            if !more {
                break;
            }
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::lookup;

    fn check(group: &str, kind: &str, body: &str, expected: &[&str]) {
        let ty = lookup(group, "v1", kind).unwrap();
        assert_eq!(strict_findings(ty, body.as_bytes()), expected, "{body}");
    }

    /// The expected findings are what kube-apiserver 1.35 answers.
    #[test]
    fn findings_come_in_the_order_of_the_body() {
        check(
            "",
            "ConfigMap",
            r#"{"zz":1,"aa":2,"data":{"a":"1","a":"2"},"metadata":{"name":"x","q":1,"b":2},"bogus":1}"#,
            &[
                r#"unknown field "zz""#,
                r#"unknown field "aa""#,
                r#"duplicate field "data.a""#,
                r#"unknown field "metadata.q""#,
                r#"unknown field "metadata.b""#,
                r#"unknown field "bogus""#,
            ],
        );
        check(
            "apps",
            "Deployment",
            r#"{"spec":{"zz":1,"template":{"spec":{"containers":[{"name":"a","x":1,"name":"b"},{"y":1,"name":"c"}],"qq":1}},"aa":1}}"#,
            &[
                r#"unknown field "spec.zz""#,
                r#"unknown field "spec.template.spec.containers[0].x""#,
                r#"duplicate field "spec.template.spec.containers[0].name""#,
                r#"unknown field "spec.template.spec.containers[1].y""#,
                r#"unknown field "spec.template.spec.qq""#,
                r#"unknown field "spec.aa""#,
            ],
        );
    }

    #[test]
    fn what_a_repeated_field_held_before_counts_and_what_is_unknown_is_one_finding() {
        check(
            "",
            "ConfigMap",
            r#"{"metadata":{"name":"a","zlabels":{}},"metadata":{"name":"b","ylabels":1}}"#,
            &[
                r#"unknown field "metadata.zlabels""#,
                r#"duplicate field "metadata""#,
                r#"unknown field "metadata.ylabels""#,
            ],
        );
        check(
            "",
            "ConfigMap",
            r#"{"zz":1,"zz":2,"metadata":{"nope":{"x":1,"x":2}},"data":{"a":"1","a":"2","a":"3"}}"#,
            &[
                r#"unknown field "zz""#,
                r#"unknown field "metadata.nope""#,
                r#"duplicate field "data.a""#,
            ],
        );
    }

    #[test]
    fn what_does_not_fit_is_passed_over() {
        for body in [
            r#"{"metadata":[1],"data":"x"}"#,
            r#"[1]"#,
            "null",
            "1",
            "",
            r#"{"data":{"a":1.5,"b":null}}"#,
            r#"{"metadata":{"creationTimestamp":{"a":1,"a":2},"managedFields":[{"fieldsV1":{"f:a":{},"f:a":{}}}]}}"#,
        ] {
            check("", "ConfigMap", body, &[]);
        }
    }
}
