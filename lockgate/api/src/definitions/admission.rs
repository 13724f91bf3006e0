//! Rules about what a definition's own rules cannot see: namespaces, labels, deletion, and values of any type.
//!
//! Each is a ValidatingAdmissionPolicy with a binding of the same name. They call nobody, so a hub whose controllers are
//! down still accepts what is right and refuses what is wrong.

use serde_json::{Value, json};

use super::policies::{GROUP, VERSION};
use super::schema::{LABEL_VALUE_LENGTH, QUALIFIED_NAME, QUALIFIED_NAME_LENGTH};
use super::{access, clusters, ocm};
use crate::keys;
use crate::ocm::cluster::JOINED;

/// What a policy is made from.
struct Policy {
    name: &'static str,
    rules: Vec<Value>,
    /// Objects without such a label are not looked at.
    label: Option<Value>,
    /// Requests of others are not looked at.
    user: Option<&'static str>,
    variables: Vec<(&'static str, String)>,
    validations: Vec<Value>,
}

/// All policies, each before its binding.
pub(super) fn policies() -> Vec<Value> {
    [
        selector_namespace(),
        permanent_id(),
        override_values(),
        resource_models(),
        dependencies(),
        deletion_protected(),
        grants(),
        replicated(),
        taint_times(),
    ]
    .into_iter()
    .flat_map(Policy::build)
    .chain(rights().into_iter().flat_map(|policy| {
        let [mut policy, binding] = policy.build();
        // A server that cannot ask about rights lets it pass: its operators are its administrators.
        policy["spec"]["failurePolicy"] = json!("Ignore");
        [policy, binding]
    }))
    .collect()
}

impl Policy {
    fn build(self) -> [Value; 2] {
        let mut constraints = json!({"resourceRules": self.rules});
        if let Some(label) = self.label {
            constraints["objectSelector"] = json!({"matchExpressions": [label]});
        }
        let mut spec = json!({
            "failurePolicy": "Fail",
            "matchConstraints": constraints,
            "validations": self.validations,
        });
        if let Some(user) = self.user {
            spec["matchConditions"] = json!([{
                "name": "user",
                "expression": format!("request.userInfo.username == '{user}'"),
            }]);
        }
        if !self.variables.is_empty() {
            spec["variables"] = self
                .variables
                .iter()
                .map(|(name, expression)| json!({"name": name, "expression": expression}))
                .collect();
        }
        [
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": self.name},
                "spec": spec,
            }),
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": self.name},
                "spec": {"policyName": self.name, "validationActions": ["Deny"]},
            }),
        ]
    }
}

fn resources(group: &str, version: &str, operations: &[&str], plurals: &[&str]) -> Value {
    json!({
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": operations,
        "resources": plurals,
    })
}

fn validation(expression: impl Into<String>, message: impl Into<String>) -> Value {
    json!({"expression": expression.into(), "message": message.into(), "reason": "Invalid"})
}

/// A policy with a namespace is about that namespace alone.
fn selector_namespace() -> Policy {
    Policy {
        name: "lockgate-selector-namespace",
        rules: vec![resources(
            GROUP,
            VERSION,
            &["CREATE", "UPDATE"],
            &["propagationpolicies", "overridepolicies", "rolloutpolicies"],
        )],
        label: None,
        user: None,
        variables: Vec::new(),
        validations: vec![validation(
            "!has(object.spec.resourceSelectors) || object.spec.resourceSelectors.all(s, \
             !has(s.namespace) || s.namespace == '' || s.namespace == object.metadata.namespace)",
            "spec.resourceSelectors[].namespace must be empty or the policy's own namespace",
        )],
    }
}

/// Claims name a policy by its id, so an id that is there stays. Without the label it is the uid.
fn permanent_id() -> Policy {
    let (policy, cluster_policy) = (keys::PP_ID, keys::CPP_ID);
    Policy {
        name: "lockgate-permanent-id",
        rules: vec![resources(
            GROUP,
            VERSION,
            &["UPDATE"],
            &["propagationpolicies", "clusterpropagationpolicies"],
        )],
        label: None,
        user: None,
        variables: vec![(
            "key",
            format!("request.resource.resource == 'propagationpolicies' ? '{policy}' : '{cluster_policy}'"),
        )],
        validations: vec![json!({
            "expression":
                "has(oldObject.metadata.labels) && variables.key in oldObject.metadata.labels ? \
                 (has(object.metadata.labels) && variables.key in object.metadata.labels && \
                 object.metadata.labels[variables.key] == oldObject.metadata.labels[variables.key]) : \
                 (!has(object.metadata.labels) || !(variables.key in object.metadata.labels) || \
                 object.metadata.labels[variables.key] == oldObject.metadata.uid)",
            "messageExpression":
                "'metadata.labels: ' + variables.key + ' cannot be changed or removed, and what is added later must be the \
                 uid of the policy, ' + oldObject.metadata.uid + ': templates name the policy by it'",
            "message": "metadata.labels: the permanent-id cannot be changed or removed, and what is added later must be the uid",
            "reason": "Invalid",
        })],
    }
}

