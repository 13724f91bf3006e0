//! Which requests a policy or a binding is about.

use machinery_value::Value;
use machinery_value::labels::LabelSelector;

use crate::admission::Operation;

/// A place in the API and the kind that it serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) resource: String,
    /// The group, version and kind of the objects; those of a subresource may differ from the resource's.
    pub(super) kind: Kind,
}

/// A kind of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
}

impl Kind {
    /// The kind that `apiVersion` and `kind` name.
    pub(super) fn parse(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// A request, as rules see it.
pub(super) struct Asked<'a> {
    pub(super) operation: Operation,
    pub(super) place: &'a Place,
    pub(super) subresource: &'a str,
    /// The namespace; a Namespace is in itself.
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) new: Option<&'a Value>,
    pub(super) old: Option<&'a Value>,
}

/// What rules need to know beyond the request.
pub(super) trait Neighbours {
    /// Other places at which the same objects are served.
    fn equivalents(&self) -> &[Place];
    /// A Namespace.
    fn namespace(&self, name: &str) -> Option<Value>;
}

/// Where a request matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Matched {
    /// At its own place.
    Itself,
    /// At this one of the equivalent places.
    Equivalent(usize),
}

/// A `MatchResources`, ready for use.
#[derive(Debug)]
pub(super) struct MatchResources {
    namespaces: Result<LabelSelector, String>,
    objects: Result<LabelSelector, String>,
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    equivalent: bool,
}

#[derive(Debug)]
struct Rule {
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    operations: Vec<String>,
    names: Vec<String>,
    scope: String,
}

impl MatchResources {
    pub(super) fn new(value: &Value) -> Self {
        let selector = |key: &str| match &value[key] {
            Value::Null => Ok(LabelSelector::everything()),
            object => LabelSelector::from_object(Some(object)).map_err(|e| e.to_string()),
        };
        let rules = |key: &str| {
            value[key]
                .as_array()
                .into_iter()
                .flatten()
                .map(Rule::new)
                .collect()
        };
        Self {
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            rules: rules("resourceRules"),
            excluded: rules("excludeResourceRules"),
            equivalent: value["matchPolicy"] != "Exact",
        }
    }

    /// Where the request matches, if it does. An error is one of the selectors, and only of those that would decide.
    pub(super) fn find(
        &self,
        asked: &Asked<'_>,
        around: &impl Neighbours,
    ) -> Result<Option<Matched>, String> {
        let namespaces = self.match_namespace(asked, around);
        let objects = self.match_object(asked);
        if namespaces == Ok(false) || objects == Ok(false) {
            return Ok(None);
        }
        if self.find_rule(&self.excluded, asked, around).is_some() {
            return Ok(None);
        }
        let matched = match self.rules.as_slice() {
            [] => Some(Matched::Itself),
            rules => self.find_rule(rules, asked, around),
        };
        let Some(matched) = matched else { return Ok(None) };
        namespaces?;
        objects?;
        Ok(Some(matched))
    }

    fn match_namespace(&self, asked: &Asked<'_>, around: &impl Neighbours) -> Result<bool, String> {
        let is_namespace = asked.place.resource == "namespaces";
        if asked.namespace.is_empty() && !is_namespace {
            return Ok(true);
        }
        let selector = usable(&self.namespaces)?;
        if selector.is_everything() {
            return Ok(true);
        }
        let written = matches!(asked.operation, Operation::Create | Operation::Update);
        if is_namespace && asked.subresource.is_empty() && written {
            return Ok(asked.new.is_some_and(|new| has_labels(selector, new)));
        }
        match around.namespace(asked.namespace) {
            Some(namespace) => Ok(has_labels(selector, &namespace)),
            None => Err(format!("namespaces {:?} not found", asked.namespace)),
        }
    }

    fn match_object(&self, asked: &Asked<'_>) -> Result<bool, String> {
        let selector = usable(&self.objects)?;
        let matches = |object: Option<&Value>| object.is_some_and(|object| has_labels(selector, object));
        Ok(selector.is_everything() || matches(asked.new) || matches(asked.old))
    }

    fn find_rule(&self, rules: &[Rule], asked: &Asked<'_>, around: &impl Neighbours) -> Option<Matched> {
        if rules.iter().any(|rule| rule.matches(asked, asked.place)) {
            return Some(Matched::Itself);
        }
        if !self.equivalent || rules.is_empty() {
            return None;
        }
        rules.iter().find_map(|rule| {
            let index = around
                .equivalents()
                .iter()
                .position(|place| rule.matches(asked, place))?;
            Some(Matched::Equivalent(index))
        })
    }
}

fn usable(selector: &Result<LabelSelector, String>) -> Result<&LabelSelector, String> {
    selector
        .as_ref()
        .map_err(|error| format!("Internal error occurred: {error}"))
}

fn has_labels(selector: &LabelSelector, object: &Value) -> bool {
    selector.matches_labels(object["metadata"]["labels"].as_object())
}

impl Rule {
    fn new(value: &Value) -> Self {
        let list = |key: &str| -> Vec<String> {
            let items = value[key].as_array().into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            groups: list("apiGroups"),
            versions: list("apiVersions"),
            resources: list("resources"),
            operations: list("operations"),
            names: list("resourceNames"),
            scope: value["scope"].as_str().unwrap_or("*").to_owned(),
        }
    }

    fn matches(&self, asked: &Asked<'_>, place: &Place) -> bool {
        let names = |list: &[String], wanted: &str| list.iter().any(|item| item == "*" || item == wanted);
        let is_namespace = (
            place.group.as_str(),
            place.version.as_str(),
            place.resource.as_str(),
        ) == ("", "v1", "namespaces");
        let namespaced = !is_namespace && !asked.namespace.is_empty();
        let scope = match self.scope.as_str() {
            "*" => true,
            "Namespaced" => namespaced,
            "Cluster" => !namespaced,
            _ => false,
        };
        let resource = self.resources.iter().any(|pattern| {
            let (resource, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
            (resource == "*" || resource == place.resource)
                && (subresource == "*" || subresource == asked.subresource)
        });
        scope
            && resource
            && names(&self.operations, asked.operation.name())
            && names(&self.groups, &place.group)
            && names(&self.versions, &place.version)
            && (self.names.is_empty() || self.names.iter().any(|name| name == asked.name))
    }
}
