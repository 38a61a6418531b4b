//! Property tests of the kubelet: invariants after any sequence of steps.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::Profile;
use dra_device::skip::SkipSet;
use dra_node::kubelet::{DriverState, Operation};
use k8s_openapi::api::resource::v1::ResourceClaim;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{GPU, NIC, World, claim, pod};

const CLAIMS: [&str; 3] = ["a", "b", "c"];
const DRIVERS: [&str; 2] = [GPU, NIC];

#[derive(Clone, Debug)]
enum Step {
    Prepare { pod: usize, claims: Vec<usize> },
    Unprepare { pod: usize },
    Register(usize),
    Unregister(usize),
    Fail(usize),
    Recover,
    Gate(bool),
    Restart,
    OlderRelease,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_usize..2, vec(0_usize..3, 0..3)).prop_map(|(pod, claims)| Step::Prepare { pod, claims }),
        4 => (0_usize..2).prop_map(|pod| Step::Unprepare { pod }),
        2 => (0_usize..2).prop_map(Step::Register),
        1 => (0_usize..2).prop_map(Step::Unregister),
        1 => (0_usize..2).prop_map(Step::Fail),
        2 => Just(Step::Recover),
        1 => any::<bool>().prop_map(Step::Gate),
        1 => Just(Step::Restart),
        1 => Just(Step::OlderRelease),
    ]
}

fn lists() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(["*"])),
        Just(json!(["NodeUnprepareResources"])),
        Just(json!(["NodePrepareResources", "NodeUnprepareResources"])),
        Just(json!(["Future"])),
    ]
}

fn bools() -> impl Strategy<Value = Value> {
    prop_oneof![Just(json!(null)), Just(json!(false)), Just(json!(true))]
}

fn claims(declaration: impl Strategy<Value = Value>) -> impl Strategy<Value = Vec<ResourceClaim>> {
    let devices = vec((0_usize..2, declaration), 0..3);
    vec(devices, 3).prop_map(|claims| {
        let named = CLAIMS.into_iter().zip(claims);
        named
            .map(|(name, devices)| {
                let devices: Vec<_> = devices.into_iter().map(|(driver, skip)| (DRIVERS[driver], skip)).collect();
                claim(name, &devices)
            })
            .collect()
    })
}

/// Runs one step. Returns true if it succeeded.
fn run(world: &mut World, step: &Step, objects: &[ResourceClaim]) -> bool {
    let pods = ["p", "q"];
    match step {
        Step::Prepare { pod: index, claims } => {
            let names: Vec<&str> = claims.iter().map(|claim| CLAIMS[*claim]).collect();
            return world.prepare(&pod(pods[*index], &names), objects).is_ok();
        }
        Step::Unprepare { pod: index } => return world.unprepare(&pod(pods[*index], &CLAIMS)).is_ok(),
        Step::Register(driver) => drop(world.registered.insert(DRIVERS[*driver].to_owned())),
        Step::Unregister(driver) => drop(world.registered.remove(DRIVERS[*driver])),
        Step::Fail(driver) => drop(world.failing.insert(DRIVERS[*driver].to_owned())),
        Step::Recover => world.failing.clear(),
        Step::Gate(true) => *world = world.clone().gate_on(),
        Step::Gate(false) => *world = world.clone().gate_off(),
        Step::Restart => *world = world.clone().restart(),
        Step::OlderRelease => *world = world.clone().restart_in_older_release(),
    }
    true
}

fn by_driver_of(claim: &ResourceClaim) -> BTreeMap<&str, SkipSet> {
    SkipSet::by_driver(claim.status.as_ref().unwrap().allocation.as_ref().unwrap())
}

fn allocated<'a>(objects: &'a [ResourceClaim], uid: &str) -> BTreeMap<&'a str, SkipSet> {
    by_driver_of(objects.iter().find(|claim| claim.metadata.uid.as_deref() == Some(uid)).unwrap())
}

fn remembered<'a>(world: &'a World, uid: &str) -> &'a BTreeMap<String, DriverState> {
    &world.cache.claims().values().find(|info| info.uid == uid).unwrap().drivers
}

