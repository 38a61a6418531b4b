//! Tests of the kubelet's decision tables: outcomes by gate, declarations, cache and registry.

use dra_attrs::Profile;
use dra_node::kubelet::{Operation, PrepareError, SkipCounts, UnprepareError};
use serde_json::{Value, json};

use super::world::{BOTH, GPU, NIC, World, claim, pod};

#[derive(Debug, PartialEq)]
enum Done {
    Called,
    Skipped,
    /// The driver is neither called nor counted as skipped.
    Nothing,
    NotRegistered,
    GateOff,
}

fn prepare_once(world: &mut World, name: &str, devices: &[(&str, Value)]) -> Done {
    let (calls, skips) = (world.calls.len(), world.counts.count(Operation::Prepare, GPU));
    match world.prepare(&pod(name, &["c"]), &[claim("c", devices)]) {
        Err(PrepareError::NotRegistered { driver }) if driver == GPU => Done::NotRegistered,
        Err(PrepareError::GateDisabled { .. } | PrepareError::PreparationDisabled { .. }) => Done::GateOff,
        Err(error) => panic!("{error}"),
        Ok(()) if world.calls.len() > calls => Done::Called,
        Ok(()) if world.counts.count(Operation::Prepare, GPU) > skips => Done::Skipped,
        Ok(()) => Done::Nothing,
    }
}

fn unprepare_once(world: &mut World, name: &str) -> Done {
    let (calls, skips) = (world.calls.len(), world.counts.count(Operation::Unprepare, GPU));
    match world.unprepare(&pod(name, &["c"])) {
        Err(UnprepareError::NotRegistered { driver }) if driver == GPU => Done::NotRegistered,
        Err(error) => panic!("{error}"),
        Ok(()) if world.calls.len() > calls => Done::Called,
        Ok(()) if world.counts.count(Operation::Unprepare, GPU) > skips => Done::Skipped,
        Ok(()) => Done::Nothing,
    }
}

fn everything(profile: Profile) -> Value {
    if profile == Profile::Kep { json!(true) } else { json!(["*"]) }
}

#[test]
fn prepare_by_gate_aggregate_cache_and_registry() {
    // req: 5945-KUBELET-4, 5945-KUBELET-10, 5945-KUBELET-11, 5945-KUBELET-12, 5945-KUBELET-13, 5945-KUBELET-15
    // req: 5945-KUBELET-17
    for profile in BOTH {
        let all = everything(profile);
        let none = vec![(GPU, json!(null))];
        let mixed = vec![(GPU, all.clone()), (GPU, json!(null))];
        let skipping = vec![(GPU, all.clone())];
        let here: &[&str] = &[GPU];
        // Columns: gate, devices, prepared before, registered now, outcome.
        let rows = [
            (false, &none, false, here, Done::Called),
            (false, &none, false, &[], Done::NotRegistered),
            (false, &none, true, here, Done::Nothing),
            (false, &none, true, &[], Done::NotRegistered),
            (false, &mixed, false, here, Done::GateOff),
            (false, &mixed, true, here, Done::GateOff),
            (false, &skipping, false, &[], Done::GateOff),
            (false, &skipping, true, &[], Done::GateOff),
            (true, &none, false, here, Done::Called),
            (true, &none, false, &[], Done::NotRegistered),
            (true, &mixed, false, here, Done::Called),
            (true, &mixed, false, &[], Done::NotRegistered),
            (true, &skipping, false, here, Done::Skipped),
            (true, &skipping, false, &[], Done::Skipped),
            (true, &skipping, true, here, Done::Nothing),
            (true, &skipping, true, &[], Done::Nothing),
            (true, &none, true, &[], Done::NotRegistered),
            (true, &mixed, true, &[], Done::NotRegistered),
        ];
        for (index, (gate, devices, prepared, registered, expected)) in rows.into_iter().enumerate() {
            let mut world = World::new(profile, here);
            if prepared {
                prepare_once(&mut world, "p", devices);
            }
            world = if gate { world } else { world.gate_off() };
            world.registered = registered.iter().map(|&driver| driver.to_owned()).collect();
            let done = prepare_once(&mut world, "q", devices);
            assert_eq!(done, expected, "row {index}, {profile:?}");
            let entered = world.cache.claims().values().any(|info| info.pods.contains("q-uid"));
            assert_eq!(entered, !matches!(expected, Done::NotRegistered | Done::GateOff), "row {index}");
        }
    }
}

