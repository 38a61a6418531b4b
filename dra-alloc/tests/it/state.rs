//! Tests of the state of allocated devices.

use std::collections::BTreeMap;

use dra_alloc::{AllocatedState, AssumeOutcome, ClaimId, DeviceId, Gate, GateSet};
use dra_attrs::{Component, Profile, Quantity};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

fn result(devices: &[Value]) -> AllocationResult {
    from_value(json!({"devices": {"results": devices}})).unwrap()
}

fn claim(name: &str) -> ResourceClaim {
    from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}")}})).unwrap()
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

fn share(id: &str, amount: &str) -> Value {
    with(with(device("a"), "shareID", json!(id)), "consumedCapacity", json!({"memory": amount}))
}

/// Returns a state in which each claim has one share of device `a`.
fn shared(shares: &[(&str, &str, &str)]) -> AllocatedState {
    let mut state = AllocatedState::default();
    for (name, id, amount) in shares {
        assert_eq!(state.assume(&claim(name), &result(&[share(id, amount)])), Ok(AssumeOutcome::Added));
    }
    state
}

fn memory(state: &AllocatedState) -> Quantity {
    state.device(&id("a")).map_or(Quantity::ZERO, |device| device.consumed("memory"))
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
        state.assume(&claim("c"), &result(&[row])).unwrap();
        assert_eq!(state.is_allocated(&id(&name)), counts, "{name}");
    }
}

#[test]
fn claims_without_an_allocation_count_for_nothing() {
    let held: ResourceClaim = from_value(json!({"status": {"allocation": result(&[device("a")])}})).unwrap();
    let state = AllocatedState::from_claims([&ResourceClaim::default(), &held], Component::of(Profile::V1_37)).unwrap();
    assert!(state.is_allocated(&id("a")));
    assert!(!state.is_allocated(&id("b")));
}

#[test]
fn claims_of_one_identity_hold_what_each_of_them_holds() {
    let of = |name: &str| -> ResourceClaim {
        from_value(json!({"status": {"allocation": result(&[device(name)])}})).unwrap()
    };
    let state = AllocatedState::from_claims([&of("a"), &of("b")], Component::of(Profile::V1_37)).unwrap();
    assert!(state.is_allocated(&id("a")) && state.is_allocated(&id("b")));
    assert_eq!(state.devices_of_claim(&ClaimId::from(&of("a"))), Some(vec![id("a"), id("b")]));
    let mut state = state;
    assert!(state.forget(&of("a")));
    assert!(state.is_empty());
}

#[test]
fn without_consumable_capacity_a_share_holds_the_device() {
    let share = with(device("a"), "shareID", json!("s"));
    let allocation = result(&[with(share, "consumedCapacity", json!({"memory": "lots"}))]);
    let mut off = AllocatedState::new(Component::new(
        Profile::V1_37,
        GateSet::of(Profile::V1_37).without(Gate::ConsumableCapacity),
    ));
    let empty = off.clone();
    off.assume(&claim("c"), &allocation).unwrap();
    let usage = off.device(&id("a")).unwrap();
    assert!(off.is_allocated(&id("a")) && !usage.is_shared());
    assert!(off.forget(&claim("c")));
    assert_eq!(off, empty);
}

#[test]
fn shares_of_one_id_consume_each() {
    let mut twice = shared(&[("1", "s", "4"), ("2", "s", "4")]);
    assert_eq!(memory(&twice), "8".parse().unwrap());
    twice.forget(&claim("1"));
    assert_eq!(twice, shared(&[("2", "s", "4")]));
    twice.forget(&claim("2"));
    assert_eq!(twice, AllocatedState::default());
}

#[test]
fn a_claim_seen_again_counts_once_and_a_new_allocation_replaces_the_old() {
    let mut state = shared(&[("1", "s", "90")]);
    assert_eq!(state.assume(&claim("1"), &result(&[share("s", "90")])), Ok(AssumeOutcome::Unchanged));
    assert_eq!(memory(&state), "90".parse().unwrap());
    assert_eq!(state.assume(&claim("1"), &result(&[share("s", "50")])), Ok(AssumeOutcome::Replaced));
    assert_eq!(state, shared(&[("1", "s", "50")]));
}

#[test]
fn a_forget_of_what_is_not_there_tells_so_and_takes_nothing() {
    let mut state = shared(&[("1", "s", "50"), ("2", "t", "50")]);
    let before = state.clone();
    assert!(!state.forget(&claim("3")));
    assert_eq!(state, before);
    assert!(state.forget(&claim("1")));
    assert!(!state.forget(&claim("1")));
    assert_eq!(memory(&state), "50".parse().unwrap());
}

