//! The rules of kube-scheduler's queue, as docs/scheduling-rules.md lists them: the script of each row is played.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use dra_alloc::Inventory;
use dra_alloc::queue::{ClusterEvent, ObjectChange, QueueAttempt, Refusal, Remedy, SchedulingQueue, WhenIdle};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, from_value, json};

use super::objects::{at, pod, queue, remedy, show};

/// Smallest number of rules.
const MIN_RULES: usize = 40;

#[test]
fn the_queue_follows_the_rules() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/scheduling-rules.md");
    let page = fs::read_to_string(path).unwrap();
    let section = page.split("\n## Queue\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<Vec<&str>> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| Q"))
        .map(|line| line.trim_end_matches(" |").split(" | ").collect())
        .collect();
    assert!(rows.len() >= MIN_RULES, "{} rules", rows.len());
    for (index, row) in rows.iter().enumerate() {
        let [number, rule, source, _, script] = row[..] else { panic!("not five cells: {row:?}") };
        assert_eq!(number, (index + 1).to_string(), "numbers have no gap");
        assert!(!source.is_empty(), "{rule}: no source");
        let mut player = Player::new(script.contains("patient"));
        for step in script.trim_matches('`').split("; ") {
            player.play(step, &format!("Q{number}, {rule}: {step}"));
        }
    }
}

struct Player {
    queue: SchedulingQueue,
    now: Timestamp,
    pods: BTreeMap<String, Value>,
    attempts: BTreeMap<String, QueueAttempt>,
    /// Pods that the check before an attempt refuses, with the remedies.
    checks: BTreeMap<String, Vec<Remedy>>,
}

impl Player {
    fn new(is_patient: bool) -> Self {
        Self {
            queue: queue(if is_patient { WhenIdle::Wait } else { WhenIdle::TryBackingOff }),
            now: at(0),
            pods: BTreeMap::new(),
            attempts: BTreeMap::new(),
            checks: BTreeMap::new(),
        }
    }

    fn play(&mut self, step: &str, place: &str) {
        let words: Vec<&str> = step.split(' ').collect();
        let remedies = |words: &[&str]| words.iter().map(|word| remedy(word)).collect::<Vec<_>>();
        match words[..] {
            ["patient"] => {}
            ["at", seconds] => self.now = time(seconds),
            ["add", name, ref options @ ..] => self.add(name, options),
            ["show", name] => self.change(name, |_| {}),
            ["update", name, change] => self.change(name, |pod| update(pod, change)),
            ["del", name] => {
                let old = self.pods.remove(name);
                show(&mut self.queue, old.as_ref(), None, self.now);
            }
            ["list", ref names @ ..] => self.queue.retain_listed(names.iter().copied(), self.now),
            ["check", name, ref refused @ ..] => drop(self.checks.insert(name.to_owned(), remedies(refused))),
            ["pop", expected] => assert_eq!(self.pop(), expected, "{place}"),
            ["refuse", name, ref refused @ ..] => {
                let attempt = self.attempts.remove(name).unwrap();
                self.queue.refused(attempt, Refusal::new(remedies(refused)), self.now);
            }
            ["fail", name] => self.queue.failed(self.attempts.remove(name).unwrap(), self.now),
            ["done", name] => self.queue.done(self.attempts.remove(name).unwrap()),
            ["bound", name] => self.queue.bound(name),
            ["activate", name, "=", expected] => {
                assert_eq!(self.queue.activate(name).to_string(), expected, "{place}");
            }
            ["wake", brought, "=", woken] => {
                let number = self.queue.wake(&[remedy(brought)], self.now);
                assert_eq!(number.to_string(), woken, "{place}");
            }
            ["event", kind, change, name, "=", woken] => {
                assert_eq!(self.event(kind, change, name).to_string(), woken, "{place}");
            }
            ["is", name, expected] => {
                let found = self.queue.place(name).map_or_else(|| "-".to_owned(), |place| format!("{place:?}"));
                assert_eq!(found, expected, "{place}");
            }
            ["next", "-"] => assert_eq!(self.queue.next_at(), None, "{place}"),
            ["next", seconds] => assert_eq!(self.queue.next_at(), Some(time(seconds)), "{place}"),
            ["kept", number] => assert_eq!(self.queue.remembered().to_string(), number, "{place}"),
            _ => panic!("{place}: no such step"),
        }
    }

