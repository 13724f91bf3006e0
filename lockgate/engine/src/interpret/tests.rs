use serde_json::{Value, json};

use super::*;

fn customization(name: &str, scripts: Value) -> InterpreterCustomization {
    let scripts: serde_json::Map<String, Value> = scripts
        .as_object()
        .unwrap()
        .iter()
        .map(|(field, script)| (field.clone(), json!({"luaScript": script})))
        .collect();
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"target": {"apiVersion": "example.org/v1", "kind": "Widget"}, "customizations": scripts},
    }))
    .unwrap()
}

fn widget() -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "shop", "generation": 3},
        "spec": {"count": 4, "paused": false, "list": [], "template": {"spec": {
            "nodeSelector": {"disk": "ssd"},
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "250m", "memory": "64Mi"}},
                            "envFrom": [{"configMapRef": {"name": "settings"}}]}],
        }}},
        "status": {"ready": 2, "secret": "x", "notes": []},
    })
}

fn one(scripts: Value) -> Arc<Interpreter> {
    let interpreters = Interpreters::of([&customization("widgets", scripts)]);
    interpreters.of_object(&widget()).unwrap()
}

#[test]
fn every_question_has_its_script() {
    let interpreter = one(json!({
        "replicaResource": "local kube = require('kube')\n\
            function GetReplicas(obj) return obj.spec.count, kube.accuratePodRequirements(obj.spec.template) end",
        "replicaRevision": "function ReviseReplica(obj, n) obj.spec.count = n return obj end",
        "retention": "function Retain(desired, observed) desired.spec.paused = observed.spec.paused return desired end",
        "statusReflection": "function ReflectStatus(o) return {ready = o.status.ready, notes = o.status.notes} end",
        "healthInterpretation": "function InterpretHealth(o) return o.status.ready >= o.spec.count end",
        "dependencyInterpretation": "local kube = require('kube')\n\
            function GetDependencies(o) return kube.getPodDependencies(o.spec.template, o.metadata.namespace) end",
        "statusAggregation": "function AggregateStatus(o, items)\n\
            o.status = {ready = 0, clusters = {}}\n\
            for i = 1, #items do o.status.ready = o.status.ready + items[i].status.ready \
              table.insert(o.status.clusters, items[i].clusterName) end\n\
            return o end",
    }));
    let workload = interpreter.replicas(&widget()).unwrap().unwrap();
    assert_eq!(workload.replicas, 4);
    assert_eq!(
        workload.requirements.unwrap(),
        json!({"nodeClaim": {"nodeSelector": {"disk": "ssd"}}, "resourceRequest": {"cpu": "250m", "memory": "64Mi"}})
    );
    let revised = interpreter
        .script(Operation::Revise)
        .unwrap()
        .revise(&widget(), 2)
        .unwrap();
    let mut expected = widget();
    expected["spec"]["count"] = json!(2);
    assert_eq!(revised, expected);
    let mut live = widget();
    live["spec"]["paused"] = json!(true);
    assert_eq!(interpreter.retain(&widget(), &live).unwrap().unwrap(), live);
    assert_eq!(
        interpreter.reflect(&widget()).unwrap().unwrap(),
        Some(json!({"ready": 2, "notes": []}))
    );
    assert_eq!(interpreter.health(&widget()).unwrap(), Ok(Health::Unhealthy));
    let needed = interpreter.dependencies(&widget()).unwrap().unwrap();
    assert_eq!(needed, [Dependency::named("v1", "ConfigMap", "shop", "settings")]);
    let item = |cluster: &str, ready: i64| AggregatedStatusItem {
        cluster_name: cluster.to_owned(),
        status: Some(json!({"ready": ready})),
        ..AggregatedStatusItem::default()
    };
    let status = interpreter
        .aggregate(&widget(), &[item("m1", 2), item("m2", 3)])
        .unwrap()
        .unwrap();
    assert_eq!(status, Some(json!({"ready": 5, "clusters": ["m1", "m2"]})));
    let mut told = widget();
    told["status"] = status.unwrap();
    assert_eq!(
        interpreter
            .aggregate(&told, &[item("m1", 2), item("m2", 3)])
            .unwrap(),
        Ok(None)
    );
}

