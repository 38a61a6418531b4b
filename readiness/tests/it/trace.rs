//! Random sequences of events on one node.

use proptest::collection::vec;
use proptest::prelude::*;
use readiness::{NodeReadinessGate, Policy};

use super::world::{A, B, World, taint};

pub(crate) const C: &str = "network.kubernetes.io/CNIReady";
pub(crate) const NAMES: [&str; 3] = [A, B, C];

/// Event between two steps.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    /// Time passes, or the clock is set back.
    Clock(i64),
    /// An agent reports.
    Report(usize, &'static str, &'static str),
    /// A condition is deleted.
    Delete(usize),
    /// kubelet reports.
    Ready(&'static str),
    Reboot,
    KubeletRestart,
    /// A gate is added, or replaced by one of another kind.
    Put(usize, usize),
    Remove(usize),
    /// Another component adds a taint.
    PutTaint(&'static str),
    RemoveTaint(&'static str),
}

/// Kinds of gates: two share a taint, one bypasses, one is invalid.
pub(crate) fn kind(name: &str, kind: usize) -> NodeReadinessGate {
    match kind {
        0 => NodeReadinessGate::new(name, 3).with_taint(taint("a", "NoSchedule")),
        1 => NodeReadinessGate::new(name, 5).with_taint(taint("a", "NoSchedule")),
        2 => NodeReadinessGate::new(name, 2).with_taint(taint("b", "NoExecute")),
        3 => NodeReadinessGate::new(name, 4).with_bypass_warning(),
        _ => NodeReadinessGate::new(name, 1),
    }
}

pub(crate) fn happening() -> impl Strategy<Value = Happening> {
    let which = 0..NAMES.len();
    let said = prop_oneof![
        5 => Just(("True", "Ok")),
        3 => Just(("False", "Broken")),
        1 => Just(("Unknown", "Lost")),
        1 => Just(("Unknown", "TimeoutExceeded")),
    ];
    prop_oneof![
        8 => (1_i64..4).prop_map(Happening::Clock),
        1 => (-5_i64..60).prop_map(Happening::Clock),
        6 => (which.clone(), said).prop_map(|(name, (status, reason))| Happening::Report(name, status, reason)),
        1 => which.clone().prop_map(Happening::Delete),
        3 => prop_oneof![3 => Just("True"), 1 => Just("False"), 1 => Just("Unknown")].prop_map(Happening::Ready),
        1 => Just(Happening::Reboot),
        1 => Just(Happening::KubeletRestart),
        2 => (which.clone(), 0_usize..5).prop_map(|(name, kind)| Happening::Put(name, kind)),
        1 => which.prop_map(Happening::Remove),
        1 => prop_oneof![Just("a"), Just("b")].prop_map(Happening::PutTaint),
        1 => prop_oneof![Just("a"), Just("b")].prop_map(Happening::RemoveTaint),
    ]
}

/// Strategy for a sequence of events, each with the writes that are lost after it (bits by position).
pub(crate) fn story(lost: impl Strategy<Value = u8> + Clone) -> impl Strategy<Value = Vec<(Happening, u8)>> {
    vec((happening(), lost), 1..40)
}

pub(crate) fn no_loss() -> Just<u8> {
    Just(0)
}

/// Strategy for lost writes: most arrive.
pub(crate) fn some_loss() -> impl Strategy<Value = u8> + Clone {
    prop_oneof![4 => Just(0_u8), 1 => any::<u8>()]
}

/// Strategy for the settings that affect timers and taints.
pub(crate) fn any_policy() -> impl Strategy<Value = Policy> {
    let rearmed = |policy: &Policy| {
        let mut policy = policy.clone();
        policy.rearm_on_regression = true;
        policy
    };
    let (kep, hardened) = (Policy::kep(), Policy::hardened());
    let others = [rearmed(&kep), rearmed(&hardened)];
    let [kep_rearmed, hardened_rearmed] = others;
    prop_oneof![Just(kep), Just(hardened), Just(kep_rearmed), Just(hardened_rearmed)]
}

/// Simulation of a node. Agents have their own clock, which only goes forward, so that no two reports are equal.
#[derive(Clone, Debug)]
pub(crate) struct Sim {
    pub(crate) world: World,
    pub(crate) now: i64,
    agents: i64,
    boots: u32,
    restarts: u32,
    /// Gates whose agent has reported True since the boot.
    pub(crate) reported: [bool; NAMES.len()],
}

impl Sim {
    pub(crate) fn new(policy: Policy) -> Self {
        let world = World::new(policy, &[kind(A, 0), kind(B, 3)]);
        Self { world, now: 100, agents: 0, boots: 1, restarts: 1, reported: [false; NAMES.len()] }
    }

    pub(crate) fn happen(&mut self, happening: &Happening) {
        match happening {
            Happening::Clock(seconds) => self.now += seconds,
            Happening::Report(name, status, reason) => {
                self.agents += 1;
                self.world.report(NAMES[*name], status, reason, self.agents);
                self.reported[*name] = *status == "True";
            }
            Happening::Delete(name) => self.world.forget(NAMES[*name]),
            Happening::Ready(status) => self.world.report("Ready", status, "Kubelet", self.now),
            Happening::Reboot => {
                self.boots += 1;
                self.world.boot(&format!("boot-{}", self.boots));
                self.reported = [false; NAMES.len()];
            }
            Happening::KubeletRestart => {
                self.restarts += 1;
                self.world.instance = format!("kubelet-{}", self.restarts);
            }
            Happening::Put(name, with) => {
                let gate = kind(NAMES[*name], *with);
                if self.world.view().gate(&gate.condition_type).is_none() {
                    // Nobody knows whether a report on a gate that was not there is from before the boot.
                    let said = self.world.condition(&gate.condition_type);
                    self.reported[*name] = said.is_some_and(|(status, _)| status == "True");
                }
                let gates = &mut self.world.node.gates;
                match gates.iter_mut().find(|old| old.condition_type == gate.condition_type) {
                    Some(old) => *old = gate,
                    None => gates.push(gate),
                }
            }
            Happening::Remove(name) => self.world.node.gates.retain(|gate| gate.condition_type != NAMES[*name]),
            Happening::PutTaint(key) => {
                let taint = taint(key, if *key == "a" { "NoSchedule" } else { "NoExecute" });
                if self.world.view().taint(&taint.key, &taint.effect).is_none() {
                    self.world.put_taint(taint);
                }
            }
            Happening::RemoveTaint(key) => {
                if let Some(taints) = self.world.node.node.spec.as_mut().and_then(|spec| spec.taints.as_mut()) {
                    taints.retain(|taint| taint.key != *key);
                }
            }
        }
    }
}
