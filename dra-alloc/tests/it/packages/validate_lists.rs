//! Tests of list attributes in API server, scheduler and drivers (KEP-6072, KEP-5491).

use dra_alloc::validate::{ApiServer, PublishError, Write};
use dra_alloc::{Gate, GateSet, Outcome};
use dra_attrs::ErrorType::*;
use dra_attrs::{Component, Profile};
use k8s_openapi::api::resource::v1::ResourceSlice;
use serde_json::{Value, json};

use super::validate_world::{BOTH, Written, changed, create, expect, update};
use crate::cluster::{Cluster, NUMA, pool, together};

const FIELD: &str = "spec.devices[0].attributes[resource.kubernetes.io/numaNode]";

fn server(profile: Profile, lists: bool) -> ApiServer {
    let features = GateSet::all();
    ApiServer::new(Component::new(profile, if lists { features } else { features.without(Gate::ListTypeAttributes) }))
}

/// Form in which a driver publishes the attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Lists,
    Scalars,
}

/// Creates a slice with one device on NUMA nodes 4 and 5, or on node 4.
fn slice(driver: &str, form: Form) -> Value {
    let value = if form == Form::Lists { json!({"ints": [4, 5]}) } else { json!({"int": 4}) };
    pool(driver, "node-1", json!([{"name": "d", "attributes": {NUMA: value}}]))
}

#[test]
fn a_list_that_is_dropped_leaves_an_attribute_without_value() {
    // req: 6072-FORM-6, 6072-UPDOWN-1
    let (list, scalar) = (slice("nic.example.com", Form::Lists), slice("nic.example.com", Form::Scalars));
    for profile in BOTH {
        let off = server(profile, false);
        expect::<ResourceSlice>("new", create(off, list.clone()), &[(FIELD, Invalid, "must specify one of")]);
        expect::<ResourceSlice>(
            "scalar before",
            update(off, scalar.clone(), list.clone()),
            &[(FIELD, Invalid, "must specify one of")],
        );
        expect::<ResourceSlice>("scalar", create(off, scalar.clone()), &[]);
        // Stored lists are kept, and new ones are accepted.
        let longer = changed(&list, json!({"/spec/devices/0/attributes": {NUMA: {"ints": [4, 5, 6]}}}));
        let admitted = update::<ResourceSlice>(off, list.clone(), longer.clone()).unwrap();
        assert_eq!(admitted.object.spec, ResourceSlice::parse(longer).spec);
        expect::<ResourceSlice>("on", create(server(profile, true), list.clone()), &[]);
    }
}

#[test]
fn a_rejected_list_is_a_fatal_configuration_error_and_nothing_else_is_published() {
    // req: 6072-FORM-6, 6072-FORM-12
    let list = ResourceSlice::parse(slice("nic.example.com", Form::Lists));
    for profile in BOTH {
        let Err(error) = server(profile, false).publish(Write::create(&list)) else { panic!("published") };
        let PublishError::ListsDisabled { fields, errors } = &error else { panic!("{error}") };
        assert_eq!((fields.as_slice(), errors.len()), (&[FIELD.to_owned()][..], 1));
        let text = error.to_string();
        assert!(
            text.starts_with("fatal configuration error: list attributes are published (spec.devices[0]"),
            "{text}"
        );
        assert!(text.contains("DRAListTypeAttributes"));
        let published = server(profile, true).publish(Write::create(&list)).unwrap();
        assert_eq!(published.object.spec, list.spec, "what is published is what was asked for");
        assert!(server(profile, false).publish(Write::update(&list, &list)).is_ok(), "stored lists stay");
        let other =
            ResourceSlice::parse(changed(&slice("nic.example.com", Form::Scalars), json!({"/spec/driver": ""})));
        let error = server(profile, false).publish(Write::create(&other)).unwrap_err();
        assert!(matches!(error, PublishError::Invalid(errors) if errors.len() == 1));
    }
}

