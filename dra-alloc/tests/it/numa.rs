//! Tests of allocations with the NUMA node attribute of KEP-6072.

use dra_alloc::{Gate, Outcome};
use dra_attrs::Profile;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NUMA, ROOT, claim, device, on_numa, pool, request, together};

const GPU: &str = "gpu.example.com";
const NIC: &str = "nic.example.com";
const CPU: &str = "cpu.example.com";
const MEMORY: &str = "memory.example.com";

fn two(left: &[i64], right: &[i64]) -> Cluster {
    Cluster::new([
        pool(CPU, "node-1", json!([on_numa("cpu", left)])),
        pool(NIC, "node-1", json!([on_numa("nic", right)])),
    ])
}

#[test]
fn a_scalar_meets_a_list() {
    // req: 6072-MATCH-7
    let claims = [together("pair", &["cpu", "nic"], NUMA)];
    assert_eq!(two(&[4], &[4, 5, 6, 7]).devices("node-1", &claims).unwrap(), ["cpu cpu", "nic nic"]);
    assert_eq!(two(&[0], &[4, 5, 6, 7]).devices("node-1", &claims), None);
}

#[test]
fn a_list_of_one_element_meets_a_list() {
    // req: 6072-MATCH-7
    for (node, expected) in [(4, true), (0, false)] {
        for value in [json!({"int": node}), json!({"ints": [node]})] {
            let cluster = Cluster::new([
                pool(CPU, "node-1", json!([device("cpu", NUMA, value.clone())])),
                pool(NIC, "node-1", json!([on_numa("nic", &[4, 5, 6, 7])])),
            ]);
            let claims = [together("pair", &["cpu", "nic"], NUMA)];
            assert_eq!(cluster.devices("node-1", &claims).is_some(), expected, "{value}");
        }
    }
}

#[test]
fn lists_need_their_gate() {
    // req: 6072-MATCH-6, 6072-MATCH-13
    let pair = [together("pair", &["cpu", "nic"], NUMA)];
    for profile in [Profile::Kep, Profile::V1_37] {
        let mut lists = two(&[4], &[4, 5]);
        lists.profile = profile;
        lists.gates = lists.gates.without(Gate::ListTypeAttributes);
        assert_eq!(lists.allocate("node-1", &pair), Outcome::Unsatisfied);
        lists.gates = lists.gates.with(Gate::ListTypeAttributes);
        assert!(lists.devices("node-1", &pair).is_some());

        let mut scalars = two(&[4], &[4]);
        scalars.profile = profile;
        for features in [scalars.gates, scalars.gates.without(Gate::ListTypeAttributes)] {
            scalars.gates = features;
            assert!(scalars.devices("node-1", &pair).is_some());
        }
    }
}

#[test]
fn a_single_list_with_the_gate_off() {
    // req: 6072-MATCH-6
    let alone = [together("alone", &["nic"], NUMA)];
    let mut cluster = two(&[4], &[4, 5]);
    cluster.gates = cluster.gates.without(Gate::ListTypeAttributes);
    assert!(cluster.devices("node-1", &alone).is_some(), "1.37 takes the first device unseen");
    cluster.profile = Profile::Kep;
    assert_eq!(cluster.allocate("node-1", &alone), Outcome::Unsatisfied);
}

#[test]
fn one_cpu_device_serves_claims_until_its_capacity_is_used_up() {
    // req: 6072-MATCH-8
    let cpu = json!({
        "name": "numa-0", "allowMultipleAllocations": true,
        "attributes": {NUMA: {"int": 0}}, "capacity": {"cores": {"value": "8"}},
    });
    let nics: Vec<Value> = (0..4).map(|index| on_numa(&format!("vf-{index}"), &[0, 1])).collect();
    let mut cluster = Cluster::new([pool(CPU, "node-1", json!([cpu])), pool(NIC, "node-1", json!(nics))]);
    let cores = json!({"capacity": {"requests": {"cores": "3"}}});
    let claims: Vec<_> = (0..3)
        .map(|index| {
            let requests = json!([request("cpu", "cpu", cores.clone()), request("nic", "nic", json!({}))]);
            claim(&format!("claim-{index}"), requests, json!([{"matchAttribute": NUMA}]))
        })
        .collect();
    let answers = cluster.allocate_in_turn("node-1", &claims);
    assert_eq!(answers[0].as_deref().unwrap(), ["cpu numa-0", "nic vf-0"]);
    assert_eq!(answers[1].as_deref().unwrap(), ["cpu numa-0", "nic vf-1"]);
    assert_eq!(answers[2], None, "2 cores are left of 8");
}

