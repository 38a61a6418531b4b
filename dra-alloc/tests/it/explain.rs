//! Tests of explanations against the golden file `golden/explain.txt`.
//!
//! `UPDATE=1 cargo test -p dra-alloc golden` rewrites the file; read the difference before committing it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use dra_alloc::explain::{Cause, Detail, Explanation, Suggestion};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Allocator, Budget, Classes, DeviceId, Gate, Index, Profile, cluster_summary};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};
use serde_json::{Value, json};

use crate::cluster::{Cluster, NUMA, ROOT, claim, device, node, on_numa, pool, request, together, with};

pub(crate) const GPU: &str = "gpu.example.com";
pub(crate) const NIC: &str = "nic.example.com";
const CPU: &str = "cpu.example.com";

/// A named failure: a cluster, and claims that it does not satisfy.
struct Case {
    name: &'static str,
    cluster: Cluster,
    claims: Vec<ResourceClaim>,
    node: Node,
    budget: u64,
}

fn case(name: &'static str, cluster: Cluster, claims: impl Into<Vec<ResourceClaim>>) -> Case {
    Case { name, cluster, claims: claims.into(), node: node("node-1"), budget: 1_000_000 }
}

fn gpus(count: usize, fields: Value) -> Cluster {
    Cluster::new([pool(GPU, "node-1", gpu_devices(count, fields))])
}

pub(crate) fn gpu_devices(count: usize, fields: Value) -> Value {
    let devices = (0..count).map(|index| {
        let mut device = json!({"name": format!("gpu-{index}"), "attributes": {"model": {"string": "l4"}}});
        device.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        device
    });
    devices.collect()
}

pub(crate) fn ask(fields: Value) -> [ResourceClaim; 1] {
    [claim("training", json!([request("gpu", "gpu", fields)]), json!([]))]
}

pub(crate) fn selector(expression: &str) -> Value {
    json!({"selectors": [{"cel": {"expression": expression}}]})
}

fn held(mut cluster: Cluster, count: u64) -> Cluster {
    let claims = [claim("other", json!([request("gpu", "gpu", json!({"count": count}))]), json!([]))];
    assert!(cluster.allocate_in_turn("node-1", &claims)[0].is_some());
    cluster
}

/// Lets another claim hold devices of node-1 that are held already, as a second scheduler does.
pub(crate) fn held_again(mut cluster: Cluster, name: &str, devices: &[&str]) -> Cluster {
    let result = |device: &&str| json!({"request": "r", "driver": GPU, "pool": "node-1", "device": device});
    let results: Vec<Value> = devices.iter().map(result).collect();
    let allocation: AllocationResult = serde_json::from_value(json!({"devices": {"results": results}})).unwrap();
    cluster.state.assume(&claim(name, json!([]), json!([])), &allocation).unwrap();
    cluster
}

pub(crate) fn without(mut cluster: Cluster, feature: Gate) -> Cluster {
    cluster.gates = cluster.gates.without(feature);
    cluster
}

fn pair(gpu: &[i64], nic: &[i64]) -> Cluster {
    Cluster::new([
        pool(GPU, "node-1", json!([on_numa("gpu-0", gpu)])),
        pool(NIC, "node-1", json!([on_numa("nic-0", nic)])),
    ])
}

fn shared_cpu(cores: &str, policy: Value) -> Cluster {
    let capacity = json!({"cores": {"value": cores, "requestPolicy": policy}});
    Cluster::new([pool(
        CPU,
        "node-1",
        json!([{"name": "cpu-0", "allowMultipleAllocations": true, "capacity": capacity}]),
    )])
}

fn cores(amount: &str) -> [ResourceClaim; 1] {
    let fields = json!({"capacity": {"requests": {"cores": amount}}});
    [claim("pod", json!([request("cpu", "cpu", fields)]), json!([]))]
}

