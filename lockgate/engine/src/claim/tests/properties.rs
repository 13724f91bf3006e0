//! What holds for every sequence of edits, under every gate.

use lockgate_api::keys;
use lockgate_api::policy::Suspension;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Kind, Rule, Scope, World, rule};
use crate::claim::{Change, Claim, propagation_differs};
use crate::gate::is_suspended;
use crate::gates::Gates;

/// One thing that somebody does.
#[derive(Clone, Debug)]
enum Step {
    Create,
    Scale(u8),
    Touch(u8),
    Relabel(u8),
    Strip,
    SystemKey(u8),
    AddDefault(u8),
    Ask(u8),
    Apply(Policy),
    Delete(usize),
    DeleteSlowly(usize),
    Restart,
}

/// A policy of one of four names: two of each scope.
#[derive(Clone, Debug)]
struct Policy {
    slot: usize,
    cluster: u8,
    lazy: bool,
    priority: i32,
    always: bool,
    selector: u8,
    suspend: u8,
}

const NAMES: [&str; 4] = ["p1", "p2", "c1", "c2"];

impl Policy {
    fn rule(&self) -> Rule {
        let mut rule = rule(NAMES[self.slot], &format!("m{}", self.cluster)).priority(self.priority);
        rule = if self.slot < 2 { rule.pp() } else { rule.cpp() };
        rule = match self.selector {
            0 | 1 => rule,
            2 => rule.app("a"),
            3 => rule.app("b"),
            4 => rule.all(),
            _ => rule.elsewhere(),
        };
        if self.lazy {
            rule = rule.lazy();
        }
        if self.always {
            rule = rule.always();
        }
        match self.suspend {
            0 => rule.with("suspension", json!({ "dispatching": true })),
            1 => rule.with(
                "suspension",
                json!({ "dispatchingOnClusters": { "clusterNames": ["m1"] } }),
            ),
            2 => rule.with("suspension", json!({})),
            _ => rule,
        }
    }
}

fn policy() -> impl Strategy<Value = Policy> {
    (
        0..4_usize,
        1..4_u8,
        any::<bool>(),
        0..3,
        any::<bool>(),
        0..6_u8,
        0..9_u8,
    )
        .prop_map(
            |(slot, cluster, lazy, priority, always, selector, suspend)| Policy {
                slot,
                cluster,
                lazy,
                priority,
                always,
                selector,
                suspend,
            },
        )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Create),
        2 => (0..3_u8).prop_map(Step::Scale),
        1 => (0..3_u8).prop_map(Step::Touch),
        2 => (0..3_u8).prop_map(Step::Relabel),
        1 => Just(Step::Strip),
        1 => (0..3_u8).prop_map(Step::SystemKey),
        1 => (0..3_u8).prop_map(Step::AddDefault),
        1 => (0..3_u8).prop_map(Step::Ask),
        8 => policy().prop_map(Step::Apply),
        2 => (0..4_usize).prop_map(Step::Delete),
        1 => (0..4_usize).prop_map(Step::DeleteSlowly),
        1 => Just(Step::Restart),
    ]
}

/// What was activated, apart from what is suspended and from the version of the template.
fn activated(w: &World) -> Option<Value> {
    let mut spec = w.binding.as_ref()?.spec.clone();
    spec.suspension = None;
    spec.resource.resource_version.clear();
    Some(serde_json::to_value(spec).unwrap())
}

fn suspension(w: &World) -> Option<Suspension> {
    w.binding.as_ref()?.spec.suspension.clone()
}

/// Does the step. Answers whether the user wrote something, so that it may act whatever the policy prefers.
fn act(w: &mut World, step: &Step) -> bool {
    let before = w.template.clone();
    match step {
        Step::Create => {
            w.create();
        }
        Step::Apply(policy) => {
            w.apply(policy.rule());
        }
        Step::Delete(slot) => {
            w.delete(NAMES[*slot]);
        }
        Step::DeleteSlowly(slot) => {
            w.delete_slowly(NAMES[*slot]);
        }
        Step::Restart => {}
        _ if w.template.is_none() => {}
        Step::Scale(replicas) => {
            w.scale(*replicas);
        }
        Step::Touch(value) => {
            w.touch(&value.to_string());
        }
        Step::Relabel(app) => {
            let app = ["a", "b", "c"][usize::from(*app)];
            w.edit(|template| template["metadata"]["labels"]["app"] = json!(app));
        }
        Step::Strip => {
            w.strip();
        }
        Step::SystemKey(value) => {
            let value = value.to_string();
            w.edit(|template| template["metadata"]["annotations"]["x.karmada.io/y"] = json!(value));
        }
        Step::AddDefault(field) => {
            w.add_default(&format!("field{field}"));
        }
        Step::Ask(request) => {
            w.ask(&request.to_string());
        }
    }
    let wrote = before != w.template;
    match step {
        Step::Create | Step::Scale(_) | Step::Touch(_) | Step::Relabel(_) | Step::Ask(_) => wrote,
        // Without a generation nobody can tell a default from an edit.
        Step::AddDefault(_) => wrote && w.kind == Kind::ConfigMap,
        // Replacing a template that waits takes its record along: it is one that the user wrote after the policy came.
        Step::Strip => wrote && w.binding.is_none(),
        _ => false,
    }
}