#[test]
fn what_has_no_script_is_read_as_usual() {
    let interpreter = one(json!({"healthInterpretation": "function InterpretHealth(o) return true end"}));
    assert!(interpreter.replicas(&widget()).is_none());
    assert!(interpreter.retain(&widget(), &widget()).is_none());
    assert!(interpreter.reflect(&widget()).is_none());
    assert!(interpreter.dependencies(&widget()).is_none());
    assert!(interpreter.aggregate(&widget(), &[]).is_none());
    assert!(Interpreters::default().of_object(&widget()).is_none());
}

/// Counts what it runs.
#[derive(Default)]
struct Counting(std::sync::atomic::AtomicUsize);

impl Counting {
    fn count(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl Runner for Counting {
    fn run(&self, work: &mut dyn FnMut()) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        work();
    }
}

#[test]
fn what_was_ended_is_not_asked_the_same_again() {
    let counting = Arc::new(Counting::default());
    let runner: Arc<dyn Runner> = counting.clone();
    let scripts = json!({
        "healthInterpretation": "function InterpretHealth(o) while o.spec.count == 4 do end return true end",
        "statusReflection": "function ReflectStatus(o) error('no') end",
    });
    let one = customization("widgets", scripts);
    let interpreters = Interpreters::run_by(Some(&runner), [&one]);
    let interpreter = interpreters.of_object(&widget()).unwrap();
    let first = interpreter.health(&widget()).unwrap();
    assert!(matches!(
        first.as_ref().unwrap_err().error,
        ScriptError::TooManySteps(_)
    ));
    assert_eq!(interpreter.health(&widget()).unwrap(), first);
    assert_eq!(counting.count(), 1);
    // Another object is another question, and an ordinary error is no limit.
    let mut other = widget();
    other["spec"]["count"] = json!(5);
    assert_eq!(interpreter.health(&other).unwrap(), Ok(Health::Healthy));
    assert!(interpreter.reflect(&widget()).unwrap().is_err());
    assert!(interpreter.reflect(&widget()).unwrap().is_err());
    assert_eq!(counting.count(), 4);
    // And so is another script.
    let again = Interpreters::run_by(Some(&runner), [&one]);
    assert_eq!(again, interpreters);
    assert_eq!(
        again.of_object(&widget()).unwrap().health(&widget()).unwrap(),
        first
    );
    assert_eq!(counting.count(), 5);
}

#[test]
fn of_two_scripts_that_of_the_smaller_name_counts() {
    let health = |answer: &str| json!({"healthInterpretation": format!("function InterpretHealth(o) return {answer} end")});
    let (a, b) = (
        customization("a", health("true")),
        customization("b", health("false")),
    );
    let mut going = customization("0", health("nil"));
    going.metadata.deletion_timestamp = Some("2026-11-15T00:00:00Z".to_owned());
    for all in [[&a, &b, &going], [&going, &b, &a]] {
        let interpreters = Interpreters::of(all);
        let interpreter = interpreters.of_object(&widget()).unwrap();
        assert_eq!(interpreter.health(&widget()).unwrap(), Ok(Health::Healthy));
        let shadowed = Shadowed {
            field: "healthInterpretation",
            by: "a".into(),
        };
        assert_eq!(interpreters.shadowed("b"), [shadowed]);
        assert_eq!(interpreters.shadowed("a"), []);
    }
    assert_eq!(Interpreters::of([&a, &b]), Interpreters::of([&b, &a]));
}

#[test]
fn bad_scripts_are_named() {
    let told = |field: &str, script: &str| {
        let interpreter = one(json!({field: script}));
        let object = widget();
        let error = match field {
            "replicaResource" => interpreter.replicas(&object).unwrap().unwrap_err(),
            "replicaRevision" => interpreter
                .script(Operation::Revise)
                .unwrap()
                .revise(&object, 1)
                .unwrap_err(),
            "retention" => interpreter.retain(&object, &object).unwrap().unwrap_err(),
            "statusReflection" => interpreter.reflect(&object).unwrap().unwrap_err(),
            "healthInterpretation" => interpreter.health(&object).unwrap().unwrap_err(),
            "dependencyInterpretation" => interpreter.dependencies(&object).unwrap().unwrap_err(),
            _ => interpreter.aggregate(&object, &[]).unwrap().unwrap_err(),
        };
        error.to_string()
    };
    for (field, script, part) in [
        (
            "replicaResource",
            "function GetReplicas() while true do end end",
            "takes more than 2000000 steps",
        ),
        (
            "replicaResource",
            "function GetReplicas() return 'many' end",
            "GetReplicas must return a number of replicas, and returns a text",
        ),
        (
            "replicaResource",
            "function GetReplicas() return -1 end",
            "returns a number that does not fit",
        ),
        (
            "replicaResource",
            "function GetReplicas() return 1, 2 end",
            "must return what a replica needs",
        ),
        (
            "replicaRevision",
            "function ReviseReplica(o) o.metadata.name = 'x' return o end",
            "ReviseReplica makes Widget shop/x of Widget shop/w",
        ),
        (
            "replicaRevision",
            "function ReviseReplica(o) end",
            "must return the object, and returns nothing",
        ),
        (
            "retention",
            "function Retain(d) d.kind = 'Y' return d end",
            "Retain makes Y shop/w of Widget shop/w",
        ),
        (
            "retention",
            "function Retain(d, o) local s = 'x' while true do s = s .. s end end",
            "bytes of memory",
        ),
        (
            "statusReflection",
            "function ReflectStatus(o) return o.status.none.deeper end",
            "attempt to index",
        ),
        (
            "statusReflection",
            "function ReflectStatus(o) return 3 end",
            "must return a status",
        ),
        (
            "healthInterpretation",
            "function InterpretHealth(o) return 'yes' end",
            "must return true or false, and returns a text",
        ),
        (
            "healthInterpretation",
            "function InterpretHealt(o) return true end",
            "defines no function InterpretHealth",
        ),
        (
            "dependencyInterpretation",
            "function GetDependencies(o) return {{kind = 'ConfigMap'}} end",
            "a list of objects with apiVersion",
        ),
        (
            "dependencyInterpretation",
            "function GetDependencies(o) return 'all' end",
            "a list of objects, and returns a text",
        ),
        (
            "statusAggregation",
            "function AggregateStatus(o) return {} end",
            "AggregateStatus makes",
        ),
        (
            "statusAggregation",
            "function AggregateStatus(o) error('no') end",
            "script:1: no",
        ),
        (
            "statusAggregation",
            "function AggregateStatus(o) o.status = 'sunk' return o end",
            "must return the object with a map as its status, and returns a text",
        ),
        (
            "statusAggregation",
            "function AggregateStatus(o) o.status = {1, 2} return o end",
            "must return the object with a map as its status, and returns a list",
        ),
        (
            "statusReflection",
            "function ReflectStatus(o) return {phase = string.rep('x', 600000)} end",
            "ReflectStatus must return a status of at most 524288 bytes, and returns one of 600012",
        ),
        (
            "dependencyInterpretation",
            "function GetDependencies(o) return {{apiVersion = 'v1', kind = 'ConfigMap', labelSelector = 'nonsense'}} end",
            "names a ConfigMap by a labelSelector that cannot be read: a label selector must be an object",
        ),
        (
            "dependencyInterpretation",
            "function GetDependencies(o) return {{apiVersion = 'v1', kind = 'ConfigMap', labelSelector = \
             {matchExpressions = {{key = 'a', operator = 'Foo'}}}}} end",
            "\"Foo\" is not a valid label selector operator",
        ),
        (
            "dependencyInterpretation",
            "function GetDependencies(o) local all = {} for i = 1, 1001 do \
             all[i] = {apiVersion = 'v1', kind = 'ConfigMap', name = 'n' .. i} end return all end",
            "returns 1001 objects, of which at most 1000 can follow it",
        ),
        (
            "dependencyInterpretation",
            "function GetDependencies(o) local all = {} for i = 1, 1000 do \
             all[i] = {apiVersion = 'v1', kind = 'ConfigMap', name = i .. string.rep('x', 235)} end return all end",
            "of which a binding can carry at most 131072",
        ),
    ] {
        let error = told(field, script);
        let place = format!("ResourceInterpreterCustomization widgets, {field}: ");
        assert!(error.starts_with(&place) && error.contains(part), "{error}");
    }
    let broken = customization(
        "w",
        json!({"retention": "function Retain(", "healthInterpretation": "x = 1"}),
    );
    let found: Vec<String> = check(&broken).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2);
    assert!(
        found[0].contains("retention: the script cannot be read"),
        "{found:?}"
    );
    assert!(
        found[1].contains("defines no function InterpretHealth"),
        "{found:?}"
    );
}