#[test]
fn amounts_that_are_too_large_together_are_given_back_exactly() {
    let huge = "170000000000000000000000000000";
    let mut state = shared(&[("1", "s", huge), ("2", "t", "90"), ("3", "u", huge)]);
    assert_eq!(memory(&state).nanos(), i128::MAX);
    state.forget(&claim("1"));
    assert_eq!(state, shared(&[("2", "t", "90"), ("3", "u", huge)]));
    assert_eq!(memory(&state), "170000000000000000000000000090".parse().unwrap());
    state.forget(&claim("3"));
    assert_eq!(memory(&state), "90".parse().unwrap());
}

#[test]
fn amounts_that_are_none_are_named() {
    for (amount, reason) in [("lots", ""), ("-500", "must not be negative: -500")] {
        let mut state = AllocatedState::default();
        let error = state.assume(&claim("c"), &result(&[device("b"), share("s", amount)])).unwrap_err();
        let named = format!("devices.results[1].consumedCapacity[memory] of device {}: {reason}", id("a"));
        assert!(error.to_string().starts_with(&named), "{error}");
        assert_eq!(state, AllocatedState::default(), "nothing was counted");
    }
}

#[test]
fn look_ups() {
    let mut state = shared(&[("1", "s", "4"), ("2", "t", "5")]);
    state.assume(&claim("3"), &result(&[device("c"), device("b")])).unwrap();
    state.hold(&DeviceId::new("a.example.com", "q", "z"));
    let names = |state: &AllocatedState| state.devices().map(|(id, _)| id.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&state), ["a.example.com/q/z", "d.example.com/p/a", "d.example.com/p/b", "d.example.com/p/c"]);
    assert_eq!((state.len(), state.claims().count()), (4, 3));

    assert_eq!(state.devices_of_claim(&ClaimId::from(&claim("3"))).unwrap(), [id("c"), id("b")]);
    assert_eq!(state.devices_of_claim(&ClaimId::from(&claim("4"))), None);
    let mut holders: Vec<String> = state.device(&id("a")).unwrap().holders().map(ToString::to_string).collect();
    holders.sort();
    assert_eq!(holders, ["ns/1", "ns/2"]);
}

/// Subject of a row, the claims with their holdings, and the devices that are held twice.
type Row<'r> = (&'r str, Vec<(&'r str, &'r Value)>, &'r [&'r str]);

#[test]
fn a_device_that_is_held_twice_is_told_with_its_claims() {
    let (held, shared) = (device("a"), with(device("a"), "shareID", json!("s")));
    let admin = with(device("a"), "adminAccess", json!(true));
    let rows: [Row<'_>; 8] = [
        ("one claim", vec![("1", &held)], &[]),
        ("two claims", vec![("2", &held), ("1", &held)], &["1", "2"]),
        ("three claims", vec![("1", &held), ("3", &held), ("2", &held)], &["1", "2", "3"]),
        ("a share beside", vec![("1", &shared), ("2", &held)], &["1", "2"]),
        ("a share beside, later", vec![("2", &held), ("1", &shared)], &["1", "2"]),
        ("shares only", vec![("1", &shared), ("2", &shared)], &[]),
        ("admin access beside", vec![("1", &held), ("2", &admin)], &[]),
        ("one claim that is seen again", vec![("1", &held), ("1", &held)], &[]),
    ];
    for (row, claims, told) in rows {
        let mut state = AllocatedState::default();
        for (name, device) in &claims {
            state.assume(&claim(name), &result(&[(*device).clone()])).unwrap();
        }
        let expected: Vec<_> = if told.is_empty() {
            Vec::new()
        } else {
            vec![(id("a"), told.iter().map(ToString::to_string).collect::<Vec<_>>())]
        };
        assert_eq!(told_twice(&state), expected, "{row}");
    }
}

#[test]
fn uses_without_a_claim_are_one_holder_more() {
    let mut state = AllocatedState::default();
    state.hold(&id("a"));
    state.hold(&id("a"));
    assert_eq!(state.held_twice().count(), 0, "both may be of one claim");
    state.assume(&claim("1"), &result(&[device("a"), device("b")])).unwrap();
    let (told, usage) = state.held_twice().next().unwrap();
    assert_eq!((told, usage.claim_count(), usage.claims().len()), (id("a"), 2, 1));
    state.share(&id("b"), "s");
    assert_eq!(state.held_twice().map(|(id, _)| id).collect::<Vec<_>>(), [id("a"), id("b")]);
    assert!(state.forget(&claim("1")));
    assert_eq!(state.held_twice().count(), 0);
}

