//! The memory of pods: what objects and answers mean in any order, and random histories against an API server.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use nnn::PodKey;
use nnn::memory::{AssumeError, BindingAnswer, NodeUsage, NominationAnswer, PodChange, PodMemory, PodStage, PodUsage};
use proptest::prelude::*;
use serde_json::{from_value, json};

/// Pod of a server: what the tests say about it.
#[derive(Clone, Debug, Default)]
struct Stored {
    name: String,
    uid: String,
    version: u64,
    node: Option<String>,
    nomination: Option<String>,
    cpu: u32,
    priority: i32,
}

impl Stored {
    fn new(name: &str, uid: &str, version: u64) -> Self {
        Self { name: name.to_owned(), uid: uid.to_owned(), version, cpu: 1, ..Self::default() }
    }

    fn on(self, node: &str) -> Self {
        Self { node: Some(node.to_owned()), ..self }
    }

    fn nominated(self, node: &str) -> Self {
        Self { nomination: Some(node.to_owned()), ..self }
    }

    fn key(&self) -> PodKey {
        PodKey::new("ns", &self.name, &self.uid)
    }

    fn object(&self) -> Pod {
        from_value(json!({
            "metadata": {"namespace": "ns", "name": self.name, "uid": self.uid, "resourceVersion": self.version.to_string()},
            "spec": {"nodeName": self.node, "priority": self.priority, "resourceClaims":
                [{"name": "gpu", "resourceClaimName": format!("{}-claim", self.name)}], "schedulingGroup": {"podGroupName": "g"},
                "containers": [{"name": "c", "resources": {"requests": {"cpu": self.cpu.to_string()}}}]},
            "status": {"nominatedNodeName": self.nomination},
        }))
        .unwrap()
    }
}

fn cpu(usage: &NodeUsage) -> (u32, String) {
    (usage.pods, usage.resources.quantity("cpu").to_string())
}

fn seen(pods: &[Stored]) -> PodMemory {
    let mut memory = PodMemory::default();
    for pod in pods {
        memory.observe(pod.object()).unwrap();
    }
    memory
}

/// Returns a memory in which the pod `u` is assumed on the node `n`.
fn assumed() -> PodMemory {
    let pod = Stored::new("p", "u", 5);
    let mut memory = seen(std::slice::from_ref(&pod));
    memory.assume("u", "n", PodUsage::wanted_by(&pod.object()).unwrap()).unwrap();
    memory
}

#[test]
fn a_stored_binding_outlives_what_the_watch_shows_late() {
    for (answers, stage) in [
        (vec![], PodStage::Assumed { node: "n" }),
        (vec![BindingAnswer::Stored], PodStage::Bound { node: "n" }),
        (vec![BindingAnswer::Lost], PodStage::InDoubt { node: "n" }),
        (vec![BindingAnswer::Lost, BindingAnswer::Refused], PodStage::InDoubt { node: "n" }),
        (vec![BindingAnswer::Lost, BindingAnswer::Stored], PodStage::Bound { node: "n" }),
        (vec![BindingAnswer::Stored, BindingAnswer::Refused], PodStage::Bound { node: "n" }),
        (vec![BindingAnswer::Refused], PodStage::Waiting),
        (vec![BindingAnswer::Refused, BindingAnswer::Stored], PodStage::Waiting),
    ] {
        let mut memory = assumed();
        for answer in &answers {
            memory.answer_binding("u", *answer);
        }
        // An object without a node, such as that of the own nomination, undoes nothing.
        assert_eq!(memory.observe(Stored::new("p", "u", 6).object()).unwrap(), PodChange::Changed);
        assert_eq!(memory.stage("u"), Some(stage), "{answers:?}");
        let in_use = if stage.is_waiting() { (0, "0".to_owned()) } else { (1, "1".to_owned()) };
        assert_eq!(cpu(memory.usage("n")), in_use, "{answers:?}");
        let in_doubt = matches!(stage, PodStage::InDoubt { .. });
        assert_eq!(memory.in_doubt().count(), usize::from(in_doubt), "{answers:?}");
    }
}

