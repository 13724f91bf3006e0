//! A small vocabulary for structural schemas: every field has a description, and reads as one line.

use serde_json::{Map, Value, json};

/// The longest name of an object.
pub(super) const NAME_LENGTH: usize = 253;
/// A label's key: a name of up to 63 characters, after an optional domain and a slash. Rules over many keys need it short: its
/// length is what they cost.
pub(super) const QUALIFIED_NAME: &str = concat!(
    r"^([a-z0-9]+((\.|-+)[a-z0-9]+)*/)?",
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
);
/// The longest label key.
pub(super) const QUALIFIED_NAME_LENGTH: usize = 317;
/// A label's value; may be empty.
pub(super) const LABEL_VALUE: &str = r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";
/// The longest label value.
pub(super) const LABEL_VALUE_LENGTH: usize = 63;
/// A version, after an optional group and a slash.
const API_VERSION: &str = r"^([a-z0-9]+((\.|-+)[a-z0-9]+)*/)?[a-z0-9]+(-+[a-z0-9]+)*$";
/// The longest apiVersion: a group of up to 253 characters, a slash, a version of up to 63.
const API_VERSION_LENGTH: usize = 317;
/// A kind, as definitions may have it.
const KIND: &str = r"^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$";
/// The longest kind.
const KIND_LENGTH: usize = 63;
/// A JSON pointer; the empty one names the whole document.
pub(super) const JSON_POINTER: &str = r"^(/([^~/]|~[01])*)*$";
/// A quantity, when it is written as text.
const QUANTITY: &str = concat!(
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))",
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
);

/// A schema under construction.
#[derive(Clone)]
pub(super) struct Schema(Map<String, Value>);

/// A rule of `x-kubernetes-validations`.
pub(super) struct Rule {
    expression: String,
    message: String,
    field: Option<&'static str>,
    reason: &'static str,
}

/// What must hold, and what is said if it does not.
pub(super) fn rule(expression: impl Into<String>, message: impl Into<String>) -> Rule {
    Rule {
        expression: expression.into(),
        message: message.into(),
        field: None,
        reason: "FieldValueInvalid",
    }
}

impl Rule {
    /// The field that is to blame, relative to the place of the rule: `.a.b`.
    pub(super) fn at(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }

    /// The field may not be there.
    pub(super) fn forbidden(mut self) -> Self {
        self.reason = "FieldValueForbidden";
        self
    }

    /// The field is missing.
    pub(super) fn required(mut self) -> Self {
        self.reason = "FieldValueRequired";
        self
    }

    /// The value is there twice.
    pub(super) fn duplicate(mut self) -> Self {
        self.reason = "FieldValueDuplicate";
        self
    }

    fn build(self) -> Value {
        let mut rule = json!({"rule": self.expression, "message": self.message, "reason": self.reason});
        if let Some(field) = self.field {
            rule["fieldPath"] = json!(field);
        }
        rule
    }
}

fn typed(kind: &str, description: &str) -> Schema {
    Schema(Map::new())
        .set("type", kind)
        .set("description", description)
}

/// Text.
pub(super) fn string(description: &str) -> Schema {
    typed("string", description)
}

/// A point in time, RFC 3339.
pub(super) fn time(description: &str) -> Schema {
    string(description).set("format", "date-time")
}

/// The name of an object.
pub(super) fn name(description: &str) -> Schema {
    string(description).max_length(NAME_LENGTH)
}

/// Group and version of objects.
pub(super) fn api_version(description: &str) -> Schema {
    string(description)
        .min_length(1)
        .pattern(API_VERSION)
        .max_length(API_VERSION_LENGTH)
}

/// The kind of objects.
pub(super) fn kind(description: &str) -> Schema {
    string(description)
        .min_length(1)
        .pattern(KIND)
        .max_length(KIND_LENGTH)
}

/// A label's key.
pub(super) fn label_key(description: &str) -> Schema {
    string(description)
        .pattern(QUALIFIED_NAME)
        .max_length(QUALIFIED_NAME_LENGTH)
}

/// A label's value.
pub(super) fn label_value(description: &str) -> Schema {
    string(description)
        .pattern(LABEL_VALUE)
        .max_length(LABEL_VALUE_LENGTH)
}

/// A JSON pointer.
pub(super) fn pointer(description: &str) -> Schema {
    string(description).pattern(JSON_POINTER)
}

/// One of a few words.
pub(super) fn word(description: &str, words: &[&str]) -> Schema {
    string(description).set("enum", words)
}

/// True or false.
pub(super) fn boolean(description: &str) -> Schema {
    typed("boolean", description)
}

/// A number of 32 bits. The format alone refuses nothing.
pub(super) fn int32(description: &str) -> Schema {
    typed("integer", description)
        .set("format", "int32")
        .minimum(i32::MIN.into())
        .set("maximum", i32::MAX)
}

/// A number of 64 bits.
pub(super) fn int64(description: &str) -> Schema {
    typed("integer", description).set("format", "int64")
}

