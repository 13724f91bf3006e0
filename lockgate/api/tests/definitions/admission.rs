//! What depends on labels, annotations and deletion.

use serde_json::json;

use crate::harness::{NAMESPACE, Server, sample};

pub(crate) async fn check(server: &Server) {
    permanent_ids(server).await;
    deletions(server).await;
    dependencies(server).await;
}

/// An id that is there stays; without a label it is the uid, and no other may come.
async fn permanent_ids(server: &Server) {
    for (kind, key) in [
        ("PropagationPolicy", "propagationpolicy.karmada.io/permanent-id"),
        (
            "ClusterPropagationPolicy",
            "clusterpropagationpolicy.karmada.io/permanent-id",
        ),
    ] {
        let policy = server.create(&sample(kind, &json!({}))).await.granted();
        let with = |value: serde_json::Value| json!({"metadata": {"labels": {key: value}}});
        let uid = policy["metadata"]["uid"].clone();
        let answer = server.merge(&policy, &with(json!("one")), None).await;
        assert_eq!(answer.code, 422, "{}", answer.body);
        assert!(
            answer.message().contains(uid.as_str().unwrap_or_default()),
            "{}",
            answer.message()
        );
        server.merge(&policy, &with(uid), None).await.granted();
        for change in [
            with(json!("two")),
            with(json!(null)),
            json!({"metadata": {"labels": null}}),
        ] {
            let answer = server.merge(&policy, &change, None).await;
            assert_eq!(answer.code, 422, "{change} {}", answer.body);
            assert!(answer.message().contains(key), "{}", answer.message());
        }
        let other = json!({"metadata": {"labels": {"team": "a"}}, "spec": {"priority": 1}});
        server.merge(&policy, &other, None).await.granted();
        server.delete(&policy).await.granted();
    }
}

/// What is protected is not deleted, alone or among others, until the label goes.
async fn deletions(server: &Server) {
    let key = "resourcetemplate.karmada.io/deletion-protected";
    let config = |name: &str, value: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"set": "protected", key: value}},
        })
    };
    let mut policy = sample("ClusterPropagationPolicy", &json!({}));
    policy["metadata"]["labels"] = json!({key: "Always"});
    for (object, command) in [
        (
            config("kept", "Always"),
            format!("kubectl label -n {NAMESPACE} configmaps kept {key}-"),
        ),
        (
            policy,
            format!("kubectl label clusterpropagationpolicies.policy.karmada.io sample {key}-"),
        ),
    ] {
        server.create(&object).await.granted();
        let answer = server.delete(&object).await;
        assert_eq!(answer.code, 403, "{}", answer.body);
        let message = answer.message();
        assert!(message.contains(&format!("{key}=Always")), "{message}");
        assert!(message.contains(&command), "{message}");
    }
    server.create(&config("loose", "Never")).await.granted();
    server.delete(&config("loose", "Never")).await.granted();
    let all = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?labelSelector=set=protected");
    let answer = server.send("DELETE", &all, &[], None).await;
    assert_eq!(answer.code, 403, "{}", answer.body);

    let bare = json!({"metadata": {"labels": {key: null}}});
    for object in [
        config("kept", "Always"),
        sample("ClusterPropagationPolicy", &json!({})),
    ] {
        server.merge(&object, &bare, None).await.granted();
        server.delete(&object).await.granted();
    }
}

async fn dependencies(server: &Server) {
    for (text, good) in [
        ("[]", true),
        (" [ ] ", true),
        (
            r#"[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"a"}]"#,
            true,
        ),
        ("[{},\n {}]", true),
        ("", false),
        ("{}", false),
        ("a", false),
        ("[", false),
        ("[\"a\"]", false),
    ] {
        for kind in ["ResourceBinding", "ClusterResourceBinding"] {
            let mut binding = sample(kind, &json!({}));
            binding["metadata"]["annotations"] = json!({"resourcebinding.karmada.io/dependencies": text});
            let answer = server.try_create(&binding).await;
            assert_eq!(
                answer.code,
                if good { 201 } else { 422 },
                "{text} {}",
                answer.body
            );
            if !good {
                let message = answer.message();
                assert!(
                    message.contains("resourcebinding.karmada.io/dependencies"),
                    "{message}"
                );
            }
        }
    }
}