#[test]
fn shipped_lists_at_prepare() {
    // req: 5945-KUBELET-6
    let rows = [
        (json!(["NodeUnprepareResources"]), Done::Called),
        (json!(["NodePrepareResources"]), Done::Skipped),
        (json!(["Future"]), Done::Called),
        (json!([]), Done::Called),
    ];
    for (list, expected) in rows {
        let mut world = World::new(Profile::V1_37, &[GPU]);
        assert_eq!(prepare_once(&mut world, "p", &[(GPU, list.clone())]), expected, "{list}");
    }
    let mut off = World::new(Profile::V1_37, &[GPU]).gate_off();
    assert_eq!(prepare_once(&mut off, "p", &[(GPU, json!(["Future"]))]), Done::GateOff);
    let other_driver = [(GPU, json!(null)), (NIC, json!(["*"]))];
    assert_eq!(prepare_once(&mut off, "p", &other_driver), Done::GateOff);
}

#[test]
fn unprepare_by_cached_set_and_registry() {
    // req: 5945-KUBELET-5, 5945-KUBELET-8, 5945-KUBELET-16
    let here: &[&str] = &[GPU];
    let rows = [
        (json!(null), here, Done::Called),
        (json!(["NodePrepareResources"]), here, Done::Called),
        (json!(null), &[], Done::NotRegistered),
        (json!(["NodePrepareResources"]), &[], Done::NotRegistered),
        (json!(["NodeUnprepareResources"]), here, Done::Skipped),
        (json!(["NodeUnprepareResources", "NodePrepareResources"]), &[], Done::Skipped),
        (json!(["*"]), here, Done::Skipped),
        (json!(["*"]), &[], Done::Skipped),
    ];
    for gate in [true, false] {
        for (list, registered, expected) in &rows {
            let mut world = World::new(Profile::V1_37, here);
            prepare_once(&mut world, "p", &[(GPU, list.clone())]);
            world = if gate { world } else { world.gate_off() };
            world.registered = registered.iter().map(|&driver| driver.to_owned()).collect();
            assert_eq!(&unprepare_once(&mut world, "p"), expected, "{list}, gate {gate}");
            assert_eq!(world.cache.claims().is_empty(), *expected != Done::NotRegistered, "{list}");
        }
    }
}

#[test]
fn unprepare_without_an_entry_and_with_another_pod() {
    for declared in [json!(null), json!(true)] {
        let mut world = World::new(Profile::Kep, &[GPU]);
        assert_eq!(unprepare_once(&mut world, "p"), Done::Nothing);
        prepare_once(&mut world, "p", &[(GPU, declared.clone())]);
        prepare_once(&mut world, "q", &[(GPU, declared)]);
        assert_eq!(unprepare_once(&mut world, "p"), Done::Nothing);
        let info = world.cache.claims().values().next().unwrap();
        assert_eq!(info.pods.iter().collect::<Vec<_>>(), ["q-uid"]);
    }
}

#[test]
fn one_value_and_both_operations() {
    // req: 5945-KUBELET-6, 5945-KUBELET-10, 5945-SKEW-2
    use Done::{Called, Skipped};
    let rows = [
        (json!(null), Called, Called),
        (json!([]), Called, Called),
        (json!(false), Called, Called),
        (json!(true), Skipped, Skipped),
        (json!(["*"]), Skipped, Skipped),
        (json!(["*", "Future"]), Skipped, Skipped),
        (json!(["NodePrepareResources", "NodeUnprepareResources"]), Skipped, Skipped),
        (json!(["NodeUnprepareResources"]), Called, Skipped),
        (json!(["NodePrepareResources"]), Skipped, Called),
        (json!(["NodePrepareResources", "*"]), Skipped, Skipped),
        (json!(["Future"]), Called, Called),
        (json!(["Future", "NodeUnprepareResources"]), Called, Skipped),
        (json!(["*", "*"]), Skipped, Skipped),
    ];
    for (declared, prepare, unprepare) in rows {
        let mut world = World::new(Profile::V1_37, &[GPU]);
        assert_eq!(prepare_once(&mut world, "p", &[(GPU, declared.clone())]), prepare, "{declared}");
        assert_eq!(unprepare_once(&mut world, "p"), unprepare, "{declared}");
    }
}

#[test]
fn the_bool_is_both_operations_or_none() {
    // req: 5945-KUBELET-12
    let rows = [
        (json!(null), Done::Called),
        (json!(false), Done::Called),
        (json!(true), Done::Skipped),
        (json!(["NodeUnprepareResources"]), Done::Called),
    ];
    for (declared, done) in rows {
        let mut world = World::new(Profile::Kep, &[GPU]);
        assert_eq!(prepare_once(&mut world, "p", &[(GPU, declared.clone())]), done);
        assert_eq!(unprepare_once(&mut world, "p"), done);
    }
}

