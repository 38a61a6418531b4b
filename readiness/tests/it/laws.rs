//! What holds at every step of every story. Laws of the filter and of names stand with those.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{NodeCondition, Pod};
use k8s_openapi::jiff::SignedDuration;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use readiness::condition::Observation;
use readiness::evaluate::{FilterOptions, filter};
use readiness::pod::PodView;
use readiness::policy::{Handoff, Mode, Policy, TimeoutWrite};
use readiness::reconcile::output::{Actor, Change, Output};
use readiness::reconcile::{Decision, Phase, Role, State, shutdown, step};

use super::trace::{Happening, NAMES, Sim, any_policy, no_loss, some_loss, story};
use super::world::{A, Seen, World, at, short};

/// Traces of each law.
const TRACES: u32 = 1_500;

fn observed(world: &World, name: &str) -> Observation {
    Observation::of(world.view().condition(name))
}

fn filter_allows(world: &World) -> bool {
    let pod = Pod::default();
    filter(FilterOptions::of(&world.policy), &world.view(), PodView::new(&pod)).is_allowed()
}

/// What is known of a story beside the state.
#[derive(Default)]
struct Witness {
    /// Gates whose timeout was written, and over what, while they are in that episode.
    written: BTreeMap<String, Option<NodeCondition>>,
    /// Gates that were reset, with the boot.
    reset: BTreeSet<(String, String)>,
    /// Taints that others put.
    foreign: BTreeSet<String>,
    /// When the timer of a gate can have begun at the earliest.
    anchors: BTreeMap<String, i64>,
    boot: String,
    instance: String,
}

impl Witness {
    /// Before a step: where timers that wait can begin.
    fn watch(&mut self, sim: &Sim) -> bool {
        let boot = sim.world.view().node().status.as_ref().unwrap().node_info.as_ref().unwrap().boot_id.clone();
        let is_reboot = !self.boot.is_empty() && self.boot != boot;
        let is_restart = !self.instance.is_empty() && self.instance != sim.world.instance;
        if is_reboot || is_restart || !sim.world.view().is_ready() {
            self.anchors.clear();
        }
        if is_reboot {
            self.written.clear();
        }
        (self.boot, self.instance) = (boot, sim.world.instance.clone());
        self.anchors.retain(|name, _| sim.world.view().gate(name).is_some());
        if sim.world.view().is_ready() {
            for gate in &sim.world.node.gates {
                self.anchors.entry(gate.condition_type.clone()).or_insert(sim.now);
            }
        }
        is_reboot
    }
}

