//! Invariants of every step, over random and exhaustive sequences of events. Those of the filter and of names are in their
//! own modules.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{NodeCondition, Pod};
use k8s_openapi::jiff::SignedDuration;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use readiness::{
    ConditionStatus, EvaluatorRole, FilterOptions, GateDecision, GatePhase, GatedPodView, NodeChange, NodeState,
    NodeWrite, Policy, PolicyMode, filter, step,
};

use super::trace::{Happening, NAMES, Sim, any_policy, no_loss, some_loss, story};
use super::world::{A, Seen, World, at, short, stored};

/// Number of sequences for each invariant.
const TRACES: u32 = 1_500;

fn observed(world: &World, name: &str) -> ConditionStatus {
    ConditionStatus::from_condition(world.view().condition(name))
}

fn filter_allows(world: &World) -> bool {
    let pod = Pod::default();
    filter(FilterOptions::from(&world.policy), &world.view(), GatedPodView::new(&pod)).is_allowed()
}

/// Facts of a sequence that the state does not hold.
#[derive(Default)]
struct Witness {
    /// Gates whose timeout was written in this episode, with the replaced condition.
    written: BTreeMap<String, Option<NodeCondition>>,
    /// Gates that were reset, with the boot ID.
    reset: BTreeSet<(String, String)>,
    /// Taints that other components added.
    foreign: BTreeSet<String>,
    /// Earliest possible start of the timer of each gate.
    earliest_starts: BTreeMap<String, i64>,
    boot: String,
    instance: String,
}

impl Witness {
    /// Updates the earliest start of timers before a step.
    fn watch(&mut self, sim: &Sim) -> bool {
        let boot = sim.world.view().node().status.as_ref().unwrap().node_info.as_ref().unwrap().boot_id.clone();
        let is_reboot = !self.boot.is_empty() && self.boot != boot;
        let is_restart = !self.instance.is_empty() && self.instance != sim.world.instance;
        if is_reboot || is_restart || !sim.world.view().is_ready() {
            self.earliest_starts.clear();
        }
        if is_reboot {
            self.written.clear();
        }
        (self.boot, self.instance) = (boot, sim.world.instance.clone());
        self.earliest_starts.retain(|name, _| sim.world.view().gate(name).is_some());
        if sim.world.view().is_ready() {
            for gate in &sim.world.node.gates {
                // A start that a clock set back leaves in the future is now.
                let start = self.earliest_starts.entry(gate.condition_type.clone()).or_insert(sim.now);
                *start = sim.now.min(*start);
            }
        }
        is_reboot
    }
}