#[test]
fn a_node_is_partitioned_for_four_pods() {
    // req: 6072-MATCH-9
    // Each driver lists its devices in its own order: the first free devices are on different NUMA nodes.
    let on = |kind: &str, copies: &[&str], nodes: [i64; 4]| -> Vec<Value> {
        let names = nodes.into_iter().flat_map(|node| copies.iter().map(move |copy| (node, copy)));
        names.map(|(node, copy)| on_numa(&format!("{kind}-{node}{copy}"), &[node])).collect()
    };
    let cpu = |node: i64| {
        json!({
            "name": format!("cpu-{node}"), "allowMultipleAllocations": true,
            "attributes": {NUMA: {"int": node}}, "capacity": {"cores": {"value": "16"}},
        })
    };
    let cpus: Vec<Value> = [3, 1, 0, 2].map(cpu).to_vec();
    let cores = json!({"capacity": {"requests": {"cores": "12"}}});
    let pod = |number: usize| {
        let requests = [("gpu", json!({})), ("nic", json!({})), ("cpu", cores.clone())];
        let requests = requests.map(|(class, fields)| request(class, class, fields));
        claim(&format!("pod-{number}"), json!(requests), json!([{"matchAttribute": NUMA}]))
    };
    // One GPU and one VF for each NUMA node; then two of each, so that only the cores force the pods to other NUMA
    // nodes.
    for (copies, ascending) in [(&[""][..], [2, 0, 3, 1]), (&["", "-b"], [0, 1, 2, 3])] {
        let (gpus, nics) = (on("gpu", copies, [0, 1, 2, 3]), on("vf", copies, ascending));
        let pools = [(GPU, gpus), (NIC, nics), (CPU, cpus.clone())];
        let mut cluster = Cluster::new(pools.map(|(driver, devices)| pool(driver, "node-1", json!(devices))));
        let answers = cluster.allocate_in_turn("node-1", &[0, 1, 2, 3, 4].map(pod));
        for (node, answer) in answers[..4].iter().enumerate() {
            let expected = [format!("gpu gpu-{node}"), format!("nic vf-{node}"), format!("cpu cpu-{node}")];
            assert_eq!(answer.as_deref().unwrap(), expected);
        }
        assert_eq!(answers[4], None);
    }
}

#[test]
fn four_drivers_share_a_node_in_mixed_forms() {
    // req: 6072-MATCH-17
    let cluster = Cluster::new([
        pool(GPU, "node-1", json!([on_numa("far", &[2, 3]), on_numa("gpu", &[5, 4, 6, 7])])),
        pool(NIC, "node-1", json!([on_numa("nic", &[6, 4, 5, 7])])),
        pool(CPU, "node-1", json!([on_numa("cpu-4", &[4]), on_numa("cpu-5", &[5])])),
        pool(MEMORY, "node-1", json!([on_numa("memory-5", &[5])])),
    ]);
    let claims = [together("all", &["gpu", "nic", "cpu", "memory"], NUMA)];
    let devices = cluster.devices("node-1", &claims).unwrap();
    assert_eq!(devices, ["gpu gpu", "nic nic", "cpu cpu-5", "memory memory-5"]);
}

#[test]
fn a_pcie_root_leaves_cpus_and_memory_out() {
    // req: 6072-MATCH-15
    let gpu = json!({"name": "gpu", "attributes": {NUMA: {"int": 1}, ROOT: {"string": "pci0000:16"}}});
    let cluster = Cluster::new([
        pool(GPU, "node-1", json!([gpu])),
        pool(CPU, "node-1", json!([on_numa("cpu", &[1])])),
        pool(MEMORY, "node-1", json!([on_numa("memory", &[1])])),
    ]);
    for other in ["cpu", "memory"] {
        assert_eq!(cluster.devices("node-1", &[together("root", &["gpu", other], ROOT)]), None);
        assert!(cluster.devices("node-1", &[together("numa", &["gpu", other], NUMA)]).is_some());
    }
}