fn partitions(groups: [Value; 2]) -> Cluster {
    let part = |(index, groups): (usize, Value)| {
        let consumed =
            json!([{"counterSet": "card", "counters": {"memory": {"value": "40Gi"}}, "compatibilityGroups": groups}]);
        json!({"name": format!("half-{index}"), "consumesCounters": consumed})
    };
    let parts: Vec<Value> = groups.into_iter().enumerate().map(part).collect();
    let mut devices = pool(GPU, "node-1", json!(parts));
    let counters = json!([{"name": "card", "counters": {"memory": {"value": "60Gi"}}}]);
    let mut sets = with(pool(GPU, "node-1", json!([])), "sharedCounters", counters);
    sets["metadata"]["name"] = json!("counters");
    for slice in [&mut devices, &mut sets] {
        slice["spec"]["pool"]["resourceSliceCount"] = json!(2);
    }
    Cluster::new([devices, sets])
}

/// Sets all counters to a value that suffices for all partitions.
fn unused_counters(mut cluster: Cluster) -> Cluster {
    for slice in cluster.slices.iter_mut().map(Arc::make_mut) {
        for set in slice.spec.shared_counters.iter_mut().flatten() {
            set.counters.values_mut().for_each(|counter| "80Gi".clone_into(&mut counter.value.0));
        }
    }
    cluster
}

/// Sets the amounts that the partitions consume.
fn set_amounts(cluster: &mut Cluster, amounts: [&str; 2]) {
    let devices = cluster.slices.iter_mut().flat_map(|slice| Arc::make_mut(slice).spec.devices.iter_mut().flatten());
    for (device, amount) in devices.zip(amounts) {
        let consumed = device.consumes_counters.iter_mut().flatten().flat_map(|set| set.counters.values_mut());
        consumed.for_each(|counter| amount.clone_into(&mut counter.value.0));
    }
}

fn list(alternatives: Value) -> Vec<ResourceClaim> {
    vec![claim("training", json!([{"name": "gpu", "firstAvailable": alternatives}]), json!([]))]
}

fn incomplete() -> Cluster {
    let mut slice = pool(GPU, "node-1", json!([{"name": "gpu-0"}]));
    slice["spec"]["pool"]["resourceSliceCount"] = json!(2);
    Cluster::new([slice])
}

fn skipping() -> Cluster {
    Cluster::new([with(pool(CPU, "node-1", json!([{"name": "cpu-0"}])), "skipNodeOperations", json!(["*"]))])
}

fn one_cpu() -> Vec<ResourceClaim> {
    vec![claim("pod", json!([request("cpu", "cpu", json!({}))]), json!([]))]
}

fn devices_and_classes() -> Vec<Case> {
    let all = json!({"allocationMode": "All"});
    let mut other_node = gpus(1, json!({}));
    other_node.slices = Cluster::new([pool(GPU, "node-2", json!([{"name": "gpu-0"}]))]).slices;
    let mut wrong_class = gpus(2, json!({}));
    wrong_class.classes.extend(Cluster::new([pool(NIC, "node-1", json!([]))]).classes);
    let nic = [claim("training", json!([request("nic", "nic", json!({}))]), json!([]))];
    let model = |index: usize| if index < 2 { "h100" } else { "l4" };
    let models = (0..5).map(|index| device(&format!("gpu-{index}"), "model", json!({"string": model(index)})));
    let two_models = Cluster::new([pool(GPU, "node-1", models.collect())]);
    let mut two_of_three = selector("device.attributes['gpu.example.com'].model == 'h100'");
    two_of_three["count"] = json!(3);
    let mut per_device = gpus(1, json!({"nodeName": "node-2"}));
    let mut spread = serde_json::to_value(&*per_device.slices[0]).unwrap();
    spread["spec"].as_object_mut().unwrap().remove("nodeName");
    spread["spec"]["perDeviceNodeSelection"] = json!(true);
    spread["spec"]["devices"] =
        json!([{"name": "here", "nodeName": "node-1"}, {"name": "there", "nodeName": "node-2"}]);
    per_device.slices = Cluster::new([spread]).slices;
    vec![
        case(
            "no class of that name",
            gpus(1, json!({})),
            [claim("c", json!([request("r", "tpu", json!({}))]), json!([]))],
        ),
        case("no device of the class", wrong_class, nic),
        case("no slices for the node", other_node, ask(json!({}))),
        case("too few devices", gpus(2, json!({})), ask(json!({"count": 3}))),
        case("all are held", held(gpus(2, json!({})), 2), ask(json!({}))),
        case("some are held", held(gpus(4, json!({})), 3), ask(json!({"count": 2}))),
        case("one of eight is left", held(gpus(8, json!({})), 7), ask(json!({"count": 2}))),
        case(
            "all are held, one by two claims",
            held_again(held(gpus(2, json!({})), 2), "another", &["gpu-1"]),
            ask(json!({})),
        ),
        case(
            "some are held, two of them by three claims",
            held_again(
                held_again(held(gpus(4, json!({})), 3), "another", &["gpu-0", "gpu-2"]),
                "one more",
                &["gpu-0", "gpu-2"],
            ),
            ask(json!({"count": 2})),
        ),
        case("the selector admits too few", two_models, ask(two_of_three)),
        case("all devices wanted, one in use", held(gpus(3, json!({})), 1), ask(all.clone())),
        case("all devices wanted, there are none", gpus(0, json!({})), ask(all)),
        case("devices of other nodes in the same slice", per_device, ask(json!({"count": 2}))),
        case(
            "two requests compete",
            gpus(3, json!({})),
            [claim(
                "training",
                json!([request("a", "gpu", json!({"count": 2})), request("b", "gpu", json!({"count": 2}))]),
                json!([]),
            )],
        ),
        case(
            "two claims compete",
            gpus(1, json!({})),
            ["training", "inference"].map(|name| claim(name, json!([request("gpu", "gpu", json!({}))]), json!([]))),
        ),
    ]
}