/// Checks the invariants of the writes of one step, on the node that was evaluated.
fn check(
    sim: &Sim,
    before: &NodeState,
    seen: &Seen,
    witness: &mut Witness,
    is_reboot: bool,
) -> Result<(), TestCaseError> {
    let (world, policy) = (&sim.world, &sim.world.policy);
    let view = world.view();
    let mut added = BTreeSet::new();
    let mut removed = BTreeSet::new();
    for write in &seen.writes {
        match &write.change {
            NodeChange::AddTaint { taint, .. } => drop(added.insert(format!("{}:{}", taint.key, taint.effect))),
            NodeChange::RemoveTaint { taint, .. } => {
                let id = format!("{}:{}", taint.key, taint.effect);
                // A taint of ours goes only when every gate that wants it is met or gone.
                for gate in
                    world.node.gates.iter().filter(|gate| gate.taint().is_some_and(|other| other.key == taint.key))
                {
                    prop_assert_eq!(world.state.gates[&gate.condition_type].phase, GatePhase::Established, "{}", id);
                }
                // Taints of others are never touched.
                prop_assert!(policy.adopt_existing_taints || !witness.foreign.contains(&id), "{} is not ours", id);
                removed.insert(id);
            }
            NodeChange::PatchCondition { condition_type, reason, .. } if reason == "TimeoutExceeded" => {
                // A timeout is never written over a True,
                prop_assert_ne!(observed(world, condition_type), ConditionStatus::True);
                // and once in an episode, unless the condition disappears.
                let present = view.condition(condition_type).cloned();
                let is_again = present.is_none() || witness.written.get(condition_type) == Some(&present);
                let is_new = witness.written.insert(condition_type.clone(), present).is_none();
                prop_assert!(is_new || is_again, "twice: {}", condition_type);
            }
            NodeChange::PatchCondition { condition_type, .. } => {
                prop_assert!(is_reboot);
                let is_new = witness.reset.insert((condition_type.clone(), witness.boot.clone()));
                prop_assert!(is_new, "reset twice: {}", condition_type);
            }
            _ => {}
        }
        // Each role writes what is its own.
        let is_condition = matches!(write.change, NodeChange::PatchCondition { .. });
        let is_taint = matches!(write.change, NodeChange::AddTaint { .. } | NodeChange::RemoveTaint { .. });
        prop_assert!(!is_condition || write.is_by_kubelet());
        prop_assert!(!is_taint || !write.is_by_kubelet());
    }
    // Nothing is added and removed at once.
    prop_assert!(added.is_disjoint(&removed));
    // A node that is not ready is closed,
    prop_assert!(!seen.schedulable || view.is_ready());
    // and one that is ready and has no gates is open.
    prop_assert!(!(view.gates().is_empty() && view.is_ready()) || seen.schedulable);
    // What is to wake us is still to come.
    prop_assert!(seen.requeue_at.is_none_or(|requeue_at| requeue_at > at(sim.now)));
    let reports = |name: &str| sim.reported[NAMES.iter().position(|other| *other == name).unwrap()];
    for (name, decision) in &seen.gates {
        // After a boot nothing counts that was not reported since.
        prop_assert!(*decision != GateDecision::Satisfied || reports(name), "{} counts from before the boot", name);
        let gate = view.gate(name).unwrap();
        // Where the taint is awaited, no node opens without it.
        let hands_over = policy.waits_for_taint && observed(world, name) != ConditionStatus::True;
        if let (true, true, Some(taint)) = (seen.schedulable, hands_over, gate.taint()) {
            prop_assert!(view.taint(&taint.key, &taint.effect).is_some(), "{} without its taint", name);
        }
        // No timer fires early, nor while the node is not ready.
        let was = before.gates.get(name).map_or(GatePhase::Waiting, |gate| gate.phase);
        let state = &world.state.gates[name];
        let fired = was != GatePhase::TimedOut && state.phase == GatePhase::TimedOut;
        if fired && observed(world, name) != ConditionStatus::TimeoutExceeded {
            prop_assert!(view.is_ready());
            if was == GatePhase::Waiting || is_reboot {
                let timeout = i64::from(gate.timeout_seconds.unwrap());
                prop_assert!(sim.now >= witness.earliest_starts[name] + timeout, "{} fired early", name);
            }
        }
        // No clock keeps a gate waiting for longer than its timeout.
        if let GateDecision::Blocked { deadline: Some(deadline), .. } = decision {
            let timeout = i64::from(gate.timeout_seconds.unwrap());
            prop_assert!(*deadline <= at(sim.now + timeout), "{} waits for too long", name);
        }
        if state.phase != GatePhase::TimedOut {
            witness.written.remove(name);
        }
    }
    witness.written.retain(|name, _| view.gate(name).is_some());
    // With everything met the node is open and has no taint of ours.
    let all_true = view
        .gates()
        .iter()
        .all(|gate| observed(world, &gate.condition_type) == ConditionStatus::True && reports(&gate.condition_type));
    if view.is_ready() && all_true && !is_reboot {
        prop_assert!(seen.schedulable && stored(&world.state, "ownedTaints").is_empty());
    }
    Ok(())
}

/// Returns the writes that are not lost. Write `i` is lost if bit `i % 8` of `lost` is set.
fn arriving(writes: &[NodeWrite], lost: u8) -> Vec<NodeWrite> {
    let arrives = |index: usize| lost & (1 << (index % 8)) == 0;
    writes.iter().enumerate().filter(|(index, _)| arrives(*index)).map(|(_, write)| write.clone()).collect()
}