fn references(world: &World, pod: &str) -> BTreeSet<String> {
    let claims = world.cache.claims().values();
    claims.filter(|info| info.pods.contains(pod)).map(|info| info.uid.clone()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn after_every_step(objects in claims(lists()), steps in vec(step(), 1..25)) {
        let mut world = World::new(Profile::V1_37, &[GPU]);
        for step in &steps {
            let before = world.clone();
            world.calls.clear();
            world.asked.clear();
            let succeeded = run(&mut world, step, &objects);
            // No call has a claim that skips its operation for the driver: by the allocation for prepare, by the cache
            // for unprepare. Only drivers that are called are looked up in the registry.
            for (operation, driver, uids) in &world.calls {
                prop_assert!(before.registered.contains(driver), "a driver that is not there was called");
                for uid in uids {
                    let skips = match operation {
                        Operation::Prepare => allocated(&objects, uid)[driver.as_str()].prepare,
                        Operation::Unprepare => remembered(&before, uid)[driver].skips.unprepare,
                    };
                    prop_assert!(!skips, "{driver} is called for {uid}");
                }
            }
            for driver in &world.asked {
                let asks_allocation = |claim: &ResourceClaim| {
                    by_driver_of(claim).get(driver.as_str()).is_some_and(|skips| !skips.prepare)
                };
                let is_needed = match step {
                    Step::Prepare { claims, .. } => claims.iter().any(|claim| asks_allocation(&objects[*claim])),
                    _ => before.cache.claims().values().any(|info| {
                        info.drivers.get(driver).is_some_and(|state| !state.skips.unprepare)
                    }),
                };
                prop_assert!(is_needed, "{driver} is looked up for nothing");
            }
            match step {
                Step::Unprepare { pod } => {
                    let uid = ["p-uid", "q-uid"][*pod];
                    if succeeded {
                        prop_assert!(!world.cache.may_need_unprepare(uid));
                    } else {
                        for claim in before.cache.claims().values().filter(|info| info.pods.len() == 1) {
                            prop_assert!(!claim.pods.contains(uid) || references(&world, uid).contains(&claim.uid));
                        }
                        prop_assert_eq!(world.cache.claims().len(), before.cache.claims().len());
                    }
                }
                Step::Prepare { pod, .. } if succeeded => {
                    // A repeated prepare calls no driver, counts no skip, and duplicates no device.
                    let (mut again, uid) = (world.clone(), ["p-uid", "q-uid"][*pod]);
                    again.calls.clear();
                    prop_assert!(run(&mut again, step, &objects));
                    prop_assert!(again.calls.is_empty());
                    prop_assert_eq!(&again.counts, &world.counts);
                    prop_assert_eq!(again.cache.claims(), world.cache.claims());
                    prop_assert!(references(&before, uid).is_subset(&references(&world, uid)));
                }
                Step::Prepare { .. } => {
                    prop_assert!(before.cache.claims().keys().all(|key| world.cache.claims().contains_key(key)));
                }
                _ => {}
            }
            for info in world.cache.claims().values() {
                prop_assert!(info.drivers.values().all(|driver| driver.devices.len() <= 1), "a device is there twice");
            }
        }
    }

    /// A restart from the checkpoint leads to the same results. Not tested after a failed unprepare, which may drop a
    /// reference in memory only.
    #[test]
    fn a_restart_changes_no_decision(objects in claims(lists()), steps in vec(step(), 1..15)) {
        let mut world = World::new(Profile::V1_37, &[GPU, NIC]);
        for step in steps.iter().filter(|step| !matches!(step, Step::OlderRelease)) {
            let succeeded = run(&mut world, step, &objects);
            if !succeeded && matches!(step, Step::Unprepare { .. }) {
                return Ok(());
            }
        }
        let (mut one, mut other) = (world.clone(), world.restart());
        for pod in 0..2 {
            let ends = [&mut one, &mut other].map(|world| run(world, &Step::Unprepare { pod }, &objects));
            prop_assert_eq!(ends[0], ends[1]);
        }
    }

    /// Unprepare does not depend on the gate.
    #[test]
    fn unprepare_is_the_same_with_the_gate_on_and_off(objects in claims(lists()), steps in vec(step(), 1..15)) {
        let mut world = World::new(Profile::V1_37, &[GPU, NIC]);
        for step in &steps {
            run(&mut world, step, &objects);
        }
        let (mut on, mut off) = (world.clone().gate_on(), world.gate_off());
        for pod in 0..2 {
            let ends = [&mut on, &mut off].map(|world| run(world, &Step::Unprepare { pod }, &objects));
            prop_assert_eq!(ends[0], ends[1]);
        }
        prop_assert_eq!(on.calls, off.calls);
        prop_assert_eq!(on.cache.claims(), off.cache.claims());
    }

    /// Both profiles behave alike for bools, with the gate on, and without files of older releases.
    #[test]
    fn profiles_agree_on_bools(objects in claims(bools()), steps in vec(step(), 1..15)) {
        let mut worlds = [Profile::Kep, Profile::V1_37].map(|profile| World::new(profile, &[GPU]));
        for step in steps.iter().filter(|step| !matches!(step, Step::Gate(_) | Step::OlderRelease)) {
            let [kep, shipped] = &mut worlds;
            prop_assert_eq!(run(kep, step, &objects), run(shipped, step, &objects));
            prop_assert_eq!(&kep.calls, &shipped.calls);
            prop_assert_eq!(&kep.counts, &shipped.counts);
            prop_assert_eq!(kep.cache.claims(), shipped.cache.claims());
        }
    }

    /// The gate changes nothing if no device skips node operations.
    #[test]
    fn without_a_true_the_gate_does_not_matter(
        objects in claims(prop_oneof![Just(json!(null)), Just(json!(false))]),
        steps in vec(step(), 1..15),
    ) {
        // req: 5945-GATE-3
        let mut worlds = [World::new(Profile::Kep, &[GPU]), World::new(Profile::Kep, &[GPU]).gate_off()];
        for step in steps.iter().filter(|step| !matches!(step, Step::Gate(_))) {
            let [on, off] = &mut worlds;
            prop_assert_eq!(run(on, step, &objects), run(off, step, &objects));
            prop_assert_eq!(&on.calls, &off.calls);
            prop_assert_eq!(on.cache.claims(), off.cache.claims());
            prop_assert_eq!(&on.file, &off.file);
        }
    }
}
