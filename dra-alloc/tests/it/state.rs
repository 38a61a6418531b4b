//! Tests of the state of allocated devices.

use dra_alloc::{AllocatedState, DeviceId, DraGate, GateSet};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

fn result(devices: &[Value]) -> AllocationResult {
    from_value(json!({"devices": {"results": devices}})).unwrap()
}

fn device(name: &str) -> Value {
    json!({"request": "r", "driver": "d.example.com", "pool": "p", "device": name})
}

fn id(name: &str) -> DeviceId {
    DeviceId::new("d.example.com", "p", name)
}

fn with(mut device: Value, field: &str, value: Value) -> Value {
    device[field] = value;
    device
}

#[test]
fn what_counts() {
    let share = with(device("shared"), "shareID", json!("s-1"));
    let rows = [
        (device("held"), true),
        (with(device("admin"), "adminAccess", json!(true)), false),
        (with(device("no-admin"), "adminAccess", json!(false)), true),
        (share.clone(), true),
        (with(share, "adminAccess", json!(true)), false),
    ];
    for (row, counts) in rows {
        let name = row["device"].as_str().unwrap().to_owned();
        let mut state = AllocatedState::default();
        state.assume([&result(&[row])]).unwrap();
        assert_eq!(state.is_allocated(&id(&name)), counts, "{name}");
    }
}

#[test]
fn claims_without_an_allocation_count_for_nothing() {
    let held: ResourceClaim = from_value(json!({"status": {"allocation": result(&[device("a")])}})).unwrap();
    let state = AllocatedState::from_claims([&ResourceClaim::default(), &held], GateSet::default()).unwrap();
    assert!(state.is_allocated(&id("a")));
    assert!(!state.is_allocated(&id("b")));
}

#[test]
fn without_consumable_capacity_a_share_holds_the_device() {
    let share = with(device("a"), "shareID", json!("s"));
    let results = [result(&[with(share, "consumedCapacity", json!({"memory": "lots"}))])];
    let mut off = AllocatedState::new(GateSet::default().without(DraGate::ConsumableCapacity));
    let empty = off.clone();
    off.assume(&results).unwrap();
    let mut held = empty.clone();
    held.hold(&id("a"));
    assert_eq!(off, held);
    off.forget(&results).unwrap();
    assert_eq!(off, empty);
}

#[test]
fn shares_of_one_id_consume_each() {
    let share = |id: &str| with(with(device("a"), "shareID", json!(id)), "consumedCapacity", json!({"memory": "4"}));
    let counted = |shares: &[Value]| {
        let mut state = AllocatedState::default();
        state
            .assume(shares.iter().map(|share| result(std::slice::from_ref(share))).collect::<Vec<_>>().iter())
            .unwrap();
        state
    };
    let mut twice = counted(&[share("s"), share("s")]);
    assert_ne!(twice, counted(&[share("s")]));
    twice.forget([&result(&[share("s")])]).unwrap();
    assert_eq!(twice, counted(&[share("s")]));
    twice.forget([&result(&[share("other")])]).unwrap();
    assert_eq!(twice, counted(&[share("s")]));
    twice.forget([&result(&[share("s")])]).unwrap();
    assert_eq!(twice, AllocatedState::default());
}

#[test]
fn a_quantity_that_is_none_is_named() {
    let bad = with(with(device("a"), "shareID", json!("s")), "consumedCapacity", json!({"memory": "lots"}));
    let mut state = AllocatedState::default();
    let error = state.assume([&result(&[device("b"), bad])]).unwrap_err();
    let named = format!("devices.results[1].consumedCapacity[memory] of device {}: ", id("a"));
    assert!(error.to_string().starts_with(&named), "{error}");
    assert_eq!(state, AllocatedState::default(), "nothing was counted");
}

fn holding() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec!["a", "b", "c"]);
    let amount = prop::sample::select(vec!["0", "1", "1500m", "2Gi"]);
    (names, any::<bool>(), prop::option::of((0..10u32, amount))).prop_map(|(name, admin, share)| {
        let device = if admin { with(device(name), "adminAccess", json!(true)) } else { device(name) };
        match share {
            None => device,
            Some((id, amount)) => {
                let device = with(device, "shareID", json!(id.to_string()));
                with(device, "consumedCapacity", json!({"memory": amount, "cores": "1"}))
            }
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn forget_undoes_assume(
        before in prop::collection::vec(holding(), 0..6),
        after in prop::collection::vec(holding(), 0..6),
    ) {
        let (before, after) = (result(&before), result(&after));
        let mut state = AllocatedState::default();
        state.assume([&before]).unwrap();
        let expected = state.clone();
        state.assume([&after]).unwrap();
        state.forget([&after]).unwrap();
        prop_assert_eq!(&state, &expected);
        state.forget([&before]).unwrap();
        prop_assert_eq!(state, AllocatedState::default());
    }
}