fn selectors() -> Vec<Case> {
    let missing = "device.attributes['gpu.example.com'].memory > 4";
    vec![
        case(
            "selector false",
            gpus(2, json!({})),
            ask(selector("device.attributes['gpu.example.com'].model == 'h100'")),
        ),
        case("selector error with a hint", gpus(1, json!({})), ask(selector(missing))),
        case("selector that does not compile", gpus(1, json!({})), ask(selector("device.modell == 'l4'"))),
    ]
}

fn taints_and_pools() -> Vec<Case> {
    let taints = json!({"taints": [{"key": "health", "value": "bad", "effect": "NoSchedule"}]});
    let mut invalid = gpus(1, json!({}));
    invalid.slices = Cluster::new([pool(GPU, "node-1", json!([{"name": "gpu-0"}, {"name": "gpu-0"}]))]).slices;
    let mut miscounted = gpu_devices(2, json!({}));
    let slices = [miscounted[0].take(), miscounted[1].take()].map(|device| pool(GPU, "node-1", json!([device])));
    let mut miscounted = Cluster::new(slices);
    miscounted.slices.iter_mut().for_each(|slice| Arc::make_mut(slice).spec.pool.resource_slice_count = 0);
    let all = json!({"allocationMode": "All"});
    vec![
        case("tainted", gpus(2, taints), ask(json!({}))),
        case("pool incomplete", incomplete(), ask(json!({}))),
        case("pool that announces fewer slices than it has", miscounted, ask(json!({}))),
        case("pool incomplete, all devices wanted", incomplete(), ask(all)),
        case("pool invalid", invalid, ask(json!({}))),
    ]
}