/// Everything that holds for the outputs of one step, on the node that it looked at.
fn check(sim: &Sim, before: &State, seen: &Seen, witness: &mut Witness, is_reboot: bool) -> Result<(), TestCaseError> {
    let (world, policy) = (&sim.world, &sim.world.policy);
    let view = world.view();
    let mut added = BTreeSet::new();
    let mut removed = BTreeSet::new();
    for output in &seen.outputs {
        match &output.change {
            Change::AddTaint { taint, .. } => drop(added.insert(format!("{}:{}", taint.key, taint.effect))),
            Change::RemoveTaint { taint, .. } => {
                let id = format!("{}:{}", taint.key, taint.effect);
                // A taint of ours goes only when every gate that wants it is met or gone.
                for gate in
                    world.node.gates.iter().filter(|gate| gate.taint().is_some_and(|other| other.key == taint.key))
                {
                    prop_assert_eq!(world.state.gates[&gate.condition_type].phase, Phase::Established, "{}", id);
                }
                // Taints of others are never touched.
                prop_assert!(policy.adopt || !witness.foreign.contains(&id), "{} is not ours", id);
                removed.insert(id);
            }
            Change::PatchCondition { condition_type, reason, .. } if reason == "TimeoutExceeded" => {
                // A timeout is never written over a True,
                prop_assert_ne!(observed(world, condition_type), Observation::True);
                // and once in an episode, unless the condition disappears.
                let present = view.condition(condition_type).cloned();
                let is_again = present.is_none() || witness.written.get(condition_type) == Some(&present);
                let is_new = witness.written.insert(condition_type.clone(), present).is_none();
                prop_assert!(is_new || is_again, "twice: {}", condition_type);
            }
            Change::PatchCondition { condition_type, .. } => {
                prop_assert!(is_reboot);
                let is_new = witness.reset.insert((condition_type.clone(), witness.boot.clone()));
                prop_assert!(is_new, "reset twice: {}", condition_type);
            }
            _ => {}
        }
        // Each role writes what is its own.
        let is_condition = matches!(output.change, Change::PatchCondition { .. });
        let is_taint = matches!(output.change, Change::AddTaint { .. } | Change::RemoveTaint { .. });
        prop_assert!(!is_condition || output.actor == Actor::Kubelet);
        prop_assert!(!is_taint || output.actor == Actor::Nlc);
    }
    // Nothing is added and removed at once.
    prop_assert!(added.is_disjoint(&removed));
    // A node that is not ready is closed,
    prop_assert!(!seen.schedulable || view.is_ready());
    // and one that is ready and has no gates is open.
    prop_assert!(!(view.gates().is_empty() && view.is_ready()) || seen.schedulable);
    // What is to wake us is still to come.
    prop_assert!(seen.wake_up.is_none_or(|wake_up| wake_up > at(sim.now)));
    let reports = |name: &str| sim.reported[NAMES.iter().position(|other| *other == name).unwrap()];
    for (name, decision) in &seen.gates {
        // After a boot nothing counts that was not reported since.
        prop_assert!(*decision != Decision::Satisfied || reports(name), "{} counts from before the boot", name);
        let gate = view.gate(name).unwrap();
        // Where the taint is awaited, no node opens without it.
        let hands_over = policy.handoff == Handoff::AwaitTaint && observed(world, name) != Observation::True;
        if let (true, true, Some(taint)) = (seen.schedulable, hands_over, gate.taint()) {
            prop_assert!(view.taint(&taint.key, &taint.effect).is_some(), "{} without its taint", name);
        }
        // No timer fires early, nor while the node is not ready.
        let was = before.gates.get(name).map_or(Phase::Waiting, |gate| gate.phase);
        let state = &world.state.gates[name];
        let fired = was != Phase::TimedOut && state.phase == Phase::TimedOut;
        if fired && observed(world, name) != Observation::TimeoutExceeded {
            prop_assert!(view.is_ready());
            if was == Phase::Waiting || is_reboot {
                let timeout = i64::from(gate.timeout_seconds.unwrap());
                prop_assert!(sim.now >= witness.anchors[name] + timeout, "{} fired early", name);
            }
        }
        if state.phase != Phase::TimedOut {
            witness.written.remove(name);
        }
    }
    witness.written.retain(|name, _| view.gate(name).is_some());
    // With everything met the node is open and has no taint of ours.
    let all_true = view
        .gates()
        .iter()
        .all(|gate| observed(world, &gate.condition_type) == Observation::True && reports(&gate.condition_type));
    if view.is_ready() && all_true && !is_reboot {
        prop_assert!(seen.schedulable && world.state.owned_taints.is_empty());
    }
    Ok(())
}

/// The writes that are not lost: a bit for each of the first eight, and so on.
fn arriving(outputs: &[Output], lost: u8) -> Vec<Output> {
    let arrives = |index: usize| lost & (1 << (index % 8)) == 0;
    outputs.iter().enumerate().filter(|(index, _)| arrives(*index)).map(|(_, output)| output.clone()).collect()
}