    fn add(&mut self, name: &str, options: &[&str]) {
        let priority = options.iter().find_map(|option| option.strip_prefix('p')?.parse().ok());
        let group = options.iter().find_map(|option| option.strip_prefix("in:"));
        let mut pod = pod(name, priority.unwrap_or_default(), group);
        if options.contains(&"gate") {
            pod["spec"]["schedulingGates"] = json!([{"name": "example.com/gate"}]);
        }
        if options.contains(&"unset") {
            pod["spec"]["priority"] = Value::Null;
        }
        show(&mut self.queue, None, Some(&pod), self.now);
        self.pods.insert(name.to_owned(), pod);
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Value)) {
        let old = self.pods.entry(name.to_owned()).or_insert_with(|| pod(name, 0, None));
        let mut new = old.clone();
        change(&mut new);
        show(&mut self.queue, Some(old), Some(&new), self.now);
        *old = new;
    }

    /// Returns the names of the pods that are tried next.
    fn pop(&mut self) -> String {
        let checks = &self.checks;
        let refused = |pods: &[Arc<Pod>]| {
            pods.iter().find_map(|pod| checks.get(pod.metadata.name.as_deref()?).filter(|refused| !refused.is_empty()))
        };
        let attempt = self.queue.pop(self.now, |pods| refused(pods).map_or(Ok(()), |by| Err(Refusal::new(by.clone()))));
        let Some(attempt) = attempt else { return "-".to_owned() };
        let names: Vec<&str> = attempt.pods().iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
        let (first, all) = (names[0].to_owned(), names.join("+"));
        self.attempts.insert(first, attempt);
        all
    }

    /// Tells the queue of a change of another object, and returns the number of units that are let out.
    fn event(&mut self, kind: &str, change: &str, name: &str) -> usize {
        match kind {
            "claim" => self.tell(&ClusterEvent::Claim(read::<ResourceClaim>(claim(change, name)).change())),
            "class" => self.tell(&ClusterEvent::Class(read::<DeviceClass>(class(change, name)).change())),
            "rule" => self.tell(&ClusterEvent::TaintRule(read::<DeviceTaintRule>(rule(change, name)).change())),
            "node" => self.tell(&ClusterEvent::Node(read::<Node>(node(change, name)).change())),
            "group" => self.tell(&ClusterEvent::Group(read::<PodGroup>(group(change, name)).change())),
            "slice" => {
                let slice = read::<ResourceSlice>(slice(change, name));
                let inventory = Inventory::new(slice.old.clone().filter(|_| change == "del-one-of-two"));
                self.tell(&ClusterEvent::Slice { change: slice.change(), inventory: &inventory })
            }
            "placed" => {
                let Both { old, new } = placed(change, name);
                show(&mut self.queue, old.as_ref(), new.as_ref(), self.now)
            }
            _ => panic!("no object is called {kind}"),
        }
    }

    fn tell(&mut self, event: &ClusterEvent<'_>) -> usize {
        self.queue.observe(event, self.now).unwrap()
    }
}

/// An object before and after a change.
struct Both<K> {
    old: Option<K>,
    new: Option<K>,
}

impl<K> Both<K> {
    fn change(&self) -> ObjectChange<'_, K> {
        match (&self.old, &self.new) {
            (None, Some(new)) => ObjectChange::Added(new),
            (Some(old), Some(new)) => ObjectChange::Updated { old, new },
            (Some(old), None) => ObjectChange::Deleted(old),
            (None, None) => panic!("there is no object"),
        }
    }
}

fn read<K: DeserializeOwned>(both: Both<Value>) -> Both<K> {
    let read = |object: Option<Value>| object.map(|object| from_value(object).unwrap());
    Both { old: read(both.old), new: read(both.new) }
}

/// Changes an object: `add`, `del`, `same`, or one of the changes of a field.
fn changed(change: &str, object: Value, fields: &[(&str, &str, Value)]) -> Both<Value> {
    match change {
        "add" => Both { old: None, new: Some(object) },
        "del" | "del-one-of-two" => Both { old: Some(object), new: None },
        "same" => Both { old: Some(object.clone()), new: Some(object) },
        _ => {
            let (_, pointer, value) = fields.iter().find(|(name, ..)| *name == change).unwrap();
            let mut new = object.clone();
            *new.pointer_mut(pointer).unwrap() = value.clone();
            Both { old: Some(object), new: Some(new) }
        }
    }
}

fn claim(change: &str, name: &str) -> Both<Value> {
    let claim = json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "deletionTimestamp": null, "labels": null},
        "status": {"reservedFor": null, "allocation": {"devices": {"results": [
            {"request": "r", "driver": "gpu", "pool": "p", "device": "0"}]}}}});
    changed(
        change,
        claim,
        &[
            ("status", "/status/reservedFor", json!([{"resource": "pods", "name": "x", "uid": "x"}])),
            ("deleting", "/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
            ("free", "/status", Value::Null),
            ("swap", "/status/allocation/devices/results/0/device", json!("other")),
            ("labels", "/metadata/labels", json!({"a": "b"})),
        ],
    )
}