#[test]
fn the_kube_module_counts() {
    let health = |expression: &str| {
        let script =
            format!("local kube = require('kube') function ReflectStatus(o) return {{v = {expression}}} end");
        let interpreter = one(json!({"statusReflection": script}));
        match interpreter.reflect(&widget()).unwrap() {
            Ok(status) => status.unwrap_or_default()["v"].clone(),
            Err(error) => Value::String(error.to_string()),
        }
    };
    assert_eq!(
        health("kube.resourceAdd('100m', '1', nil, '0.5')"),
        json!("1600m")
    );
    assert_eq!(health("kube.resourceAdd('64Mi', '1Gi')"), json!("1088Mi"));
    assert_eq!(health("kube.resourceAdd()"), json!("0"));
    assert_eq!(health("kube.getResourceQuantity('1500m')"), json!(1.5));
    assert_eq!(
        health("kube.getResourceQuantity('2Gi')"),
        json!(2_147_483_648_i64)
    );
    let told = health("kube.resourceAdd('lots')");
    assert!(
        told.as_str()
            .unwrap()
            .contains("resourceAdd: \"lots\" is no quantity"),
        "{told}"
    );
}

#[test]
fn parts_are_read_or_refused() {
    let parts = |body: &str| {
        let script = format!("function GetComponents(obj) {body} end");
        one(json!({ "componentResource": script }))
            .components(&widget())
            .unwrap()
    };
    assert_eq!(parts("return nil").unwrap(), Vec::<Value>::new());
    assert_eq!(parts("return {}").unwrap(), Vec::<Value>::new());
    assert_eq!(
        parts(
            "return {{name = 'master', replicas = 1}, {name = 'worker', replicas = obj.spec.count, \
             replicaRequirements = {resourceRequest = {cpu = '1'}}}}"
        )
        .unwrap(),
        [
            json!({"name": "master", "replicas": 1}),
            json!({"name": "worker", "replicas": 4,
                "replicaRequirements": {"resourceRequest": {"cpu": "1"}}}),
        ]
    );
    for (body, wrong) in [
        (
            "return 3",
            "must return a list of components, and returns a number",
        ),
        ("return {{replicas = 1}}", "component 1 has none"),
        (
            "return {{name = 'a'}, {name = 'a'}}",
            "returns two components \"a\"",
        ),
        (
            "return {{name = 'a', replicas = -1}}",
            "says that \"a\" has -1 replicas",
        ),
        (
            "return {{name = 'a', replicas = 'x'}}",
            "says that \"a\" has \"x\" replicas",
        ),
        (
            "return {{name = 'a', replicaRequirements = {resourceRequest = {cpu = 'much'}}}}",
            "needs cpu \"much\", which is no amount",
        ),
        (
            "local t = {} for i = 1, 65 do t[i] = {name = 'n' .. i} end return t",
            "at most 64",
        ),
    ] {
        let error = parts(body).unwrap_err().to_string();
        assert!(error.contains(wrong), "{body}: {error}");
        assert!(
            error.starts_with("ResourceInterpreterCustomization widgets, componentResource"),
            "{error}"
        );
    }
}

