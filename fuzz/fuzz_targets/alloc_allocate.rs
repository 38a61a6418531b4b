//! Allocation on arbitrary small clusters: no panic, no step beyond the budget, equal answers on repetition and from an
//! index that was built by changes, queried before or prepared, and no device allocated twice.
#![no_main]

use std::sync::Arc;

use dra_alloc::selector::SelectorCache;
use dra_alloc::{
    AllocatedState, Allocator, Budget, Classes, DeviceId, Gate, GateSet, Inventory, InventoryEvent, Outcome,
};
use dra_attrs::{Component, Profile};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, from_value, json};

const STEPS: u64 = 5_000;
const DRIVERS: [&str; 2] = ["a.example", "b.example"];
const NAMES: [&str; 4] = ["w", "x", "y", "z"];
const QUANTITIES: [&str; 6] = ["1", "2", "1500m", "4Gi", "-1", "99999999999999999999"];
const EXPRESSIONS: [&str; 8] = [
    "true",
    "device.driver == 'a.example'",
    "device.attributes['a.example'].x == 1",
    "device.attributes['a.example'].?x.orValue(0) > 0",
    "[1, 2, 3].all(i, [1, 2, 3].exists(j, i == j))",
    "device.capacity['a.example'].w.compareTo(quantity('2')) >= 0",
    "device.attributes['b.example'].y.includes('x')",
    "device.",
];

type Bytes<'a, 'b> = &'a mut Unstructured<'b>;

fn pick<T: Clone>(bytes: Bytes<'_, '_>, from: &[T]) -> Result<T> {
    bytes.choose(from).cloned()
}

fn some(bytes: Bytes<'_, '_>, most: usize, make: impl Fn(Bytes<'_, '_>) -> Result<Value>) -> Result<Value> {
    let count = bytes.int_in_range(0..=most)?;
    (0..count).map(|_| make(bytes)).collect::<Result<Vec<_>>>().map(Value::from)
}

fn maybe(bytes: Bytes<'_, '_>, make: impl Fn(Bytes<'_, '_>) -> Result<Value>) -> Result<Value> {
    if bytes.ratio(1, 3)? { make(bytes) } else { Ok(Value::Null) }
}

fn map(bytes: Bytes<'_, '_>, make: impl Fn(Bytes<'_, '_>) -> Result<Value>) -> Result<Value> {
    let mut map = serde_json::Map::new();
    for _ in 0..bytes.int_in_range(0..=2)? {
        map.insert(pick(bytes, &NAMES)?.to_owned(), make(bytes)?);
    }
    Ok(map.into())
}

fn quantity(bytes: Bytes<'_, '_>) -> Result<Value> {
    Ok(json!(pick(bytes, &QUANTITIES)?))
}

fn attribute(bytes: Bytes<'_, '_>) -> Result<Value> {
    let number = bytes.int_in_range(0..=2)?;
    Ok(match bytes.int_in_range(0..=6)? {
        0 | 1 => json!({"int": number}),
        2 => json!({"ints": [number, 1]}),
        3 => json!({"string": pick(bytes, &NAMES)?}),
        4 => json!({"version": format!("1.{number}.0")}),
        5 => json!({"strings": []}),
        _ => json!({}),
    })
}

fn capacity(bytes: Bytes<'_, '_>) -> Result<Value> {
    let range = maybe(bytes, |bytes| {
        Ok(json!({"min": quantity(bytes)?, "max": maybe(bytes, quantity)?, "step": maybe(bytes, quantity)?}))
    })?;
    let values = if range.is_null() { some(bytes, 2, quantity)? } else { Value::Null };
    Ok(json!({
        "value": quantity(bytes)?,
        "requestPolicy": {"default": maybe(bytes, quantity)?, "validRange": range, "validValues": values},
    }))
}

fn counter(bytes: Bytes<'_, '_>) -> Result<Value> {
    Ok(json!({"value": quantity(bytes)?}))
}

fn taint(bytes: Bytes<'_, '_>) -> Result<Value> {
    Ok(json!({"key": pick(bytes, &NAMES)?, "effect": "NoSchedule"}))
}

