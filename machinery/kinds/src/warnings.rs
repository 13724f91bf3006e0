//! What the server tells whoever writes an object that is valid, and odd.
//!
//! Not searched for: overlapping paths within a volume, notations of IP addresses, annotations for seccomp and AppArmor, node
//! labels in affinities.

mod pod;

use machinery_value::field::FieldPath;
use machinery_value::names;
use serde_json::Value;

use crate::Gvk;
use crate::access::{is_empty, text};

/// The warnings about a valid object, new or changed.
pub fn warnings(gvk: Gvk<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
    let (path, template) = match (gvk.group, gvk.kind) {
        ("", "Service") => return service(new),
        // People do not change Pods.
        ("", "Pod") if old.is_some() => return Vec::new(),
        ("", "Pod") => (FieldPath::root(), new),
        ("", "PodTemplate") => (FieldPath::from("template"), &new["template"]),
        // The real server looks at what was there before.
        ("", "ReplicationController") => (
            FieldPath::from("spec.template"),
            &old.unwrap_or(new)["spec"]["template"],
        ),
        ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet") | ("batch", "Job") => {
            (FieldPath::from("spec.template"), &new["spec"]["template"])
        }
        ("batch", "CronJob") => (
            FieldPath::from("spec.jobTemplate.spec.template"),
            &new["spec"]["jobTemplate"]["spec"]["template"],
        ),
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    match old {
        None => found.extend(name(gvk, new)),
        // A template is looked at again when it may have changed.
        Some(old) if new["metadata"]["generation"] == old["metadata"]["generation"] => return found,
        Some(_) => {}
    }
    found.extend(pod::warnings(&path, template));
    found
}

/// Names of Pods are made from that of their owner.
fn name(gvk: Gvk<'_>, object: &Value) -> Option<String> {
    let whose = match gvk.kind {
        "Pod" => "the Pod's hostname",
        "DaemonSet" | "StatefulSet" | "PodTemplate" => return None,
        _ => "Pod names and hostnames",
    };
    let problems = names::dns1123_label(text(&object["metadata"]["name"]));
    (!problems.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in {whose}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            problems.join(" ")
        )
    })
}

fn service(service: &Value) -> Vec<String> {
    let spec = &service["spec"];
    let kind = text(&spec["type"]);
    let mut found = Vec::new();
    if !service["metadata"]["annotations"]["service.kubernetes.io/topology-aware-hints"].is_null() {
        found.push(
            "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use \
             service.kubernetes.io/topology-mode instead"
                .to_owned(),
        );
    }
    if kind == "ClusterIP" && spec["clusterIP"] == "None" {
        for (is_set, field) in [
            (!is_empty(&spec["loadBalancerIP"]), "loadBalancerIP"),
            (!is_empty(&spec["externalIPs"]), "externalIPs"),
            (spec["sessionAffinity"] != "None", "SessionAffinity"),
        ] {
            if is_set {
                found.push(format!("spec.{field} is ignored for headless services"));
            }
        }
    }
    if kind == "ExternalName" && !is_empty(&spec["externalIPs"]) {
        found.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if kind != "ExternalName" && !is_empty(&spec["externalName"]) {
        found.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if spec["trafficDistribution"] == "PreferClose" {
        found.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_odd_is_told() {
        let service = Gvk::new("", "v1", "Service");
        let pod = Gvk::new("", "v1", "Pod");
        let deployment = Gvk::new("apps", "v1", "Deployment");
        let in_template = |spec: Value| json!({"metadata": {"name": "d", "generation": 2}, "spec": {"template": {"spec": spec}}});
        let containers = json!([
            {"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP", "name": "x"}, {"containerPort": 80, "protocol": "UDP"}],
             "env": [{"name": "E", "value": "1"}, {"name": "E", "value": "2"}, {"name": "E", "value": "$(E)3"}],
             "resources": {"limits": {"memory": "100m"}}},
            {"name": "b", "ports": [{"containerPort": 80, "protocol": "TCP", "name": "x"}, {"containerPort": 80, "protocol": "UDP", "hostPort": 9}]},
        ]);
        let cases: [(Gvk<'_>, Value, &[&str]); 5] = [
            (
                service,
                json!({"spec": {"type": "ClusterIP", "clusterIP": "None", "sessionAffinity": "ClientIP", "externalName": "x"}}),
                &[
                    "spec.SessionAffinity is ignored for headless services",
                    "spec.externalName is ignored when spec.type is not \"ExternalName\"",
                ],
            ),
            (
                service,
                json!({"spec": {"type": "ClusterIP", "clusterIP": "10.0.0.1", "sessionAffinity": "ClientIP"}}),
                &[],
            ),
            (
                pod,
                json!({"metadata": {"name": "a.b"}, "spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}}),
                &[
                    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is \
                     recommended: [must not contain dots]",
                    "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
                ],
            ),
            (
                deployment,
                in_template(json!({"containers": containers})),
                &[
                    "spec.template.spec.containers[0].resources.limits[memory]: fractional byte value \"100m\" is invalid, must be an integer",
                    "spec.template.spec.containers[0].env[1]: hides previous definition of \"E\", which may be dropped when using apply",
                    "spec.template.spec.containers[1].ports[0]: duplicate port definition with spec.template.spec.containers[0].ports[0]",
                    "spec.template.spec.containers[1].ports[1]: overlapping port definition with spec.template.spec.containers[0].ports[1]",
                    "spec.template.spec.containers[1].ports[0]: duplicate port name \"x\" with spec.template.spec.containers[0].ports[0], \
                     services and probes that select ports by name will use spec.template.spec.containers[0].ports[0]",
                ],
            ),
            (deployment, in_template(json!({"containers": []})), &[]),
        ];
        for (gvk, object, expected) in cases {
            assert_eq!(warnings(gvk, &object, None), expected, "{object}");
            // What stays as it is, is not told again.
            let again = warnings(gvk, &object, Some(&object));
            assert_eq!(again.is_empty(), gvk.kind != "Service" || expected.is_empty());
        }
    }
}
