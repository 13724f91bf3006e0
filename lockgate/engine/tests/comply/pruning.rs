//! What nobody speaks of any more: when it is pruned, what is told of it, and that it is not forgotten.

use super::*;

#[test]
fn what_nobody_speaks_of_waits_until_the_policy_enforces() {
    let policy = |action: &str, name: &str| {
        rules(
            &json!({"remediationAction": action, "pruneObjectBehavior": "DeleteIfCreated", "object-templates":
            [{"complianceType": "musthave", "objectDefinition": wanted(name, &json!({}))}]}),
        )
        .unwrap()
    };
    let old = policy("enforce", "old");
    let (subject, mut judged) = outcome(&old, &["shop"], &[]);
    judged[0].standing = Standing::Created;
    judged[0].made = true;
    judged[0].uid = "uid-old".to_owned();
    let made = status(&old, &[Ok((subject, judged))], &ConfigurationStatus::default(), 1);
    assert!(made.prune.is_empty());
    let objects = [
        config_map("shop", "old", &json!({})),
        config_map("shop", "new", &json!({})),
    ];
    let informs = policy("inform", "new");
    let found = || Ok(outcome(&informs, &["shop"], &objects));
    let waiting = status(&informs, &[found()], &made.status, 2);
    assert!(waiting.prune.is_empty());
    assert_eq!(waiting.status.pending_prune.len(), 1);
    let waiting = status(&informs, &[found()], &waiting.status, 2);
    assert_eq!(waiting.status.pending_prune.len(), 1, "and again");
    let enforces = policy("enforce", "new");
    // What cannot be followed prunes nothing.
    let fault = status(&enforces, &[Err(Fault::template("wrong"))], &waiting.status, 3);
    assert!(fault.prune.is_empty());
    let due = status(&enforces, &[found()], &fault.status, 4);
    assert_eq!(due.prune.len(), 1);
    assert_eq!(due.prune[0].object.metadata.name, "old");
    // Somebody else's is not pruned.
    let would_go = |prune| {
        let status = ConfigurationStatus {
            pending_prune: Vec::new(),
            ..due.status.clone()
        };
        statuses::all_that_goes(&status, prune).len()
    };
    assert_eq!((would_go(Prune::IfCreated), would_go(Prune::All)), (0, 1));
    // Wanted again, it stays.
    let back = status(
        &old,
        &[Ok(outcome(&old, &["shop"], &objects))],
        &waiting.status,
        3,
    );
    assert!(back.prune.is_empty() && back.status.pending_prune.is_empty());
}

#[test]
fn what_was_only_informed_about_is_never_pruned() {
    let policy = |action: &str, name: &str| {
        rules(
            &json!({"remediationAction": action, "pruneObjectBehavior": "DeleteAll", "object-templates":
            [{"complianceType": "musthave", "objectDefinition": wanted(name, &json!({}))}]}),
        )
        .unwrap()
    };
    let objects = [
        config_map("shop", "old", &json!({})),
        config_map("shop", "new", &json!({})),
    ];
    let look = |action: &str, name: &str, previous: &ConfigurationStatus, generation| {
        let rules = policy(action, name);
        let found = Ok(outcome(&rules, &["shop"], &objects));
        status(&rules, &[found], previous, generation)
    };
    let informed = look("inform", "old", &ConfigurationStatus::default(), 1).status;
    assert!(statuses::all_that_goes(&informed, Prune::All).is_empty());
    let next = look("enforce", "new", &informed, 2);
    assert!(next.prune.is_empty() && next.status.pending_prune.is_empty());
    // What was enforced once stays what it is while the policy informs.
    let enforced = look("enforce", "old", &informed, 2).status;
    let informs = look("inform", "old", &enforced, 3).status;
    assert_eq!(statuses::all_that_goes(&informs, Prune::All).len(), 1);
    assert_eq!(look("enforce", "new", &informs, 4).prune.len(), 1);
}