#[test]
fn a_doubt_ends_with_what_is_seen() {
    let in_doubt = || {
        let mut memory = assumed();
        memory.answer_binding("u", BindingAnswer::Lost);
        memory
    };
    let mut bound = in_doubt();
    bound.observe(Stored::new("p", "u", 6).on("n").object()).unwrap();
    assert_eq!(bound.stage("u"), Some(PodStage::Bound { node: "n" }));
    let mut elsewhere = in_doubt();
    let change = elsewhere.observe(Stored::new("p", "u", 6).on("m").object()).unwrap();
    assert_eq!(change, PodChange::BoundElsewhere { assumed: "n".to_owned() });
    assert_eq!((cpu(elsewhere.usage("n")).0, cpu(elsewhere.usage("m")).0), (0, 1));
    let mut gone = in_doubt();
    assert!(gone.observe_deleted(&PodKey::new("ns", "p", "u")));
    assert_eq!((gone.stage("u"), cpu(gone.usage("n")).0), (None, 0));
    let mut not_stored = in_doubt();
    not_stored.settle(Stored::new("p", "u", 4).object()).unwrap();
    assert_eq!(not_stored.in_doubt().count(), 1, "an older object settles nothing");
    not_stored.settle(Stored::new("p", "u", 5).object()).unwrap();
    assert_eq!((not_stored.stage("u"), not_stored.in_doubt().count()), (Some(PodStage::Waiting), 0));
}

