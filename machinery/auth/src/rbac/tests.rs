use std::sync::Arc;

use machinery_value::Value;
use serde_json::json;

use super::*;

fn role(kind: &str, namespace: &str, name: &str, rules: Value) -> Value {
    json!({"kind": kind, "metadata": {"namespace": namespace, "name": name}, "rules": rules})
}

fn binding(kind: &str, namespace: &str, name: &str, role: (&str, &str), subjects: Value) -> Value {
    json!({
        "kind": kind,
        "metadata": {"namespace": namespace, "name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role.0, "name": role.1},
        "subjects": subjects,
    })
}

fn user(name: &str, groups: &[&str]) -> UserInfo {
    UserInfo::new(name, groups.iter().copied())
}

/// A small server: readers everywhere, editors in `team`, and some oddities.
fn sample() -> RbacIndex {
    RbacIndex::from_objects(&[
        role("ClusterRole", "", "reader", json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]}])),
        role("ClusterRole", "", "scaler", json!([{"verbs": ["update"], "apiGroups": ["*"], "resources": ["*/scale"]}])),
        role("ClusterRole", "", "starry", json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods/*"]}])),
        role("ClusterRole", "", "paths", json!([{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/apis/*"]}])),
        role("ClusterRole", "", "all", json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}])),
        role("Role", "team", "edit", json!([
            {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["deployments"]},
            {"verbs": ["get", "delete"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one", "two"]},
        ])),
        binding("ClusterRoleBinding", "", "readers", ("ClusterRole", "reader"), json!([
            {"kind": "Group", "name": "devs"}, {"kind": "User", "name": "ann"}])),
        binding("ClusterRoleBinding", "", "scalers", ("ClusterRole", "scaler"), json!([{"kind": "User", "name": "ann"}])),
        binding("ClusterRoleBinding", "", "starry", ("ClusterRole", "starry"), json!([{"kind": "User", "name": "star"}])),
        binding("ClusterRoleBinding", "", "paths", ("ClusterRole", "paths"), json!([{"kind": "User", "name": "ann"}])),
        binding("RoleBinding", "team", "editors", ("Role", "edit"), json!([
            {"kind": "ServiceAccount", "name": "bot"},
            {"kind": "ServiceAccount", "name": "ci", "namespace": "infra"},
            {"kind": "User", "name": "eve"}])),
        binding("RoleBinding", "team", "owners", ("ClusterRole", "all"), json!([{"kind": "User", "name": "tom"}])),
        binding("ClusterRoleBinding", "", "broken", ("ClusterRole", "gone"), json!([{"kind": "User", "name": "lost"}])),
        binding("ClusterRoleBinding", "", "odd", ("Sheriff", "x"), json!([{"kind": "User", "name": "lost"}])),
        binding("ClusterRoleBinding", "", "localrole", ("Role", "edit"), json!([{"kind": "User", "name": "lost2"}])),
        binding("ClusterRoleBinding", "", "sa-nowhere", ("ClusterRole", "all"), json!([{"kind": "ServiceAccount", "name": "bot"}])),
    ])
    .unwrap()
}

/// `verb resource[.group][/subresource] [namespace] [name]`, or `verb /path`, as an answer and its reason.
fn judge(index: &RbacIndex, user: &UserInfo, request: &str) -> String {
    let words: Vec<&str> = request.split(' ').collect();
    let decision = if words[1].starts_with('/') {
        index.authorize(&Attributes::path(user, words[0], words[1]))
    } else {
        let (whole, subresource) = words[1].split_once('/').unwrap_or((words[1], ""));
        let (resource, group) = whole.split_once('.').unwrap_or((whole, ""));
        let [namespace, name] = [2, 3].map(|at| words.get(at).copied().unwrap_or_default());
        let wanted = Attributes::resource(user, words[0], group, resource);
        index.authorize(&Attributes {
            subresource,
            namespace,
            name,
            ..wanted
        })
    };
    format!(
        "{} {}",
        if decision.allowed { "yes" } else { "no" },
        decision.reason()
    )
    .trim()
    .to_owned()
}

#[test]
fn decisions_and_their_reasons() {
    let index = sample();
    let (ann, dev) = (user("ann", &[]), user("dan", &["devs"]));
    let both = user("ann", &["devs"]);
    let bot = UserInfo::service_account("team", "bot", "");
    let ci = UserInfo::service_account("infra", "ci", "");
    let other_bot = UserInfo::service_account("other", "bot", "");
    let (eve, tom, lost) = (user("eve", &[]), user("tom", &[]), user("lost", &[]));
    let readers_ann =
        r#"yes RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to User "ann""#;
    let readers_devs =
        r#"yes RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to Group "devs""#;
    let scalers =
        r#"yes RBAC: allowed by ClusterRoleBinding "scalers" of ClusterRole "scaler" to User "ann""#;
    let paths = r#"yes RBAC: allowed by ClusterRoleBinding "paths" of ClusterRole "paths" to User "ann""#;
    let bot_edits =
        r#"yes RBAC: allowed by RoleBinding "editors/team" of Role "edit" to ServiceAccount "bot/team""#;
    let ci_edits =
        r#"yes RBAC: allowed by RoleBinding "editors/team" of Role "edit" to ServiceAccount "ci/infra""#;
    let eve_edits = r#"yes RBAC: allowed by RoleBinding "editors/team" of Role "edit" to User "eve""#;
    let tom_owns = r#"yes RBAC: allowed by RoleBinding "owners/team" of ClusterRole "all" to User "tom""#;
    let table: &[(&UserInfo, &str, &str)] = &[
        (&ann, "get pods", readers_ann),
        (&ann, "get pods team a", readers_ann),
        (&ann, "get pods/log team a", readers_ann),
        (&ann, "get pods/exec team a", "no"),
        (&ann, "get podsx", "no"),
        (&ann, "watch pods", "no"),
        (&ann, "get pods.apps", "no"),
        (&dev, "list pods", readers_devs),
        // The first subject of the list is named, however the binding was found.
        (&both, "list pods", readers_devs),
        (&ann, "update deployments.apps/scale team d", scalers),
        (&ann, "update deployments.apps team d", "no"),
        (&ann, "update deployments.apps/rescale team d", "no"),
        // No wildcard after the slash.
        (&user("star", &[]), "get pods/log team a", "no"),
        (&ann, "get /healthz", paths),
        (&ann, "get /healthz/ping", "no"),
        (&ann, "get /apis/apps/v1", paths),
        (&ann, "get /apis", "no"),
        (&ann, "post /healthz", "no"),
        (&bot, "create deployments.apps team", bot_edits),
        (&bot, "create deployments.apps other", "no"),
        (&bot, "create deployments.apps", "no"),
        (&ci, "create deployments.apps team", ci_edits),
        (&other_bot, "create deployments.apps team", "no"),
        (&eve, "get secrets team one", eve_edits),
        (&eve, "get secrets team three", "no"),
        (&eve, "get secrets team", "no"),
        (&eve, "list secrets team one", "no"),
        (&tom, "delete secrets team three", tom_owns),
        (&tom, "delete anything.example.com/status team x", tom_owns),
        (&tom, "delete secrets", "no"),
        // A rule over all resources says nothing about paths.
        (&tom, "get /healthz", "no"),
        (
            &lost,
            "get pods",
            r#"no RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, unsupported role reference kind: "Sheriff"]"#,
        ),
        (
            &user("lost2", &[]),
            "get pods team",
            r#"no RBAC: role.rbac.authorization.k8s.io "edit" not found"#,
        ),
        (
            &user("root", &["system:masters"]),
            "delete secrets team three",
            "yes",
        ),
        (&user("root", &["system:masters"]), "get /anything", "yes"),
        (&user("", &[]), "get pods", "no"),
    ];
    for (user, request, expected) in table {
        assert_eq!(
            judge(&index, user, request),
            *expected,
            "{}: {request}",
            user.name
        );
    }
}

#[test]
fn changes_take_effect_and_leave_nothing_behind() {
    let mut index = sample();
    let ann = user("ann", &[]);
    let allowed = |index: &RbacIndex| judge(index, &ann, "get pods").starts_with("yes");
    assert!(allowed(&index));
    index.remove("ClusterRole", "", "reader");
    assert_eq!(
        judge(&index, &ann, "get pods"),
        r#"no RBAC: clusterrole.rbac.authorization.k8s.io "reader" not found"#
    );
    index
        .upsert(&role(
            "ClusterRole",
            "",
            "reader",
            json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]),
        ))
        .unwrap();
    assert!(allowed(&index));
    // Other subjects: ann loses it, bea gets it.
    let to_bea = json!([{"kind": "User", "name": "bea"}, {"kind": "User", "name": "bea"}]);
    index
        .upsert(&binding(
            "ClusterRoleBinding",
            "",
            "readers",
            ("ClusterRole", "reader"),
            to_bea,
        ))
        .unwrap();
    assert!(!allowed(&index));
    assert!(judge(&index, &user("bea", &[]), "get pods").starts_with("yes"));
    index.remove("ClusterRoleBinding", "ignored", "readers");
    assert_eq!(judge(&index, &user("bea", &[]), "get pods"), "no");
    index.remove("RoleBinding", "nowhere", "nothing");
    index.remove("Pod", "team", "x");

    let mut empty = RbacIndex::new();
    let one = binding(
        "RoleBinding",
        "ns",
        "b",
        ("Role", "r"),
        json!([{"kind": "User", "name": "u"}]),
    );
    empty.upsert(&one).unwrap();
    empty.remove("RoleBinding", "ns", "b");
    assert_eq!(format!("{empty:?}"), format!("{:?}", RbacIndex::new()));
}

#[test]
fn objects_that_cannot_be_indexed() {
    let mut index = RbacIndex::new();
    for (object, text) in [
        (
            json!({"kind": "Pod", "metadata": {"name": "a"}}),
            "Pod is not a kind of role based access control",
        ),
        (json!({"kind": "ClusterRole"}), "ClusterRole without a name"),
        (
            json!({"kind": "Role", "metadata": {"name": "a"}}),
            "Role a without a namespace",
        ),
        (json!([]), " is not a kind of role based access control"),
    ] {
        assert_eq!(index.upsert(&object).unwrap_err().to_string(), text);
    }
    // Nonsense inside grants nothing.
    let nonsense = json!({"kind": "ClusterRole", "metadata": {"name": "a"}, "rules": [1, {"verbs": "*", "resources": {}}]});
    index.upsert(&nonsense).unwrap();
    index
        .upsert(&json!({"kind": "ClusterRoleBinding", "metadata": {"name": "a"}, "subjects": [1, {}]}))
        .unwrap();
    assert_eq!(judge(&index, &user("", &[]), "get pods"), "no");
}

#[test]
fn layers_are_independent_and_share_what_is_equal() {
    let base = Arc::new(sample());
    let mut upper = RbacIndex::layered(Arc::clone(&base));
    let pristine = format!("{upper:?}");
    let (ann, eve) = (user("ann", &[]), user("eve", &[]));
    assert!(judge(&upper, &ann, "get pods").starts_with("yes"));

    // The same object again costs nothing.
    let reader = role(
        "ClusterRole",
        "",
        "reader",
        json!([{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]}]),
    );
    upper.upsert(&reader).unwrap();
    let scalers = binding(
        "ClusterRoleBinding",
        "",
        "scalers",
        ("ClusterRole", "scaler"),
        json!([{"kind": "User", "name": "ann"}]),
    );
    upper.upsert(&scalers).unwrap();
    assert_eq!(format!("{upper:?}"), pristine);

    // A binding from below follows a role from above.
    let writer = json!([{"verbs": ["create"], "apiGroups": [""], "resources": ["pods"]}]);
    upper.upsert(&role("ClusterRole", "", "reader", writer)).unwrap();
    assert_eq!(judge(&upper, &ann, "get pods"), "no");
    assert!(judge(&upper, &ann, "create pods").starts_with("yes"));
    assert!(
        judge(&base, &ann, "get pods").starts_with("yes"),
        "the base does not change"
    );

    // Removed above stays removed, until put back.
    upper.remove("ClusterRole", "", "reader");
    assert!(judge(&upper, &ann, "get pods").ends_with(r#""reader" not found"#));
    upper.upsert(&reader).unwrap();
    assert!(judge(&upper, &ann, "get pods").starts_with("yes"));
    upper.remove("ClusterRoleBinding", "", "scalers");
    assert_eq!(judge(&upper, &ann, "update pods/scale"), "no");
    upper.upsert(&scalers).unwrap();
    assert!(judge(&upper, &ann, "update pods/scale").starts_with("yes"));
    assert_eq!(format!("{upper:?}"), pristine);

    // A binding replaced above no longer counts for whom it named below.
    let editors = binding(
        "RoleBinding",
        "team",
        "editors",
        ("Role", "edit"),
        json!([{"kind": "User", "name": "zoe"}]),
    );
    upper.upsert(&editors).unwrap();
    assert_eq!(judge(&upper, &eve, "get secrets team one"), "no");
    assert!(judge(&upper, &user("zoe", &[]), "get secrets team one").starts_with("yes"));

    // A third layer sees through both.
    let mut top = RbacIndex::layered(Arc::new(upper));
    assert_eq!(judge(&top, &eve, "get secrets team one"), "no");
    assert!(judge(&top, &ann, "get pods").starts_with("yes"));
    top.remove("RoleBinding", "team", "editors");
    assert_eq!(judge(&top, &user("zoe", &[]), "get secrets team one"), "no");
}

#[test]
fn rules_of_a_user() {
    let index = sample();
    let count = |user: &UserInfo, namespace| index.rules_for(user, namespace).rules.len();
    assert_eq!(count(&user("ann", &["devs"]), ""), 3, "each binding once");
    assert_eq!(count(&user("eve", &[]), ""), 0);
    assert_eq!(count(&user("eve", &[]), "team"), 2);
    let lost = user("lost", &[]);
    assert_eq!(
        index.rules_for(&lost, "team").errors,
        [
            r#"clusterrole.rbac.authorization.k8s.io "gone" not found"#,
            r#"unsupported role reference kind: "Sheriff""#
        ]
    );
}

#[test]
fn what_covers_what() {
    let rule = |verbs: &str, groups: &str, resources: &str, names: &str, urls: &str| {
        let list = |text: &str| -> Texts {
            if text.is_empty() {
                Texts::default()
            } else {
                text.split(',').map(|t| t.trim_matches('-').into()).collect()
            }
        };
        PolicyRule {
            verbs: list(verbs),
            api_groups: list(groups),
            resources: list(resources),
            resource_names: list(names),
            non_resource_urls: list(urls),
        }
    };
    // "-" is the core group.
    let table = [
        (
            vec![rule("get,list", "-", "pods", "", "")],
            rule("get", "-", "pods", "", ""),
            "",
        ),
        (
            vec![rule("*", "*", "*", "", "")],
            rule("get", "-", "pods,pods/log", "a", ""),
            "",
        ),
        (
            vec![rule("*", "*", "*/scale", "", "")],
            rule("get", "apps", "deployments/scale", "", ""),
            "",
        ),
        (
            vec![rule("get", "-", "pods", "", "")],
            rule("get,list,watch", "-", "pods,nodes", "", ""),
            r#"{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list" "watch"]}
{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}"#,
        ),
        // Two rules together cover what neither does alone.
        (
            vec![
                rule("get", "-", "pods", "", ""),
                rule("get", "-", "nodes", "", ""),
            ],
            rule("get", "-", "pods,nodes", "", ""),
            "",
        ),
        // Some names do not cover all names, nor others.
        (
            vec![rule("get", "-", "pods", "a", "")],
            rule("get", "-", "pods", "", ""),
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#,
        ),
        (
            vec![rule("get", "-", "pods", "a", "")],
            rule("get", "-", "pods", "a,b", ""),
            r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}"#,
        ),
        (
            vec![rule("get", "-", "pods", "", "")],
            rule("get", "-", "pods", "a", ""),
            "",
        ),
        (
            vec![rule("get", "", "", "", "/apis/*")],
            rule("get", "", "", "", "/apis/apps,/apis/*"),
            "",
        ),
        (
            vec![rule("get", "", "", "", "/apis")],
            rule("get", "", "", "", "/apis/*"),
            r#"{NonResourceURLs:["/apis/*"], Verbs:["get"]}"#,
        ),
        // A wildcard is more than any list.
        (
            vec![rule("get,list", "-", "pods", "", "")],
            rule("*", "-", "pods", "", ""),
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["*"]}"#,
        ),
        (vec![], rule("", "-", "pods", "", ""), ""),
    ];
    let bob = user("bob", &["devs", "system:authenticated"]);
    for (owner, wanted, missing) in table {
        let owner: Vec<&PolicyRule> = owner.iter().collect();
        let expected = if missing.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "user \"bob\" (groups=[\"devs\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{missing}"
            ))
        };
        let got = covers(&owner, std::slice::from_ref(&wanted));
        assert_eq!(
            got.map_err(|missing| escalation_message(&bob, &missing, &[])),
            expected
        );
    }
}

