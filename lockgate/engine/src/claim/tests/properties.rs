//! What holds for every sequence of edits, under every gate.

use lockgate_api::keys;
use lockgate_api::policy::Suspension;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::member::Member;
use super::world::{Kind, Rule, Scope, World, rule};
use crate::claim::{Change, Claim, HoldReason, Record, propagation_differs};
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
    /// The controllers come back with other gates: StaticPolicy, preemption.
    Gates(bool, bool),
    Override(u8),
}

/// What is done at once: only the last of it is noticed.
struct Burst<'a> {
    steps: &'a [Step],
    /// Whether the user wrote something that nobody has acted on yet.
    may_act: bool,
}

impl Burst<'_> {
    fn creates(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Create))
    }

    /// Whether gates were switched that move nothing, and nothing else happened.
    fn only_switches(&self, before: &World, after: &World) -> bool {
        let gates = |step: &Step| matches!(step, Step::Gates(..) | Step::Restart);
        self.steps.iter().all(gates)
            && (before.gates.preemption
                || !after.gates.preemption
                || before.gates.static_policy != after.gates.static_policy)
    }
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
        1 => (0..3_u8).prop_map(Step::Override),
        1 => any::<(bool, bool)>().prop_map(|(fixed, preemption)| Step::Gates(fixed, preemption)),
    ]
}

/// Steps of which only the last is noticed: the events of the others are lost.
fn burst() -> impl Strategy<Value = Vec<Step>> {
    prop_oneof![
        3 => step().prop_map(|step| vec![step]),
        1 => prop::collection::vec(step(), 2..4),
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
fn act(w: &mut World, member: &mut Member, step: &Step) -> bool {
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
        Step::Override(value) => member.override_with(*value),
        Step::Gates(static_policy, preemption) => {
            w.gates.static_policy = *static_policy;
            w.gates.preemption = *preemption;
        }
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
        // Before it is claimed, only versions tell whether a template was written after its policy, whatever was written.
        Step::SystemKey(_) => {
            let unclaimed = |template: &Value| Claim::on_template(template).is_none();
            wrote && before.as_ref().is_some_and(unclaimed)
        }
        // Replacing a template that waits takes its record along: it is one that the user wrote after the policy came.
        Step::Strip => wrote && w.binding.is_none(),
        _ => false,
    }
}

/// Checks the outcome. Answers whether something could act.
fn check(w: &World, burst: &Burst<'_>, before: &World) -> Result<bool, TestCaseError> {
    let (step, may_act) = (&burst.steps, burst.may_act);
    let Some(template) = &w.template else {
        return Ok(false);
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
    let decision = w.decide();
    let held = decision
        .as_ref()
        .is_some_and(|decision| decision.waits == Some(HoldReason::GateChanged));
    let holder = decision.and_then(|decision| decision.holder);
    let immediate = holder.as_ref().is_some_and(|policy| !policy.spec.is_lazy()) && !held;
    let unmanaged = before.binding.is_none();
    let acts = immediate && (!w.gates.static_policy || unmanaged) && !burst.only_switches(before, w);
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
    prop_assert!(before.binding.is_none() || w.binding.is_some() || burst.creates());
    if holder.is_none()
        && let Some(binding) = &w.binding
    {
        prop_assert_eq!(Claim::on_binding(&binding.metadata), None);
    }
    Ok(may_act || acts)
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
    #![proptest_config(crate::properties::cases(3000))]

    #[test]
    fn whatever_happens(
        kind in kind(),
        gates in gates(),
        hasty in any::<bool>(),
        bursts in prop::collection::vec((burst(), any::<bool>()), 1..14),
    ) {
        let mut w = World::new(kind, Scope::Namespaced, gates);
        w.hasty = hasty;
        let mut member = Member::default();
        // What the user wrote and nobody has acted on yet.
        let mut waiting = false;
        for (steps, cut) in &bursts {
            let before = w.clone();
            for step in steps {
                waiting |= act(&mut w, &mut member, step);
            }
            // Where the generation has moved since it was recorded, nobody can tell a default from an edit either.
            let moved = |template: &Value| {
                Record::find(template, before.binding.as_ref())
                    .is_none_or(|record| record.generation_moved(template))
            };
            let defaults = steps.iter().any(|step| matches!(step, Step::AddDefault(_)));
            waiting |= defaults && w.template.as_ref().is_some_and(moved);
            w.cut = *cut;
            // Deciding again changes nothing: checked by settling.
            w.settle();
            let burst = Burst { steps, may_act: waiting };
            let before = if burst.creates() { w.clone() } else { before };
            let acted = check(&w, &burst, &before)?;
            // What members see changes for the same reasons, and for overrides.
            let (saw, overridden) = (member.sees().cloned(), member.is_overridden());
            member.send(&w);
            if !acted && !overridden && !burst.creates() {
                prop_assert_eq!(member.sees(), saw.as_ref(), "{:?}", steps);
            }
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
        bursts in prop::collection::vec(burst(), 1..12),
    ) {
        let mut whole = World::new(kind, Scope::Namespaced, gates);
        let mut cut = whole.clone();
        cut.cut = true;
        let mut member = Member::default();
        for steps in &bursts {
            for step in steps {
                act(&mut whole, &mut member, step);
                act(&mut cut, &mut member, step);
            }
            whole.settle();
            cut.settle();
            prop_assert_eq!(whole.shown(), cut.shown(), "{:?}", steps);
            prop_assert_eq!(activated(&whole), activated(&cut));
            prop_assert_eq!(suspension(&whole), suspension(&cut));
        }
    }
}