/// Values of any type, which the rules of a definition do not see, and keys of maps, which would cost them too much.
fn override_values() -> Policy {
    // True of the overriders of every rule, and of those of the older form.
    let all = |check: &dyn Fn(&str) -> String| {
        format!(
            "(!has(object.spec.overrideRules) || object.spec.overrideRules.all(r, {})) && \
             (!has(object.spec.overriders) || {})",
            check("r.overriders"),
            check("object.spec.overriders")
        )
    };
    // True of every operation of every fieldOverrider.
    let patches = |check: &str| {
        all(&|of: &str| {
            format!(
                "(!has({of}.fieldOverrider) || {of}.fieldOverrider.all(f, \
                 (!has(f.json) || f.json.all(p, {check})) && (!has(f.yaml) || f.yaml.all(p, {check}))))"
            )
        })
    };
    // True of every key of every map of an overrider.
    let all_keys = |field: &str, check: &str| {
        all(&|of: &str| {
            format!("(!has({of}.{field}) || {of}.{field}.all(l, !has(l.value) || l.value.all(k, {check})))")
        })
    };
    let legal = |key: &str| {
        // The pattern bounds the name; what comes before it is a domain.
        format!("{key}.size() <= {QUALIFIED_NAME_LENGTH} && {key}.matches(r'{QUALIFIED_NAME}')")
    };
    Policy {
        name: "lockgate-override-values",
        rules: vec![resources(
            GROUP,
            VERSION,
            &["CREATE", "UPDATE"],
            &["overridepolicies", "clusteroverridepolicies"],
        )],
        label: None,
        user: None,
        variables: Vec::new(),
        validations: vec![
            validation(
                patches("p.operator == 'remove' || has(p.value)"),
                "overriders.fieldOverrider: value is required for the operators add and replace",
            ),
            validation(
                patches("p.operator != 'remove' || !has(p.value)"),
                "overriders.fieldOverrider: value is forbidden for the operator remove",
            ),
            validation(
                all_keys("labelsOverrider", &legal("k")),
                format!(
                    "overriders.labelsOverrider: the keys of value must be label keys: a name of up to \
                     {LABEL_VALUE_LENGTH} characters, after an optional domain and a slash"
                ),
            ),
            validation(
                all_keys("annotationsOverrider", &legal("k.lowerAscii()")),
                format!(
                    "overriders.annotationsOverrider: the keys of value must be annotation keys: a name of up to \
                     {LABEL_VALUE_LENGTH} characters, after an optional domain and a slash"
                ),
            ),
        ],
    }
}

/// The grades of nodes leave no gap.
fn resource_models() -> Policy {
    let amount = |value: &str| format!("quantity(string({value}))");
    let same = |left: &str, right: &str| format!("{}.compareTo({}) == 0", amount(left), amount(right));
    let no_limit = format!("'{}'", clusters::NO_LIMIT);
    Policy {
        name: "lockgate-resource-models",
        rules: vec![resources(
            clusters::GROUP,
            "*",
            &["CREATE", "UPDATE"],
            &["clusters"],
        )],
        label: None,
        user: None,
        variables: vec![(
            "models",
            "has(object.spec.resourceModels) ? object.spec.resourceModels : []".to_owned(),
        )],
        validations: vec![
            validation(
                "variables.models.all(m, m.grade < size(variables.models) && variables.models[m.grade].grade == m.grade && \
                 variables.models.exists_one(n, n.grade == m.grade))",
                "spec.resourceModels[].grade must count up from 0",
            ),
            validation(
                format!(
                    "variables.models.all(m, m.ranges.all(r, {}.isLessThan({})))",
                    amount("r.min"),
                    amount("r.max")
                ),
                "spec.resourceModels[].ranges[].max must be greater than min",
            ),
            validation(
                format!(
                    "variables.models.all(m, m.grade == 0 || m.grade > size(variables.models) || \
                     size(m.ranges) == size(variables.models[m.grade - 1].ranges) && \
                     m.ranges.all(r, variables.models[m.grade - 1].ranges.exists(p, p.name == r.name && {})))",
                    same("p.max", "r.min")
                ),
                "spec.resourceModels[].ranges must name the same resources in every grade, and min must be the max of the grade before",
            ),
            validation(
                format!(
                    "size(variables.models) == 0 || variables.models[0].ranges.all(r, {})",
                    same("r.min", "0")
                ),
                "spec.resourceModels[0].ranges[].min must be 0",
            ),
            validation(
                format!(
                    "size(variables.models) == 0 || variables.models[size(variables.models) - 1].ranges.all(r, {})",
                    same("r.max", &no_limit)
                ),
                format!(
                    "spec.resourceModels[].ranges[].max must be {} in the last grade",
                    clusters::NO_LIMIT
                ),
            ),
        ],
    }
}