fn constraints() -> Vec<Case> {
    let distinct = json!([{"distinctAttribute": "gpu.example.com/model"}]);
    let two = claim("training", json!([request("gpu", "gpu", json!({"count": 2}))]), distinct);
    let cpus = [0, 2].map(|numa| on_numa(&format!("cpu-{numa}"), &[numa]));
    let three = Cluster::new([
        pool(GPU, "node-1", json!([on_numa("gpu-0", &[0, 1])])),
        pool(NIC, "node-1", json!([on_numa("nic-0", &[1, 2])])),
        pool(CPU, "node-1", json!(cpus)),
    ]);
    let root = Cluster::new([
        pool(GPU, "node-1", json!([device("gpu-0", ROOT, json!({"string": "pci0000:00"}))])),
        pool(CPU, "node-1", json!([on_numa("cpu-0", &[0])])),
    ]);
    let mut kep = without(pair(&[0, 1], &[0]), Gate::ListTypeAttributes);
    kep.profile = Profile::Kep;
    let near_and_far = Cluster::new([
        pool(GPU, "node-1", json!([on_numa("gpu-0", &[0]), on_numa("gpu-1", &[1])])),
        pool(NIC, "node-1", json!([on_numa("nic-0", &[0])])),
    ]);
    let near = selector("device.attributes['resource.kubernetes.io'].numaNode == 0");
    let near = claim("inference", json!([request("gpu", "gpu", near)]), json!([]));
    vec![
        case(
            "one claim needs a device for its constraint that another wants",
            near_and_far,
            [together("training", &["gpu", "nic"], NUMA), near],
        ),
        case("scalars do not match", pair(&[0], &[4]), [together("training", &["gpu", "nic"], NUMA)]),
        case("lists do not match", pair(&[0, 1], &[4, 5]), [together("training", &["gpu", "nic"], NUMA)]),
        case("three drivers have nothing in common", three, [together("training", &["gpu", "nic", "cpu"], NUMA)]),
        case("distinct over equal values", gpus(3, json!({})), [two]),
        case("a device without the attribute", root, [together("training", &["gpu", "cpu"], ROOT)]),
        case(
            "gate for lists off",
            without(pair(&[0, 1], &[0]), Gate::ListTypeAttributes),
            [together("training", &["gpu", "nic"], NUMA)],
        ),
        case("gate for lists off, by the KEP", kep, [together("training", &["gpu", "nic"], NUMA)]),
    ]
}

fn capacities_and_counters() -> Vec<Case> {
    let range = json!({"validRange": {"min": "1", "max": "4"}});
    let mut used = shared_cpu("8", json!(null));
    assert!(used.allocate_in_turn("node-1", &cores("6"))[0].is_some());
    let part = request("gpu", "gpu", json!({}));
    let mut half_used = partitions([json!([]), json!([])]);
    assert!(half_used.allocate_in_turn("node-1", &[claim("other", json!([part]), json!([]))])[0].is_some());
    let mut grouped = partitions([json!(["mig"]), json!(["vgpu"])]);
    assert!(grouped.allocate_in_turn("node-1", &[claim("other", json!([part]), json!([]))])[0].is_some());
    let sized = json!([{"name": "gpu-0", "capacity": {"memory": {"value": "10Gi"}}}, {"name": "gpu-1"}]);
    let mut unsized_held = Cluster::new([pool(GPU, "node-1", sized)]);
    unsized_held.state.hold(&DeviceId::new(GPU, "node-1", "gpu-1"));
    let memory = json!({"capacity": {"requests": {"memory": "5Gi"}}});
    let all = json!({"allocationMode": "All", "capacity": memory["capacity"]});
    let share = |name| request(name, "cpu", json!({"capacity": {"requests": {"cores": "5"}}}));
    let two_cpus = [claim("pod", json!([share("a"), share("b")]), json!([]))];
    let bandwidth = json!({"capacity": {"requests": {"bandwidth": "1"}}});
    vec![
        case("capacity used up", used, cores("3")),
        case("capacity too small", shared_cpu("8", json!(null)), cores("9")),
        case("capacity policy", shared_cpu("8", range), cores("5")),
        case(
            "no such capacity",
            shared_cpu("8", json!(null)),
            [claim("pod", json!([request("cpu", "cpu", bandwidth)]), json!([]))],
        ),
        case(
            "all devices of a capacity wanted, one without it in use",
            unsized_held,
            [claim("training", json!([request("every", "gpu", all), request("one", "gpu", memory)]), json!([]))],
        ),
        case("counters used up by a partition", half_used, ask(json!({}))),
        case(
            "counters do not suffice for two partitions",
            partitions([json!([]), json!([])]),
            ask(json!({"count": 2})),
        ),
        case(
            "partitions of different groups",
            unused_counters(partitions([json!(["mig"]), json!(["vgpu"])])),
            ask(json!({"count": 2})),
        ),
        case("a capacity does not suffice for two shares", shared_cpu("8", json!(null)), two_cpus),
        case("groups of partitions", grouped, ask(json!({}))),
        case(
            "gate for partitions off",
            without(partitions([json!([]), json!([])]), Gate::PartitionableDevices),
            ask(json!({})),
        ),
    ]
}

