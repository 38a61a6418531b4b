//! Exhaustive exploration of the ledger: claims that want one device, under every order of calls, crashes between any two
//! steps, reboots, lost files, deletion, and creation under the same name. Small enough to visit every reachable state.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use dra_node::driver::{
    ClaimPlan, ClaimReply, CleanUp, EntryState, Ledger, LedgerStep, LookedUpClaim, NodeContext, StartAction,
};
use dra_node::kubelet::{ClaimRef, PreparedDevice};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::jiff::Timestamp;
use serde_json::{from_value, json};

const DRIVER: &str = "gpu.example.com";
const BOOTS: [&str; 3] = ["boot-0", "boot-1", "boot-2"];
/// Claims: UID and name. The third one is the first one, deleted and created anew.
const CLAIMS: [(&str, &str); 3] = [("u1", "c1"), ("u2", "c2"), ("u3", "c1")];
/// A time at which every tombstone has expired.
const LATE: i64 = 1_000;

/// State of the node and of the API server between two calls. The driver keeps nothing in memory.
#[derive(Clone, Debug, PartialEq)]
struct World {
    /// Content of the ledger's file.
    ledger: Ledger,
    /// CDI spec files, by claim.
    cdi: BTreeSet<&'static str>,
    /// Metadata files, by claim; `None` for a driver that writes none. They outlive a boot.
    metadata: Option<BTreeSet<&'static str>>,
    /// Claim for which the device is set up. A reboot forgets it.
    device: Option<&'static str>,
    /// True while the device has settings that outlive a boot.
    settings: bool,
    boot: usize,
    /// Claim in the API server, by name.
    api: BTreeMap<&'static str, &'static str>,
    /// True if the driver runs: it starts before it answers calls.
    running: bool,
    /// Number of boots in the exploration.
    boots: usize,
}