/// What was to go and stays is told by its name, and is tried again.
#[test]
fn what_cannot_be_pruned_is_told() {
    let policy = |name: &str| {
        rules(
            &json!({"remediationAction": "enforce", "pruneObjectBehavior": "DeleteAll",
            "evaluationInterval": {"noncompliant": "never"}, "object-templates":
            [{"complianceType": "musthave", "objectDefinition": wanted(name, &json!({}))}]}),
        )
        .unwrap()
    };
    let objects = [
        config_map("shop", "old", &json!({})),
        config_map("shop", "new", &json!({})),
    ];
    let old = policy("old");
    let outcomes = [Ok(outcome(&old, &["shop"], &objects))];
    let before = status(&old, &outcomes, &ConfigurationStatus::default(), 1).status;
    let new = policy("new");
    let outcomes = [Ok(outcome(&new, &["shop"], &objects))];
    let due = status(&new, &outcomes, &before, 2);
    let [to_go] = due.prune.as_slice() else {
        panic!("{due:?}")
    };
    let stays = [Unpruned {
        object: to_go.clone(),
        is_going: false,
        why: "the house is full".to_owned(),
    }];
    let tried = |unpruned: &[Unpruned], previous: &ConfigurationStatus| {
        conclude(
            previous,
            &Evaluated {
                name: "settings",
                outcomes: &outcomes,
                generation: 2,
                enforce: true,
                prune: Prune::All,
                unpruned: Some(unpruned),
                never: new.never(),
                custom: None,
                now: now(),
            },
        )
    };
    let told = tried(&stays, &before);
    assert!(told.prune.is_empty());
    assert_eq!(told.status.compliant, "NonCompliant");
    assert_eq!(
        told.status.history[0].message,
        "NonCompliant; violation - ConfigMap old in namespace shop is to be pruned and is still there: the house is \
         full; notification - configmaps [new] found as specified in namespace shop"
    );
    assert_eq!(told.status.pending_prune, std::slice::from_ref(to_go));
    // A server that drops what it does not know is found out.
    let mut kept = told.status.clone();
    assert!(!statuses::is_forgotten(&told.status, &kept, Prune::All));
    kept.pending_prune.clear();
    assert!(statuses::is_forgotten(&told.status, &kept, Prune::All));
    assert!(!statuses::is_forgotten(&told.status, &kept, Prune::Nothing));
    // It goes again with the next look, and then nothing is wrong.
    let again = status(&new, &outcomes, &told.status, 2);
    assert_eq!(again.prune, std::slice::from_ref(to_go));
    let done = tried(&[], &told.status).status;
    assert_eq!(
        (done.compliant.as_str(), done.pending_prune.len()),
        ("Compliant", 0)
    );
}

#[test]
fn what_is_too_much_to_tell_is_not_forgotten() {
    let policy = |labels: Value| {
        rules(&json!({"remediationAction": "enforce", "pruneObjectBehavior": "DeleteAll", "object-templates":
        [{"complianceType": "musthave", "objectSelector": {"matchLabels": labels}, "objectDefinition": wanted("", &json!({}))}]}))
        .unwrap()
    };
    let all = policy(json!({}));
    let named = |number: usize| config_map("shop", &format!("box-{number:05}"), &json!({}));
    let look = |rules: &Rules, objects: &[Value], previous: &ConfigurationStatus| {
        status(rules, &[Ok(outcome(rules, &["shop"], objects))], previous, 1)
    };
    let many: Vec<Value> = (500..1500).map(named).collect();
    let first = look(&all, &many, &ConfigurationStatus::default());
    assert_eq!(first.status.related_objects.len(), 1000);
    assert!(first.status.further_objects.is_empty());
    let more: Vec<Value> = (0..1500).map(named).collect();
    let next = look(&all, &more, &first.status);
    assert_eq!(next.status.related_objects.len(), 1000);
    assert!(next.prune.is_empty(), "{} would go", next.prune.len());
    assert_eq!(next.status.further_objects[0].objects.len(), 500);
    assert_eq!(look(&all, &more, &next.status).status, next.status);
    // All of them go when nobody speaks of them any more, also where an evaluation only informs in between.
    assert_eq!(statuses::all_that_goes(&next.status, Prune::All).len(), 1500);
    let none = policy(json!({"none": "such"}));
    let informs = Rules {
        enforce: false,
        ..none.clone()
    };
    let waits = look(&informs, &more, &next.status).status;
    assert_eq!(waits.pending_prune.len(), 1000);
    assert_eq!(look(&none, &more, &waits).prune.len(), 1500);
    // More than an object can hold is told.
    let named = |number: usize| config_map("shop", &format!("{}{number:05}", "box".repeat(60)), &json!({}));
    let heaps: Vec<Value> = (0..5000).map(named).collect();
    let told = look(&all, &heaps, &ConfigurationStatus::default()).status;
    assert_eq!(told.compliant, "NonCompliant");
    let message = &told.history[0].message;
    assert!(
        message.contains("5000 objects are more than one policy can remember"),
        "{message}"
    );
}