#[test]
fn what_can_not_be_assumed() {
    let usage = PodUsage::default;
    assert_eq!(PodMemory::default().assume("u", "n", usage()), Err(AssumeError::Unknown { uid: "u".to_owned() }));
    assert_eq!(assumed().assume("u", "m", usage()), Err(AssumeError::Placed { node: "n".to_owned() }));
    let mut bound = seen(&[Stored::new("p", "u", 5).on("n")]);
    assert_eq!(bound.assume("u", "m", usage()), Err(AssumeError::Placed { node: "n".to_owned() }));
    let mut going = Stored::new("p", "u", 5).object();
    going.metadata.deletion_timestamp = Some(from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    let mut memory = PodMemory::default();
    memory.observe(going).unwrap();
    assert_eq!(memory.assume("u", "n", usage()), Err(AssumeError::Gone));
    assert!(!memory.forget_assumed("u").unwrap());
    let mut memory = assumed();
    assert!(memory.forget_assumed("u").unwrap() && !memory.forget_assumed("u").unwrap());
    assert_eq!(cpu(memory.usage("n")).0, 0);
}

#[test]
fn older_objects_and_other_pods_of_the_name() {
    let mut memory = seen(&[Stored::new("p", "one", 5).on("n")]);
    assert_eq!(memory.observe(Stored::new("p", "one", 4).object()).unwrap(), PodChange::Older);
    assert_eq!(memory.observe(Stored::new("p", "one", 5).object()).unwrap(), PodChange::Same);
    assert_eq!(memory.observe(Stored::new("p", "two", 9).object()).unwrap(), PodChange::Added);
    assert_eq!(memory.observe(Stored::new("p", "one", 6).on("n").object()).unwrap(), PodChange::Older);
    assert!(!memory.observe_deleted(&PodKey::new("ns", "p", "one")), "the deletion of another pod");
    assert_eq!((memory.stage("one"), memory.stage("two")), (None, Some(PodStage::Waiting)));
    assert_eq!(cpu(memory.usage("n")).0, 0);
}

#[test]
fn a_list_takes_away_what_it_is_newer_than() {
    let pods = [Stored::new("a", "a", 5).on("n"), Stored::new("b", "b", 9)];
    let mut memory = seen(&pods);
    memory.replace([pods[0].object()], Some("8")).unwrap();
    assert_eq!(memory.pods().count(), 2, "the list is older than pod b");
    memory.replace([pods[1].object()], Some("9")).unwrap();
    let names: Vec<_> = memory.pods().map(|(pod, _)| pod.metadata.name.clone().unwrap()).collect();
    assert_eq!((names, cpu(memory.usage("n")).0), (vec!["b".to_owned()], 0));
    memory.replace(Vec::<Pod>::new(), None).unwrap();
    assert_eq!(memory.pods().count(), 0);
}

#[test]
fn nominations_count_for_pods_of_less_or_equal_importance() {
    let promised = Stored { priority: 5, cpu: 2, ..Stored::new("p", "u", 5).nominated("n") };
    let running = Stored::new("r", "r", 1).on("n");
    let memory = seen(&[promised.clone(), running]);
    let other = |priority| Stored { priority, ..Stored::new("o", "o", 7) }.object();
    for (pod, in_use) in [(other(4), "3"), (other(5), "3"), (other(6), "1"), (promised.object(), "1")] {
        assert_eq!(memory.usage_for(&pod, "n").resources.quantity("cpu").to_string(), in_use);
    }
    assert_eq!(memory.pods_nominated_to("n").count(), 1);
    assert_eq!(memory.usage_for(&other(0), "m").pods, 0);
}

#[test]
fn a_written_nomination_counts_until_it_is_seen() {
    let nominated = |memory: &PodMemory| memory.nomination("u").map(str::to_owned);
    let mut memory = seen(&[Stored::new("p", "u", 5).nominated("old")]);
    memory.nominate("u", Some("new")).unwrap();
    memory.observe(Stored::new("p", "u", 6).nominated("old").object()).unwrap();
    assert_eq!(nominated(&memory).as_deref(), Some("new"), "what is shown is from before the write");
    memory.answer_nomination("u", NominationAnswer::Stored { version: "8" }).unwrap();
    memory.observe(Stored::new("p", "u", 7).nominated("old").object()).unwrap();
    assert_eq!(nominated(&memory).as_deref(), Some("new"));
    memory.observe(Stored::new("p", "u", 9).nominated("third").object()).unwrap();
    assert_eq!(nominated(&memory).as_deref(), Some("third"), "somebody else wrote later");
    memory.nominate("u", None).unwrap();
    assert_eq!(nominated(&memory), None);
    memory.answer_nomination("u", NominationAnswer::Refused).unwrap();
    assert_eq!(nominated(&memory).as_deref(), Some("third"));
    memory.nominate("u", Some("n")).unwrap();
    memory.answer_nomination("u", NominationAnswer::Lost).unwrap();
    assert_eq!((nominated(&memory).as_deref(), memory.in_doubt().count()), (Some("n"), 1));
    memory.observe(Stored::new("p", "u", 10).nominated("n").object()).unwrap();
    assert_eq!((nominated(&memory).as_deref(), memory.in_doubt().count()), (Some("n"), 0));
    memory.observe(Stored::new("p", "u", 11).nominated("n").on("n").object()).unwrap();
    assert_eq!((nominated(&memory), memory.pods_nominated_to("n").count()), (None, 0), "a bound pod has none");
}

#[test]
fn a_bound_pod_is_not_nominated() {
    let mut memory = assumed();
    memory.nominate("u", Some("n1")).unwrap();
    memory.answer_nomination("u", NominationAnswer::Lost).unwrap();
    assert_eq!((memory.nomination("u"), memory.in_doubt().count()), (Some("n1"), 1));
    memory.answer_binding("u", BindingAnswer::Stored);
    assert_eq!((memory.nomination("u"), memory.in_doubt().count()), (None, 0), "nobody writes it once more");
    memory.nominate("u", Some("n2")).unwrap();
    memory.answer_nomination("u", NominationAnswer::Lost).unwrap();
    assert_eq!((memory.nomination("u"), memory.in_doubt().count()), (None, 0));
}

#[test]
fn look_ups_by_claim_and_group_follow_changes() {
    let mut memory = seen(&[Stored::new("b", "b", 1), Stored::new("a", "a", 2)]);
    let names = |pods: Vec<&std::sync::Arc<Pod>>| -> Vec<String> {
        pods.into_iter().map(|pod| pod.metadata.name.clone().unwrap()).collect()
    };
    assert_eq!(names(memory.pods_of_group("ns", "g").collect()), ["a", "b"]);
    assert_eq!(names(memory.pods_with_claim("ns", "b-claim").collect()), ["b"]);
    let mut changed = Stored { version: 3, ..Stored::new("b", "b", 1) }.object();
    changed.spec.as_mut().unwrap().scheduling_group = None;
    memory.observe(changed).unwrap();
    assert_eq!(names(memory.pods_of_group("ns", "g").collect()), ["a"]);
    memory.observe_deleted(&PodKey::new("ns", "a", "a"));
    assert_eq!(memory.pods_of_group("ns", "g").count() + memory.pods_with_claim("ns", "a-claim").count(), 0);
}

#[test]
fn an_amount_that_is_none_is_an_error_and_counts_nothing() {
    let mut pod = Stored::new("p", "u", 5).on("n").object();
    let containers = &mut pod.spec.as_mut().unwrap().containers;
    containers[0].resources = Some(from_value(json!({"requests": {"cpu": "much"}})).unwrap());
    let mut memory = PodMemory::default();
    assert!(memory.observe(pod).is_err());
    assert_eq!((memory.stage("u"), memory.usage("n").pods), (Some(PodStage::Bound { node: "n" }), 0));
    assert!(memory.observe(Pod::default()).is_err());
}

/// An API server with a watch that is behind, and one scheduler with a memory.
#[derive(Default)]
struct World {
    version: u64,
    server: BTreeMap<String, Stored>,
    /// Events that the watch has not shown yet, and the last one that it has: a pod, or the deletion of one.
    events: Vec<Result<Stored, PodKey>>,
    shown: usize,
    memory: PodMemory,
    /// Pods whose binding is known to be stored, by UID.
    confirmed: BTreeMap<String, String>,
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const NODES: [&str; 2] = ["n", "m"];

impl World {
    fn write(&mut self, name: &str, change: impl FnOnce(&mut Stored)) -> bool {
        let Some(pod) = self.server.get_mut(name) else { return false };
        self.version += 1;
        change(pod);
        pod.version = self.version;
        self.events.push(Ok(pod.clone()));
        true
    }

    fn create(&mut self, name: &str, cpu: u32) {
        if !self.server.contains_key(name) {
            self.version += 1;
            let pod = Stored { cpu, ..Stored::new(name, &format!("{name}-{}", self.version), self.version) };
            self.server.insert(name.to_owned(), pod.clone());
            self.events.push(Ok(pod));
        }
    }

    fn delete(&mut self, name: &str) {
        if let Some(pod) = self.server.remove(name) {
            self.version += 1;
            self.events.push(Err(pod.key()));
        }
    }

    /// Stores a binding if the pod is the one that is meant, and has no node.
    fn bind(&mut self, key: &PodKey, node: &str) -> bool {
        let is_free = self.server.get(&key.name).is_some_and(|pod| pod.uid == key.uid && pod.node.is_none());
        is_free && self.write(&key.name, |pod| (pod.node, pod.nomination) = (Some(node.to_owned()), None))
    }

    fn show(&mut self, event: usize) {
        match self.events.get(event).cloned() {
            Some(Ok(pod)) => drop(self.memory.observe(pod.object()).unwrap()),
            Some(Err(key)) => drop(self.memory.observe_deleted(&key)),
            None => {}
        }
    }

    /// Shows what the watch has next, and maybe an event a second time.
    fn watch(&mut self, again: u32) {
        if self.shown < self.events.len() {
            self.show(self.shown);
            self.shown += 1;
            if again == 0 && self.events[self.shown - 1].is_ok() {
                self.show(self.shown - 1);
            }
        }
    }

    fn list(&mut self) {
        let pods: Vec<Pod> = self.server.values().map(Stored::object).collect();
        self.memory.replace(pods, Some(&self.version.to_string())).unwrap();
        self.shown = self.events.len();
    }

    /// Sends a binding; the answer may be lost on the way there, or on the way back.
    fn send(&mut self, key: &PodKey, node: &str, fate: u32) {
        let stored = fate != 1 && self.bind(key, node);
        let answer = match (fate, stored) {
            (1 | 2, _) => BindingAnswer::Lost,
            (_, true) => BindingAnswer::Stored,
            (_, false) => BindingAnswer::Refused,
        };
        if answer == BindingAnswer::Stored {
            self.confirmed.insert(key.uid.clone(), node.to_owned());
        }
        self.memory.answer_binding(&key.uid, answer);
    }

    /// Tries a pod as a scheduler does: only if it waits.
    fn schedule(&mut self, name: &str, node: &str, fate: u32) {
        let Some(pod) = self.memory.pod("ns", name).cloned() else { return };
        let uid = pod.metadata.uid.clone().unwrap();
        if self.memory.stage(&uid).unwrap().is_waiting() {
            assert!(!self.confirmed.contains_key(&uid), "{uid} is tried again once bound");
            self.memory.assume(&uid, node, PodUsage::wanted_by(&pod).unwrap()).unwrap();
            self.send(&PodKey::new("ns", name, &uid), node, fate);
        }
    }

    fn repeat_lost(&mut self, fate: u32) {
        for key in self.memory.in_doubt().cloned().collect::<Vec<_>>() {
            if let Some(PodStage::InDoubt { node }) = self.memory.stage(&key.uid) {
                let node = node.to_owned();
                self.send(&key, &node, fate);
            }
        }
    }

    fn step(&mut self, (action, name, number): (u32, usize, u32)) {
        let (name, node) = (NAMES[name % NAMES.len()], NODES[number as usize % NODES.len()]);
        match action {
            0 => self.create(name, 1 + number % 3),
            1 => self.delete(name),
            2 => drop(self.write(name, |_| {})),
            3 => {
                let key = self.server.get(name).map(Stored::key);
                key.map(|key| self.bind(&key, node));
            }
            4 => drop(self.write(name, |pod| {
                if pod.node.is_none() {
                    pod.nomination = (number % 3 > 0).then(|| node.to_owned());
                }
            })),
            5 => self.list(),
            6 => {
                // A restart: nothing is known but what the server has.
                self.memory = PodMemory::default();
                self.list();
            }
            7 => self.repeat_lost(number % 4),
            8..=11 => self.schedule(name, node, number % 4),
            _ => self.watch(number % 3),
        }
        self.check();
    }

    /// The counts that are kept are those of a sum over all pods.
    fn check(&self) {
        let mut sums: BTreeMap<&str, NodeUsage> = BTreeMap::new();
        for (pod, stage) in self.memory.pods() {
            if let Some(node) = stage.placed_on() {
                sums.entry(node).or_default().add(&PodUsage::held_by(pod).unwrap());
            }
        }
        for node in NODES {
            assert_eq!(self.memory.usage(node), &sums.remove(node).unwrap_or_default(), "{node}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn memory_agrees_with_the_server_in_the_end(steps in prop::collection::vec((0..16_u32, 0..4_usize, 0..12_u32), 0..60)) {
        let mut world = World::default();
        for step in steps {
            world.step(step);
        }
        while world.shown < world.events.len() {
            world.watch(1);
        }
        // Lost answers: the same binding once more, then a read.
        world.repeat_lost(0);
        for pod in world.server.values().cloned().collect::<Vec<_>>() {
            world.memory.settle(pod.object()).unwrap();
        }
        while world.shown < world.events.len() {
            world.watch(1);
        }
        world.check();
        let fresh = seen(&world.server.values().cloned().collect::<Vec<_>>());
        let shown = |memory: &PodMemory| -> Vec<String> {
            memory.pods().map(|(pod, stage)| format!("{:?} {stage:?}", pod.metadata.uid)).collect()
        };
        prop_assert_eq!(shown(&world.memory), shown(&fresh));
        prop_assert_eq!(world.memory.in_doubt().count(), 0);
        for node in NODES {
            prop_assert_eq!(world.memory.usage(node), fresh.usage(node));
            prop_assert_eq!(world.memory.pods_nominated_to(node).count(), fresh.pods_nominated_to(node).count());
        }
    }
}
