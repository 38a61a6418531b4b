//! Property tests of the validation.

use dra_alloc::validate::{ApiServer, Write};
use dra_alloc::{Gate, GateSet, Outcome};
use dra_attrs::ErrorType::{self, *};
use dra_attrs::{Component, Profile};
use k8s_openapi::api::resource::v1::{
    DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimStatus, ResourceClaimTemplate, ResourceSlice,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{Value, json};

use super::validate_world::{
    BOTH, Written, allocated, changed, claim, class, counters, create, rule, shipped, slice, template, update,
    update_status,
};
use crate::cluster::{Cluster, pool, request};

/// A change of one field of a valid object, and the problem that it causes.
struct Mutation {
    pointer: &'static str,
    value: Value,
    field: &'static str,
    kind: ErrorType,
}

fn mutation(pointer: &'static str, value: Value, field: &'static str, kind: ErrorType) -> Mutation {
    Mutation { pointer, value, field, kind }
}

const SLICE_DEVICE: &str = "/spec/devices/0";

fn of_slices() -> Vec<Mutation> {
    assert!(slice().pointer(SLICE_DEVICE).is_some());
    vec![
        mutation("/metadata/name", json!("-"), "metadata.name", Invalid),
        mutation("/spec/driver", json!(""), "spec.driver", Required),
        mutation("/spec/pool/name", json!("P"), "spec.pool.name", Invalid),
        mutation("/spec/pool/generation", json!(-3), "spec.pool.generation", Invalid),
        mutation("/spec/pool/resourceSliceCount", json!(-3), "spec.pool.resourceSliceCount", Invalid),
        mutation("/spec/nodeName", json!("N"), "spec.nodeName", Invalid),
        mutation("/spec/allNodes", json!(false), "spec.allNodes", Invalid),
        mutation("/spec/perDeviceNodeSelection", json!(false), "spec.perDeviceNodeSelection", Invalid),
        mutation("/spec/skipNodeOperations", json!(["x"]), "spec.skipNodeOperations[0]", NotSupported),
        mutation("/spec/devices/0/name", json!("A"), "spec.devices[0].name", Invalid),
        mutation("/spec/devices/0/nodeName", json!("n"), "spec.devices[0]", Invalid),
        mutation("/spec/devices/0/attributes/1", json!({"int": 1}), "spec.devices[0].attributes", Invalid),
        mutation("/spec/devices/0/attributes/model", json!({}), "spec.devices[0].attributes[model]", Invalid),
        mutation(
            "/spec/devices/0/attributes/model/string",
            json!("x".repeat(65)),
            "spec.devices[0].attributes[model].string",
            TooLong,
        ),
        mutation(
            "/spec/devices/0/capacity/memory/value",
            json!("x"),
            "spec.devices[0].capacity[memory].value",
            Invalid,
        ),
        mutation(
            "/spec/devices/0/capacity/memory/requestPolicy/default",
            json!("44Gi"),
            "spec.devices[0].capacity[memory].requestPolicy.validRange.default",
            Invalid,
        ),
        mutation("/spec/devices/0/taints/0/key", json!("a b"), "spec.devices[0].taints[0].key", Invalid),
        mutation("/spec/devices/0/taints/0/effect", json!("x"), "spec.devices[0].taints[0].effect", NotSupported),
        mutation(
            "/spec/devices/0/consumesCounters/0/counterSet",
            json!(""),
            "spec.devices[0].consumesCounters[0].counterSet",
            Required,
        ),
        mutation("/spec/devices/0/bindingConditions/0", json!("a b"), "spec.devices[0].bindingConditions[0]", Invalid),
        mutation(
            "/spec/devices/0/nodeAllocatableResources/cpu",
            json!({}),
            "spec.devices[0].nodeAllocatableResources[cpu]",
            Required,
        ),
    ]
}

fn of_claims() -> Vec<Mutation> {
    const EXACT: &str = "/spec/devices/requests/0/exactly";
    assert!(claim().pointer(EXACT).is_some());
    vec![
        mutation("/metadata/name", json!("-"), "metadata.name", Invalid),
        mutation(
            "/spec/devices/requests/0/exactly/deviceClassName",
            json!(""),
            "spec.devices.requests[0].exactly.deviceClassName",
            Required,
        ),
        mutation(
            "/spec/devices/requests/0/exactly/allocationMode",
            json!("x"),
            "spec.devices.requests[0].exactly.allocationMode",
            NotSupported,
        ),
        mutation(
            "/spec/devices/requests/0/exactly/count",
            json!(-1),
            "spec.devices.requests[0].exactly.count",
            Invalid,
        ),
        mutation(
            "/spec/devices/requests/0/exactly/selectors/0/cel",
            json!(null),
            "spec.devices.requests[0].exactly.selectors[0].cel",
            Required,
        ),
        mutation(
            "/spec/devices/requests/0/exactly/tolerations/0/operator",
            json!("x"),
            "spec.devices.requests[0].exactly.tolerations[0].operator",
            NotSupported,
        ),
        mutation(
            "/spec/devices/requests/0/exactly/derivedAttributes/0/expression",
            json!("1.5"),
            "spec.devices.requests[0].exactly.derivedAttributes[0].expression",
            Invalid,
        ),
        mutation(
            "/spec/devices/requests/1/firstAvailable/1/name",
            json!("S"),
            "spec.devices.requests[1].firstAvailable[1].name",
            Invalid,
        ),
        mutation(
            "/spec/devices/constraints/0/requests/0",
            json!("nic"),
            "spec.devices.requests[0].exactly.derivedAttributes[0].name",
            Invalid,
        ),
        mutation(
            "/spec/devices/constraints/1/distinctAttribute",
            json!("x"),
            "spec.devices.constraints[1].distinctAttribute",
            Invalid,
        ),
        mutation("/spec/devices/config/0/requests/0", json!("cpu"), "spec.devices.config[0].requests[0]", Invalid),
        mutation(
            "/spec/devices/config/0/opaque/parameters",
            json!("x"),
            "spec.devices.config[0].opaque.parameters",
            Invalid,
        ),
    ]
}

fn of_statuses() -> Vec<Mutation> {
    vec![
        mutation("/status/reservedFor/0/uid", json!(""), "status.reservedFor[0].uid", Required),
        mutation(
            "/status/allocation/devices/results/0/request",
            json!("x"),
            "status.allocation.devices.results[0].request",
            Invalid,
        ),
        mutation(
            "/status/allocation/devices/results/0/pool",
            json!(""),
            "status.allocation.devices.results[0].pool",
            Required,
        ),
        mutation(
            "/status/allocation/devices/results/0/shareID",
            json!("x"),
            "status.allocation.devices.results[0].shareID",
            Invalid,
        ),
        mutation(
            "/status/allocation/devices/results/1/skipNodeOperations",
            json!(["NodePrepareResources"]),
            "status.allocation.devices.results[1].skipNodeOperations",
            Invalid,
        ),
        mutation(
            "/status/allocation/devices/config/0/source",
            json!("x"),
            "status.allocation.devices.config[0].source",
            NotSupported,
        ),
        mutation("/status/devices/0/device", json!("other"), "status.devices[0]", Invalid),
        mutation(
            "/status/devices/0/conditions/0/status",
            json!("x"),
            "status.devices[0].conditions[0].status",
            NotSupported,
        ),
        mutation("/status/devices/0/networkData/ips/0", json!("x"), "status.devices[0].networkData.ips[0]", Invalid),
    ]
}

type Found = Vec<(String, ErrorType)>;

fn found<T>(outcome: Result<T, dra_attrs::FieldErrors>) -> Found {
    outcome.err().unwrap_or_default().into_iter().map(|error| (error.field, error.r#type)).collect()
}

fn expected<'a>(mutations: impl IntoIterator<Item = &'a Mutation>) -> Found {
    mutations.into_iter().map(|mutation| (mutation.field.to_owned(), mutation.kind)).collect()
}

fn mutated<'a>(base: &Value, mutations: impl IntoIterator<Item = &'a Mutation>) -> Value {
    mutations
        .into_iter()
        .fold(base.clone(), |object, mutation| changed(&object, json!({mutation.pointer: mutation.value})))
}

#[test]
fn one_change_makes_one_problem_that_names_its_field() {
    for one in of_slices() {
        assert_eq!(
            found(create::<ResourceSlice>(shipped(), mutated(&slice(), [&one]))),
            expected([&one]),
            "{}",
            one.pointer
        );
    }
    for one in of_claims() {
        assert_eq!(
            found(create::<ResourceClaim>(shipped(), mutated(&claim(), [&one]))),
            expected([&one]),
            "{}",
            one.pointer
        );
    }
    for one in of_statuses() {
        let new = mutated(&allocated(), [&one]);
        assert_eq!(found(update_status(shipped(), claim(), new)), expected([&one]), "{}", one.pointer);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Checks that all problems are reported, not only the first.
    #[test]
    fn several_changes_make_as_many_problems(chosen in subsequence((0..9).collect::<Vec<usize>>(), 1..9)) {
        // These changes do not influence each other.
        let independent = [0, 1, 2, 3, 4, 6, 7, 8, 9];
        let all = of_slices();
        let some: Vec<&Mutation> = chosen.iter().map(|index| &all[independent[*index]]).collect();
        let mut errors = found(create::<ResourceSlice>(shipped(), mutated(&slice(), some.iter().copied())));
        let mut wanted = expected(some);
        errors.sort();
        wanted.sort();
        prop_assert_eq!(errors, wanted);
    }

    /// Checks that every server accepts an update of a valid object that changes nothing.
    #[test]
    fn an_unchanged_object_is_accepted(bits in any::<u32>(), kep in any::<bool>()) {
        let profile = if kep { Profile::Kep } else { Profile::V1_37 };
        let on = Gate::ALL.iter().copied().enumerate().filter(|(bit, _)| bits & (1 << bit) != 0);
        let server = ApiServer::new(Component::new(profile, on.map(|(_, feature)| feature).collect::<GateSet>()));
        for object in [slice(), counters()] {
            let stored = ResourceSlice::parse(object);
            let again = server.validate_slice(Write::update(&stored, &stored)).unwrap();
            prop_assert_eq!((&again.object, again.dropped.len()), (&stored, 0));
        }
        for object in [claim(), allocated()] {
            let stored = ResourceClaim::parse(object);
            for again in [
                server.validate_claim(Write::update(&stored, &stored)).unwrap(),
                server.validate_claim_status(Write::update(&stored, &stored)).unwrap(),
            ] {
                prop_assert_eq!((&again.object, again.dropped.len()), (&stored, 0));
            }
        }
        prop_assert!(update::<ResourceClaimTemplate>(server, template(), template()).is_ok());
        prop_assert!(update::<DeviceClass>(server, class(), class()).is_ok());
        prop_assert!(update::<DeviceTaintRule>(server, rule(), rule()).is_ok());
    }

    /// Checks that an accepted object is accepted again, as stored.
    #[test]
    fn what_is_stored_is_valid(bits in any::<u32>(), kep in any::<bool>(), changes in vec(0..21_usize, 0..2)) {
        let profile = if kep { Profile::Kep } else { Profile::V1_37 };
        let on = Gate::ALL.iter().copied().enumerate().filter(|(bit, _)| bits & (1 << bit) != 0);
        let server = ApiServer::new(Component::new(profile, on.map(|(_, feature)| feature).collect::<GateSet>()));
        let all = of_slices();
        let object = mutated(&slice(), changes.iter().map(|index| &all[*index]));
        if let Ok(first) = create::<ResourceSlice>(server, object) {
            let second = server.validate_slice(Write::create(&first.object)).unwrap();
            prop_assert_eq!((&second.object, second.dropped.len()), (&first.object, 0));
            prop_assert!(server.validate_slice(Write::update(&first.object, &first.object)).is_ok());
        }
    }

    /// Checks that the API server accepts the results of the allocator.
    #[test]
    fn what_the_allocator_finds_is_accepted(
        declarations in vec(prop_oneof![Just(json!(null)), Just(json!(false)), Just(json!(true))], 3),
        counts in vec(1..3_usize, 2),
        shared in any::<bool>(),
        kep in any::<bool>(),
    ) {
        let profile = if kep { Profile::Kep } else { Profile::V1_37 };
        let devices: Value = (0..4)
            .map(|index| json!({
                "name": format!("d{index}"), "allowMultipleAllocations": shared,
                "capacity": {"memory": {"value": "8Gi"}},
                "bindingConditions": ["example.com/ready"], "bindingFailureConditions": ["example.com/failed"],
            }))
            .collect();
        let slices = ["gpu.example.com", "nic.example.com", "cpu.example.com"].iter().zip(&declarations);
        let slices = slices.map(|(driver, skip)| {
            crate::cluster::with(pool(driver, "node-1", devices.clone()), "skipNodeOperations", skip.clone())
        });
        let mut cluster = Cluster::new(slices);
        cluster.profile = profile;
        let server = ApiServer::new(Component::new(profile, GateSet::all()));
        for slice in &cluster.slices {
            prop_assert!(server.validate_slice(Write::create(slice)).is_ok());
        }
        let tolerations = json!([{"key": "example.com/x", "operator": "Exists"}]);
        let requests = json!([
            request("g", "gpu", json!({"count": counts[0], "tolerations": tolerations})),
            request("n", "nic", json!({"count": counts[1]})),
            {"name": "c", "firstAvailable": [{"name": "none", "deviceClassName": "nic", "count": 9},
                {"name": "one", "deviceClassName": "cpu"}]},
        ]);
        let mut object = crate::cluster::claim("c", requests, json!([]));
        let config = json!([{"requests": ["g"], "opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}}]);
        object.spec.as_mut().unwrap().devices.as_mut().unwrap().config = serde_json::from_value(config).unwrap();
        let created = server.validate_claim(Write::create(&object)).unwrap().object;
        let outcome = cluster.try_allocate(&crate::cluster::node("node-1"), std::slice::from_ref(&created)).unwrap();
        let Outcome::Allocated(results) = outcome.outcome else { panic!("{:?}", outcome.outcome) };
        let status = ResourceClaimStatus { allocation: Some(results[0].clone()), ..Default::default() };
        let allocated = ResourceClaim { status: Some(status), ..created.clone() };
        let admitted = server.validate_claim_status(Write::update(&created, &allocated));
        prop_assert_eq!(admitted.map(|admitted| admitted.object), Ok(allocated));
    }
}

#[test]
fn both_profiles_accept_the_valid_objects() {
    for profile in BOTH {
        let server = ApiServer::new(Component::new(profile, GateSet::all()));
        assert_eq!(found(create::<ResourceSlice>(server, slice())), []);
        assert_eq!(found(create::<ResourceSlice>(server, counters())), []);
        assert_eq!(found(create::<ResourceClaim>(server, claim())), []);
        assert_eq!(found(update_status(server, claim(), allocated())), []);
        assert_eq!(found(create::<ResourceClaimTemplate>(server, template())), []);
        assert_eq!(found(create::<DeviceClass>(server, class())), []);
        assert_eq!(found(create::<DeviceTaintRule>(server, rule())), []);
    }
}
