//! What a ConfigurationPolicy says, read once.

use std::time::Duration;

use lockgate_api::ocm::configuration::{ConfigurationSpec, ObjectTemplate};
use lockgate_api::rollout::parse_duration;
use machinery_value::decode::from_yaml;
use machinery_value::labels::LabelSelector;
use serde_json::Value;

use super::namespaces::Namespaces;
use crate::object;

/// More objects are not looked at for one policy.
const MAX_TEMPLATES: usize = 1000;

/// What is demanded of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compliance {
    /// It has at least this.
    MustHave,
    /// It has this and nothing else.
    MustOnlyHave,
    /// It is not there.
    MustNotHave,
}

impl Compliance {
    fn read(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "musthave" => Some(Self::MustHave),
            "mustonlyhave" => Some(Self::MustOnlyHave),
            "mustnothave" => Some(Self::MustNotHave),
            _ => None,
        }
    }
}

/// Whether an object that cannot be changed is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recreate {
    /// Never.
    Never,
    /// Where the server refuses to change it.
    IfRequired,
    /// Always, instead of a change.
    Always,
}

/// What goes when it is no longer spoken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prune {
    /// Nothing.
    Nothing,
    /// What the policy made.
    IfCreated,
    /// Everything that it spoke of.
    All,
}

/// When a policy is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// When an object changes.
    Watch,
    /// After this time.
    After(Duration),
    /// Not again.
    Never,
}

impl Every {
    /// What cannot be read is followed most closely.
    fn read(text: &str) -> Self {
        match text {
            "" | "watch" => Self::Watch,
            "never" => Self::Never,
            other => parse_duration(other).map_or(Self::Watch, Self::After),
        }
    }
}

/// Why something cannot be followed: a reason in a few words, and what and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The reason of the condition.
    pub reason: String,
    /// The message.
    pub message: String,
    /// Whether it may pass by itself, soon after the policy began to enforce.
    pub may_pass: bool,
}

impl Fault {
    pub(super) fn new(reason: &str, message: impl Into<String>) -> Self {
        Self {
            reason: reason.to_owned(),
            message: message.into(),
            may_pass: false,
        }
    }

    /// Something is wrong with the template, whatever the cluster is like.
    pub fn template(message: impl Into<String>) -> Self {
        Self::new(TEMPLATE_ERROR, message)
    }

    /// Whether the template itself is wrong.
    pub fn is_of_template(&self) -> bool {
        self.reason == TEMPLATE_ERROR
    }
}

/// The reason of a template that cannot be followed.
pub const TEMPLATE_ERROR: &str = "Error processing template";

/// One object, or some.
#[derive(Clone, Debug)]
pub struct Template {
    /// What is demanded.
    pub compliance: Compliance,
    /// What is demanded of labels and annotations.
    pub metadata: Compliance,
    /// The object.
    pub object: Value,
    /// Which objects, where the object has no name.
    pub selector: Option<LabelSelector>,
    /// Whether it is made anew.
    pub recreate: Recreate,
    /// Whether what differs is told.
    pub difference: Difference,
}

/// Whether what differs is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// It is.
    Told,
    /// It may be secret, and only that is told.
    Redacted,
    /// It is not.
    Untold,
}

impl Template {
    /// The name of the object; empty if it has none.
    pub fn name(&self) -> &str {
        object::meta_text(&self.object, "name")
    }

    /// Whether any object will do, so that nothing is ever changed.
    pub fn is_search(&self) -> bool {
        self.name().is_empty() && self.selector.is_none()
    }
}

/// What a policy says.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Whether what is not so is made so.
    pub enforce: bool,
    /// The namespaces of objects that name none; or why they cannot be told.
    pub namespaces: Option<Result<Namespaces, Fault>>,
    /// The objects; one that cannot be followed keeps no other from it.
    pub templates: Vec<Result<Template, Fault>>,
    /// When it is looked at again while it is compliant.
    pub compliant: Every,
    /// When it is looked at again while it is not.
    pub noncompliant: Every,
    /// What goes when it is no longer spoken of.
    pub prune: Prune,
}