/// Transition. Calls carry the number of steps after which the driver is killed; a large one lets it finish.
#[derive(Clone, Copy, Debug)]
enum Move {
    Prepare { uid: &'static str, steps: usize, now: i64 },
    Unprepare { uid: &'static str, steps: usize },
    Start,
    CleanUp,
    Kill,
    Reboot { keeps_files: bool },
    LoseFiles,
    Delete(&'static str),
    Recreate,
}

const ALL: usize = usize::MAX;

fn claim(uid: &str) -> ResourceClaim {
    let name = CLAIMS.iter().find(|(other, _)| *other == uid).unwrap().1;
    from_value(json!({
        "metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": "7"},
        "status": {"allocation": {"devices": {"results": [
            {"request": "gpu", "driver": DRIVER, "pool": "p", "device": "d"},
            {"request": "nic", "driver": "nic.example.com", "pool": "p", "device": "n"},
        ]}}},
    }))
    .unwrap()
}

fn claim_ref(uid: &str) -> ClaimRef {
    ClaimRef::new("ns", CLAIMS.iter().find(|(other, _)| *other == uid).unwrap().1, uid)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Answer of a call that came to its end.
type Reply = Result<(ClaimReply, Vec<PreparedDevice>), String>;

impl World {
    fn new(boots: usize, metadata: Option<BTreeSet<&'static str>>) -> Self {
        Self {
            ledger: Ledger::default(),
            cdi: BTreeSet::new(),
            metadata,
            device: None,
            settings: false,
            boot: 0,
            api: BTreeMap::from([("c1", "u1"), ("c2", "u2")]),
            running: false,
            boots,
        }
    }

    fn boot_id(&self) -> &'static str {
        BOOTS[self.boot]
    }

    fn node(&self) -> NodeContext<'static> {
        let node = NodeContext::new(DRIVER, self.boot_id());
        if self.metadata.is_some() { node.with_metadata() } else { node }
    }

    /// Carries out the first steps of a plan, each durable before the next one. Returns `None` if the driver was killed.
    fn carry_out(&mut self, plan: &ClaimPlan, uid: &'static str, steps: usize) -> Option<()> {
        let ledger = &mut self.ledger;
        for step in plan.steps().iter().take(steps) {
            match step {
                LedgerStep::WriteStarted => ledger.start(plan),
                LedgerStep::Setup => {
                    assert!(self.device.is_none_or(|holder| holder == uid), "{:?} is set up for {uid}", self.device);
                    assert_eq!(ledger.entries()[uid].state, EntryState::Started, "set up without a record");
                    assert!(!plan.devices().is_empty());
                    (self.device, self.settings) = (Some(uid), true);
                }
                LedgerStep::WriteCdi | LedgerStep::EnsureCdi => {
                    assert!(!plan.devices().is_empty(), "a file without devices");
                    self.cdi.insert(uid);
                }
                LedgerStep::WriteMetadata => {
                    assert_eq!(ledger.entries()[uid].devices.len(), 1);
                    self.metadata.as_mut().unwrap().insert(uid);
                }
                LedgerStep::RemoveMetadata => {
                    self.metadata.as_mut().unwrap().remove(uid);
                }
                LedgerStep::WriteCompleted => ledger.complete(uid, &[vec![format!("{uid}-d")]]).unwrap(),
                LedgerStep::WriteUndoing => ledger.begin_undo(uid),
                LedgerStep::Undo if plan.devices_to_undo().is_empty() => {}
                LedgerStep::Undo => {
                    assert!(self.device.is_none_or(|holder| holder == uid), "undid what {:?} holds", self.device);
                    (self.device, self.settings) = (None, false);
                }
                LedgerStep::UndoPersistent => self.settings &= plan.devices_to_undo().is_empty(),
                LedgerStep::RemoveCdi => {
                    self.cdi.remove(uid);
                }
                LedgerStep::DeleteEntry => ledger.remove(uid, at(0)),
                other => panic!("{other:?}"),
            }
        }
        self.running = steps > plan.steps().len();
        self.running.then_some(())
    }

    /// Calls prepare. Returns `None` if the driver was killed.
    fn prepare(&mut self, uid: &'static str, steps: usize, now: i64) -> Option<Reply> {
        let asked = claim_ref(uid);
        let found = self.api.get(asked.key.name.as_str()).map(|uid| claim(uid));
        let plan = match self.ledger.plan_prepare(&self.node(), &asked, found.as_ref(), at(now)) {
            Ok(plan) => plan,
            Err(refusal) => return Some(Err(refusal.to_string())),
        };
        self.carry_out(&plan, uid, steps)?;
        Some(Ok((plan.reply(), self.ledger.entries()[uid].answer())))
    }

    fn unprepare(&mut self, uid: &'static str, steps: usize) -> Option<Reply> {
        let plan = self.ledger.plan_unprepare(&self.node(), uid);
        self.carry_out(&plan, uid, steps)?;
        Some(Ok((plan.reply(), Vec::new())))
    }

    fn start(&mut self) {
        let start = self.ledger.start_up(self.boot_id(), self.cdi.iter().copied());
        for (uid, action) in &start.entries {
            match action {
                StartAction::RebuildCdi => {
                    self.cdi.insert(known(uid));
                }
                StartAction::AdoptBoot { .. } => panic!("every entry has a boot id"),
                _ => {}
            }
        }
        for uid in &start.remove_cdi_files {
            self.cdi.remove(uid.as_str());
        }
        self.running = true;
    }

    fn clean_up(&mut self) {
        for (uid, entry) in self.ledger.clone().entries() {
            let found = self.api.get(entry.name.as_str()).map(|uid| claim(uid));
            let decision = entry.clean_up(self.boot_id(), LookedUpClaim::from_claim(uid, found.as_ref()));
            if matches!(decision, CleanUp::Undo | CleanUp::Drop) {
                self.unprepare(known(uid), ALL);
            }
        }
    }

    fn after(&self, step: Move) -> Self {
        let mut next = self.clone();
        match step {
            Move::Prepare { uid, steps, now } => {
                next.prepare(uid, steps, now);
            }
            Move::Unprepare { uid, steps } => {
                next.unprepare(uid, steps);
            }
            Move::Start => next.start(),
            Move::CleanUp => next.clean_up(),
            Move::Kill => next.running = false,
            Move::Reboot { keeps_files } => {
                (next.boot, next.device, next.running) = (self.boot + 1, None, false);
                if !keeps_files {
                    next.cdi.clear();
                }
            }
            Move::LoseFiles => {
                next.cdi.clear();
                next.running = false;
            }
            Move::Delete(name) => {
                next.api.remove(name);
            }
            Move::Recreate => {
                next.api.insert("c1", "u3");
            }
        }
        next
    }

    /// Lists the transitions that are possible now.
    fn moves(&self) -> Vec<Move> {
        let mut moves = vec![Move::Delete("c1"), Move::Delete("c2"), Move::LoseFiles];
        if self.api.get("c1") != Some(&"u1") {
            moves.push(Move::Recreate);
        }
        if self.boot + 1 < self.boots {
            moves.extend([true, false].map(|keeps_files| Move::Reboot { keeps_files }));
        }
        if !self.running {
            moves.push(Move::Start);
            return moves;
        }
        moves.extend([Move::Kill, Move::CleanUp]);
        for (uid, _) in CLAIMS {
            for steps in (0..=7).chain([ALL]) {
                moves.extend([0, LATE].map(|now| Move::Prepare { uid, steps, now }));
                moves.push(Move::Unprepare { uid, steps });
            }
        }
        moves
    }

    /// Checks what holds in every state.
    fn check(&self) {
        let written = self.ledger.to_checkpoint();
        assert_eq!(Ledger::from_checkpoint(written.as_bytes()).unwrap(), self.ledger);
        let live = self.ledger.entries().iter().filter(|(_, entry)| entry.is_of_boot(self.boot_id()));
        let live: BTreeMap<_, _> = live.collect();
        assert!(live.len() <= 1, "the device is held for two claims: {self:?}");
        if let Some(holder) = self.device {
            assert!(live.contains_key(&holder.to_owned()), "the device is set up for an unknown claim: {self:?}");
        }
        for (uid, entry) in live {
            if entry.state == EntryState::Completed {
                assert_eq!(self.device, Some(uid.as_str()), "prepared without set-up: {self:?}");
                assert!(!self.running || self.cdi.contains(uid.as_str()), "prepared without a CDI file: {self:?}");
                let metadata = self.metadata.as_ref();
                assert!(
                    metadata.is_none_or(|files| files.contains(uid.as_str())),
                    "prepared without metadata: {self:?}"
                );
            }
        }
    }

    /// Checks that nothing is left once the kubelet has unprepared every claim.
    fn check_nothing_is_left(&self) {
        let mut world = self.clone();
        world.start();
        for (uid, _) in CLAIMS {
            world.unprepare(uid, ALL).unwrap().unwrap();
        }
        assert!(world.ledger.entries().is_empty() && world.cdi.is_empty(), "{self:?} leads to {world:?}");
        assert!(world.metadata.as_ref().is_none_or(BTreeSet::is_empty), "{self:?} leads to {world:?}");
        assert!(world.device.is_none() && !world.settings, "{self:?} leads to {world:?}");
    }

    /// Checks that a call gives the same answer when it is asked twice, and changes nothing the second time; and that a
    /// call that was killed at any step ends, when repeated, where it would have ended.
    fn check_calls(&self) {
        for (uid, _) in CLAIMS {
            for call in [Self::prepare_now, Self::prepare_late, Self::unprepare] {
                let mut once = self.clone();
                let reply = call(&mut once, uid, ALL).unwrap();
                let mut twice = once.clone();
                let again = call(&mut twice, uid, ALL).unwrap();
                assert_eq!(devices(&reply), devices(&again), "{self:?}");
                assert_eq!(once, twice, "the second call changed something");
                for steps in 0..=8 {
                    let mut killed = self.clone();
                    if call(&mut killed, uid, steps).is_none() {
                        killed.start();
                        assert_eq!(devices(&call(&mut killed, uid, ALL).unwrap()), devices(&reply), "{self:?}");
                        assert_eq!(killed, once, "a crash after {steps} steps is seen");
                    }
                }
            }
        }
    }

    fn prepare_now(&mut self, uid: &'static str, steps: usize) -> Option<Reply> {
        self.prepare(uid, steps, 0)
    }

    fn prepare_late(&mut self, uid: &'static str, steps: usize) -> Option<Reply> {
        self.prepare(uid, steps, LATE)
    }
}

fn known(uid: &str) -> &'static str {
    CLAIMS.iter().find(|(known, _)| *known == uid).unwrap().0
}