/// What a binding's dependencies are is read by programs.
fn dependencies() -> Policy {
    let key = keys::DEPENDENCIES;
    Policy {
        name: "lockgate-dependencies",
        rules: vec![resources(
            super::bindings::GROUP,
            "*",
            &["CREATE", "UPDATE"],
            &["resourcebindings", "clusterresourcebindings"],
        )],
        label: None,
        user: None,
        variables: Vec::new(),
        validations: vec![validation(
            format!(
                "!has(object.metadata.annotations) || !('{key}' in object.metadata.annotations) || \
                 object.metadata.annotations['{key}'].matches(r'^\\s*\\[(\\s*|\\s*\\{{[\\s\\S]*\\}}\\s*)\\]\\s*$')"
            ),
            format!("metadata.annotations[{key}] must be a JSON array of objects"),
        )],
    }
}

/// What its owner protects is not deleted, whoever asks.
fn deletion_protected() -> Policy {
    let key = keys::DELETION_PROTECTED;
    Policy {
        name: "lockgate-deletion-protected",
        rules: vec![resources("*", "*", &["DELETE"], &["*"])],
        label: Some(json!({"key": key, "operator": "In", "values": ["Always"]})),
        user: None,
        variables: Vec::new(),
        validations: vec![json!({
            "expression": format!(
                "!has(oldObject.metadata.labels) || !('{key}' in oldObject.metadata.labels) || \
                 oldObject.metadata.labels['{key}'] != 'Always'"
            ),
            "messageExpression": format!(
                "'the label {key}=Always protects it from deletion; remove the label first: kubectl label ' + \
                 (has(request.namespace) && request.namespace != '' && request.resource.resource != 'namespaces' ? \
                 '-n ' + request.namespace + ' ' : '') + \
                 request.resource.resource + (request.resource.group == '' ? '' : '.' + request.resource.group) + \
                 ' ' + oldObject.metadata.name + ' {key}-'"
            ),
            "message": format!("the label {key}=Always protects it from deletion; remove the label first"),
            "reason": "Forbidden",
        })],
    }
}

/// Who accepts a cluster may update its `accept`, and who binds a set may create its `bind`: rights to subresources that
/// are not there, as OCM grants them. To delete a ManagedCluster that was denied is to accept it: the controllers make it again.
fn rights() -> [Policy; 3] {
    let may = |resource: &str, subresource: &str, name: &str, verb: &str| {
        format!(
            "authorizer.group('{}').resource('{resource}').subresource('{subresource}').name({name}).check('{verb}').allowed()",
            ocm::GROUP
        )
    };
    let forbidden = |expression: String, message: &str| json!({"expression": expression, "message": message, "reason": "Forbidden"});
    [
        Policy {
            name: "lockgate-accept-clusters",
            rules: vec![resources(
                ocm::GROUP,
                "*",
                &["CREATE", "UPDATE"],
                &["managedclusters"],
            )],
            label: None,
            user: None,
            variables: Vec::new(),
            validations: vec![forbidden(
                format!(
                    "!object.spec.hubAcceptsClient || (oldObject != null && oldObject.spec.hubAcceptsClient) || {}",
                    may("managedclusters", "accept", "object.metadata.name", "update")
                ),
                "spec.hubAcceptsClient: to accept a cluster needs the right to update managedclusters/accept",
            )],
        },
        Policy {
            name: "lockgate-forget-denied-clusters",
            rules: vec![resources(ocm::GROUP, "*", &["DELETE"], &["managedclusters"])],
            label: None,
            user: None,
            variables: vec![(
                "joined",
                format!(
                    "(has(oldObject.metadata.annotations) && '{}' in oldObject.metadata.annotations) || \
                     (has(oldObject.status) && has(oldObject.status.conditions) && \
                     oldObject.status.conditions.exists(c, c.type == '{JOINED}' && c.status == 'True'))",
                    crate::ocm::COPIED_LABELS
                ),
            )],
            validations: vec![forbidden(
                format!(
                    "oldObject.spec.hubAcceptsClient || !variables.joined || {}",
                    may("managedclusters", "accept", "oldObject.metadata.name", "update")
                ),
                "spec.hubAcceptsClient: the cluster was denied, and to delete this accepts it again: that needs the right to \
                 update managedclusters/accept",
            )],
        },
        Policy {
            name: "lockgate-bind-cluster-sets",
            rules: vec![resources(
                ocm::GROUP,
                "*",
                &["CREATE"],
                &["managedclustersetbindings"],
            )],
            label: None,
            user: None,
            variables: Vec::new(),
            validations: vec![forbidden(
                may("managedclustersets", "bind", "object.spec.clusterSet", "create"),
                "spec.clusterSet: to bind a set needs the right to create managedclustersets/bind",
            )],
        },
    ]
}