/// Others put and removed taints: those that are not ours, as far as the state can know.
fn note_foreign(happening: &Happening, sim: &Sim, witness: &mut Witness, was_present: bool) {
    let id = |key: &str| format!("{key}:{}", if key == "a" { "NoSchedule" } else { "NoExecute" });
    let is_ours = |key: &str| {
        sim.world.state.owned_taints.iter().chain(&sim.world.state.leaving_taints).any(|taint| taint.key == key)
    };
    match happening {
        Happening::PutTaint(key) if !was_present && !is_ours(key) => drop(witness.foreign.insert(id(key))),
        Happening::RemoveTaint(key) => drop(witness.foreign.remove(&id(key))),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(TRACES))]

    /// The laws of one step. Where no write was lost, nothing is left to do, and the filter says the same.
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
            let read: State = serde_json::from_str(&serde_json::to_string(&before).unwrap()).unwrap();
            prop_assert_eq!(&read, &before);
            let mut twin = sim.world.clone();
            twin.state = read;
            let node = sim.world.node.clone();
            let seen = sim.world.look(sim.now);
            prop_assert_eq!(&twin.look(sim.now), &seen);
            prop_assert_eq!(&twin.state, &sim.world.state);
            prop_assert_eq!(&sim.world.node, &node);

            check(&sim, &before, &seen, &mut witness, is_reboot)?;

            let arrived = arriving(&seen.outputs, lost);
            lossless &= arrived.len() == seen.outputs.len();
            prop_assert!(sim.world.write(&arrived, sim.now).is_empty());
            if arrived.len() == seen.outputs.len() {
                // Nothing is left to do.
                let before = sim.world.state.clone();
                let again = sim.world.look(sim.now);
                prop_assert!(again.outputs.is_empty(), "{:?}", again.outputs);
                prop_assert!(again.wake_up.is_none_or(|wake_up| wake_up > at(sim.now)));
                let is_reboot = witness.watch(&sim);
                check(&sim, &before, &again, &mut witness, is_reboot)?;
                if lossless && sim.world.policy == Policy::kep() {
                    // The filter, which has no state, says the same.
                    prop_assert_eq!(again.schedulable, filter_allows(&sim.world));
                }
            }
        }
    }

    /// The order of gates, conditions and taints changes nothing but orders.
    #[test]
    fn order_does_not_matter(policy in any_policy(), story in story(no_loss())) {
        let mut sim = Sim::new(policy);
        let mut turned = sim.clone();
        for (happening, _) in story {
            let sorted = |seen: &Seen| {
                let mut outputs: Vec<String> = seen.outputs.iter().map(|output| format!("{output:?}")).collect();
                outputs.sort();
                outputs
            };
            sim.happen(&happening);
            turned.happen(&happening);
            turned.world.node.gates.reverse();
            turned.world.conditions().reverse();
            let (seen, other) = (sim.world.run(sim.now), turned.world.run(turned.now));
            prop_assert_eq!(sorted(&seen), sorted(&other));
            prop_assert_eq!((seen.schedulable, seen.wake_up), (other.schedulable, other.wake_up));
        }
    }

    /// A node that stays ready opens, at the latest when the longest timer has run: with the KEP's settings if agents are
    /// silent, with the hardened ones whatever they say but True.
    #[test]
    fn a_ready_node_opens(hardened: bool, story in story(no_loss()), noise in proptest::collection::vec(0_usize..9, 8)) {
        let mut sim = Sim::new(if hardened { Policy::hardened() } else { Policy::kep() });
        for (happening, _) in &story {
            sim.happen(happening);
            sim.world.run(sim.now);
        }
        // From here on: ready, no restarts, every gate a useful one that was never met.
        sim.world.state = State::default();
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

    /// Looking every second ends as looking at the wake-up times does.
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
            let wake_up = rarely.run(seconds).wake_up;
            match wake_up {
                Some(instant) if instant < end => seconds = instant.duration_since(at(0)).as_secs(),
                _ => break,
            }
        }
        rarely.run(sim.now + jump);
        prop_assert_eq!(&often.state, &rarely.state);
        prop_assert_eq!(often.node, rarely.node);
    }

    /// Kubelet and the controller, one after the other, come to what one alone does.
    #[test]
    fn two_actors_come_to_the_same(rearm: bool, sticky: bool, story in story(no_loss())) {
        let mut policy = if sticky { Policy::hardened() } else { Policy::kep() };
        // An explicit False that kubelet leaves alone can't tell the controller of a timeout.
        policy.timeout_write = TimeoutWrite::Always;
        policy.rearm_on_regression = rearm;
        let mut combined = Sim::new(policy);
        let mut split = combined.clone();
        let (mut kubelet, mut nlc) = (State::default(), State::default());
        for (happening, _) in story {
            combined.happen(&happening);
            split.happen(&happening);
            combined.world.run(combined.now);
            combined.world.run(combined.now);
            for _ in 0..2 {
                for (role, state) in [(Role::Kubelet, &mut kubelet), (Role::Nlc, &mut nlc)] {
                    split.world.role = role;
                    split.world.state = std::mem::take(state);
                    let seen = split.world.run(split.now);
                    let other = if role == Role::Kubelet { Actor::Nlc } else { Actor::Kubelet };
                    prop_assert!(seen.by(other).is_empty());
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

    /// Once no write of kubelet is lost any more and nobody says anything, both come to one opinion of the node, but for a
    /// True from before a boot: it is not overwritten, so that the controller is never told of the timeout.
    #[test]
    fn two_actors_agree_when_writes_arrive(rearm: bool, story in story(some_loss())) {
        let mut policy = Policy::kep();
        policy.timeout_write = TimeoutWrite::Always;
        policy.rearm_on_regression = rearm;
        let mut sim = Sim::new(policy);
        let mut states = [State::default(), State::default()];
        let quiet = (0..20).map(|_| (Happening::Clock(1), 0));
        let ready = std::iter::once((Happening::Ready("True"), 0));
        let mut opinions = [false; 2];
        for (happening, lost) in story.into_iter().chain(ready).chain(quiet) {
            sim.happen(&happening);
            for (index, role) in [Role::Kubelet, Role::Nlc].into_iter().enumerate() {
                sim.world.role = role;
                sim.world.state = std::mem::take(&mut states[index]);
                let seen = sim.world.look(sim.now);
                let arrived = arriving(&seen.outputs, if role == Role::Kubelet { lost } else { 0 });
                prop_assert!(sim.world.write(&arrived, sim.now).is_empty());
                states[index] = sim.world.state.clone();
                opinions[index] = seen.schedulable;
            }
        }
        let [by_kubelet, by_nlc] = opinions;
        let of_nlc = &states[1].gates;
        let is_established = |name: &str| of_nlc.get(name).is_none_or(|gate| gate.phase == Phase::Established);
        prop_assume!(NAMES.iter().all(|name| observed(&sim.world, name) != Observation::True || is_established(name)));
        prop_assert_eq!(by_kubelet, by_nlc);
    }

    /// A True that must last is never one that is not True, and the longer it must last, the fewer gates are satisfied.
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
                let satisfied = seen.gates.into_iter().filter(|(_, decision)| *decision == Decision::Satisfied);
                satisfied.map(|(name, _)| name).collect::<BTreeSet<_>>()
            });
            prop_assert!(fewer.is_subset(&all), "{:?} and {:?}", fewer, all);
            prop_assert!(all.iter().all(|name| observed(&sims[0].world, name) == Observation::True));
        }
    }

    /// After a shutdown nothing of ours is left, and a feature that is off takes it back once.
    #[test]
    fn everything_can_be_taken_back(policy in any_policy(), story in story(some_loss())) {
        let mut sim = Sim::new(policy);
        for (happening, lost) in &story {
            sim.happen(happening);
            let seen = sim.world.look(sim.now);
            sim.world.write(&arriving(&seen.outputs, *lost), sim.now);
        }
        let owned: Vec<String> = shutdown(&sim.world.state).iter().map(|output| short(&output.change)).collect();
        let mut off = sim.world.clone();
        off.policy.mode = Mode::Off;
        let seen = off.run(sim.now);
        prop_assert_eq!(&seen.outputs.iter().map(|output| short(&output.change)).collect::<Vec<_>>(), &owned);
        prop_assert_eq!(seen.schedulable, off.view().is_ready());
        prop_assert!(off.run(sim.now).outputs.is_empty());
        prop_assert!(shutdown(&off.state).is_empty());

        let state = sim.world.state.clone();
        sim.world.write(&shutdown(&state), sim.now);
        for id in state.owned_taints.iter().chain(&state.leaving_taints) {
            prop_assert!(sim.world.view().taint(&id.key, &id.effect).is_none());
        }
        let labels = sim.world.labels();
        for key in state.owned_labels.iter().chain(&state.leaving_labels) {
            let label = format!("{key}=true");
            prop_assert!(!labels.contains(&label));
        }
    }
}

/// Small worlds, all of them: one gate of each kind, every sequence of five happenings out of nine, for each preset.
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
        assert!(sim.world.write(&seen.outputs, sim.now).is_empty());
        let before = sim.world.state.clone();
        let again = sim.world.look(sim.now);
        assert!(again.outputs.is_empty(), "something is left to do after {happening:?}: {:?}", again.outputs);
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
            anchors: self.anchors.clone(),
            boot: self.boot.clone(),
            instance: self.instance.clone(),
        }
    }
}

/// Whatever JSON a node is, and whatever instant it is: an answer.
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
                let gate = readiness::gate::NodeReadinessGate::new(A, i32::MAX).bypassing();
                let mut world = World::new(policy, &[gate]).ready(0);
                world.report(A, "True", "Ok", 0);
                let (state, _) = {
                    let step = step(&world.policy, Role::Combined, &world.view(), now, State::default());
                    (step.state, step.wake_up)
                };
                world.state = state;
                let seen = world.look_at(later);
                assert_ne!(seen.decision(A), Decision::Satisfied, "it is True for less than for ever");
                assert!(seen.wake_up.is_none_or(|wake_up| wake_up > later));
            }
        }
    }
}