/// Returns the part of a reply that the kubelet sees.
fn devices(reply: &Reply) -> Result<&[PreparedDevice], &str> {
    reply.as_ref().map(|(_, devices)| devices.as_slice()).map_err(String::as_str)
}

/// Visits every state with two boots; `LEDGER_BOOTS=3` takes a few minutes.
#[test]
#[expect(clippy::disallowed_methods, reason = "the longer run is asked for by hand")]
fn claims_that_want_one_device() {
    visit(std::env::var("LEDGER_BOOTS").map_or(2, |boots| boots.parse().unwrap()), None);
}

/// In one boot: the files outlive it, and go as they do within it.
#[test]
fn claims_that_want_one_device_with_metadata() {
    visit(1, Some(BTreeSet::new()));
}

fn visit(boots: usize, metadata: Option<BTreeSet<&'static str>>) {
    let start = World::new(boots, metadata);
    let mut seen = BTreeSet::from([format!("{start:?}")]);
    let mut open = VecDeque::from([start]);
    let (mut transitions, mut found) = (0_usize, [false; 2]);
    while let Some(world) = open.pop_front() {
        world.check();
        world.check_nothing_is_left();
        if world.running {
            world.check_calls();
        }
        found[0] |= world.device == Some("u2") && world.api.get("c1") == Some(&"u3");
        found[1] |= world.ledger.entries().values().any(|entry| !entry.is_of_boot(world.boot_id()));
        for step in world.moves() {
            transitions += 1;
            let next = world.after(step);
            if seen.insert(format!("{next:?}")) {
                open.push_back(next);
            }
        }
    }
    assert!(seen.len() > if boots > 1 { 1_000 } else { 100 }, "{} states, {transitions} transitions", seen.len());
    assert_eq!(found, [true, boots > 1], "what the exploration is about is not reached");
}
