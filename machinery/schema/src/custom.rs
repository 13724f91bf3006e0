//! The schema of one version of a custom resource, with its walks in the server's order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use machinery_value::field::{FieldError, FieldErrorKind, FieldPath};
use machinery_value::hash::{ValueHash, canonical_hash};
use serde_json::Value;

use crate::cel::check_rules;
use crate::schema::{SchemaError, SchemaRef, SchemaSet, Subtree};
use crate::{default, go, prune, validate};

/// The schema of a custom resource. Cheap to copy.
#[derive(Clone, Debug)]
pub struct CustomSchema(Arc<Built>);

#[derive(Debug)]
struct Built {
    declared: Value,
    set: SchemaSet,
    /// Whether it passed the check for definitions without and with a status of their own.
    sound: [AtomicBool; 2],
}

/// The schemas that somebody uses. Servers of one process mostly have the same definitions, and a schema that is built is
/// large.
static IN_USE: LazyLock<Mutex<HashMap<ValueHash, Weak<Built>>>> = LazyLock::new(Mutex::default);

impl CustomSchema {
    /// Builds the schema from `openAPIV3Schema`, or shares one that is there. It should have passed
    /// [`crate::check_crd_schema`].
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        let hash = canonical_hash(schema);
        let in_use = || IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        let known = in_use().get(&hash).and_then(Weak::upgrade);
        // Numbers that are written in different ways have the same hash.
        if let Some(built) = known.filter(|built| built.declared == *schema) {
            return Ok(Self(built));
        }
        let built = Arc::new(Built {
            declared: schema.clone(),
            set: SchemaSet::from_crd(schema)?,
            sound: Default::default(),
        });
        let mut in_use = in_use();
        in_use.retain(|_, built| built.strong_count() > 0);
        in_use.insert(hash, Arc::downgrade(&built));
        Ok(Self(built))
    }

    /// As it was declared.
    pub fn declared(&self) -> &Value {
        &self.0.declared
    }

    /// Whether it is known to be a sound schema of a definition with or without a status of its own.
    pub(crate) fn is_sound(&self, status: bool) -> bool {
        self.0.sound[usize::from(status)].load(Ordering::Acquire)
    }

    /// Remembers that it is sound.
    pub(crate) fn set_sound(&self, status: bool) {
        self.0.sound[usize::from(status)].store(true, Ordering::Release);
    }

    /// The schema of the whole object.
    pub fn root(&self) -> SchemaRef<'_> {
        self.0.set.at(crate::schema::NodeId(0))
    }

    /// Removes unknown fields and returns their paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(self.root(), object)
    }

    /// Drops nulls that are no values and fills in defaults.
    pub fn apply_defaults(&self, object: &mut Value) {
        default::apply_defaults(self.root(), object);
    }

    /// Fills in defaults and leaves all other nulls where they are.
    pub fn fill_defaults(&self, object: &mut Value) {
        default::fill_defaults(self.root(), object);
    }

    /// Everything the schema says about an object: values, embedded resources, lists, rules. `old` is the object
    /// before an update.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.check_values(object, old, &mut errors);
        self.check_rest(object, old, &mut errors);
        errors
    }

    /// The first half of [`Self::validate`]. The server checks the scale subresource between the two.
    pub fn check_values(&self, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
        validate::check_values(self.root(), object, old, errors);
    }

    /// The same for an update of the status: only the status is checked, and messages name fields from there on.
    pub fn check_status_values(&self, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
        let (Some(status), Some(schema)) = (object.get("status"), self.root().property("status")) else {
            return;
        };
        let old = old.and_then(|old| old.get("status"));
        validate::check_values_at(schema, status, old, &FieldPath::new("status"), errors);
    }

    /// The second half of [`Self::validate`]: embedded resources, lists of type set and map, and rules. Rules are
    /// not run if `errors` holds one that makes their answers worthless.
    pub fn check_rest(&self, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
        validate::check_embedded(self.root(), object, errors);
        self.check_status_rest(object, old, errors);
    }

    /// [`Self::check_rest`] for an update of the status, which leaves embedded resources alone.
    pub fn check_status_rest(&self, object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
        let root = self.root();
        if root.subtree().has(Subtree::LISTS) {
            let mut found = Vec::new();
            validate::check_lists(root, object, &mut found);
            let mut before = Vec::new();
            if let Some(old) = old.filter(|_| !found.is_empty()) {
                validate::check_lists(root, old, &mut before);
            }
            // An object that was broken before may stay so.
            if before.is_empty() {
                errors.append(&mut found);
            }
        }
        if root.subtree().has(Subtree::RULES) {
            if errors.iter().any(|error| blocks_rules(error.kind)) {
                let detail = "some validation rules were not checked because the object was invalid; correct the \
                              existing errors to complete validation";
                errors.push(go::error(
                    FieldErrorKind::Invalid,
                    &FieldPath::root(),
                    Some("null"),
                    detail,
                ));
            } else {
                check_rules(root, object, old, errors);
            }
        }
    }
}

fn blocks_rules(kind: FieldErrorKind) -> bool {
    matches!(
        kind,
        FieldErrorKind::NotSupported
            | FieldErrorKind::Required
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooMany
            | FieldErrorKind::TypeInvalid
    )
}

#[cfg(test)]
mod tests;
