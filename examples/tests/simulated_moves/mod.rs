//! Days in which pods move so that nodes are empty.

use std::collections::BTreeMap;

use super::{number, play, pod, with_events};

/// A day in which pods move.
const MOVES: &str = include_str!("../../data/simulations/consolidation.yaml");

/// Two nodes of two devices, emptied every half hour.
const CONSOLIDATED: &str = "duration: 2h
consolidate: 30m
classes: {gpu: device.driver == 'gpu.example.com'}
nodes: [{name: node, count: 2, devices: [{driver: gpu.example.com, count: 2}]}]
";

#[test]
fn pods_move_so_that_a_node_is_empty_and_a_large_pod_fits() {
    let times = |arrives: &str, stays: &str| format!("example.com/arrives: {arrives}, example.com/stays: {stays}");
    let pods = |annotation: &str| {
        [
            pod("early", 2, &times("0s", "20m")),
            pod("left", 1, &times("1m", "1h")),
            pod("right", 1, &(times("21m", "1h") + annotation)),
            pod("large", 2, &times("25m", "1h")),
        ]
        .concat()
    };
    let (summary, lines) = play(CONSOLIDATED, &pods(""));
    let end = [
        "1500 ml/large waits",
        "1800 ml/right moved",
        "1800 ml/large placed",
        "3660 ml/left ended",
        "4860 ml/right ended",
        "5400 ml/large ended",
    ];
    assert_eq!(lines[lines.len() - end.len()..], end, "{lines:?}");
    // The first node has `early` for 20 minutes, `right` from 21 to 30, then `large` to 90; the second one `left` from 1, `right` to 81.
    assert_eq!((summary.nodes_in_use.total, summary.nodes_in_use.most, summary.sum.moved), (2, 2, 1));
    let used: u64 = summary.nodes_in_use.parts.iter().sum();
    let one = |from: u64, to: u64| to - from;
    let minutes = one(0, 20) + one(21, 90) + one(1, 81);
    assert_eq!(used, minutes * 60_000);

    for (day, annotation) in [
        (CONSOLIDATED.replace("consolidate: 30m\n", ""), ""),
        (CONSOLIDATED.to_owned(), ", karpenter.sh/do-not-disrupt: 'true'"),
    ] {
        let (summary, lines) = play(&day, &pods(annotation));
        let moved: Vec<&String> = lines.iter().filter(|line| line.ends_with("moved")).collect();
        if annotation.is_empty() {
            assert!(moved.is_empty() && lines.contains(&"3660 ml/large placed".to_owned()), "{lines:?}");
        } else {
            assert_eq!(moved, ["1800 ml/left moved"]);
            assert_eq!(summary.sum.moved, 1);
        }
    }
}

/// Nodes in use and devices are counted anew from the events of a day in which pods move.
#[test]
fn moves_leave_each_pod_its_devices_and_save_nodes() {
    let mut means = Vec::new();
    for args in [&[][..], &["--consolidate", "30m"], &["--consolidate", "30m", "--placing", "next-fit"]] {
        let day = MOVES.split("whatIf").next().unwrap();
        let (answer, events) = with_events(&[&["-"], args].concat(), day);
        let duration = number(&answer["duration"]);
        let (mut held, mut on) = (BTreeMap::<String, String>::new(), BTreeMap::<String, String>::new());
        let (mut since, mut uses) = (BTreeMap::<String, u64>::new(), Vec::<(u64, u64)>::new());
        let (mut moved, mut sizes) = (0, BTreeMap::<String, usize>::new());
        for event in &events {
            let (at, pod) = (number(&event["at"]), event["pod"].as_str().unwrap().to_owned());
            let node = event["node"].as_str().unwrap_or_default().to_owned();
            let list = |field: &str| -> Vec<String> {
                let devices = event[field].as_array().into_iter().flatten();
                devices.map(|device| format!("{} {} {}", device["driver"], device["pool"], device["device"])).collect()
            };
            let mut give_back = |devices: Vec<String>| {
                for device in devices {
                    assert_eq!(held.remove(&device).as_ref(), Some(&pod), "{event}");
                }
            };
            let kind = event["event"].as_str().unwrap();
            match kind {
                "placed" => drop(sizes.insert(pod.clone(), list("devices").len())),
                "moved" => {
                    assert_eq!(on.get(&pod).map(String::as_str), event["from"].as_str(), "{event}");
                    assert_ne!(event["from"], event["node"]);
                    assert_eq!(list("devices").len(), sizes[&pod]);
                    give_back(list("left"));
                    moved += 1;
                }
                "ended" => {
                    assert_eq!(on.get(&pod), Some(&node), "{event}");
                    give_back(list("devices"));
                }
                _ => continue,
            }
            if kind != "ended" {
                for device in list("devices") {
                    assert!(device.contains(&format!("\"{node}\"")), "{event}");
                    assert_eq!(held.insert(device, pod.clone()), None, "{event}");
                }
            }
            let left = on.remove(&pod);
            if kind != "ended" {
                on.insert(pod, node.clone());
                since.entry(node).or_insert(at);
            }
            if let Some(left) = left.filter(|left| !on.values().any(|node| node == left)) {
                uses.push((since.remove(&left).unwrap(), at));
            }
        }
        uses.extend(since.into_values().map(|begin| (begin, duration)));
        let told = &answer["nodesInUse"];
        let part = number(&answer["part"]);
        for (index, sum) in told["parts"].as_array().unwrap().iter().enumerate() {
            let (from, to) = (part * index as u64, (part * (index as u64 + 1)).min(duration));
            let within = uses.iter().map(|(begin, end)| (*end).min(to).saturating_sub((*begin).max(from)));
            assert_eq!(number(sum), within.sum::<u64>(), "part {index}");
        }
        assert_eq!(number(&answer["sum"]["moved"]), moved);
        assert_eq!(moved > 0, args.contains(&"--consolidate"), "{moved}");
        means.push(number(&told["meanThousandths"]));
    }
    assert!(means[1] < means[0], "{means:?}");
}