fn class(change: &str, name: &str) -> Both<Value> {
    let class = json!({"metadata": {"name": name}, "spec": {"selectors": null, "config": null,
        "extendedResourceName": format!("example.com/{name}")}});
    changed(
        change,
        class,
        &[
            ("config", "/spec/config", json!([{}])),
            ("selectors", "/spec/selectors", json!([{"cel": {"expression": "true"}}])),
        ],
    )
}

fn slice(change: &str, driver: &str) -> Both<Value> {
    let slice = json!({"metadata": {"name": "s", "labels": null}, "spec": {"driver": driver, "devices": [],
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}});
    changed(
        change,
        slice,
        &[("labels", "/metadata/labels", json!({"a": "b"})), ("devices", "/spec/devices", json!([{"name": "new"}]))],
    )
}

/// A rule for the devices of a driver, or of every one.
fn rule(change: &str, driver: &str) -> Both<Value> {
    let driver = (driver != "every").then_some(driver);
    let rule = json!({"metadata": {"name": "r"}, "spec": {"deviceSelector": {"driver": driver},
        "taint": {"key": "k", "effect": "NoSchedule"}}});
    changed(change, rule, &[("effect", "/spec/taint/effect", json!("NoExecute"))])
}

fn node(change: &str, name: &str) -> Both<Value> {
    let ready = |status: &str, second: &str| json!([{"type": "Ready", "status": status, "lastHeartbeatTime": format!("2026-01-01T00:00:{second}Z")}]);
    let node = json!({"metadata": {"name": name, "labels": null}, "spec": {"taints": null, "unschedulable": null},
        "status": {"allocatable": null, "declaredFeatures": null, "conditions": ready("True", "00")}});
    changed(
        change,
        node,
        &[
            ("labels", "/metadata/labels", json!({"a": "b"})),
            ("cordon", "/spec/unschedulable", json!(true)),
            ("allocatable", "/status/allocatable", json!({"cpu": "4"})),
            ("features", "/status/declaredFeatures", json!(["F"])),
            ("condition", "/status/conditions", ready("False", "00")),
            ("heartbeat", "/status/conditions", ready("True", "30")),
        ],
    )
}

fn group(change: &str, name: &str) -> Both<Value> {
    let group =
        json!({"metadata": {"namespace": "ns", "name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}});
    changed(change, group, &[])
}

/// A pod on a node.
fn placed(change: &str, name: &str) -> Both<Value> {
    let mut placed = pod(name, 0, None);
    placed["spec"]["nodeName"] = json!("n");
    placed["spec"]["resources"] = Value::Null;
    placed["metadata"]["labels"] = Value::Null;
    placed["status"] = json!({"phase": "Running"});
    changed(
        change,
        placed,
        &[
            ("finish", "/status/phase", json!("Succeeded")),
            ("labels", "/metadata/labels", json!({"a": "b"})),
            ("requests", "/spec/resources", json!({"requests": {"cpu": "1"}})),
        ],
    )
}

fn time(seconds: &str) -> Timestamp {
    let (whole, part) = seconds.split_once('.').unwrap_or((seconds, "0"));
    at(whole.parse::<i64>().unwrap() * 1_000 + format!("{part:0<3}").parse::<i64>().unwrap())
}

fn update(pod: &mut Value, change: &str) {
    let (pointer, field, value) = match change {
        "labels" => ("/metadata", "labels", json!({"a": "b"})),
        "deleting" => ("/metadata", "deletionTimestamp", json!("2026-01-01T00:00:00Z")),
        "ungate" => ("/spec", "schedulingGates", json!([])),
        "node" => ("/spec", "nodeName", json!("n")),
        "requests" => ("/spec", "resources", json!({"requests": {"cpu": "1"}})),
        "tolerations" => ("/spec", "tolerations", json!([{"operator": "Exists"}])),
        "claims" => ("", "status", json!({"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "c"}]})),
        "finish" => ("", "status", json!({"phase": "Succeeded"})),
        "condition" => ("", "status", json!({"conditions": [{"type": "PodScheduled", "status": "False"}]})),
        "nominate" => ("", "status", json!({"nominatedNodeName": "n"})),
        _ => panic!("no change is called {change}"),
    };
    pod.pointer_mut(pointer).unwrap()[field] = value;
}