impl Rules {
    /// Reads what a policy says. A text that wants to be worked out first is refused: applied as it is, it would be wrong.
    pub fn read(spec: &ConfigurationSpec) -> Result<Self, Fault> {
        let enforce = match spec.remediation_action.to_ascii_lowercase().as_str() {
            "enforce" => true,
            "inform" => false,
            other => {
                return Err(Fault::new(
                    "Invalid spec",
                    format!(
                        "Policy does not have a RemediationAction specified: {other:?} is neither inform nor enforce"
                    ),
                ));
            }
        };
        refuse_templates(spec)?;
        let raw;
        let templates = if spec.object_templates_raw.is_empty() {
            &spec.object_templates
        } else {
            raw = read_raw(&spec.object_templates_raw)?;
            &raw
        };
        if templates.len() > MAX_TEMPLATES {
            return Err(Fault::template(format!(
                "{} object-templates are more than {MAX_TEMPLATES}: write several policies",
                templates.len()
            )));
        }
        let templates = templates
            .iter()
            .enumerate()
            .map(|(at, template)| read_template(at, template))
            .collect();
        let namespaces = spec.namespace_selector.as_ref().map(|selector| {
            Namespaces::read(selector).map_err(|error| {
                Fault::new(
                    "namespaceSelector error",
                    format!("Error filtering namespaces with provided namespaceSelector: {error}"),
                )
            })
        });
        let interval = spec.evaluation_interval.clone().unwrap_or_default();
        Ok(Self {
            enforce,
            namespaces,
            templates,
            compliant: Every::read(&interval.compliant),
            noncompliant: Every::read(&interval.noncompliant),
            prune: prune(spec),
        })
    }

    /// What tells the namespaces, if they must be known before the objects are.
    pub fn selects_namespaces(&self) -> Option<&Namespaces> {
        let nowhere = |template: &Template| object::meta_text(&template.object, "namespace").is_empty();
        let selector = self.namespaces.as_ref()?.as_ref().ok()?;
        self.templates.iter().flatten().any(nowhere).then_some(selector)
    }

    /// The namespaces of objects that name none, if these are selected.
    pub fn selected<'a>(&'a self, namespaces: &'a [String]) -> Result<&'a [String], &'a Fault> {
        match &self.namespaces {
            Some(Err(fault)) => Err(fault),
            Some(Ok(_)) | None => Ok(namespaces),
        }
    }

    /// Whether it is not looked at again once it is compliant, and once it is not.
    pub fn never(&self) -> (bool, bool) {
        (self.compliant == Every::Never, self.noncompliant == Every::Never)
    }

    /// When it is looked at again in this state.
    pub fn every(&self, compliant: bool) -> Every {
        if compliant {
            self.compliant
        } else {
            self.noncompliant
        }
    }
}

/// What goes with a policy, whatever else it says.
pub fn prune(spec: &ConfigurationSpec) -> Prune {
    match spec.prune_object_behavior.as_str() {
        "DeleteIfCreated" => Prune::IfCreated,
        "DeleteAll" => Prune::All,
        _ => Prune::Nothing,
    }
}

fn read_raw(text: &str) -> Result<Vec<ObjectTemplate>, Fault> {
    let wrong = |what: String| Fault::template(format!("object-templates-raw: {what}"));
    let decoded = from_yaml(text.as_bytes()).map_err(|error| wrong(error.to_string()))?;
    if !decoded.value.is_array() {
        return Err(wrong("the YAML must be a list of object-templates".to_owned()));
    }
    serde_json::from_value(decoded.value).map_err(|error| wrong(error.to_string()))
}