/// GPUs and NICs of a board, with their root ports and NUMA nodes.
struct Board {
    name: &'static str,
    gpus: &'static [(&'static str, &'static [i64])],
    nics: &'static [(&'static str, &'static [i64])],
    /// Number of GPUs that can be allocated with a NIC by root port, and by NUMA node.
    by_root: usize,
    by_numa: usize,
}

const NPS4_SOCKET_1: [&[i64]; 2] = [&[5, 4, 6, 7], &[6, 4, 5, 7]];

const BOARDS: [Board; 4] = [
    Board {
        name: "Dell XE8640",
        gpus: &[("pci0000:48", &[0]), ("pci0000:59", &[0]), ("pci0000:c7", &[1]), ("pci0000:d7", &[1])],
        nics: &[("pci0000:48", &[0])],
        by_root: 1,
        by_numa: 2,
    },
    Board {
        name: "Dell R760xa",
        gpus: &[("pci0000:4a", &[0]), ("pci0000:c9", &[1])],
        nics: &[("pci0000:15", &[0]), ("pci0000:97", &[1])],
        by_root: 0,
        by_numa: 2,
    },
    Board { name: "Supermicro AS-8126GS-TNMR", gpus: &EIGHT_ROOTS, nics: &EIGHT_ROOTS, by_root: 8, by_numa: 8 },
    Board {
        name: "Dell R7725",
        gpus: &[("pci0000:c0", NPS4_SOCKET_1[0])],
        nics: &[("pci0000:e0", NPS4_SOCKET_1[1])],
        by_root: 0,
        by_numa: 1,
    },
];

const EIGHT_ROOTS: [(&str, &[i64]); 8] = [
    ("pci0000:00", &[0]),
    ("pci0000:10", &[0]),
    ("pci0000:20", &[0]),
    ("pci0000:30", &[0]),
    ("pci0000:80", &[1]),
    ("pci0000:90", &[1]),
    ("pci0000:a0", &[1]),
    ("pci0000:b0", &[1]),
];

impl Board {
    fn devices(kind: &str, devices: &[(&str, &[i64])]) -> Value {
        let devices = devices.iter().enumerate().map(|(index, (root, nodes))| {
            let mut device = on_numa(&format!("{kind}-{index}"), nodes);
            device["attributes"][ROOT] = json!({"string": root});
            device
        });
        json!(devices.collect::<Vec<_>>())
    }

    /// Counts the GPUs that can be allocated with some NIC of the same attribute value.
    fn placeable(&self, attribute: &str) -> usize {
        let nics = pool(NIC, "node-1", Self::devices("nic", self.nics));
        let gpu = |index: &usize| {
            let gpu = Self::devices("gpu", &self.gpus[*index..=*index]);
            let cluster = Cluster::new([pool(GPU, "node-1", gpu), nics.clone()]);
            cluster.devices("node-1", &[together("pair", &["gpu", "nic"], attribute)]).is_some()
        };
        (0..self.gpus.len()).filter(gpu).count()
    }
}

#[test]
fn boards_by_pcie_root_and_by_numa_node() {
    // req: 6072-MATCH-16
    for board in BOARDS {
        assert_eq!(board.placeable(ROOT), board.by_root, "{}", board.name);
        assert_eq!(board.placeable(NUMA), board.by_numa, "{}", board.name);
    }
}

#[test]
fn after_a_downgrade_to_scalars_only_equality_is_left() {
    // req: 6072-UPDOWN-2
    let claims = [together("pair", &["cpu", "nic"], NUMA)];
    assert!(two(&[5, 4, 6, 7], &[6, 4, 5, 7]).devices("node-1", &claims).is_some());
    for gate_on in [true, false] {
        for (nic, matches) in [(6, false), (5, true)] {
            let mut scalars = two(&[5], &[nic]);
            if !gate_on {
                scalars.gates = scalars.gates.without(Gate::ListTypeAttributes);
            }
            assert_eq!(scalars.devices("node-1", &claims).is_some(), matches);
        }
    }
}