#[test]
fn needs_that_are_no_amounts_are_refused() {
    for (needs, wrong) in [
        (
            "{resourceRequest = {cpu = 'much'}}",
            "needs cpu \"much\", which is no amount",
        ),
        (
            "{resourceRequest = {memory = '-1Gi'}}",
            "needs memory \"-1Gi\", which is no amount",
        ),
        ("{resourceRequest = {cpu = {1}}}", "which is no amount"),
        (
            "{resourceRequest = 'cpu'}",
            "a resourceRequest of resources and their amounts",
        ),
        ("'cpu'", "must return what a replica needs"),
    ] {
        let error = needs_of("GetReplicas", needs).unwrap_err();
        assert!(error.contains(wrong), "{needs}: {error}");
    }
}

/// What one replica needs by a script that says so, of a template or of its only component.
fn needs_of(function: &str, needs: &str) -> Result<Value, String> {
    let told = if function == "GetReplicas" {
        let script = format!("local kube = require('kube') function GetReplicas(obj) return 1, {needs} end");
        let interpreter = one(json!({ "replicaResource": script }));
        let told = interpreter.replicas(&widget()).unwrap();
        told.map(|workload| workload.requirements.unwrap_or_default())
    } else {
        let script = format!(
            "local kube = require('kube') \
             function GetComponents(obj) return {{{{name = 'a', replicas = 1, replicaRequirements = {needs}}}}} end"
        );
        let interpreter = one(json!({ "componentResource": script }));
        let told = interpreter.components(&widget()).unwrap();
        told.map(|parts| parts[0]["replicaRequirements"].clone())
    };
    told.map_err(|error| error.to_string())
}

