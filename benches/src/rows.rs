//! Rows of docs/performance.md on clusters that are big, shared or full: each case beside the one that it is measured by.

use dra_alloc::explain::Detail;
use serde_json::json;

use crate::case::{Call, Case};
use crate::objects::{FABRIC, GPU, ask, by_name, by_selector, claim, devices, fabric, local, pool, racks, some};

/// A case, the case whose node is the unit, and the number of units that a node may cost.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name of the row.
    pub name: &'static str,
    /// Builds the case.
    pub case: fn() -> Case,
    /// Name of the row whose node is the unit.
    pub unit: &'static str,
    /// Largest cost of a node in units.
    pub limit: f64,
    /// Largest counted cost of a node in units: work of the search, blocks and bytes of memory. A quarter above what was
    /// counted, so that a test sees if something is looked at that can't matter.
    pub counted: [f64; 3],
}

/// Largest counted cost of a node of `SMALL`, which is the unit of most rows: work of the search, blocks and bytes of memory. A quarter
/// above 5, 14.1 and 1,103.
pub const UNIT: [f64; 3] = [6.25, 17.7, 1_380.0];

const SMALL: &str = "1 GPU of a node, 200 nodes";
const LARGE: &str = "1 GPU of a node, 5,000 nodes";
const RACKS: &str = "10 racks";
const NAMED_500: &str = "500 nodes by nodeName";
const NAMED_5000: &str = "5,000 nodes by nodeName";
const LOOP: &str = "8 GPUs, loop of allocate";
const NUMA_LOOP: &str = "4 GPUs and a NIC by NUMA node: no, loop";

/// All rows; a unit stands before the rows that it measures.
pub const ROWS: &[Row] = &[
    Row { name: SMALL, case: || one_gpu(200), unit: SMALL, limit: 1.0, counted: [1.0, 1.0, 1.0] },
    Row { name: LARGE, case: || one_gpu(5_000), unit: SMALL, limit: 2.0, counted: [1.0, 1.1, 1.1] },
    Row {
        name: "8 GPUs by an interpreted selector, 200 nodes",
        case: interpreted,
        unit: SMALL,
        limit: 8.0,
        counted: [6.75, 5.0, 10.0],
    },
    Row {
        name: "beside 1,000, driver before",
        case: || beside("a-fabric.example.com", 1_000),
        unit: SMALL,
        limit: 2.0,
        counted: [1.25, 1.3, 1.25],
    },
    Row {
        name: "beside 10,000, driver before",
        case: || beside("a-fabric.example.com", 10_000),
        unit: SMALL,
        limit: 2.0,
        counted: [1.25, 1.3, 1.25],
    },
    Row {
        name: "beside 1,000, driver after",
        case: || beside("z-fabric.example.com", 1_000),
        unit: SMALL,
        limit: 2.0,
        counted: [1.25, 1.3, 1.25],
    },
    Row {
        name: "beside 10,000, driver after",
        case: || beside("z-fabric.example.com", 10_000),
        unit: SMALL,
        limit: 2.0,
        counted: [1.25, 1.3, 1.25],
    },
    Row { name: "beside 10,000, GPUs held: no", case: beside_held, unit: SMALL, limit: 2.0, counted: [0.25, 0.2, 0.5] },
    Row { name: "1 of 10,000 shared, half held", case: half_held, unit: SMALL, limit: 8.0, counted: [1.25, 2.2, 13.0] },
    Row {
        name: "8 of one rack, 10 far ones free: no",
        case: rack_no,
        unit: SMALL,
        limit: 40.0,
        counted: [15.3, 3.7, 7.7],
    },
    Row {
        name: "8 of one rack, 10 neighbours free",
        case: rack_yes,
        unit: SMALL,
        limit: 40.0,
        counted: [4.8, 5.5, 18.0],
    },
    Row { name: RACKS, case: || one_of_racks(10), unit: SMALL, limit: 2.0, counted: [1.25, 1.3, 2.5] },
    Row { name: "100 racks", case: || one_of_racks(100), unit: RACKS, limit: 1.5, counted: [1.0, 1.1, 1.1] },
    Row { name: "300 racks", case: || one_of_racks(300), unit: RACKS, limit: 1.5, counted: [1.0, 1.1, 1.1] },
    Row { name: NAMED_500, case: || named(500), unit: SMALL, limit: 2.0, counted: [1.0, 1.1, 1.1] },
    Row {
        name: "500 nodes by nodeSelector",
        case: || selected(500),
        unit: NAMED_500,
        limit: 3.0,
        counted: [1.25, 1.3, 1.6],
    },
    Row { name: NAMED_5000, case: || named(5_000), unit: SMALL, limit: 2.0, counted: [1.0, 1.1, 1.1] },
    Row {
        name: "5,000 nodes by nodeSelector",
        case: || selected(5_000),
        unit: NAMED_5000,
        limit: 3.0,
        counted: [1.25, 1.3, 1.6],
    },
    Row {
        name: "5,000 full nodes: no",
        case: || one_gpu(5_000).full(),
        unit: LARGE,
        limit: 0.5,
        counted: [0.25, 0.1, 0.42],
    },
    Row {
        name: "5,000 full nodes: explained",
        case: full_explained,
        unit: LARGE,
        limit: 4.0,
        counted: [4.0, 0.8, 1.4],
    },
    Row {
        name: "32 wanted, 10 of 10,000 local free: no",
        case: few_local,
        unit: SMALL,
        limit: 20.0,
        counted: [0.25, 0.45, 0.9],
    },
    Row {
        name: LOOP,
        case: || Case { call: Call::Loop, ..whole_nodes() },
        unit: LOOP,
        limit: 1.0,
        counted: [1.0, 1.0, 1.0],
    },
    Row { name: "8 GPUs, allocate_each", case: whole_nodes, unit: LOOP, limit: 1.0, counted: [1.0, 1.0, 1.0] },
    Row {
        name: NUMA_LOOP,
        case: || Case { call: Call::Loop, ..numa_no() },
        unit: NUMA_LOOP,
        limit: 1.0,
        counted: [1.0, 1.0, 1.0],
    },
    Row {
        name: "4 GPUs and a NIC by NUMA node: no, each",
        case: numa_no,
        unit: NUMA_LOOP,
        limit: 1.0,
        counted: [1.0, 1.0, 1.0],
    },
];

