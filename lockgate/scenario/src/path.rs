//! Paths into objects: `spec.template.spec.containers[0].image`, `metadata.labels[app.kubernetes.io/name]`,
//! `status.conditions[type=Ready].status`.

use std::fmt;

use serde_json::{Map, Value};

/// A path into an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// A key of a map.
    Key(String),
    /// A position in a list.
    Index(usize),
    /// The first item of a list whose field has this value.
    Item { field: String, value: String },
}

impl Path {
    /// Reads a path.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{text:?} is not a path: {why}");
        let mut segments = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let (inside, after) = inner.split_once(']').ok_or_else(|| wrong("a bracket is open"))?;
                segments.push(match (inside.parse(), inside.split_once('=')) {
                    (Ok(index), _) => Segment::Index(index),
                    (_, Some((field, value))) => Segment::Item {
                        field: field.to_owned(),
                        value: value.to_owned(),
                    },
                    _ => Segment::Key(inside.to_owned()),
                });
                rest = after.strip_prefix('.').unwrap_or(after);
            } else {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                if end == 0 {
                    return Err(wrong("a name is missing"));
                }
                segments.push(Segment::Key(rest[..end].to_owned()));
                rest = &rest[end..];
                rest = rest.strip_prefix('.').unwrap_or(rest);
            }
        }
        if segments.is_empty() {
            return Err(wrong("it is empty"));
        }
        Ok(Self(segments))
    }

    /// A path of plain keys.
    pub fn keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self(keys.into_iter().map(|key| Segment::Key(key.to_owned())).collect())
    }

    /// Whether it is about a status.
    pub(crate) fn is_of_status(&self) -> bool {
        self.0.first() == Some(&Segment::Key("status".to_owned()))
    }

    /// What is there; none when something on the way is missing.
    pub fn get<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(object, |at, segment| match segment {
            Segment::Key(key) => at.as_object()?.get(key),
            Segment::Index(index) => at.as_array()?.get(*index),
            Segment::Item { field, value } => at
                .as_array()?
                .iter()
                .find(|item| item[field.as_str()].as_str() == Some(value)),
        })
    }

    /// Puts a value there, making the maps on the way; nothing (`null`) takes away what is there.
    pub fn set(&self, object: &mut Value, value: &Value) -> Result<(), String> {
        let Some((last, way)) = self.0.split_last() else {
            return Ok(());
        };
        let mut at = object;
        for segment in way {
            at = step(at, segment).ok_or_else(|| format!("there is no {self}"))?;
        }
        if value.is_null() {
            match (last, at) {
                (Segment::Key(key), Value::Object(map)) => {
                    map.remove(key);
                }
                (Segment::Index(index), Value::Array(items)) if *index < items.len() => {
                    items.remove(*index);
                }
                (Segment::Item { field, value }, Value::Array(items)) => {
                    items.retain(|item| item[field.as_str()].as_str() != Some(value));
                }
                _ => {}
            }
            return Ok(());
        }
        // One past the end of a list appends.
        if let (Segment::Index(index), Value::Array(items)) = (last, &mut *at)
            && *index == items.len()
        {
            items.push(value.clone());
            return Ok(());
        }
        *step(at, last).ok_or_else(|| format!("there is no {self}"))? = value.clone();
        Ok(())
    }
}

/// One step down, making a map if there is nothing.
fn step<'a>(at: &'a mut Value, segment: &Segment) -> Option<&'a mut Value> {
    match segment {
        Segment::Key(key) => {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            Some(at.as_object_mut()?.entry(key.clone()).or_insert(Value::Null))
        }
        Segment::Index(index) => at.as_array_mut()?.get_mut(*index),
        Segment::Item { field, value } => at
            .as_array_mut()?
            .iter_mut()
            .find(|item| item[field.as_str()].as_str() == Some(value)),
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if key.contains(['.', '/', '[']) => write!(f, "[{key}]")?,
                Segment::Key(key) if position == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
                Segment::Item { field, value } => write!(f, "[{field}={value}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_read_printed_and_followed() {
        let object = json!({
            "metadata": {"labels": {"app.kubernetes.io/name": "web"}},
            "spec": {"containers": [{"name": "a"}, {"name": "b", "image": "x"}]},
        });
        for (text, found) in [
            ("metadata.labels[app.kubernetes.io/name]", json!("web")),
            ("spec.containers[1].image", json!("x")),
            ("spec.containers[name=b].image", json!("x")),
            ("spec.containers[name=c].image", Value::Null),
            ("spec.containers[7]", Value::Null),
            ("spec.nothing.at.all", Value::Null),
        ] {
            let path = Path::parse(text).unwrap();
            assert_eq!(path.to_string(), text);
            assert_eq!(path.get(&object).cloned().unwrap_or_default(), found, "{text}");
        }
        for wrong in ["", ".a", "a[b", "a..b"] {
            assert!(Path::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_are_put_and_taken_away() {
        let mut object = json!({"spec": {"list": [{"name": "a", "v": 1}], "gone": 1}});
        for (path, value) in [
            ("metadata.labels[a.b/c]", json!("x")),
            ("spec.list[name=a].v", json!(2)),
            ("spec.list[1]", json!({"name": "b"})),
            ("spec.gone", Value::Null),
        ] {
            Path::parse(path).unwrap().set(&mut object, &value).unwrap();
        }
        let wanted = json!({
            "metadata": {"labels": {"a.b/c": "x"}},
            "spec": {"list": [{"name": "a", "v": 2}, {"name": "b"}]},
        });
        assert_eq!(object, wanted);
        assert!(
            Path::parse("spec.list[9].v")
                .unwrap()
                .set(&mut object, &json!(1))
                .is_err()
        );
    }
}