/// Records the taints that other components added or removed, as far as the state can tell.
fn note_foreign(happening: &Happening, sim: &Sim, witness: &mut Witness, was_present: bool) {
    let id = |key: &str| format!("{key}:{}", if key == "a" { "NoSchedule" } else { "NoExecute" });
    let is_ours = |key: &str| {
        ["ownedTaints", "leavingTaints"]
            .iter()
            .flat_map(|list| stored(&sim.world.state, list))
            .any(|taint| taint["key"] == key)
    };
    match happening {
        Happening::PutTaint(key) if !was_present && !is_ours(key) => drop(witness.foreign.insert(id(key))),
        Happening::RemoveTaint(key) => drop(witness.foreign.remove(&id(key))),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(TRACES))]

    /// Checks the invariants of every step. If no write was lost, the next step has no writes, and the filter agrees.
    #[test]
    fn every_step_of_every_story(policy in any_policy(), story in story(some_loss())) {
        let (mut sim, mut witness, mut lossless) = (Sim::new(policy), Witness::default(), true);
        for (happening, lost) in story {
            let was_present = match &happening {
                Happening::PutTaint(key) => sim.world.taints().iter().any(|taint| taint.starts_with(key)),
                _ => false,
            };
            sim.happen(&happening);
            note_foreign(&happening, &sim, &mut witness, was_present);
            let is_reboot = witness.watch(&sim);
            let before = sim.world.state.clone();

            // The same again, also from a state that was written and read.
            let read: NodeState = serde_json::from_str(&serde_json::to_string(&before).unwrap()).unwrap();
            prop_assert_eq!(&read, &before);
            let mut twin = sim.world.clone();
            twin.state = read;
            let node = sim.world.node.clone();
            let seen = sim.world.look(sim.now);
            prop_assert_eq!(&twin.look(sim.now), &seen);
            prop_assert_eq!(&twin.state, &sim.world.state);
            prop_assert_eq!(&sim.world.node, &node);

            check(&sim, &before, &seen, &mut witness, is_reboot)?;

            let arrived = arriving(&seen.writes, lost);
            lossless &= arrived.len() == seen.writes.len();
            prop_assert!(sim.world.write(&arrived, sim.now).is_empty());
            if arrived.len() == seen.writes.len() {
                // Nothing is left to do.
                let before = sim.world.state.clone();
                let again = sim.world.look(sim.now);
                prop_assert!(again.writes.is_empty(), "{:?}", again.writes);
                prop_assert!(again.requeue_at.is_none_or(|requeue_at| requeue_at > at(sim.now)));
                let is_reboot = witness.watch(&sim);
                check(&sim, &before, &again, &mut witness, is_reboot)?;
                if lossless && sim.world.policy == Policy::kep() {
                    // The filter, which has no state, says the same.
                    prop_assert_eq!(again.schedulable, filter_allows(&sim.world));
                }
            }
        }
    }

    /// Checks that the order of gates, conditions and taints changes only the order of the results.
    #[test]
    fn order_does_not_matter(policy in any_policy(), story in story(no_loss())) {
        let mut sim = Sim::new(policy);
        let mut turned = sim.clone();
        for (happening, _) in story {
            let sorted = |seen: &Seen| {
                let mut writes: Vec<String> = seen.writes.iter().map(|write| format!("{write:?}")).collect();
                writes.sort();
                writes
            };
            sim.happen(&happening);
            turned.happen(&happening);
            turned.world.node.gates.reverse();
            turned.world.conditions().reverse();
            let (seen, other) = (sim.world.run(sim.now), turned.world.run(turned.now));
            prop_assert_eq!(sorted(&seen), sorted(&other));
            prop_assert_eq!((seen.schedulable, seen.requeue_at), (other.schedulable, other.requeue_at));
        }
    }

    /// Checks that a node which stays ready opens when the longest timer has ended, or earlier: with `kep` if agents report
    /// nothing, with `hardened` also if they report any other status than True.
    #[test]
    fn a_ready_node_opens(hardened: bool, story in story(no_loss()), noise in proptest::collection::vec(0_usize..9, 8)) {
        let mut sim = Sim::new(if hardened { Policy::hardened() } else { Policy::kep() });
        for (happening, _) in &story {
            sim.happen(happening);
            sim.world.run(sim.now);
        }
        // From here on: ready, no restarts, every gate a useful one that was never met.
        sim.world.state = NodeState::default();
        for name in NAMES {
            sim.world.forget(name);
        }
        sim.world.node.gates.retain(|gate| gate.releases_after().is_some());
        sim.world.report("Ready", "True", "KubeletReady", sim.now);
        sim.world.run(sim.now);
        for noise in noise {
            sim.now += 1;
            if hardened {
                sim.happen(&Happening::Report(noise % 3, if noise < 6 { "False" } else { "Unknown" }, "Slow"));
            }
            sim.world.run(sim.now);
        }
        prop_assert!(sim.world.run(sim.now).schedulable, "after 8 s, and no timeout is longer than 5 s");
    }

    /// Checks that a step every second gives the same result as steps at `requeue_at` only.
    #[test]
    fn steps_in_between_change_nothing(policy in any_policy(), hold in 0_i64..4, story in story(no_loss()), jump in 1_i64..15) {
        let mut sim = Sim::new(policy);
        sim.world.policy.hold_down = Some(SignedDuration::from_secs(hold));
        for (happening, _) in &story {
            sim.happen(happening);
            sim.world.run(sim.now);
        }
        let (mut often, mut rarely) = (sim.world.clone(), sim.world);
        for second in 1..=jump {
            often.run(sim.now + second);
        }
        let end = at(sim.now + jump);
        let mut seconds = sim.now;
        loop {
            let requeue_at = rarely.run(seconds).requeue_at;
            match requeue_at {
                Some(instant) if instant < end => seconds = instant.duration_since(at(0)).as_secs(),
                _ => break,
            }
        }
        rarely.run(sim.now + jump);
        prop_assert_eq!(&often.state, &rarely.state);
        prop_assert_eq!(often.node, rarely.node);
    }

    /// Checks that kubelet and the controller, one after the other, give the result of a combined evaluator.
    #[test]
    fn two_actors_come_to_the_same(rearm: bool, sticky: bool, story in story(no_loss())) {
        let mut policy = if sticky { Policy::hardened() } else { Policy::kep() };
        // An explicit False that kubelet leaves alone can't tell the controller of a timeout.
        policy.keeps_reported_false = false;
        policy.rearm_on_regression = rearm;
        let mut combined = Sim::new(policy);
        let mut split = combined.clone();
        let (mut kubelet, mut nlc) = (NodeState::default(), NodeState::default());
        for (happening, _) in story {
            combined.happen(&happening);
            split.happen(&happening);
            combined.world.run(combined.now);
            combined.world.run(combined.now);
            for _ in 0..2 {
                for (role, state) in [(EvaluatorRole::Kubelet, &mut kubelet), (EvaluatorRole::Nlc, &mut nlc)] {
                    split.world.role = role;
                    split.world.state = std::mem::take(state);
                    let seen = split.world.run(split.now);
                    let is_own = |write: &NodeWrite| write.is_by_kubelet() == (role == EvaluatorRole::Kubelet);
                    prop_assert!(seen.writes.iter().all(is_own));
                    *state = split.world.state.clone();
                }
            }
            let conditions = |world: &World| NAMES.map(|name| world.condition(name));
            prop_assert_eq!(conditions(&combined.world), conditions(&split.world));
            let taints = |world: &World| world.taints().into_iter().collect::<BTreeSet<_>>();
            prop_assert_eq!(taints(&combined.world), taints(&split.world));
            prop_assert_eq!(combined.world.labels(), split.world.labels());
        }
    }

    /// Checks that kubelet and the controller agree on the node when no write is lost any more and no agent reports. Except
    /// for a True from before a boot: it is not overwritten, so the controller does not learn of the timeout.
    #[test]
    fn two_actors_agree_when_writes_arrive(rearm: bool, story in story(some_loss())) {
        let mut policy = Policy::kep();
        policy.keeps_reported_false = false;
        policy.rearm_on_regression = rearm;
        let mut sim = Sim::new(policy);
        let mut states = [NodeState::default(), NodeState::default()];
        let quiet = (0..20).map(|_| (Happening::Clock(1), 0));
        let ready = std::iter::once((Happening::Ready("True"), 0));
        let mut opinions = [false; 2];
        for (happening, lost) in story.into_iter().chain(ready).chain(quiet) {
            sim.happen(&happening);
            for (index, role) in [EvaluatorRole::Kubelet, EvaluatorRole::Nlc].into_iter().enumerate() {
                sim.world.role = role;
                sim.world.state = std::mem::take(&mut states[index]);
                let seen = sim.world.look(sim.now);
                let arrived = arriving(&seen.writes, if role == EvaluatorRole::Kubelet { lost } else { 0 });
                prop_assert!(sim.world.write(&arrived, sim.now).is_empty());
                states[index] = sim.world.state.clone();
                opinions[index] = seen.schedulable;
            }
        }
        let [by_kubelet, by_nlc] = opinions;
        let of_nlc = &states[1].gates;
        let is_established = |name: &str| of_nlc.get(name).is_none_or(|gate| gate.phase == GatePhase::Established);
        prop_assume!(NAMES.iter().all(|name| observed(&sim.world, name) != ConditionStatus::True || is_established(name)));
        prop_assert_eq!(by_kubelet, by_nlc);
    }

    /// Checks that a hold-down never satisfies a gate that is not True, and that a longer hold-down satisfies fewer gates.
    #[test]
    fn longer_holds_satisfy_less(policy in any_policy(), short in 0_i64..4, more in 0_i64..4, story in story(no_loss())) {
        let mut sims = [short, short + more].map(|seconds| {
            let mut sim = Sim::new(policy.clone());
            sim.world.policy.hold_down = Some(SignedDuration::from_secs(seconds));
            sim
        });
        for (happening, _) in story {
            let [fewer, all] = [1, 0].map(|index| {
                let sim: &mut Sim = &mut sims[index];
                sim.happen(&happening);
                let seen = sim.world.run(sim.now);
                let satisfied = seen.gates.into_iter().filter(|(_, decision)| *decision == GateDecision::Satisfied);
                satisfied.map(|(name, _)| name).collect::<BTreeSet<_>>()
            });
            prop_assert!(fewer.is_subset(&all), "{:?} and {:?}", fewer, all);
            prop_assert!(all.iter().all(|name| observed(&sims[0].world, name) == ConditionStatus::True));
        }
    }

    /// Checks that a shutdown leaves no owned taint or label, and that the mode `Off` removes them once.
    #[test]
    fn everything_can_be_taken_back(policy in any_policy(), story in story(some_loss())) {
        let mut sim = Sim::new(policy);
        for (happening, lost) in &story {
            sim.happen(happening);
            let seen = sim.world.look(sim.now);
            sim.world.write(&arriving(&seen.writes, *lost), sim.now);
        }
        let owned: Vec<String> = sim.world.state.shutdown_writes().iter().map(|write| short(&write.change)).collect();
        let mut off = sim.world.clone();
        off.policy.mode = PolicyMode::Off;
        let seen = off.run(sim.now);
        prop_assert_eq!(&seen.writes.iter().map(|write| short(&write.change)).collect::<Vec<_>>(), &owned);
        prop_assert_eq!(seen.schedulable, off.view().is_ready());
        prop_assert!(off.run(sim.now).writes.is_empty());
        prop_assert!(off.state.shutdown_writes().is_empty());

        let state = sim.world.state.clone();
        sim.world.write(&state.shutdown_writes(), sim.now);
        for taint in ["ownedTaints", "leavingTaints"].iter().flat_map(|list| stored(&state, list)) {
            let (key, effect) = (taint["key"].as_str().unwrap(), taint["effect"].as_str().unwrap());
            prop_assert!(sim.world.view().taint(key, effect).is_none());
        }
        let labels = sim.world.labels();
        for key in ["ownedLabels", "leavingLabels"].iter().flat_map(|list| stored(&state, list)) {
            let label = format!("{}=true", key.as_str().unwrap());
            prop_assert!(!labels.contains(&label));
        }
    }
}

