//! Benchmarks of dra-alloc: the index and whole clusters by number of nodes, unsatisfiable searches by number of
//! devices, and selectors.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![expect(clippy::expect_used, reason = "a benchmark stops where its input is wrong")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dra_alloc::explain::Detail;
use dra_alloc::selector::{Options, Selector, SelectorCache, SelectorInput};
use dra_alloc::validate::{ApiServer, Write};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, GateSet, Inventory};
use dra_attrs::{Component, Profile};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{Device, DeviceClass, ResourceClaim, ResourceSlice};
use serde_json::{Value, from_value, json};

const DRIVER: &str = "gpu.example.com";
const NODES: [usize; 4] = [10, 100, 1_000, 10_000];
const DEVICES: [usize; 4] = [8, 16, 31, 128];

fn slice(node: &str, devices: &[Value]) -> Arc<ResourceSlice> {
    let slice = json!({
        "metadata": {"name": format!("{node}-gpus")},
        "spec": {
            "driver": DRIVER, "nodeName": node, "devices": devices,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        },
    });
    Arc::new(from_value(slice).expect("a slice"))
}

/// Builds a device with a NUMA node and a switch.
fn device(index: usize) -> Value {
    let attributes =
        json!({"numa": {"int": index / 4}, "switch": {"int": index % 7}, "id": {"string": index.to_string()}});
    json!({"name": format!("gpu-{index:03}"), "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}})
}

fn devices(count: usize) -> Vec<Value> {
    (0..count).map(device).collect()
}

fn class() -> DeviceClass {
    let selectors = json!([{"cel": {"expression": format!("device.driver == '{DRIVER}'")}}]);
    from_value(json!({"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}})).expect("a class")
}

fn claim(requests: &[(&str, usize)], constraints: &Value) -> [ResourceClaim; 1] {
    let requests: Vec<Value> = requests
        .iter()
        .map(|(name, count)| json!({"name": name, "exactly": {"deviceClassName": "gpu", "count": count}}))
        .collect();
    let devices = json!({"requests": requests, "constraints": constraints});
    [from_value(json!({"metadata": {"name": "claim"}, "spec": {"devices": devices}})).expect("a claim")]
}

fn node(name: &str) -> Node {
    from_value(json!({"metadata": {"name": name}})).expect("a node")
}

fn cluster(criterion: &mut Criterion) {
    for nodes in NODES {
        let names: Vec<String> = (0..nodes).map(|index| format!("node-{index:05}")).collect();
        let gpus = devices(8);
        let slices: Vec<_> = names.iter().map(|name| slice(name, &gpus)).collect();
        let index = || Inventory::new(slices.iter().cloned());
        let mut group = criterion.benchmark_group("cluster/index");
        group.throughput(Throughput::Elements(u64::try_from(nodes).unwrap_or(u64::MAX)));
        group.bench_function(BenchmarkId::from_parameter(nodes), |bencher| bencher.iter(index));
        group.finish();

        let (classes, state, selectors) = ([class()], AllocatedState::default(), SelectorCache::default());
        let nodes: Vec<Node> = names.iter().map(|name| node(name)).collect();
        let one = claim(&[("gpu", 1)], &json!([]));
        let allocate = |inventory: &Inventory| {
            let classes = Classes::new(classes.iter().cloned());
            let allocator = Allocator::new(Profile::Kep, inventory, &classes).with_selector_cache(&selectors);
            allocator.allocate_each(&state, &nodes, &one, Budget::default()).flatten().count()
        };
        let size = BenchmarkId::from_parameter(nodes.len());
        let throughput = Throughput::Elements(u64::try_from(nodes.len()).unwrap_or(u64::MAX));
        let mut group = criterion.benchmark_group("cluster/index_and_first_gpu_on_every_node");
        group.throughput(throughput.clone());
        group.bench_function(size.clone(), |bencher| bencher.iter(|| allocate(&index())));
        group.finish();

        let asked_before = index();
        let mut group = criterion.benchmark_group("cluster/one_gpu_on_every_node");
        group.throughput(throughput);
        group.bench_function(size, |bencher| bencher.iter(|| allocate(&asked_before)));
        group.finish();
    }
}

/// Measures a search without a solution over the devices of one node.
fn bench_search(criterion: &mut Criterion, name: &str, sizes: &[usize], claim: impl Fn(usize) -> [ResourceClaim; 1]) {
    let mut group = criterion.benchmark_group(format!("search/{name}"));
    for &size in sizes {
        let inventory = Inventory::new([slice("node", &devices(size))]);
        let (classes, state, selectors) = ([class()], AllocatedState::default(), SelectorCache::default());
        let classes = Classes::new(classes.iter().cloned());
        let allocator = Allocator::new(Component::new(Profile::Kep, GateSet::all()), &inventory, &classes)
            .with_selector_cache(&selectors);
        let (node, claim) = (node("node"), claim(size));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                allocator.allocate(&state, black_box(&node), &claim, Budget::default()).expect("a verdict").steps
            });
        });
    }
    group.finish();
}

fn searches(criterion: &mut Criterion) {
    let matched = json!([{"matchAttribute": format!("{DRIVER}/numa")}]);
    let distinct = json!([{"distinctAttribute": format!("{DRIVER}/switch")}]);
    bench_search(criterion, "one_more_than_there_are", &DEVICES[..3], |size| claim(&[("r", size + 1)], &json!([])));
    bench_search(criterion, "no_common_value", &DEVICES, |_| claim(&[("a", 3), ("b", 2)], &matched));
    bench_search(criterion, "eight_over_seven_values", &DEVICES, |_| claim(&[("a", 8)], &distinct));
}

fn explanations(criterion: &mut Criterion) {
    let inventory = Inventory::new([slice("node", &devices(16))]);
    let (classes, state, selectors) = ([class()], AllocatedState::default(), SelectorCache::default());
    let classes = Classes::new(classes.iter().cloned());
    let allocator = Allocator::new(Profile::Kep, &inventory, &classes).with_selector_cache(&selectors);
    let (node, claim) = (node("node"), claim(&[("r", 17)], &json!([])));
    let mut group = criterion.benchmark_group("explain");
    for detail in [Detail::Off, Detail::Summary, Detail::Full] {
        let allocator = allocator.clone().with_explanation(detail);
        group.bench_function(format!("{detail:?}"), |bencher| {
            bencher.iter(|| allocator.allocate(&state, &node, &claim, Budget::default()).expect("a verdict").steps);
        });
    }
    group.finish();
}

fn selectors(criterion: &mut Criterion) {
    let device: Device = from_value(device(5)).expect("a device");
    let input = SelectorInput::new(DRIVER, &device);
    let rows = [
        ("driver", format!("device.driver == '{DRIVER}'")),
        ("capacity", format!("device.capacity['{DRIVER}'].memory.compareTo(quantity('40Gi')) >= 0")),
        ("interpreted", format!("device.attributes['{DRIVER}'].id.size() + 1 > 1")),
    ];
    let mut group = criterion.benchmark_group("selector");
    for (name, expression) in rows {
        let selector = Selector::compile(&expression, &Options::stored()).expect("a selector");
        group.bench_function(name, |bencher| bencher.iter(|| selector.matches(black_box(input)) == Ok(true)));
    }
    group.bench_function("compile", |bencher| {
        bencher.iter(|| Selector::compile(black_box("device.driver == 'x'"), &Options::stored()).is_ok());
    });
    group.finish();
}

/// Measures the validation of a slice with many devices: a create, and an update without changes.
fn validation(criterion: &mut Criterion) {
    let server = ApiServer::new(Component::of(Profile::V1_37));
    for count in [1, 8, 128] {
        let slice = slice("node-1", &devices(count));
        let mut group = criterion.benchmark_group("validate");
        group.throughput(Throughput::Elements(u64::try_from(count).unwrap_or(u64::MAX)));
        group.bench_function(BenchmarkId::new("create", count), |bencher| {
            bencher.iter(|| server.validate_slice(Write::create(black_box(&slice))).is_ok());
        });
        group.bench_function(BenchmarkId::new("update", count), |bencher| {
            bencher.iter(|| server.validate_slice(Write::update(&slice, black_box(&slice))).is_ok());
        });
        group.finish();
    }
}

criterion_group!(benches, cluster, searches, explanations, selectors, validation);
criterion_main!(benches);