fn gates_and_limits() -> Vec<Case> {
    // Too few devices are known without a search, but for a selector that may fail.
    let may_fail = json!([{"cel": {"expression": "size(device.driver) > 0"}}]);
    let mut kep = without(skipping(), Gate::OptionalNodeOperations);
    kep.profile = Profile::Kep;
    let silent = Case {
        node: serde_json::from_value(json!({"metadata": {"name": "node-1"}})).unwrap(),
        ..case("skipNodeOperations, the node does not declare it", skipping(), one_cpu())
    };
    let alternatives = json!([
        {"name": "big", "deviceClassName": "gpu", "count": 4},
        {"name": "h100", "deviceClassName": "gpu", "selectors": selector("device.attributes['gpu.example.com'].model == 'h100'")["selectors"]},
    ]);
    let wide = json!([{"name": "a", "deviceClassName": "gpu", "count": 20}, {"name": "b", "deviceClassName": "none-left", "count": 1}]);
    let mut limit = gpus(40, json!({}));
    limit
        .classes
        .push(serde_json::from_value(json!({"metadata": {"name": "none-left"}, "spec": selector("false")})).unwrap());
    let too_many = json!([
        {"name": "every", "deviceClassName": "gpu", "allocationMode": "All"},
        {"name": "b", "deviceClassName": "none-left"},
    ]);
    let twice = json!([{"name": "first", "firstAvailable": wide}, {"name": "second", "firstAvailable": wide}]);
    let conditions = json!({"bindingConditions": ["ready"]});
    let mut foreign = Cluster::new([pool(NIC, "node-1", gpu_devices(1, conditions.clone()))]);
    foreign.classes.extend(gpus(0, json!({})).classes);
    let mixed = json!([{"name": "gpu-0"}, {"name": "gpu-1", "bindingConditions": ["ready"]}]);
    let statuses_off = without(gpus(1, conditions.clone()), Gate::ResourceClaimDeviceStatus);
    let all = request("every", "gpu", json!({"allocationMode": "All"}));
    let all_and_one = [claim("training", json!([all, request("one", "gpu", json!({}))]), json!([]))];
    vec![
        case("firstAvailable exhausted", gpus(2, json!({})), list(alternatives)),
        case(
            "firstAvailable off",
            without(gpus(1, json!({})), Gate::PrioritizedList),
            list(json!([{"name": "a", "deviceClassName": "gpu"}])),
        ),
        case("admin access off", without(gpus(1, json!({})), Gate::AdminAccess), ask(json!({"adminAccess": true}))),
        case("binding conditions off", without(gpus(1, conditions), Gate::DeviceBindingConditions), ask(json!({}))),
        case(
            "binding conditions off, as the status of devices is",
            without(statuses_off, Gate::DeviceBindingConditions),
            ask(json!({})),
        ),
        case(
            "binding conditions off, on a device of another class",
            without(foreign, Gate::DeviceBindingConditions),
            ask(json!({})),
        ),
        case(
            "all devices wanted, one with binding conditions that are off",
            without(Cluster::new([pool(GPU, "node-1", mixed)]), Gate::DeviceBindingConditions),
            all_and_one,
        ),
        case("skipNodeOperations off, as shipped", without(skipping(), Gate::OptionalNodeOperations), one_cpu()),
        case("skipNodeOperations off, by the KEP", kep, one_cpu()),
        silent,
        case("limit of 32 devices", gpus(40, json!({})), ask(json!({"count": 33}))),
        case("limit of 32 devices, all devices wanted", limit.clone(), list(too_many)),
        limit_or_constraint(),
        case("limit of 32 devices over alternatives", limit, [claim("training", twice, json!([]))]),
        Case {
            budget: 4,
            ..case("budget exhausted", gpus(8, json!({})), ask(json!({"count": 9, "selectors": may_fail})))
        },
    ]
}