#[test]
fn gates_of_api_server_and_scheduler_by_form() {
    // req: 6072-MATCH-14
    let claims = [together("pair", &["gpu", "nic"], NUMA)];
    // Columns: gate of the API server, gate of the scheduler, form, published, allocated.
    for (api_server, scheduler, form, published, allocated) in [
        (true, true, Form::Lists, true, true),
        (true, false, Form::Lists, true, false),
        (false, true, Form::Lists, false, false),
        (false, false, Form::Lists, false, false),
        (true, true, Form::Scalars, true, true),
        (true, false, Form::Scalars, true, true),
        (false, true, Form::Scalars, true, true),
        (false, false, Form::Scalars, true, true),
    ] {
        for profile in BOTH {
            let slices = ["gpu.example.com", "nic.example.com"].map(|driver| slice(driver, form));
            let stored: Vec<Value> = slices
                .into_iter()
                .filter_map(|slice| create::<ResourceSlice>(server(profile, api_server), slice).ok())
                .map(|admitted| serde_json::to_value(admitted.object).unwrap())
                .collect();
            assert_eq!(stored.len(), if published { 2 } else { 0 });
            let mut cluster = Cluster::new(stored);
            cluster.profile = profile;
            cluster.classes = ["gpu.example.com", "nic.example.com"].map(crate::cluster::class).to_vec();
            if !scheduler {
                cluster.gates = cluster.gates.without(Gate::ListTypeAttributes);
            }
            let outcome = cluster.allocate("node-1", &claims);
            let expected =
                if allocated { matches!(outcome, Outcome::Allocated(_)) } else { outcome == Outcome::Unsatisfied };
            assert!(expected, "{profile} {api_server} {scheduler} {form:?}: {outcome:?}");
        }
    }
}

#[test]
fn on_off_on_needs_no_migration() {
    // req: 6072-UPDOWN-3
    for profile in BOTH {
        let (list, scalar) = (slice("nic.example.com", Form::Lists), slice("nic.example.com", Form::Scalars));
        let (on, off) = (server(profile, true), server(profile, false));
        let first = create::<ResourceSlice>(on, list.clone()).unwrap().object;
        // Gate off: the driver publishes scalars.
        let second = off.validate_slice(Write::update(&first, &ResourceSlice::parse(scalar))).unwrap().object;
        // Gate on again: the next update has the list.
        let third = on.validate_slice(Write::update(&second, &ResourceSlice::parse(list))).unwrap().object;
        assert_eq!(third.spec, first.spec);
    }
}

#[test]
fn a_rejected_list_leaves_the_slices_of_other_drivers() {
    // req: 6072-UPDOWN-4
    for profile in BOTH {
        let off = server(profile, false);
        let (gpu, cpu) = (slice("gpu.example.com", Form::Scalars), slice("cpu.example.com", Form::Scalars));
        let written = [gpu.clone(), slice("nic.example.com", Form::Lists), cpu.clone()];
        let admitted = written.into_iter().filter_map(|written| create::<ResourceSlice>(off, written).ok());
        let stored: Vec<ResourceSlice> = admitted.map(|admitted| admitted.object).collect();
        let specs: Vec<_> = stored.iter().map(|slice| slice.spec.clone()).collect();
        assert_eq!(specs, [ResourceSlice::parse(gpu).spec, ResourceSlice::parse(cpu).spec]);
        assert!(stored.iter().all(|slice| off.validate_slice(Write::update(slice, slice)).is_ok()));
        let mut cluster = Cluster::new(stored.iter().map(|slice| serde_json::to_value(slice).unwrap()));
        cluster.profile = profile;
        let pair = [together("pair", &["gpu", "cpu"], NUMA)];
        assert_eq!(cluster.allocate_in_turn("node-1", &pair)[0].as_deref().unwrap(), ["gpu d", "cpu d"]);
    }
}