fn place(bytes: Bytes<'_, '_>, object: &mut Value) -> Result<()> {
    match bytes.int_in_range(0..=5)? {
        0 => object["allNodes"] = json!(true),
        1 => {
            let requirement = json!({"key": "zone", "operator": "In", "values": [pick(bytes, &NAMES)?]});
            object["nodeSelector"] = json!({"nodeSelectorTerms": [{"matchExpressions": [requirement]}]});
        }
        2 => object["perDeviceNodeSelection"] = json!(true),
        _ => object["nodeName"] = json!("node"),
    }
    Ok(())
}

fn device(bytes: Bytes<'_, '_>) -> Result<Value> {
    let consumption = |bytes: Bytes<'_, '_>| {
        let groups = some(bytes, 2, |bytes| Ok(json!(pick(bytes, &NAMES)?)))?;
        Ok(json!({"counterSet": "w", "counters": map(bytes, counter)?, "compatibilityGroups": groups}))
    };
    let mut device = json!({
        "name": format!("d-{}", bytes.int_in_range(0..=7)?),
        "attributes": map(bytes, attribute)?,
        "capacity": maybe(bytes, |bytes| map(bytes, capacity))?,
        "allowMultipleAllocations": bytes.ratio(1, 3)?,
        "consumesCounters": maybe(bytes, |bytes| some(bytes, 2, consumption))?,
        "taints": maybe(bytes, |bytes| some(bytes, 1, taint))?,
        "bindingConditions": maybe(bytes, |_| Ok(json!(["ready"])))?,
        "bindsToNode": bytes.ratio(1, 8)?,
    });
    place(bytes, &mut device)?;
    Ok(device)
}

fn slice(bytes: Bytes<'_, '_>, name: usize) -> Result<Value> {
    let counter_set = |bytes: Bytes<'_, '_>| Ok(json!({"name": "w", "counters": map(bytes, counter)?}));
    let count = bytes.int_in_range(1..=2)?;
    let mut spec = json!({
        "driver": pick(bytes, &DRIVERS)?,
        "pool": {"name": pick(bytes, &NAMES[..2])?, "generation": bytes.int_in_range(0..=1)?, "resourceSliceCount": count},
        "skipNodeOperations": maybe(bytes, |_| Ok(json!(["*"])))?,
    });
    if bytes.ratio(1, 4)? {
        spec["sharedCounters"] = some(bytes, 1, counter_set)?;
    } else {
        spec["devices"] = some(bytes, 4, device)?;
    }
    place(bytes, &mut spec)?;
    Ok(json!({"metadata": {"name": format!("slice-{name}")}, "spec": spec}))
}

fn asked(bytes: Bytes<'_, '_>) -> Result<Value> {
    let selector = |bytes: Bytes<'_, '_>| Ok(json!({"cel": {"expression": pick(bytes, &EXPRESSIONS)?}}));
    let derived = |bytes: Bytes<'_, '_>| Ok(json!([{"name": "a.example/x", "expression": pick(bytes, &EXPRESSIONS)?}]));
    Ok(json!({
        "deviceClassName": pick(bytes, &["any", "a", "none"])?,
        "allocationMode": if bytes.ratio(1, 4)? { "All" } else { "ExactCount" },
        "count": bytes.int_in_range(0..=4)?,
        "selectors": some(bytes, 1, selector)?,
        "capacity": maybe(bytes, |bytes| Ok(json!({"requests": map(bytes, quantity)?})))?,
        "tolerations": maybe(bytes, |_| Ok(json!([{"operator": "Exists"}])))?,
        "derivedAttributes": maybe(bytes, derived)?,
    }))
}

fn request(bytes: Bytes<'_, '_>, name: usize) -> Result<Value> {
    let name = format!("r{name}");
    if bytes.ratio(1, 3)? {
        let list = some(bytes, 3, asked)?;
        return Ok(json!({"name": name, "firstAvailable": list}));
    }
    let mut exactly = asked(bytes)?;
    exactly["adminAccess"] = maybe(bytes, |_| Ok(json!(true)))?;
    Ok(json!({"name": name, "exactly": exactly}))
}