/// A claim whose requests together exceed the limit of devices, and where the GPU of another model breaks a constraint.
fn limit_or_constraint() -> Case {
    let (model, is) =
        ("gpu.example.com/model", |model| format!("device.attributes['gpu.example.com'].model == '{model}'"));
    let mut devices = gpu_devices(36, json!({}));
    devices.as_array_mut().unwrap().push(device("other", "model", json!({"string": "h100"})));
    let alternatives = json!([
        {"name": "many", "deviceClassName": "gpu", "count": 30, "selectors": selector(&is("l4"))["selectors"]},
        {"name": "other", "deviceClassName": "gpu", "selectors": selector(&is("h100"))["selectors"]},
    ]);
    let five = json!({"count": 5, "selectors": selector(&is("l4"))["selectors"]});
    let requests = json!([{"name": "a", "firstAvailable": alternatives}, request("b", "gpu", five)]);
    let constraints = json!([{"matchAttribute": model, "requests": ["a/other", "b"]}]);
    let claims = [claim("training", requests, constraints)];
    case("limit of 32 devices, or else a constraint", Cluster::new([pool(GPU, "node-1", devices)]), claims)
}

impl Case {
    fn text(&self) -> String {
        let (inventory, selectors) = (self.cluster.inventory(), SelectorCache::default());
        let classes = Classes::new(self.cluster.classes.iter().cloned());
        let allocator = Allocator::new(Component::new(self.cluster.profile, self.cluster.gates), &inventory, &classes)
            .with_selector_cache(&selectors)
            .with_explanation(Detail::Full);
        let mut text = format!("## {}\n", self.name);
        match allocator.allocate(&self.cluster.state, &self.node, &self.claims, Budget::work(self.budget)) {
            Err(error) => writeln!(text, "error: {error}\n").unwrap(),
            Ok(verdict) => {
                let explanation = verdict.explanation.as_ref().unwrap_or_else(|| panic!("{} is allocated", self.name));
                writeln!(text, "{explanation}\n\n{}", explanation.tree()).unwrap();
                writeln!(text, "{}\n", cluster_summary(std::slice::from_ref(&verdict))).unwrap();
            }
        }
        text
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a golden text is a file")]
fn golden_texts() {
    let cases = [
        devices_and_classes(),
        selectors(),
        taints_and_pools(),
        constraints(),
        capacities_and_counters(),
        gates_and_limits(),
    ]
    .into_iter()
    .flatten()
    .collect::<Vec<_>>();
    assert!(cases.len() >= 30, "{}", cases.len());
    let text: String = cases.iter().map(Case::text).collect();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/explain.txt");
    if std::env::var_os("UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, &text).unwrap();
    }
    let golden = fs::read_to_string(&file).unwrap_or_default();
    for (expected, actual) in golden.split("## ").zip(text.split("## ")) {
        assert_eq!(expected, actual);
    }
    assert_eq!(golden.len(), text.len());
}

#[test]
fn a_list_that_is_not_understood_is_the_reason_given() {
    // req: 6072-MATCH-6
    for profile in [Profile::Kep, Profile::V1_37] {
        for (gpu, nic) in [(&[0, 1][..], &[0][..]), (&[0, 1], &[4]), (&[0], &[4, 5]), (&[0, 1], &[4, 5])] {
            let claims = [together("training", &["gpu", "nic"], NUMA)];
            let mut case = case("lists", without(pair(gpu, nic), Gate::ListTypeAttributes), claims);
            case.cluster.profile = profile;
            let text = case.text();
            assert!(text.contains("list-typed attributes are disabled"), "{text}");
        }
    }
}

/// While the gate for groups is off, a device without groups does not keep others from its counter set.
#[test]
fn devices_without_groups_share_a_counter_set_with_the_gate_off() {
    let one = [claim("one", json!([request("gpu", "gpu", json!({}))]), json!([]))];
    for (groups, second) in [([json!([]), json!([])], true), ([json!(["mig"]), json!([])], false)] {
        let mut cluster = unused_counters(partitions(groups));
        assert!(cluster.allocate_in_turn("node-1", &one)[0].as_ref().unwrap()[0].ends_with("half-0"));
        let mut cluster = without(cluster, Gate::DeviceCompatibilityGroups);
        assert_eq!(cluster.allocate_in_turn("node-1", &one)[0].is_some(), second);
    }
}

pub(crate) fn explained(cluster: &Cluster, claims: &[ResourceClaim]) -> Option<Explanation> {
    let (inventory, selectors) = (cluster.inventory(), SelectorCache::default());
    let classes = Classes::new(cluster.classes.iter().cloned());
    Allocator::new(Component::new(Profile::Kep, cluster.gates), &inventory, &classes)
        .with_selector_cache(&selectors)
        .with_explanation(Detail::Full)
        .allocate(&cluster.state, &node("node-1"), claims, Budget::default())
        .unwrap()
        .explanation
        .map(Arc::unwrap_or_clone)
}

/// Two constraints have the same attribute, and only the second one can't be satisfied.
#[test]
fn a_constraint_is_named_by_its_place_in_the_claim() {
    let devices = [0, 1].map(|index| device(&format!("gpu-{index}"), "slot", json!({"int": index})));
    let slot = "gpu.example.com/slot";
    let constraints = json!([{"matchAttribute": slot, "requests": ["a"]}, {"matchAttribute": slot}]);
    let requests = json!([request("a", "gpu", json!({})), request("b", "gpu", json!({}))]);
    let cluster = Cluster::new([pool(GPU, "node-1", json!(devices))]);
    let explanation = explained(&cluster, &[claim("training", requests, constraints)]).unwrap();
    let Cause::Together { constraints, .. } = &explanation.reasons[0].cause else { panic!("{explanation}") };
    assert_eq!(constraints.iter().map(|constraint| constraint.index).collect::<Vec<_>>(), [Index::from(1)]);
    let suggestion = Suggestion::WithoutConstraint { at: constraints[0].clone() };
    assert_eq!(explanation.suggestions, [suggestion]);
}

/// A partition with a negative consumption provides the counters for the other one, so that each request alone can be
/// satisfied.
#[test]
fn a_device_may_make_another_usable() {
    let mut cluster = partitions([json!([]), json!([])]);
    set_amounts(&mut cluster, ["-40Gi", "80Gi"]);
    let both = |name| request(name, "gpu", json!({"count": 2}));
    let explanation = explained(&cluster, &[claim("training", json!([both("a"), both("b")]), json!([]))]).unwrap();
    assert!(matches!(explanation.reasons[0].cause, Cause::Together { .. }), "{explanation}");
}

/// A sentence names eight counter sets; the tree has a line for each of more.
#[test]
fn more_counter_sets_than_a_sentence_names_are_a_line_each() {
    let lines = |cards: usize| {
        let counters = |gibibytes: usize| json!({"memory": {"value": format!("{gibibytes}Gi")}});
        let sets = (0..cards).map(|card| json!({"name": format!("card-{card}"), "counters": counters(60)}));
        let half = |index: usize| {
            let consumed = json!([{"counterSet": format!("card-{}", index / 2), "counters": counters(40)}]);
            json!({"name": format!("half-{index}"), "consumesCounters": consumed})
        };
        let mut devices = pool(GPU, "node-1", (0..2 * cards).map(half).collect());
        let mut sets = with(pool(GPU, "node-1", json!([])), "sharedCounters", sets.collect());
        sets["metadata"]["name"] = json!("counters");
        for slice in [&mut devices, &mut sets] {
            slice["spec"]["pool"]["resourceSliceCount"] = json!(2);
        }
        // One device more than there are cards, each of which has room for one.
        let explanation = explained(&Cluster::new([devices, sets]), &ask(json!({"count": cards + 1}))).unwrap();
        explanation.tree().lines().filter(|line| line.starts_with("  not enough of counter set card-")).count()
    };
    assert_eq!([8, 9, 12].map(lines), [0, 9, 12]);
}

#[test]
fn explanations_are_data() {
    let explanation = explained(&gpus(2, json!({})), &ask(json!({"count": 3}))).unwrap();
    let tree = serde_json::to_value(&explanation).unwrap();
    assert_eq!(tree["reasons"][0]["kind"], "request");
    let claim = json!({"index": 0, "name": "default/training"});
    assert_eq!(tree["reasons"][0]["at"], json!({"claim": claim, "request": "gpu"}));
    assert_eq!((&tree["reasons"][0]["usable"], &tree["reasons"][0]["wanted"]), (&json!(2), &json!(3)));
    assert_eq!(tree["suggestions"][0]["kind"], "fewer");
}

/// Two claims have the same name, and only the second one asks for too much.
#[test]
fn a_claim_is_found_by_its_position() {
    let one = claim("training", json!([request("gpu", "gpu", json!({"count": 1}))]), json!([]));
    let three = claim("training", json!([request("gpu", "gpu", json!({"count": 3}))]), json!([]));
    let explanation = explained(&gpus(3, json!({})), &[one, three]).unwrap();
    let Cause::Together { requests, .. } = &explanation.reasons[0].cause else { panic!("{explanation}") };
    assert_eq!(requests.iter().map(|at| at.claim.index).collect::<Vec<_>>(), [Index::from(0), Index::from(1)]);

    let few = claim("training", json!([request("gpu", "gpu", json!({"count": 4}))]), json!([]));
    let none = claim("training", json!([request("other", "gpu", json!({"count": 1}))]), json!([]));
    let explanation = explained(&gpus(3, json!({})), &[none, few]).unwrap();
    let Cause::Request { at, .. } = &explanation.reasons[0].cause else { panic!("{explanation}") };
    assert_eq!((at.claim.index, at.request.as_str()), (Index::from(1), "gpu"));
}

/// The claims before the pending one are allocated already.
#[test]
fn positions_are_those_of_the_call() {
    let mut allocated = ask(json!({}))[0].clone();
    allocated.status.get_or_insert_default().allocation = Some(AllocationResult::default());
    let pending = ask(json!({"count": 3}))[0].clone();
    let explanation = explained(&gpus(2, json!({})), &[allocated.clone(), allocated, pending]).unwrap();
    let Cause::Request { at, .. } = &explanation.reasons[0].cause else { panic!("{explanation}") };
    assert_eq!(at.claim.index, Index::from(2));
    let [Suggestion::Fewer { at, count }] = &explanation.suggestions[..] else { panic!("{explanation}") };
    assert_eq!((at.claim.index, *count), (Index::from(2), 2));
}

/// The value of the taint looks like its other parts.
#[test]
fn a_taint_is_tolerated_by_its_parts() {
    let taint = json!([{"key": "health", "value": "a=b:c", "effect": "NoExecute"}]);
    let explanation = explained(&gpus(1, json!({"taints": taint})), &ask(json!({}))).unwrap();
    let [Suggestion::Tolerate { taint, .. }] = &explanation.suggestions[..] else { panic!("{explanation}") };
    assert_eq!(taint.to_string(), "health=a=b:c:NoExecute");
    let toleration = taint.toleration();
    assert_eq!((toleration.key.as_deref(), toleration.effect.as_deref()), (Some("health"), Some("NoExecute")));
}

#[test]
fn an_alternative_is_named_by_request_and_subrequest() {
    let subrequests = json!([{"name": "a", "deviceClassName": "gpu", "count": 5}, {"name": "b", "deviceClassName": "gpu", "count": 4}]);
    let listed = claim("training", json!([{"name": "gpu", "firstAvailable": subrequests}]), json!([]));
    let explanation = explained(&gpus(2, json!({})), &[listed]).unwrap();
    let fewer = explanation.suggestions.iter().filter_map(|suggestion| match suggestion {
        Suggestion::Fewer { at, count } => Some((at.request.as_str(), at.subrequest.as_deref(), *count)),
        _ => None,
    });
    assert_eq!(fewer.collect::<Vec<_>>(), [("gpu", Some("a"), 2), ("gpu", Some("b"), 2)]);
}