fn read_template(at: usize, template: &ObjectTemplate) -> Result<Template, Fault> {
    let wrong = |what: String| Fault::template(format!("object-templates[{at}]: {what}"));
    let Some(compliance) = Compliance::read(&template.compliance_type) else {
        return Err(wrong(format!(
            "complianceType {:?} is none of musthave, mustonlyhave and mustnothave",
            template.compliance_type
        )));
    };
    let metadata = match template.metadata_compliance_type.as_str() {
        "" => compliance,
        other => Compliance::read(other)
            .filter(|metadata| *metadata != Compliance::MustNotHave)
            .ok_or_else(|| {
                wrong(format!(
                    "metadataComplianceType {other:?} is neither musthave nor mustonlyhave"
                ))
            })?,
    };
    let object = &template.object_definition;
    for field in ["apiVersion", "kind"] {
        if object::text(object, field).is_empty() {
            return Err(Fault::new(
                "K8s decode object definition error",
                format!("object-templates[{at}].objectDefinition has no {field}"),
            ));
        }
    }
    if !matches!(object["metadata"], Value::Null | Value::Object(_)) {
        return Err(Fault::new(
            "K8s decode object definition error",
            format!("object-templates[{at}].objectDefinition.metadata must be a map"),
        ));
    }
    for field in ["name", "namespace"] {
        if !matches!(object["metadata"][field], Value::Null | Value::String(_)) {
            // Without a name it would speak of any object.
            return Err(Fault::new(
                "K8s decode object definition error",
                format!(
                    "object-templates[{at}].objectDefinition.metadata.{field} must be a text: write it in quotation marks"
                ),
            ));
        }
    }
    for field in ["labels", "annotations"] {
        let texts = match &object["metadata"][field] {
            Value::Null => true,
            Value::Object(map) => map.values().all(Value::is_string),
            _ => false,
        };
        if !texts {
            return Err(wrong(format!(
                "objectDefinition.metadata.{field} must be a map of texts"
            )));
        }
    }
    let named = !object::meta_text(object, "name").is_empty();
    let selector = match &template.object_selector {
        Some(selector) if !named => {
            let written = serde_json::to_value(selector).map_err(|error| wrong(error.to_string()))?;
            let read = LabelSelector::from_object(Some(&written));
            Some(read.map_err(|error| wrong(format!("objectSelector: {error}")))?)
        }
        _ => None,
    };
    Ok(Template {
        compliance,
        metadata,
        selector,
        recreate: match template.recreate_option.as_str() {
            "IfRequired" => Recreate::IfRequired,
            "Always" => Recreate::Always,
            _ => Recreate::Never,
        },
        difference: difference(template),
        object: object.clone(),
    })
}

/// Whether what differs may be told: what is secret is told only to those who ask.
fn difference(template: &ObjectTemplate) -> Difference {
    let kind = object::text(&template.object_definition, "kind");
    match (template.record_diff.as_str(), kind) {
        ("InStatus", _) => Difference::Told,
        ("", "Secret" | "ConfigMap" | "Route" | "OAuthAccessToken" | "OAuthAuthorizeToken") => {
            Difference::Redacted
        }
        ("", _) => Difference::Told,
        _ => Difference::Untold,
    }
}

/// Refuses texts that want to be worked out first.
fn refuse_templates(spec: &ConfigurationSpec) -> Result<(), Fault> {
    let found = if spec.object_templates_raw.contains("{{") {
        Some("object-templates-raw".to_owned())
    } else {
        let lists = spec.object_templates.iter().enumerate();
        let mut found = lists.filter_map(|(at, template)| {
            let selector = serde_json::to_value(&template.object_selector).unwrap_or_default();
            moustache(&template.object_definition, "objectDefinition")
                .or_else(|| moustache(&selector, "objectSelector"))
                .map(|path| format!("object-templates[{at}].{path}"))
        });
        found.next()
    }
    .or_else(|| {
        let selector = serde_json::to_value(&spec.namespace_selector).unwrap_or_default();
        moustache(&selector, "namespaceSelector")
    });
    match found {
        None => Ok(()),
        Some(path) => Err(Fault::template(unresolved(&path))),
    }
}

/// What is said of a text that wants to be worked out first.
pub(super) fn unresolved(path: &str) -> String {
    format!("{path} holds {{{{: Go templates are not resolved here; write the value itself")
}

/// The path of the first text that holds `{{`.
pub(super) fn moustache(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::String(text) => text.contains("{{").then(|| path.to_owned()),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(at, item)| moustache(item, &format!("{path}[{at}]"))),
        Value::Object(map) => map.iter().find_map(|(key, item)| {
            let path = format!("{path}.{key}");
            if key.contains("{{") {
                return Some(path);
            }
            moustache(item, &path)
        }),
        _ => None,
    }
}