#[test]
fn escalation_is_checked_against_what_is_held_there() {
    let index = sample();
    let wanted = PolicyRule::list_from_role(
        &json!({"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["one"]}]}),
    );
    let eve = user("eve", &[]);
    assert_eq!(check_escalation(&index, &eve, "team", &wanted), Ok(()));
    assert!(check_escalation(&index, &eve, "", &wanted).is_err());
    assert_eq!(
        check_escalation(&index, &user("root", &["system:masters"]), "", &wanted),
        Ok(())
    );
    assert_eq!(
        check_escalation(&index, &user("lost", &[]), "", &wanted).unwrap_err(),
        "user \"lost\" (groups=[]) is attempting to grant RBAC permissions not currently held:\n\
         {APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"one\"], Verbs:[\"get\"]}; resolution errors: \
         [[clusterrole.rbac.authorization.k8s.io \"gone\" not found, unsupported role reference kind: \"Sheriff\"]]"
    );
}

#[test]
fn huge_rules_are_compared_whole() {
    let many: Texts = (0..1000).map(|i| format!("x{i}").into()).collect();
    let huge = PolicyRule {
        verbs: many.clone(),
        api_groups: many.clone(),
        resources: many,
        ..PolicyRule::default()
    };
    let all = PolicyRule::from_json(&json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
    assert_eq!(covers(&[&all], std::slice::from_ref(&huge)), Ok(()));
    assert_eq!(covers(&[], std::slice::from_ref(&huge)).unwrap_err().len(), 1);
}

#[test]
fn aggregation_follows_selectors() {
    let rule = |resource: &str| json!({"verbs": ["get"], "apiGroups": [""], "resources": [resource]});
    let role = |name: &str, labels: Value, resources: &[&str]| {
        let rules: Vec<Value> = resources.iter().map(|r| rule(r)).collect();
        json!({"kind": "ClusterRole", "metadata": {"name": name, "labels": labels}, "rules": rules})
    };
    let all = [
        role("b", json!({"to": "view"}), &["pods", "nodes"]),
        role("a", json!({"to": "view", "x": "1"}), &["secrets", "pods"]),
        role("c", json!({"to": "edit"}), &["jobs"]),
        role("none", Value::Null, &["crons"]),
        role("agg", json!({"to": "view"}), &["itself"]),
    ];
    let agg = |selectors: Value| {
        let role =
            json!({"metadata": {"name": "agg"}, "aggregationRule": {"clusterRoleSelectors": selectors}});
        let rules = aggregate(&role, &all);
        rules.map(|rules| {
            rules
                .iter()
                .map(|r| r["resources"][0].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        })
    };
    let some = |names: &[&str]| Some(names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>());
    let expression = |operator: &str, values: Value| json!([{"matchExpressions": [{"key": "to", "operator": operator, "values": values}]}]);
    for (selectors, expected) in [
        (
            json!([{"matchLabels": {"to": "view"}}]),
            some(&["secrets", "pods", "nodes"]),
        ),
        (
            json!([{"matchLabels": {"to": "edit"}}, {"matchLabels": {"x": "1"}}]),
            some(&["jobs", "secrets", "pods"]),
        ),
        (json!([{"matchLabels": {"to": "view", "x": "2"}}]), some(&[])),
        (json!([]), some(&[])),
        (expression("In", json!(["edit", "x"])), some(&["jobs"])),
        (expression("NotIn", json!(["view"])), some(&["jobs", "crons"])),
        (
            expression("Exists", Value::Null),
            some(&["secrets", "pods", "nodes", "jobs"]),
        ),
        (expression("DoesNotExist", Value::Null), some(&["crons"])),
        (expression("Like", Value::Null), None),
    ] {
        assert_eq!(agg(selectors.clone()), expected, "{selectors}");
    }
    assert_eq!(aggregate(&all[0], &all), None);
}

#[test]
fn the_words_of_refusal() {
    let (nobody, bob) = (UserInfo::anonymous(), user("bob", &[]));
    let pods = Attributes::resource(&nobody, "list", "", "pods");
    let scale = Attributes {
        subresource: "scale",
        namespace: "x",
        name: "web",
        ..Attributes::resource(&bob, "update", "apps", "deployments")
    };
    for (wanted, reason, message, details) in [
        (
            pods,
            "",
            r#"pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" at the cluster scope"#,
            json!({"kind": "pods"}),
        ),
        (
            Attributes {
                namespace: "x",
                ..pods
            },
            "",
            r#"pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "x""#,
            json!({"kind": "pods"}),
        ),
        (
            scale,
            r#"RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#,
            r#"deployments.apps "web" is forbidden: User "bob" cannot update resource "deployments/scale" in API group "apps" in the namespace "x": RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#,
            json!({"name": "web", "group": "apps", "kind": "deployments"}),
        ),
        (
            Attributes::path(&bob, "get", "/foo"),
            "",
            r#"forbidden: User "bob" cannot get path "/foo""#,
            json!({}),
        ),
    ] {
        assert_eq!(forbidden_message(&wanted, reason), message);
        assert_eq!(forbidden_details(&wanted), details);
    }
}