/// An amount of a resource.
pub(super) fn quantity(description: &str) -> Schema {
    Schema(Map::new())
        .set("description", description)
        .set("anyOf", json!([{"type": "integer"}, {"type": "string"}]))
        .set("pattern", QUANTITY)
        .set("x-kubernetes-int-or-string", true)
}

/// An object with these fields and no others.
pub(super) fn object<const N: usize>(description: &str, fields: [(&str, Schema); N]) -> Schema {
    let mut schema = typed("object", description);
    schema
        .0
        .insert("properties".to_owned(), Value::Object(Map::new()));
    for (name, field) in fields {
        schema = schema.with(name, field);
    }
    schema
}

/// A list.
pub(super) fn list(description: &str, items: Schema) -> Schema {
    typed("array", description).set("items", items.build())
}

/// A list of texts.
pub(super) fn strings(description: &str) -> Schema {
    let mut items = Map::new();
    items.insert("type".to_owned(), json!("string"));
    list(description, Schema(items))
}

/// An object with any keys.
pub(super) fn map(description: &str, values: Schema) -> Schema {
    typed("object", description).set("additionalProperties", values.build())
}

/// An object with any keys and texts as values.
pub(super) fn string_map(description: &str) -> Schema {
    typed("object", description).set("additionalProperties", json!({"type": "string"}))
}

/// An object whose content is nobody's business here.
pub(super) fn raw_object(description: &str) -> Schema {
    typed("object", description).set("x-kubernetes-preserve-unknown-fields", true)
}

/// Any value.
pub(super) fn any(description: &str) -> Schema {
    Schema(Map::new())
        .set("description", description)
        .set("x-kubernetes-preserve-unknown-fields", true)
}

impl Schema {
    /// Sets a keyword.
    pub(super) fn set(mut self, keyword: &str, value: impl serde::Serialize) -> Self {
        self.0.insert(keyword.to_owned(), json!(value));
        self
    }

    /// Adds a field to an object.
    pub(super) fn with(mut self, name: &str, field: Schema) -> Self {
        if let Some(Value::Object(properties)) = self.0.get_mut("properties") {
            properties.insert(name.to_owned(), field.build());
        }
        self
    }

    /// These fields must be there.
    pub(super) fn required(self, fields: &[&str]) -> Self {
        self.set("required", fields)
    }

    /// What an absent field means.
    pub(super) fn default(self, value: impl serde::Serialize) -> Self {
        self.set("default", value)
    }

    /// What the text looks like.
    pub(super) fn pattern(self, pattern: &str) -> Self {
        self.set("pattern", pattern)
    }

    /// The shortest text.
    pub(super) fn min_length(self, length: usize) -> Self {
        self.set("minLength", length)
    }

    /// The longest text.
    pub(super) fn max_length(self, length: usize) -> Self {
        self.set("maxLength", length)
    }

    /// The shortest list.
    pub(super) fn min_items(self, items: usize) -> Self {
        self.set("minItems", items)
    }

    /// The longest list. Rules over a list need a bound: the server adds up what they could cost at worst.
    pub(super) fn max_items(self, items: usize) -> Self {
        self.set("maxItems", items)
    }

    /// The largest map; rules over a map need it as well.
    pub(super) fn max_properties(self, properties: usize) -> Self {
        self.set("maxProperties", properties)
    }

    /// The lowest number.
    pub(super) fn minimum(self, number: i64) -> Self {
        self.set("minimum", number)
    }

    /// Adds a rule.
    pub(super) fn rule(mut self, rule: Rule) -> Self {
        let rules = self
            .0
            .entry("x-kubernetes-validations")
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(rules) = rules {
            rules.push(rule.build());
        }
        self
    }

    /// The same shape without rules, for copies that the controllers write: what a policy was once accepted with must
    /// not be refused later because a rule was added.
    pub(super) fn without_rules(self) -> Self {
        self.without(&["x-kubernetes-validations"])
    }

    /// The same shape with any texts, and any number of labels, for the same reason. Lists are bounded as they always were.
    pub(super) fn with_any_texts(self) -> Self {
        self.without(&["pattern", "minLength", "maxLength", "maxProperties"])
    }

    fn without(self, keywords: &[&str]) -> Self {
        fn strip(value: &mut Value, keywords: &[&str]) {
            match value {
                Value::Object(fields) => {
                    // A property may have the name of a keyword; its schema is an object, and no such keyword's value is.
                    fields.retain(|name, value| value.is_object() || !keywords.contains(&name.as_str()));
                    fields.values_mut().for_each(|value| strip(value, keywords));
                }
                Value::Array(items) => items.iter_mut().for_each(|item| strip(item, keywords)),
                _ => {}
            }
        }
        let mut whole = Value::Object(self.0);
        strip(&mut whole, keywords);
        match whole {
            Value::Object(fields) => Self(fields),
            _ => Self(Map::new()),
        }
    }

    /// Only the type.
    pub(super) fn bare(mut self) -> Self {
        self.0.retain(|keyword, _| keyword == "type");
        self
    }

    /// The finished schema.
    pub(super) fn build(self) -> Value {
        Value::Object(self.0)
    }
}