fn one_gpu(nodes: usize) -> Case {
    Case::new(local(nodes, by_name), some(nodes, nodes), ask("gpu", 1))
}

fn interpreted() -> Case {
    let expression = format!("device.attributes['{GPU}'].model.upperAscii() == 'BIG'");
    let asked = json!({"deviceClassName": "gpu", "count": 8, "selectors": [{"cel": {"expression": expression}}]});
    let claims = claim(&json!([{"name": "r", "exactly": asked}]), &json!([]));
    Case::new(local(200, by_name), some(200, 200), claims)
}

fn beside(driver: &str, count: usize) -> Case {
    Case::new([local(200, by_name), fabric(driver, count)].concat(), some(200, 40), ask("gpu", 1))
}

fn beside_held() -> Case {
    beside("z-fabric.example.com", 10_000).held(|number| number < 2_400)
}

fn half_held() -> Case {
    Case::new(fabric(FABRIC, 10_000), some(40, 40), ask("fabric", 1)).held(|number| number < 5_000)
}

fn one_rack() -> Case {
    let asked = json!([{"name": "r", "exactly": {"deviceClassName": "fabric", "count": 8}}]);
    let claims = claim(&asked, &json!([{"matchAttribute": format!("{FABRIC}/group")}]));
    Case::new(fabric(FABRIC, 10_000), some(40, 40), claims)
}

fn rack_no() -> Case {
    one_rack().held(|number| number % 1_000 != 500)
}

fn rack_yes() -> Case {
    one_rack().held(|number| !(4_998..5_008).contains(&number))
}

fn one_of_racks(count: usize) -> Case {
    Case::new(racks(count), some(count * 18, 40), ask("fabric", 1))
}

fn named(nodes: usize) -> Case {
    Case::new(local(nodes, by_name), some(nodes, 40), ask("gpu", 1))
}

fn selected(nodes: usize) -> Case {
    Case::new(local(nodes, by_selector), some(nodes, 40), ask("gpu", 1))
}

fn full_explained() -> Case {
    Case { detail: Detail::Full, ..one_gpu(5_000).full() }
}

fn few_local() -> Case {
    let slices = pool(FABRIC, "host-0", &devices("port", 10_000, 72), &by_name("host-0"));
    Case::new(slices, some(1, 1), ask("fabric", 32)).held(|number| number % 1_000 != 500)
}

fn whole_nodes() -> Case {
    Case::new(local(5_000, by_name), some(5_000, 5_000), ask("gpu", 8))
}

/// Nodes that are alike: a GPU of the NUMA node with the NICs is held, so that three are left there.
fn numa_no() -> Case {
    let asked = |class: &str, count: usize| json!({"deviceClassName": class, "count": count});
    let requests = json!([{"name": "gpus", "exactly": asked("gpu", 4)}, {"name": "nic", "exactly": asked("nic", 1)}]);
    let claims = claim(&requests, &json!([{"matchAttribute": "resource.kubernetes.io/numaNode"}]));
    Case::new(local(5_000, by_name), some(5_000, 5_000), claims).held(|number| number % 12 == 1)
}