fn claim(bytes: Bytes<'_, '_>, name: usize) -> Result<Value> {
    let constraint = |bytes: Bytes<'_, '_>| {
        let kind = pick(bytes, &["matchAttribute", "distinctAttribute"])?;
        let attribute = format!("{}/{}", pick(bytes, &DRIVERS)?, pick(bytes, &NAMES)?);
        Ok(json!({kind: attribute, "requests": some(bytes, 1, |_| Ok(json!("r0")))?}))
    };
    let count = bytes.int_in_range(1..=3)?;
    let requests = (0..count).map(|index| request(bytes, index)).collect::<Result<Vec<_>>>()?;
    let devices = json!({"requests": requests, "constraints": some(bytes, 2, constraint)?});
    Ok(json!({"metadata": {"name": format!("claim-{name}")}, "spec": {"devices": devices}}))
}

fn check(bytes: Bytes<'_, '_>) -> Result<()> {
    let count = bytes.int_in_range(1..=4)?;
    let slices = (0..count).map(|index| slice(bytes, index)).collect::<Result<Vec<_>>>()?;
    let slices: Vec<Arc<_>> = slices.into_iter().map(|slice| Arc::new(from_value(slice).unwrap())).collect();
    let count = bytes.int_in_range(1..=2)?;
    let claims = (0..count).map(|index| claim(bytes, index)).collect::<Result<Vec<_>>>()?;
    let claims: Vec<ResourceClaim> = claims.into_iter().map(|claim| from_value(claim).unwrap()).collect();
    let mut gates = GateSet::all();
    for gate in Gate::ALL {
        gates = if bytes.ratio(1, 12)? { gates.without(gate) } else { gates };
    }
    let profile = if bytes.arbitrary()? { Profile::Kep } else { Profile::V1_37 };
    let held = DeviceId::new(DRIVERS[0], NAMES[0], &format!("d-{}", bytes.int_in_range(0..=7)?));
    let mut state = AllocatedState::default();
    state.hold(&held);

    let class =
        |name: &str, selectors: Value| from_value(json!({"metadata": {"name": name}, "spec": selectors})).unwrap();
    let classes: [DeviceClass; 2] = [
        class("any", json!({})),
        class("a", json!({"selectors": [{"cel": {"expression": "device.driver == 'a.example'"}}]})),
    ];
    let node = json!({"metadata": {"name": "node", "labels": {"zone": "x"}}, "status": {"declaredFeatures": ["DRAOptionalNodeOperations"]}});
    let node = from_value(node).unwrap();
    let selectors = SelectorCache::default();
    let allocate =
        |inventory: &Inventory, gates| {
            let classes = Classes::new(classes.iter().cloned());
            Allocator::new(Component::new(profile, gates), inventory, &classes)
                .with_selector_cache(&selectors)
                .allocate(&state, &node, &claims, Budget::work(STEPS))
        };
    let inventory = Inventory::new(slices.clone());
    let answer = allocate(&inventory, gates);
    assert_eq!(answer, allocate(&inventory, gates));
    // The index is queried before each change, so that there are cached views to drop.
    let (mut changed, mut asked_otherwise) = (Inventory::default(), Inventory::default());
    for slice in slices {
        let _ = (allocate(&changed, gates), allocate(&asked_otherwise, GateSet::NONE));
        changed.apply(InventoryEvent::Slice(Arc::clone(&slice))).unwrap();
        asked_otherwise.apply(InventoryEvent::Slice(slice)).unwrap();
    }
    assert_eq!(answer, allocate(&changed, gates));
    assert_eq!(answer, allocate(&asked_otherwise, gates));
    let classes = Classes::new(classes.iter().cloned());
    let prepared = Allocator::new(Component::new(profile, gates), &inventory, &classes).with_selector_cache(&selectors);
    prepared.prepare(&state, [&node]);
    assert_eq!(answer, allocate(&inventory, gates));
    let Ok(verdict) = answer else { return Ok(()) };
    assert!(verdict.steps <= verdict.work && verdict.work <= STEPS);
    if let Outcome::Allocated(results) = verdict.outcome {
        assert_eq!(results.len(), claims.len());
        for device in results.iter().flat_map(|result| result.devices.as_ref().unwrap().results.iter().flatten()) {
            let id = DeviceId::new(&device.driver, &device.pool, &device.device);
            assert!(id != held || device.admin_access == Some(true), "{id} is held");
        }
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    let _ = check(&mut Unstructured::new(data));
});
