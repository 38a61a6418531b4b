//! Tests of the program `simulate` and of the simulation behind it: its sums are counted anew from its events.
#![cfg(feature = "simulate")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "other tests use the rest")]
mod program;
mod simulated_moves;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use dra_alloc::{AllocatedState, Allocator, Budget, Classes, DeviceId, GateSet, Inventory, Outcome, Profile};
use examples::manifest::Manifests;
use examples::random::Random;
use examples::simulation::{Description, EventKind, Recorded, Simulation, Statistics, Summary};
use k8s_openapi::api::resource::v1::ResourceClaim;
use program::Run;
use serde_json::{Value, from_value, json};
use tempfile::TempDir;

/// The built-in day.
const DAY: &str = include_str!("../data/simulations/small.yaml");

/// A day of pods with priorities.
const PRIORITIES: &str = include_str!("../data/simulations/priorities.yaml");

/// A day of pods of many sizes.
const SIZES: &str = include_str!("../data/simulations/sizes.yaml");

/// A day of cards in partitions.
const PARTITIONS: &str = include_str!("../data/simulations/partitions.yaml");

fn simulate(args: &[&str], day: &str) -> Run {
    Run::of(env!("CARGO_BIN_EXE_simulate"), args, day)
}

/// Runs a day with its events, and returns them with the answer.
fn with_events(args: &[&str], day: &str) -> (Value, Vec<Value>) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("events.jsonl");
    let args = [args, &["-o", "json", "--events", file.to_str().unwrap()]].concat();
    let answer = simulate(&args, day).clean().json();
    let text = fs::read_to_string(file).unwrap();
    (answer[0].clone(), text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// Plays a day of a description and manifests.
fn play(day: &str, manifests: &str) -> (Summary, Vec<String>) {
    let mut read = Manifests::default();
    read.read("manifests.yaml", manifests);
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    let recorded = Recorded::from_manifests(&read).unwrap();
    let day = Description::read(day).unwrap();
    let simulation = Simulation::new(&day, &recorded, Profile::V1_37, GateSet::of(Profile::V1_37)).unwrap();
    let (mut statistics, mut lines) = (Statistics::new(&simulation), Vec::new());
    let end = simulation.run(|event| {
        statistics.count(event);
        let what = serde_json::to_value(event).unwrap()["event"].as_str().unwrap().to_owned();
        lines.push(format!("{} {} {what}", event.at / 1000, event.pod));
    });
    (statistics.finish(&end), lines)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// Counts for one kind of pods: arrived, placed, refused, waiting, and the waits of those that were placed.
#[derive(Default)]
struct Counts {
    arrived: u64,
    placed: u64,
    refused: u64,
    waiting: BTreeSet<String>,
    waits: Vec<u64>,
}

#[test]
fn sums_are_what_the_events_say() {
    for args in [
        &[][..],
        &["--seed", "7"],
        &["--placing", "best-fit", "--seed", "3"],
        &["--placing", "next-fit", "--order", "largest-first"],
    ] {
        let day = DAY.split("whatIf").next().unwrap();
        let (answer, events) = with_events(&[&["-"], args].concat(), day);
        let duration = number(&answer["duration"]);
        let mut kinds = BTreeMap::<String, Counts>::new();
        let mut came = BTreeMap::<String, u64>::new();
        let mut held = BTreeMap::<String, u64>::new();
        // Begin and end of each use of a device, by driver.
        let mut uses = BTreeMap::<String, Vec<(u64, u64)>>::new();
        for event in &events {
            let (at, pod) = (number(&event["at"]), event["pod"].as_str().unwrap().to_owned());
            let counts = kinds.entry(event["kind"].as_str().unwrap().to_owned()).or_default();
            let devices = event["devices"].as_array().into_iter().flatten();
            let name = |device: &Value| format!("{}/{}/{}", device["driver"], device["pool"], device["device"]);
            match event["event"].as_str().unwrap() {
                "arrived" => {
                    counts.arrived += 1;
                    assert_eq!(came.insert(pod, at), None, "a pod comes once");
                }
                "waits" => assert!(counts.waiting.insert(pod)),
                "placed" => {
                    counts.placed += 1;
                    assert_eq!(counts.waiting.remove(&pod), event["waited"].is_u64());
                    counts.waits.push(at - came[&pod]);
                    assert_eq!(event["waited"].as_u64().unwrap_or_default(), at - came[&pod]);
                    for device in devices {
                        assert_eq!(held.insert(name(device), at), None, "{device} is held by two pods");
                        assert_eq!(device["pool"], event["node"], "devices are of the pod's node");
                    }
                }
                "refused" => {
                    counts.refused += 1;
                    assert_eq!(counts.waiting.remove(&pod), event["waited"].is_u64());
                }
                "ended" => {
                    for device in devices {
                        let begin = held.remove(&name(device)).unwrap();
                        uses.entry(device["driver"].as_str().unwrap().to_owned()).or_default().push((begin, at));
                    }
                }
                other => panic!("{other}"),
            }
        }
        for (name, begin) in held {
            let driver = name.split('"').nth(1).unwrap().to_owned();
            uses.entry(driver).or_default().push((begin, duration));
        }
        for told in answer["kinds"].as_array().unwrap() {
            let mut counts = kinds.remove(told["name"].as_str().unwrap()).unwrap_or_default();
            let counted = [counts.arrived, counts.placed, counts.refused, counts.waiting.len() as u64];
            assert_eq!(["arrived", "placed", "refused", "waiting"].map(|field| number(&told[field])), counted);
            assert_eq!(counts.arrived, counts.placed + counts.refused + counts.waiting.len() as u64);
            counts.waits.sort_unstable();
            let mean = counts.waits.iter().sum::<u64>().checked_div(counts.waits.len() as u64).unwrap_or_default();
            assert_eq!(number(&told["waits"]["mean"]), mean);
            assert_eq!(number(&told["waits"]["longest"]), counts.waits.last().copied().unwrap_or_default());
        }
        assert!(kinds.is_empty());
        let refused: u64 = answer["refused"].as_array().unwrap().iter().map(|refused| number(&refused["pods"])).sum();
        assert_eq!(refused, number(&answer["sum"]["refused"]));
        let part = number(&answer["part"]);
        for told in answer["devices"].as_array().unwrap() {
            let uses = uses.remove(told["name"].as_str().unwrap()).unwrap_or_default();
            for (index, told) in told["parts"].as_array().unwrap().iter().enumerate() {
                let (from, to) = (part * index as u64, (part * (index as u64 + 1)).min(duration));
                let within = uses.iter().map(|(begin, end)| (*end).min(to).saturating_sub((*begin).max(from)));
                assert_eq!(number(told), within.sum::<u64>(), "part {index}");
            }
        }
        assert!(uses.is_empty());
    }
}

/// Devices of a pod of the day of priorities, and its preemptions.
#[derive(Default)]
struct Fate {
    holds: Vec<Value>,
    began: u64,
    preempted: u64,
    lost: u64,
}

/// Returns the number of pods that are preempted, and of urgent pods that are placed.
fn preempted_and_placed(scenario: &Value) -> [u64; 2] {
    let sum = |list: &str, field: &str, of: fn(&Value) -> bool| -> u64 {
        let rows = scenario[list].as_array().unwrap().iter().filter(|row| of(row));
        rows.map(|row| row[field].as_u64().unwrap()).sum()
    };
    [sum("priorities", "preempted", |_| true), sum("kinds", "placed", |kind| kind["name"] == "urgent")]
}

#[test]
fn the_least_harm_preempts_a_tenth_fewer_of_the_pods_of_many_sizes() {
    let (mut of_kube, mut of_least) = (0, 0);
    for seed in 1..=3 {
        let days = simulate(&["-", "--seed", &seed.to_string(), "-o", "json"], SIZES).clean().json();
        let [[kube, placed], [least, also_placed]] = [0, 1].map(|day: usize| preempted_and_placed(&days[day]));
        assert_eq!(placed, also_placed, "urgent pods, seed {seed}");
        (of_kube, of_least) = (of_kube + kube, of_least + least);
    }
    assert!(of_kube > 100 && of_least * 10 <= of_kube * 9, "{of_least} in place of {of_kube} pods");
}

#[test]
fn preempted_pods_lose_their_devices_to_more_important_ones_and_wait() {
    let rank = |kind: &Value| ["notebook", "batch", "training", "urgent"].iter().position(|name| kind == name).unwrap();
    let priority = |kind: &Value| [0, 0, 10, 100][rank(kind)];
    for rule in ["never", "kube", "least"] {
        let (answer, events) = with_events(&["-", "--preempt", rule], PRIORITIES);
        let kind_of: BTreeMap<String, Value> =
            events.iter().map(|event| (event["pod"].as_str().unwrap().to_owned(), event["kind"].clone())).collect();
        let (mut fates, mut held): (BTreeMap<&str, Fate>, BTreeSet<String>) = Default::default();
        let mut placed_at: BTreeMap<&str, u64> = BTreeMap::new();
        for event in &events {
            let (pod, at) = (event["pod"].as_str().unwrap(), number(&event["at"]));
            let fate = fates.entry(pod).or_default();
            match event["event"].as_str().unwrap() {
                "placed" => {
                    fate.holds = event["devices"].as_array().unwrap().clone();
                    fate.began = at;
                    assert!(fate.holds.iter().all(|device| held.insert(device.to_string())), "twice: {event}");
                    placed_at.insert(pod, at);
                }
                end @ ("ended" | "preempted") => {
                    assert!(fate.holds.iter().all(|device| held.remove(&device.to_string())));
                    if end == "preempted" {
                        let by = event["by"].as_str().unwrap();
                        assert!(priority(&event["kind"]) < priority(&kind_of[by]), "{event}");
                        assert_eq!(number(&event["ran"]), at - fate.began);
                        fate.preempted += 1;
                        fate.lost += at - fate.began;
                    }
                }
                _ => {}
            }
        }
        // Each preemptor has its devices at the instant of the preemption.
        for event in events.iter().filter(|event| event["event"] == "preempted") {
            let by = event["by"].as_str().unwrap();
            assert!(
                events
                    .iter()
                    .any(|other| { other["event"] == "placed" && other["pod"] == by && other["at"] == event["at"] })
            );
        }
        let total = |of: fn(&Fate) -> u64| fates.values().map(of).sum::<u64>();
        let priorities = answer["priorities"].as_array().unwrap();
        let sum = |field: &str| priorities.iter().map(|one| number(&one[field])).sum::<u64>();
        assert_eq!((sum("preempted"), sum("lost")), (total(|fate| fate.preempted), total(|fate| fate.lost)), "{rule}");
        assert_eq!(total(|fate| fate.preempted) > 0, rule != "never", "{rule}");
        for kind in answer["kinds"].as_array().unwrap() {
            let [came, placed, refused, waiting] =
                ["arrived", "placed", "refused", "waiting"].map(|field| number(&kind[field]));
            assert_eq!(came, placed + refused + waiting, "{kind}");
        }
        if rule != "never" {
            assert_eq!(priorities[0]["waits"]["longest"], 0, "nobody is as important: {answer}");
        }
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let folder = TempDir::new().unwrap();
    let run = |name: &str, seed: &str| {
        let [svg, events] = ["svg", "jsonl"].map(|end| folder.path().join(format!("{name}.{end}")));
        let args = ["--seed", seed, "--svg", svg.to_str().unwrap(), "--events", events.to_str().unwrap()];
        let table = simulate(&args, "").clean().stdout;
        [table, fs::read_to_string(svg).unwrap(), fs::read_to_string(events).unwrap()]
    };
    let first = run("first", "1");
    assert_eq!(first, run("second", "1"));
    let other = run("other", "2");
    assert!((0..3).all(|index| first[index] != other[index]));
    for part in
        ["│ as described ", "│ best fit", "gave up waiting", "fits no node, even if all devices are free", "100 %"]
    {
        assert!(first[0].contains(part), "{part}\n{}", first[0]);
    }
    assert!(first[1].starts_with("<svg") && first[1].contains("best fit: devices in use, %"));
}

/// Manifests of a random cluster: GPUs of nodes, and ports that all nodes see.
fn cluster(random: &mut Random) -> String {
    let nodes = 1 + random.below(4);
    let mut objects = vec![json!({"kind": "ResourceSlice", "metadata": {"name": "fabric"}, "spec": {
        "driver": "port.example.com", "allNodes": true, "pool": {"name": "fabric", "generation": 1, "resourceSliceCount": 1},
        "devices": (0..=random.below(4)).map(|port| json!({"name": format!("port-{port}")})).collect::<Vec<_>>()}})];
    for class in ["gpu", "port"] {
        let expression = format!("device.driver == '{class}.example.com'");
        objects.push(json!({"kind": "DeviceClass", "metadata": {"name": class},
            "spec": {"selectors": [{"cel": {"expression": expression}}]}}));
    }
    for node in 0..nodes {
        let name = format!("node-{node}");
        let devices: Vec<Value> = (0..=random.below(5))
            .map(|gpu| {
                json!({"name": format!("gpu-{gpu}"), "attributes": {
            "resource.kubernetes.io/numaNode": {"int": gpu % 2}}})
            })
            .collect();
        objects.push(json!({"kind": "Node", "metadata": {"name": name}}));
        objects.push(json!({"kind": "ResourceSlice", "metadata": {"name": name}, "spec": {"driver": "gpu.example.com",
            "nodeName": name, "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}, "devices": devices}}));
    }
    objects.iter().map(|object| format!("---\n{object}\n")).collect::<Vec<_>>().concat()
}

/// Kinds of pods of a random day, with what each claim asks for.
fn kinds(random: &mut Random) -> Vec<Value> {
    let kind = |number: u64, random: &mut Random| {
        let (gpus, ports) = (random.below(4), random.below(2));
        let request =
            |class: &str, count: u64| json!({"name": class, "exactly": {"deviceClassName": class, "count": count}});
        let asked = [("gpu", gpus.max(1 - ports)), ("port", ports)].into_iter().filter(|(_, count)| *count > 0);
        let requests: Vec<Value> = asked.map(|(class, count)| request(class, count)).collect();
        let constraints = if gpus > 1 && ports == 0 {
            json!([{"matchAttribute": "resource.kubernetes.io/numaNode"}])
        } else {
            json!([])
        };
        json!({"name": format!("kind-{number}"), "perHour": 1 + random.below(6), "stay": "40m",
            "claims": [{"requests": requests, "constraints": constraints}]})
    };
    (0..=random.below(4)).map(|number| kind(number, random)).collect()
}

/// No pod waits while a node has room for it, says an allocator that is asked anew for every node between any two instants.
#[test]
fn nobody_waits_beside_free_devices() {
    let (mut looks, mut refusals) = (0, 0);
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let (mut manifests, kinds) = (Manifests::default(), kinds(&mut random));
        manifests.read("cluster", &cluster(&mut random));
        let placing = ["first-fit", "next-fit", "best-fit"][usize::try_from(random.below(3)).unwrap()];
        let order = ["arrival", "smallest-first", "largest-first"][usize::try_from(random.below(3)).unwrap()];
        let day = json!({"seed": seed, "duration": "12h", "pods": kinds, "placing": placing, "order": order});
        let (inventory, classes) = (Inventory::new(manifests.slices.clone()), Classes::new(manifests.classes.clone()));
        let claims: BTreeMap<String, ResourceClaim> = kinds
            .iter()
            .map(|kind| {
                let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": kind["claims"][0]}});
                (kind["name"].as_str().unwrap().to_owned(), from_value(claim).unwrap())
            })
            .collect();
        let description = Description::read(&day.to_string()).unwrap();
        let recorded = Recorded::from_manifests(&manifests).unwrap();
        let simulation = Simulation::new(&description, &recorded, Profile::V1_37, GateSet::of(Profile::V1_37)).unwrap();
        let has_room = |claim: &ResourceClaim, held: &BTreeSet<DeviceId>| {
            let mut state = AllocatedState::default();
            for device in held {
                state.hold(device);
            }
            let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
            manifests.nodes.iter().any(|node| {
                let verdict = allocator.allocate(&state, node, [claim], Budget::default()).unwrap();
                matches!(verdict.outcome, Outcome::Allocated(_))
            })
        };
        let (mut held, mut waiting, mut now) = (BTreeSet::new(), BTreeMap::<String, usize>::new(), 0);
        simulation.run(|event| {
            if event.at > now {
                for (kind, _) in waiting.iter().filter(|(_, count)| **count > 0) {
                    looks += 1;
                    assert!(!has_room(&claims[kind], &held), "seed {seed}: {kind} waits at {now} for nothing");
                }
                now = event.at;
            }
            match &event.event {
                EventKind::Waits { .. } => *waiting.entry(event.kind.to_owned()).or_default() += 1,
                EventKind::Placed { waited, devices, .. } => {
                    if waited.is_some() {
                        *waiting.get_mut(event.kind).unwrap() -= 1;
                    }
                    for device in *devices {
                        assert!(held.insert(DeviceId::new(&device.driver, &device.pool, &device.device)));
                    }
                }
                EventKind::Refused { .. } => {
                    refusals += 1;
                    assert!(!has_room(&claims[event.kind], &BTreeSet::new()), "seed {seed}: {} fits", event.kind);
                }
                EventKind::Ended { devices, .. } => {
                    for device in *devices {
                        assert!(held.remove(&DeviceId::new(&device.driver, &device.pool, &device.device)));
                    }
                }
                _ => {}
            }
        });
    }
    println!("{looks} looks, {refusals} refusals");
    assert!(looks > 1_000 && refusals > 100, "{looks} looks, {refusals} refusals");
}

const NODE: &str = "duration: 24h
classes: {gpu: device.driver == 'gpu.example.com'}
nodes: [{name: node, count: 1, devices: [{driver: gpu.example.com, count: 4}]}]
";

/// Writes a pod with a claim for some GPUs.
fn pod(name: &str, gpus: u32, annotations: &str) -> String {
    format!(
        "kind: Pod\nmetadata: {{namespace: ml, name: {name}, annotations: {{{annotations}}}}}\n\
         spec: {{resourceClaims: [{{name: gpu, resourceClaimName: {name}}}]}}\n---\n\
         kind: ResourceClaim\nmetadata: {{namespace: ml, name: {name}}}\n\
         spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu, count: {gpus}}}}}]}}}}\n---\n"
    )
}

#[test]
fn recorded_pods_wait_in_the_order_of_the_day() {
    let times = |arrives: &str, stays: &str| format!("example.com/arrives: {arrives}, example.com/stays: {stays}");
    let pods = [
        pod("first", 4, &times("0s", "1h")),
        pod("large", 4, &times("5m", "1h")),
        pod("small", 1, &times("10m", "1h")),
        pod("hasty", 1, &(times("15m", "1h") + ", example.com/patience: 30m")),
        pod("never", 5, "example.com/arrives: 20m"),
    ];
    let pods = pods.concat();
    let begin = [
        "0 ml/first arrived",
        "0 ml/first placed",
        "300 ml/large arrived",
        "300 ml/large waits",
        "600 ml/small arrived",
        "600 ml/small waits",
        "900 ml/hasty arrived",
        "900 ml/hasty waits",
        "1200 ml/never arrived",
        "1200 ml/never refused",
        "2700 ml/hasty refused",
        "3600 ml/first ended",
    ];
    for (order, longest, end) in [
        (
            "arrival",
            6_600_000,
            ["3600 ml/large placed", "7200 ml/large ended", "7200 ml/small placed", "10800 ml/small ended"],
        ),
        (
            "smallest-first",
            6_900_000,
            ["3600 ml/small placed", "7200 ml/small ended", "7200 ml/large placed", "10800 ml/large ended"],
        ),
    ] {
        let (summary, lines) = play(&format!("{NODE}order: {order}"), &pods);
        assert_eq!(lines, [&begin[..], &end].concat());
        let counts =
            |name: &str| summary.refused.iter().find(|refused| refused.kind == name).map(|refused| refused.pods);
        assert_eq!([counts("ml/hasty"), counts("ml/never"), counts("ml/large")], [Some(1), Some(1), None]);
        assert_eq!((summary.sum.waits.longest, summary.sum.waiting, summary.waiting.most), (longest, 0, 3));
        // Four GPUs for two hours and one for an hour, of a day.
        assert_eq!(summary.devices[0].mean_thousandths, 9 * 1000 / 24);
    }
}

#[test]
fn placing_chooses_among_nodes() {
    let day = NODE.replace("count: 1,", "count: 3,");
    let pods = [("a", 2), ("b", 3), ("c", 1), ("d", 2)].map(|(name, gpus)| pod(name, gpus, "")).concat();
    for (placing, nodes) in [
        ("first-fit", ["node-0", "node-1", "node-0", "node-2"]),
        ("next-fit", ["node-0", "node-1", "node-1", "node-2"]),
        ("best-fit", ["node-0", "node-1", "node-1", "node-0"]),
    ] {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("pods.yaml"), &pods).unwrap();
        let (_, events) = with_events(&["-", folder.path().to_str().unwrap(), "--placing", placing], &day);
        let placed = events.iter().filter(|event| event["event"] == "placed").map(|event| event["node"].clone());
        assert_eq!(placed.collect::<Vec<_>>(), nodes, "{placing}");
    }
}

#[test]
fn a_bad_description_is_told_with_its_field() {
    let kind = |claims: &str| format!("{NODE}pods: [{{name: p, perHour: 1, claims: {claims}}}]");
    let cases = [
        ("duration: 1h\nnodes: 7".to_owned(), "nodes: invalid type: integer `7`, expected a sequence"),
        ("duration: soon".to_owned(), "duration: \"soon\" is no duration such as \"1h 30m\""),
        ("duration: -1h".to_owned(), "duration: \"-1h\" is not between zero and 366 days"),
        ("duration: 1h\nnode: []".to_owned(), "unknown field `node`"),
        (
            NODE.replace("count: 1,", "count: 30000,"),
            "nodes: Invalid value: \"30000\": must be at most 20000 nodes together",
        ),
        (NODE.replace("count: 4}", "count: 129}"), "nodes[0].devices[0].count: Invalid value: \"129\""),
        (NODE.replace("driver: gpu.example.com", "driver: \"g p u\""), "spec.driver: Invalid value: \"g p u\""),
        (
            NODE.replace("count: 4}", "count: 4, attributes: {model: {text: x}}}"),
            "nodes[0].devices[0]: spec.devices[0].attributes.model.text: unknown field",
        ),
        (
            NODE.replace("device.driver ==", "device.drover =="),
            "classes.gpu: spec.selectors[0].cel.expression: Invalid value",
        ),
        (
            kind("[{requests: [{name: r, exactly: {deviceClassName: gpu, count: -1}}]}]"),
            "pods[0].claims[0]: spec.devices.requests[0].exactly.count: Invalid value: -1",
        ),
        (kind("[{request: [{name: r}]}]"), "pods[0].claims[0]: spec.devices.request: unknown field"),
        (kind("[]"), "pods[0].claims: Required value"),
        (kind("[{requests: 1}]"), "pods[0].claims[0]: spec.devices.requests: invalid type: integer `1`"),
        (
            format!("{NODE}pods: [{{name: p, perHour: 4000000000, claims: [{{}}]}}]"),
            "must be at most 1000000 pods together",
        ),
        (
            format!("{NODE}pods: [{{name: p, perHour: 1, claims: [{{}}]}}, {{name: p, perHour: 1, claims: [{{}}]}}]"),
            "pods[1].name: Duplicate value: \"p\"",
        ),
        (
            format!("{NODE}consolidate: 1ms"),
            "consolidate: Invalid value: \"1ms\": must leave at most 10000 of them a day",
        ),
        (format!("{NODE}whatIf: [{{name: more, nodes: {{gpus: 4}}}}]"), "whatIf[0].nodes: Not found: \"gpus\""),
        (format!("{NODE}whatIf: [{{name: many, nodes: {{node: 20001}}}}]"), "must be at most 20000 nodes together"),
        (format!("{NODE}placing: worst-fit"), "placing: unknown variant `worst-fit`"),
        (format!("{NODE}objective: [[{{term: opened, by: rack}}]]"), "objective: objective[0][0].by: must be "),
        (
            format!("{NODE}whatIf: [{{name: packed, objective: [[{{term: pack}}]]}}]"),
            "whatIf[0].objective: objective[0][0].term: there is no term \"pack\"",
        ),
        (
            PARTITIONS.replace("count: 8\n", "count: 33\n"),
            "nodes[0].cards[0].count: Invalid value: \"33\": must be at most 32 cards together",
        ),
        (
            PARTITIONS.replace("{compute: 2, m0: 1, m1: 1}", "{compute: 2, \"m 0\": 1}"),
            "nodes[0].cards[0]: spec.devices[7].consumesCounters[0].counters: Invalid value: \"m 0\"",
        ),
    ];
    for (day, expected) in cases {
        let run = simulate(&["-"], &day);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{day}");
        assert!(run.stderr.starts_with("simulate: "), "{}", run.stderr);
        assert!(run.stderr.contains(expected), "{expected}\n{}", run.stderr);
    }
}

#[test]
fn a_bad_recording_is_told_with_its_pod() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("pods.yaml");
    let shared = pod("a", 1, "") + &pod("b", 1, "").replace("resourceClaimName: b", "resourceClaimName: a");
    for (pods, expected) in [
        (
            pod("a", 1, "example.com/stays: long"),
            "pod ml/a: metadata.annotations[example.com/stays]: \"long\" is no duration",
        ),
        (
            pod("a", 1, "").replace("resourceClaimName: a", "resourceClaimName: b"),
            "pod ml/a: no claim ml/b among the manifests",
        ),
        (shared, "pod ml/b: claim ml/a is used by another pod too"),
    ] {
        fs::write(&file, pods).unwrap();
        let run = simulate(&["-", file.to_str().unwrap()], NODE);
        assert_eq!(run.code, 1);
        assert!(run.stderr.contains(expected), "{expected}\n{}", run.stderr);
    }
}

/// Returns the day of partitions on one node, twelve hours long.
fn partitions() -> String {
    PARTITIONS.replace("count: 3\n", "count: 1\n").replace("duration: 24h", "duration: 12h")
}

#[test]
fn no_partition_is_given_away_beside_one_that_overlaps_it() {
    let objective = json!([[{"term": "opened", "by": "counter_set"}], [{"term": "options"}]]);
    let day = partitions().replace("classes:\n", &format!("objective: {objective}\nclasses:\n"));
    let (answer, events) = with_events(&["-"], &day);
    assert_eq!(answer["objective"], "opened by counter set, then options");
    let day: Value = from_value(serde_saphyr::from_str(PARTITIONS).unwrap()).unwrap();
    let cards = &day["nodes"][0]["cards"][0];
    let counters = |device: &str| {
        let [_, _, partition, place]: [&str; 4] = device.split('-').collect::<Vec<_>>().try_into().unwrap();
        let partition = cards["partitions"].as_array().unwrap().iter().find(|one| one["name"] == *partition).unwrap();
        partition["places"][place.parse::<usize>().unwrap()].as_object().unwrap().clone()
    };
    let (mut used, mut placed) = (BTreeMap::<(String, String), u64>::new(), 0);
    for event in &events {
        let sign = match event["event"].as_str().unwrap() {
            "placed" => 1,
            "ended" => -1,
            _ => continue,
        };
        placed += i64::from(sign == 1);
        for device in event["devices"].as_array().unwrap() {
            let name = device["device"].as_str().unwrap();
            let card = name.split('-').take(2).collect::<Vec<_>>().join("-");
            for (counter, amount) in counters(name) {
                let sum = used.entry((card.clone(), counter.clone())).or_default();
                *sum = sum.checked_add_signed(sign * i64::try_from(number(&amount)).unwrap()).unwrap();
                assert!(*sum <= number(&cards["counters"][&counter]), "{event}");
            }
        }
    }
    assert!(placed > 50, "{placed}");
}

#[test]
fn days_of_several_seeds_are_compared() {
    let args = ["-", "--seeds", "3", "--rate", "40"];
    let all = simulate(&[&args[..], &["-o", "json"]].concat(), &partitions()).clean().json();
    let scenarios = all.as_array().unwrap();
    assert_eq!(scenarios.iter().map(|one| number(&one["seed"])).collect::<Vec<_>>(), [1, 1, 2, 2, 3, 3]);
    let placed = |name: &str, kind: usize| -> u64 {
        let of_name = scenarios.iter().filter(|one| one["name"] == name);
        of_name.map(|one| number(&one["kinds"][kind]["placed"])).sum()
    };
    assert!(placed("packed", 2) > placed("as described", 2));
    let table = simulate(&args, &partitions()).clean().stdout;
    for (kind, name) in ["small", "middle", "large"].into_iter().enumerate() {
        for scenario in ["as described", "packed"] {
            let row = table.lines().find(|line| line.contains(name) && line.contains(scenario)).unwrap();
            assert!(row.contains(&format!(" {} ", placed(scenario, kind))), "{row}");
        }
    }
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("days.svg");
    simulate(&[&args[..], &["--svg", file.to_str().unwrap()]].concat(), &partitions()).clean();
    let picture = fs::read_to_string(file).unwrap();
    assert!(picture.contains("large: pods placed, by day") && picture.contains("packed"));
}

#[test]
fn the_page_shows_what_is_printed() {
    let page = include_str!("../../docs/simulation.md");
    let block = page.split("```console\n$ simulate\n").nth(1).unwrap().split("```").next().unwrap();
    let stdout = simulate(&[], "").clean().stdout;
    let mut printed = stdout.lines();
    for line in block.lines().filter(|line| !line.is_empty()) {
        assert!(printed.any(|printed| printed.trim_end() == line), "{line}\n{stdout}");
    }
}