/// Device result for one of three devices: held, shared, or with admin access.
fn held() -> impl Strategy<Value = Value> {
    let names = prop::sample::select(vec!["a", "b", "c"]);
    let amount = prop::sample::select(vec!["0", "1", "1500m", "2Gi", "170000000000000000000000000000"]);
    (names, any::<bool>(), prop::option::of((0..3u32, amount))).prop_map(|(name, admin, share)| {
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

/// Event of a history: a claim gets an allocation, gives it back, or a layer begins or ends.
#[derive(Clone, Debug)]
enum Event {
    Assume(u8, Vec<Value>),
    Forget(u8),
    Begin,
    Keep,
    Drop,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        5 => (0..4u8, prop::collection::vec(held(), 0..4)).prop_map(|(claim, devices)| Event::Assume(claim, devices)),
        3 => (0..5u8).prop_map(Event::Forget),
        2 => Just(Event::Begin),
        1 => Just(Event::Keep),
        1 => Just(Event::Drop),
    ]
}

/// Plain model of a state: what each claim holds.
type Model = BTreeMap<u8, Vec<Value>>;

fn built(model: &Model) -> AllocatedState {
    let mut state = AllocatedState::default();
    for (name, devices) in model {
        state.assume(&claim(&name.to_string()), &result(devices)).unwrap();
    }
    state
}

/// Returns the devices with an exclusive use and another claim, with the names of all their claims: a plain count.
fn counted_twice(model: &Model) -> Vec<(DeviceId, Vec<String>)> {
    let mut uses: BTreeMap<DeviceId, (bool, Vec<String>)> = BTreeMap::new();
    for (claim, devices) in model {
        for device in devices.iter().filter(|device| device["adminAccess"] != json!(true)) {
            let (is_exclusive, claims) = uses.entry(id(device["device"].as_str().unwrap())).or_default();
            *is_exclusive |= device["shareID"].is_null();
            claims.push(claim.to_string());
            claims.dedup();
        }
    }
    let twice = uses.into_iter().filter(|(_, (is_exclusive, claims))| *is_exclusive && claims.len() > 1);
    twice.map(|(device, (_, claims))| (device, claims)).collect()
}

/// Returns what the state tells about devices that are held twice.
fn told_twice(state: &AllocatedState) -> Vec<(DeviceId, Vec<String>)> {
    let told = state.held_twice().map(|(device, usage)| {
        assert!(usage.is_held_twice() && usage.claim_count() == usage.claims().len());
        (device, usage.claims().into_iter().map(|claim| claim.name.clone()).collect())
    });
    told.collect()
}

/// Plays events on a state and its model until the layer ends. Returns true if the layer is to be kept.
fn play(state: &mut AllocatedState, model: &mut Model, events: &mut std::vec::IntoIter<Event>) -> bool {
    while let Some(event) = events.next() {
        match event {
            Event::Assume(name, devices) => {
                let outcome = state.assume(&claim(&name.to_string()), &result(&devices)).unwrap();
                let before = model.insert(name, devices);
                assert_eq!(before.is_none(), outcome == AssumeOutcome::Added);
            }
            Event::Forget(name) => {
                let outcome = state.forget(&claim(&name.to_string()));
                assert_eq!(model.remove(&name).is_some(), outcome);
            }
            Event::Begin => {
                let (mut layer, mut changed) = (state.layer(), model.clone());
                if play(&mut layer, &mut changed, events) {
                    layer.keep();
                    *model = changed;
                }
            }
            Event::Keep => return true,
            Event::Drop => return false,
        }
        assert_eq!(*state, built(model));
        assert_eq!(told_twice(state), counted_twice(model));
        let others = state.devices().filter(|(_, usage)| usage.is_held_twice()).count();
        assert_eq!(others, state.held_twice().count(), "each device tells it by itself");
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_claim_gives_back_is_what_it_held(events in prop::collection::vec(event(), 0..40)) {
        let (mut state, mut model) = (AllocatedState::default(), Model::new());
        let mut events = events.into_iter();
        while events.len() > 0 {
            let (kept, expected) = (state.clone(), built(&model));
            play(&mut state, &mut model, &mut events);
            prop_assert_eq!(told_twice(&kept), told_twice(&expected));
            prop_assert_eq!(kept, expected, "a snapshot stays as it was");
        }
        for name in 0..5u8 {
            state.forget(&claim(&name.to_string()));
        }
        prop_assert_eq!(state.held_twice().count(), 0);
        prop_assert_eq!(state, AllocatedState::default());
    }
}