/// A policy's replicas are called after it, and carry that name as a label; and somebody says what is done about each template.
fn replicated() -> Policy {
    let room = LABEL_VALUE_LENGTH - 1;
    let label = crate::ocm::policy::ROOT_POLICY;
    Policy {
        name: "lockgate-replicated-policies",
        rules: vec![resources(
            ocm::POLICY_GROUP,
            "*",
            &["CREATE", "UPDATE"],
            &["policies"],
        )],
        label: None,
        user: None,
        variables: Vec::new(),
        validations: vec![
            validation(
                format!(
                    "oldObject != null || (has(object.metadata.labels) && '{label}' in object.metadata.labels) || \
                     size(object.metadata.name) + size(object.metadata.namespace) <= {room}"
                ),
                format!(
                    "metadata.name: name and namespace must have at most {room} characters together: replicas are called NAMESPACE.NAME, and carry that as a label"
                ),
            ),
            validation(
                "has(object.spec.remediationAction) || object.spec['policy-templates'].all(t, \
                 !has(t.objectDefinition.kind) || t.objectDefinition.kind != 'ConfigurationPolicy' || \
                 (has(t.objectDefinition.spec) && has(t.objectDefinition.spec.remediationAction)))",
                "spec.remediationAction: must be given, or every ConfigurationPolicy of spec.policy-templates must have its own",
            ),
        ],
    }
}

/// Tolerations count from the time of a taint, so that one that is changed must not keep its old one: the controllers fill in
/// what is left out. They are not asked who they are: what they write is the time of a taint that has none, and their own taints.
fn taint_times() -> Policy {
    let (unreachable, unavailable) = (crate::ocm::TAINT_UNREACHABLE, crate::ocm::TAINT_UNAVAILABLE);
    let has_taints = |object: &str| format!("has({object}.spec) && has({object}.spec.taints)");
    let value = |taint: &str| format!("(has({taint}.value) ? {taint}.value : '')");
    let timed = |taint: &str| format!("has({taint}.timeAdded) && {taint}.timeAdded != null");
    Policy {
        name: "lockgate-taint-times",
        rules: vec![resources(ocm::GROUP, "*", &["UPDATE"], &["managedclusters"])],
        label: None,
        user: None,
        variables: vec![(
            "before",
            format!("{} ? oldObject.spec.taints : []", has_taints("oldObject")),
        )],
        validations: vec![validation(
            format!(
                "!({}) || object.spec.taints.all(t, !({}) || t.key == '{unreachable}' || t.key == '{unavailable}' || \
                 variables.before.exists(o, o.key == t.key && o.effect == t.effect && {} == {} && \
                 (!({}) || o.timeAdded == t.timeAdded)))",
                has_taints("object"),
                timed("t"),
                value("o"),
                value("t"),
                timed("o"),
            ),
            "spec.taints[].timeAdded is filled in: leave it out of a taint that is new or changed",
        )],
    }
}

/// The controllers put labels on roles, and grant nothing.
fn grants() -> Policy {
    let same = ["rules", "aggregationRule", "subjects", "roleRef"]
        .map(|field| {
            format!(
                "has(object.{field}) == has(oldObject.{field}) && (!has(object.{field}) || object.{field} == oldObject.{field})"
            )
        })
        .join(" && ");
    Policy {
        name: "lockgate-grants",
        rules: vec![resources(
            access::RBAC,
            "*",
            &["UPDATE"],
            &["roles", "clusterroles", "rolebindings", "clusterrolebindings"],
        )],
        label: None,
        user: Some(access::USER),
        variables: Vec::new(),
        validations: vec![json!({
            "expression": same,
            "message": "the controllers may change the metadata of roles and role bindings, and not what they grant",
            "reason": "Forbidden",
        })],
    }
}