#[test]
fn amounts_are_written_as_bindings_take_them() {
    for function in ["GetReplicas", "GetComponents"] {
        for (amount, written) in [
            ("1", json!(1)),
            ("'250m'", json!("250m")),
            ("1.5", json!("1500m")),
            ("kube.getResourceQuantity('1500m')", json!("1500m")),
            ("0.1 + 0.2", json!("300m")),
            ("1e19", json!("10E")),
        ] {
            let needs = needs_of(function, &format!("{{resourceRequest = {{cpu = {amount}}}}}"));
            assert_eq!(
                needs,
                Ok(json!({"resourceRequest": {"cpu": written}})),
                "{amount}"
            );
        }
    }
}

#[test]
fn needs_fit_in_bindings_or_are_refused() {
    for function in ["GetReplicas", "GetComponents"] {
        for needs in [
            "{nodeClaim = 'x'}",
            "{nodeClaim = {tolerations = 'x'}}",
            "{nodeClaim = {nodeSelector = {a = 5}}}",
            "{nodeClaim = {hardNodeAffinity = {nodeSelectorTerms = {{matchExpressions = {{key = 'a'}}}}}}}",
            "{priorityClassName = 5}",
        ] {
            let error = needs_of(function, needs).unwrap_err();
            let part = format!(
                "{function} must return what a replica needs as bindings say it: replicaRequirements."
            );
            assert!(
                error.starts_with("ResourceInterpreterCustomization widgets, ") && error.contains(&part),
                "{needs}: {error}"
            );
        }
        let needs = "{nodeClaim = {nodeSelector = {a = 'b'}, tolerations = {{key = 'a', tolerationSeconds = 5}}}, \
                     priorityClassName = 'high', cabin = 'large'}";
        let kept = json!({
            "nodeClaim": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "a", "tolerationSeconds": 5}]},
            "priorityClassName": "high",
        });
        assert_eq!(needs_of(function, needs), Ok(kept));
    }
    assert_eq!(needs_of("GetReplicas", "{cabin = 'large'}"), Ok(Value::Null));
}