#[test]
fn several_drivers_and_claims_of_one_pod() {
    // req: 5945-KUBELET-2, 5945-KUBELET-4, 5945-KUBELET-15
    type Claims<'a> = Vec<(&'a str, Vec<(&'a str, Value)>)>;
    type Calls<'a> = &'a [(&'a str, &'a [&'a str])];
    let (all, none, u) = (json!(["*"]), json!(null), json!(["NodeUnprepareResources"]));
    let rows: [(Claims<'_>, Calls<'_>, Calls<'_>); 6] = [
        (vec![("c1", vec![(GPU, all.clone()), (NIC, none.clone())])], &[(NIC, &["c1"])], &[(NIC, &["c1"])]),
        (
            vec![("c1", vec![(GPU, all.clone())]), ("c2", vec![(GPU, none.clone())])],
            &[(GPU, &["c2"])],
            &[(GPU, &["c2"])],
        ),
        (vec![("c1", vec![(GPU, all.clone()), (GPU, none.clone())])], &[(GPU, &["c1"])], &[(GPU, &["c1"])]),
        (vec![("c1", vec![(GPU, all.clone()), (GPU, u)])], &[(GPU, &["c1"])], &[]),
        (
            vec![("c1", vec![(GPU, none.clone())]), ("c2", vec![(GPU, none)])],
            &[(GPU, &["c1", "c2"])],
            &[(GPU, &["c1", "c2"])],
        ),
        (vec![("c1", vec![(GPU, all.clone())]), ("c2", vec![(NIC, all)])], &[], &[]),
    ];
    for (claims, prepared, unprepared) in rows {
        let names: Vec<&str> = claims.iter().map(|(name, _)| *name).collect();
        let pod = pod("p", &names);
        let objects: Vec<_> = claims.iter().map(|(name, devices)| claim(name, devices)).collect();
        let needed: Vec<&str> = prepared.iter().map(|(driver, _)| *driver).collect();
        // Only the drivers that are called are registered.
        let mut world = World::new(Profile::V1_37, &needed);
        world.prepare(&pod, &objects).unwrap();
        assert_eq!(calls(&world, Operation::Prepare), expected(prepared));
        assert_eq!(world.cache.claims().len(), claims.len());
        assert!(world.cache.claims().values().all(|info| info.prepared));
        assert_ne!(world.file, World::new(Profile::V1_37, &[]).file);
        world.unprepare(&pod).unwrap();
        assert_eq!(calls(&world, Operation::Unprepare), expected(unprepared));
        assert!(world.cache.claims().is_empty());
    }
}

fn calls(world: &World, operation: Operation) -> Vec<(String, Vec<String>)> {
    let called = world.called(operation).into_iter();
    called.flat_map(|(driver, batches)| batches.into_iter().map(move |claims| (driver.to_owned(), claims))).collect()
}

fn expected(calls: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let uid = |name: &&str| format!("{name}-claim");
    calls.iter().map(|(driver, claims)| ((*driver).to_owned(), claims.iter().map(uid).collect())).collect()
}

#[test]
fn a_new_claim_beside_a_prepared_one_is_called_alone() {
    let (first, second) = (claim("c1", &[(GPU, json!(null))]), claim("c2", &[(GPU, json!(null))]));
    let mut world = World::new(Profile::V1_37, &[GPU]);
    world.prepare(&pod("p", &["c1"]), std::slice::from_ref(&first)).unwrap();
    world.calls.clear();
    world.prepare(&pod("q", &["c1", "c2"]), &[first, second]).unwrap();
    assert_eq!(calls(&world, Operation::Prepare), expected(&[(GPU, &["c2"])]));
}

#[test]
fn a_failing_driver_leaves_the_claim_unprepared_and_the_skip_counts_again() {
    // req: 5945-OBS-1, 5945-OBS-2
    let object = claim("c", &[(GPU, json!(["*"])), (NIC, json!(null))]);
    let mut world = World::new(Profile::V1_37, &[NIC]);
    world.failing.insert(NIC.to_owned());
    let error = world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).unwrap_err();
    assert_eq!(error.to_string(), "prepare dynamic resources: NodePrepareResources: rpc error: code = Unavailable");
    assert!(world.cache.claims().values().all(|info| !info.prepared));
    world.failing.clear();
    world.prepare(&pod("p", &["c"]), &[object]).unwrap();
    assert_eq!(world.counts.count(Operation::Prepare, GPU), 2);
    assert_eq!(world.counts.count(Operation::Prepare, NIC), 0);
}

#[test]
fn names_of_what_a_kubelet_reports() {
    // req: 5945-OBS-1, 5945-OBS-2, 5945-OBS-5
    let names = |profile| [Operation::Prepare.skips_metric(profile), Operation::Unprepare.skips_metric(profile)];
    let kep = ["kubelet_dra_node_prepare_skips_total", "kubelet_dra_node_unprepare_skips_total"];
    assert_eq!(names(Profile::Kep), kep);
    assert_eq!(names(Profile::V1_37), ["dra_node_prepare_skips_total", "dra_node_unprepare_skips_total"]);
    assert_eq!(Operation::duration_metric(Profile::Kep), "kubelet_dra_operations_duration_seconds");
    assert_eq!(
        (SkipCounts::DRIVER_LABEL, PrepareError::EVENT_REASON),
        ("driver_name", "FailedPrepareDynamicResources")
    );
}