fn check(w: &World, step: &Step, before: &World, may_act: bool) -> Result<(), TestCaseError> {
    let Some(template) = &w.template else {
        return Ok(());
    };
    // Never both kinds of marks, on neither object.
    let marks = |of: &dyn Fn(&str) -> bool| {
        let namespaced = [keys::PP_ID, keys::PP_NAMESPACE, keys::PP_NAME].map(of);
        let cluster = [keys::CPP_ID, keys::CPP_NAME].map(of);
        let whole = |marks: &[bool]| marks.iter().all(|m| *m) || marks.iter().all(|m| !*m);
        whole(&namespaced) && whole(&cluster) && !(namespaced[0] && cluster[0])
    };
    let on_template = |key: &str| {
        let metadata = &template["metadata"];
        metadata["labels"].get(key).is_some() || metadata["annotations"].get(key).is_some()
    };
    prop_assert!(marks(&on_template));
    if let Some(binding) = &w.binding {
        let metadata = &binding.metadata;
        prop_assert!(marks(
            &|key| metadata.label(key).is_some() || metadata.annotation(key).is_some()
        ));
    }

    // What was activated changes only for a reason.
    let holder = w.decide().and_then(|decision| decision.holder);
    let immediate = holder.as_ref().is_some_and(|policy| !policy.spec.is_lazy());
    let unmanaged = before.binding.is_none();
    let acts = immediate && (!w.gates.static_policy || unmanaged);
    if !may_act && !acts {
        prop_assert_eq!(activated(w), activated(before), "{:?}", step);
        // Suspensions may grow, and never shrink.
        for cluster in ["m1", "m2", "m3"] {
            let was = is_suspended(suspension(before).as_ref(), cluster);
            prop_assert!(
                !was || is_suspended(suspension(w).as_ref(), cluster),
                "{:?}",
                step
            );
        }
    }

    // A claim is what its policy says, and nothing of the user's is forgotten where somebody is there to act on it.
    prop_assert_eq!(Claim::on_template(template), holder.as_deref().map(Claim::by));
    if let (Some(policy), Some(binding)) = (&holder, &w.binding) {
        prop_assert_ne!(w.change(), Change::ByUser);
        if immediate && !w.gates.static_policy {
            prop_assert!(!propagation_differs(policy, binding));
            prop_assert_eq!(Claim::on_binding(&binding.metadata), Claim::on_template(template));
        }
    }
    if immediate && !w.gates.static_policy {
        prop_assert!(w.binding.is_some());
    }
    // Nothing is ever taken away.
    prop_assert!(before.binding.is_none() || w.binding.is_some() || matches!(step, Step::Create));
    if holder.is_none()
        && let Some(binding) = &w.binding
    {
        prop_assert_eq!(Claim::on_binding(&binding.metadata), None);
    }
    Ok(())
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Deployment), Just(Kind::ConfigMap), Just(Kind::Widget)]
}

fn gates() -> impl Strategy<Value = Gates> {
    (any::<bool>(), any::<bool>()).prop_map(|(static_policy, preemption)| Gates {
        static_policy,
        preemption,
        ..Gates::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens(
        kind in kind(),
        gates in gates(),
        hasty in any::<bool>(),
        steps in prop::collection::vec((step(), any::<bool>()), 1..14),
    ) {
        let mut w = World::new(kind, Scope::Namespaced, gates);
        w.hasty = hasty;
        // What the user wrote and nobody has acted on yet.
        let mut waiting = false;
        for (step, cut) in &steps {
            let before = w.clone();
            waiting |= act(&mut w, step);
            w.cut = *cut;
            // Deciding again changes nothing: checked by settling.
            w.settle();
            let before = if matches!(step, Step::Create) { w.clone() } else { before };
            check(&w, step, &before, waiting)?;
            let held = w.template.as_ref().is_some_and(|template| Claim::on_template(template).is_some());
            let asked = w.template.as_ref().is_some_and(|template| {
                template["metadata"]["annotations"].get(keys::ACTIVATE).is_some()
            });
            // Without a policy, a binding or a request, the template starts anew with the next policy.
            waiting &= !held && (w.binding.is_some() || asked);
        }
    }

    /// Being cut off leads to the same end.
    #[test]
    fn whenever_it_is_cut_off(
        kind in kind(),
        gates in gates(),
        steps in prop::collection::vec(step(), 1..12),
    ) {
        let mut whole = World::new(kind, Scope::Namespaced, gates);
        let mut cut = whole.clone();
        cut.cut = true;
        for step in &steps {
            act(&mut whole, step);
            act(&mut cut, step);
            whole.settle();
            cut.settle();
            prop_assert_eq!(whole.shown(), cut.shown(), "{:?}", step);
            prop_assert_eq!(activated(&whole), activated(&cut));
            prop_assert_eq!(suspension(&whole), suspension(&cut));
        }
    }
}