/// Checks the invariants exhaustively: one gate of each kind, every sequence of 5 of 9 events, for each preset.
#[test]
fn every_short_story() {
    let happenings = [
        Happening::Clock(1),
        Happening::Clock(3),
        Happening::Report(0, "True", "Ok"),
        Happening::Report(0, "False", "Broken"),
        Happening::Delete(0),
        Happening::Ready("True"),
        Happening::Ready("False"),
        Happening::Reboot,
        Happening::KubeletRestart,
    ];
    let mut steps = 0_u32;
    for policy in [Policy::kep(), Policy::hardened()] {
        for kind in [0, 3] {
            let mut sim = Sim::new(policy.clone());
            sim.world.node.gates = vec![super::trace::kind(A, kind)];
            explore(&sim, &Witness::default(), &happenings, 5, &mut steps);
        }
    }
    assert_eq!(steps, 4 * (9 + 81 + 729 + 6_561 + 59_049));
}

fn explore(sim: &Sim, witness: &Witness, happenings: &[Happening], depth: u32, steps: &mut u32) {
    if depth == 0 {
        return;
    }
    for happening in happenings {
        let mut sim = sim.clone();
        let mut witness = witness.copy();
        sim.happen(happening);
        *steps += 1;
        let is_reboot = witness.watch(&sim);
        let before = sim.world.state.clone();
        let seen = sim.world.look(sim.now);
        check(&sim, &before, &seen, &mut witness, is_reboot).unwrap();
        assert!(sim.world.write(&seen.writes, sim.now).is_empty());
        let before = sim.world.state.clone();
        let again = sim.world.look(sim.now);
        assert!(again.writes.is_empty(), "something is left to do after {happening:?}: {:?}", again.writes);
        let is_reboot = witness.watch(&sim);
        check(&sim, &before, &again, &mut witness, is_reboot).unwrap();
        if sim.world.policy == Policy::kep() {
            assert_eq!(again.schedulable, filter_allows(&sim.world), "the filter says otherwise after {happening:?}");
        }
        explore(&sim, &witness, happenings, depth - 1, steps);
    }
}

impl Witness {
    fn copy(&self) -> Self {
        Self {
            written: self.written.clone(),
            reset: self.reset.clone(),
            foreign: self.foreign.clone(),
            earliest_starts: self.earliest_starts.clone(),
            boot: self.boot.clone(),
            instance: self.instance.clone(),
        }
    }
}

/// Checks that every JSON of a node and every instant get an answer.
#[test]
fn extreme_instants_and_timeouts() {
    use k8s_openapi::jiff::Timestamp;
    for policy in [Policy::kep(), Policy::hardened()] {
        for now in [Timestamp::MIN, at(0), Timestamp::MAX] {
            for later in [Timestamp::MIN, at(0), Timestamp::MAX] {
                let mut policy = policy.clone();
                policy.hold_down = Some(SignedDuration::MAX);
                policy.max_heartbeat_age = Some(SignedDuration::MIN);
                policy.max_wait_per_boot = Some(SignedDuration::MAX);
                let gate = readiness::NodeReadinessGate::new(A, i32::MAX).with_bypass_warning();
                let mut world = World::new(policy, &[gate]).ready(0);
                world.report(A, "True", "Ok", 0);
                let (state, _) = {
                    let step = step(&world.policy, EvaluatorRole::Combined, &world.view(), now, NodeState::default());
                    (step.state, step.requeue_at)
                };
                world.state = state;
                let seen = world.look_at(later);
                assert_ne!(seen.decision(A), GateDecision::Satisfied, "it is True for less than for ever");
                assert!(seen.requeue_at.is_none_or(|requeue_at| requeue_at > later));
            }
        }
    }
}
