//! One pass over one pool, and what a driver remembers between passes.

use dra_attrs::{Component, Gate, GateSet, Profile};
use dra_node::driver::{
    Memory, NextStep, NodeChoice, PoolPlan, PoolScope, PoolSpec, ReconcileError, ReconcileOptions, SliceContents,
    SliceLimits, SlicePlan, SliceWrite, SyncPlan, WriteFailure, WriteResponse, reconcile, split_into_slices,
    withdraw_others,
};
use dra_validate::{ApiServer, Write};
use k8s_openapi::api::core::v1::NodeSelector;
use k8s_openapi::api::resource::v1::{
    CounterSet, Device, DeviceAttribute, DeviceCounterConsumption, DeviceTaint, ResourceSlice,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Status, Time};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

use super::plan::{devices, pool};

const SCOPE: PoolScope<'_> = PoolScope { driver: "gpu.example.com", pool: "p", node_name: Some("node-1"), owner: None };
fn v37() -> SliceLimits {
    SliceLimits::of(Profile::V1_37)
}

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn ordered<'a>(spec: &PoolSpec<'a>) -> PoolPlan<'a> {
    split_into_slices(spec, &v37(), None).unwrap()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as `reconcile` takes them")]
fn pass(stored: &[ResourceSlice], plan: &PoolPlan<'_>, memory: &mut Memory, options: &ReconcileOptions) -> SyncPlan {
    reconcile(&SCOPE, stored, Some(plan), memory, options).unwrap()
}

/// Makes the writes of a pass; the server sets times of taints. Returns the stored slices.
fn store(stored: &[ResourceSlice], pass: &SyncPlan, memory: &mut Memory) -> Vec<ResourceSlice> {
    let mut slices = stored.to_vec();
    for (number, write) in pass.writes.iter().enumerate() {
        let name = match write {
            SliceWrite::Delete { name, .. } => Some(name),
            write => write.slice().and_then(|slice| slice.metadata.name.as_ref()),
        };
        slices.retain(|slice| slice.metadata.name.as_ref() != name);
        let Some(mut slice) = write.slice().cloned() else { continue };
        slice.metadata.uid.get_or_insert_with(|| format!("uid-{}", slices.len()));
        let version = slice.metadata.resource_version.as_deref().unwrap_or("0").parse::<usize>().unwrap();
        slice.metadata.resource_version = Some((version + number + 1).to_string());
        for taint in slice.spec.devices.iter_mut().flatten().flat_map(|device| device.taints.iter_mut().flatten()) {
            taint.time_added.get_or_insert(Time(NOW));
        }
        memory.answered(write, WriteResponse::Stored(&slice), NOW);
        slices.push(slice);
    }
    slices
}

fn published(spec: &PoolSpec<'_>, memory: &mut Memory) -> Vec<ResourceSlice> {
    let first = pass(&[], &ordered(spec), memory, &ReconcileOptions::default());
    store(&[], &first, memory)
}

fn taint(value: Option<&str>) -> DeviceTaint {
    DeviceTaint {
        key: "k".to_owned(),
        effect: "NoSchedule".to_owned(),
        value: value.map(str::to_owned),
        ..DeviceTaint::default()
    }
}

#[test]
fn new_slices_belong_to_their_owner_as_to_a_controller() {
    let owner = OwnerReference { name: "node-1".to_owned(), controller: None, ..OwnerReference::default() };
    let (all, scope) = (devices(200), PoolScope { owner: Some(&owner), ..SCOPE });
    let plan = ordered(&pool(&all));
    let first = reconcile(&scope, &[], Some(&plan), &mut Memory::default(), &ReconcileOptions::default()).unwrap();
    assert_eq!(first.writes.len(), 4);
    for slice in first.writes.iter().map(|write| write.slice().unwrap()) {
        let expected = OwnerReference { controller: Some(true), ..owner.clone() };
        assert_eq!(slice.metadata.owner_references, Some(vec![expected]));
    }
}

#[test]
fn a_changed_device_of_a_thousand_is_one_write_or_each_slice_once_and_then_none() {
    let mut all = devices(1000);
    let mut memory = Memory::default();
    let stored = published(&pool(&all), &mut memory);
    assert_eq!(stored.len(), 16);
    all[500].taints = Some(vec![taint(None)]);
    let wanted = ordered(&pool(&all));
    for (keeps_generation, writes) in [(true, 1), (false, 16)] {
        let (options, mut memory) = (ReconcileOptions { keeps_generation, ..Default::default() }, memory.clone());
        let changed = pass(&stored, &wanted, &mut memory, &options);
        assert_eq!(changed.writes.len(), writes);
        let now = store(&stored, &changed, &mut memory);
        assert_eq!(pass(&now, &wanted, &mut memory, &options).writes, []);
        assert_eq!(pass(&now, &wanted, &mut Memory::default(), &options).writes, []);
    }
}

#[test]
fn a_device_that_appears_is_one_write_in_a_sticky_layout() {
    let mut all = devices(1000);
    let mut memory = Memory::default();
    let stored = published(&pool(&all), &mut memory);
    all.remove(3);
    all.push(Device { name: "new".to_owned(), ..Device::default() });
    let layout = SliceContents::from_slices(&stored);
    let wanted = split_into_slices(&pool(&all), &v37(), Some(&layout)).unwrap();
    let options = ReconcileOptions { keeps_generation: true, ..Default::default() };
    assert_eq!(pass(&stored, &wanted, &mut memory, &options).writes.len(), 1);
}

#[test]
fn defaults_and_canonical_amounts_of_the_server_are_no_change() {
    let capacity = |value: &str| -> Device {
        from_value(
            json!({"name": "a", "capacity": {"memory": {"value": value}}, "attributes": {}, "bindsToNode": true}),
        )
        .unwrap()
    };
    let wanted = [Device { taints: Some(vec![taint(Some(""))]), ..capacity("1024Mi") }];
    let mut memory = Memory::default();
    let mut stored = published(&pool(&wanted), &mut memory);
    let device = &mut stored[0].spec.devices.as_mut().unwrap()[0];
    *device = Device { taints: device.taints.clone(), attributes: None, ..capacity("1Gi") };
    device.taints.as_mut().unwrap()[0].value = None;
    assert!(device.taints.as_ref().unwrap()[0].time_added.is_some());
    assert_eq!(pass(&stored, &ordered(&pool(&wanted)), &mut memory, &ReconcileOptions::default()).writes, []);
}

#[test]
fn taints_keep_their_times() {
    let mut all = devices(1);
    all[0].taints = Some(vec![taint(None)]);
    let mut memory = Memory::default();
    let stored = published(&pool(&all), &mut memory);
    all[0].attributes = Some([("v".to_owned(), DeviceAttribute { int: Some(1), ..Default::default() })].into());
    let changed = pass(&stored, &ordered(&pool(&all)), &mut memory, &ReconcileOptions::default());
    let sent = changed.writes[0].slice().unwrap().spec.devices.as_ref().unwrap();
    assert_eq!(sent[0].taints.as_ref().unwrap()[0].time_added, Some(Time(NOW)));
}

#[test]
fn a_pool_that_contradicts_itself_is_not_written() {
    let all = [devices(1), devices(1)].concat();
    let wanted = ordered(&pool(&all));
    let error = reconcile(&SCOPE, [], Some(&wanted), &mut Memory::default(), &ReconcileOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "the pool is not written: slice 0: spec.devices[1].name: duplicate device d0");
    let ReconcileError::Invalid { findings } = error else { panic!() };
    assert_eq!(findings.len(), 1);
}

#[test]
fn the_first_eight_mistakes_of_a_pool_are_told() {
    for (count, end) in [(8, "duplicate device d7"), (9, "duplicate device d7 and 1 more")] {
        let all = [devices(count), devices(count)].concat();
        let wanted = ordered(&pool(&all));
        let error =
            reconcile(&SCOPE, [], Some(&wanted), &mut Memory::default(), &ReconcileOptions::default()).unwrap_err();
        assert!(error.to_string().ends_with(end), "{error}");
    }
}

#[test]
fn a_change_beside_a_second_slice_of_the_generation_raises_it() {
    let mut all = devices(1);
    let mut memory = Memory::default();
    let stored = published(&pool(&all), &mut memory);
    all[0].taints = Some(vec![taint(None)]);
    let wanted = ordered(&pool(&all));
    let generation = |beside: &[(&str, i64)]| {
        let twin = |(name, of): &(&str, i64)| {
            let mut twin = stored[0].clone();
            (twin.metadata.name, twin.spec.pool.generation) = (Some((*name).to_owned()), *of);
            twin
        };
        let stored: Vec<ResourceSlice> = stored.iter().cloned().chain(beside.iter().map(twin)).collect();
        let changed = pass(&stored, &wanted, &mut memory.clone(), &ReconcileOptions::default());
        changed.writes.iter().find_map(|write| write.slice()).unwrap().spec.pool.generation
    };
    assert_eq!([generation(&[]), generation(&[("zz", 0)]), generation(&[("zz", 1)])], [1, 1, 2]);
}

#[test]
fn a_pool_is_withdrawn_and_others_are_left_alone() {
    let all = devices(1);
    let mut memory = Memory::default();
    let mut stored = published(&pool(&all), &mut memory);
    let mut other = stored[0].clone();
    other.spec.pool.name = "q".to_owned();
    let mut clash = stored[0].clone();
    (clash.spec.node_name, clash.metadata.name) = (Some("node-2".to_owned()), Some("clash".to_owned()));
    stored.extend([other, clash]);
    let gone = reconcile(&SCOPE, &stored, None, &mut memory, &ReconcileOptions::default()).unwrap();
    assert_eq!((gone.writes.len(), gone.clashes), (1, vec!["clash".to_owned()]));
    let SliceWrite::Delete { uid, .. } = &gone.writes[0] else { panic!() };
    assert_eq!(uid, "uid-0");
}

fn partitions() -> (Vec<CounterSet>, Vec<Device>) {
    let sets = from_value(json!([{"name": "card", "counters": {"memory": {"value": "2"}}}])).unwrap();
    let device = |name: &str, amount: &str| -> Value {
        json!({"name": name, "consumesCounters": [{"counterSet": "card", "counters": {"memory": {"value": amount}}}]})
    };
    (sets, from_value(json!([device("full", "2"), device("half-0", "1"), device("half-1", "1")])).unwrap())
}

#[test]
fn a_card_that_loses_its_counters_is_not_published_with_its_partitions() {
    let (sets, partitions) = partitions();
    let wanted = ordered(&pool(&partitions).with_counter_sets(&sets));
    let (mut memory, options) = (Memory::default(), ReconcileOptions::default());
    let first = pass(&[], &wanted, &mut memory, &options);
    assert_eq!(first.writes.len(), 2);
    // The first slice has the counter sets. Its answer shows that they are dropped, before any device is published.
    let mut stored = first.writes[0].slice().unwrap().clone();
    stored.spec.shared_counters = None;
    stored.metadata.uid = Some("uid-0".to_owned());
    stored.metadata.resource_version = Some("1".to_owned());
    let answered = memory.answered(&first.writes[0], WriteResponse::Stored(&stored), NOW);
    assert_eq!(answered.next, NextStep::PlanAgain);
    assert_eq!(answered.dropped[0].consequence(), "a device and its partitions can be allocated together");
    let second = pass(&[stored], &wanted, &mut memory, &options);
    assert_eq!(second.withheld, ["half-0", "half-1"]);
    let sent = second.writes.last().unwrap().slice().unwrap();
    assert_eq!(sent.spec.devices.as_ref().unwrap().iter().map(|device| &device.name).collect::<Vec<_>>(), ["full"]);
    // A caller that accepts the consequence publishes all of them.
    let report = ReconcileOptions { sends_dropped_fields: true, ..options };
    assert_eq!(pass(&[], &wanted, &mut memory, &report).withheld, [""; 0]);
    // A gate that is off by default is known before the first write.
    let mut memory = Memory::default().with_gates_off(SliceLimits::of(Profile::V1_34).gates_off());
    assert_eq!(pass(&[], &wanted, &mut memory, &options).withheld.len(), 2);
}

#[test]
fn dropped_fields_are_no_change_once_they_are_known() {
    let all = [Device { taints: Some(vec![taint(None)]), ..devices(1).remove(0) }];
    let wanted = ordered(&pool(&all));
    let options = ReconcileOptions { sends_dropped_fields: true, ..ReconcileOptions::default() };
    let mut memory = Memory::default();
    let first = pass(&[], &wanted, &mut memory, &options);
    let mut stored = first.writes[0].slice().unwrap().clone();
    stored.spec.devices.as_mut().unwrap()[0].taints = None;
    memory.answered(&first.writes[0], WriteResponse::Stored(&stored), NOW);
    let second = pass(std::slice::from_ref(&stored), &wanted, &mut memory, &options);
    assert_eq!((second.writes.len(), second.same_but_dropped), (0, [Gate::DeviceTaints].into()));
    memory.forget_gates();
    assert_eq!(pass(&[stored], &wanted, &mut memory, &options).writes.len(), 1);
}

/// A device with lists, one of them empty, and a scalar.
fn with_lists() -> [Device; 1] {
    [from_value(json!({"name": "a", "attributes": {
        "numa": {"ints": [3, 1]}, "v": {"string": "x"}, "none": {"bools": []}}}))
    .unwrap()]
}

#[test]
fn refused_lists_become_scalars() {
    let all = with_lists();
    let wanted = ordered(&pool(&all));
    let (mut memory, options) = (Memory::default(), ReconcileOptions::default());
    let first = pass(&[], &wanted, &mut memory, &options);
    let failure = WriteResponse::Failed(WriteFailure::ListsRefused);
    assert_eq!(memory.answered(&first.writes[0], failure, NOW).next, NextStep::PlanAgain);
    let second = pass(&[], &wanted, &mut memory, &options);
    let sent = second.writes[0].slice().unwrap().spec.devices.as_ref().unwrap()[0].attributes.clone().unwrap();
    assert_eq!(sent.keys().collect::<Vec<_>>(), ["numa", "v"]);
    assert_eq!(sent["numa"], DeviceAttribute { int: Some(3), ..Default::default() });
    // Once more is another problem.
    assert_eq!(memory.answered(&second.writes[0], failure, NOW).next, NextStep::BackOff);
}

/// Returns the answer of a server that complains about fields.
fn invalid(causes: &[(&str, &str)]) -> Status {
    let causes: Vec<Value> =
        causes.iter().map(|(field, message)| json!({"field": field, "message": message})).collect();
    from_value(json!({"reason": "Invalid", "details": {"causes": causes}})).unwrap()
}

#[test]
fn refused_lists_are_known_by_the_write_and_not_by_a_text() {
    const NUMA: &str = "spec.devices[0].attributes[numa]";
    let all = with_lists();
    let wanted = ordered(&pool(&all));
    let write = pass(&[], &wanted, &mut Memory::default(), &ReconcileOptions::default()).writes.remove(0);
    let server =
        ApiServer::new(Component::new(Profile::V1_37, GateSet::of(Profile::V1_37).without(Gate::ListTypeAttributes)));
    let refused = server.validate_slice(Write::create(write.slice().unwrap())).unwrap_err();
    let told: Vec<(&str, String)> = refused.iter().map(|error| (error.field.as_str(), error.to_string())).collect();
    let told: Vec<(&str, &str)> = told.iter().map(|(field, message)| (*field, message.as_str())).collect();
    assert_eq!(told.len(), 2, "the list and the empty list: {told:?}");
    for (causes, wanted) in [
        (told.as_slice(), WriteFailure::ListsRefused),
        (&[(NUMA, "Invalid value: exactly one value must be specified")], WriteFailure::ListsRefused),
        (&[(NUMA, "Invalid value: must specify one of: `bool`, `int`")], WriteFailure::ListsRefused),
        (&[(NUMA, "words of another release"), (NUMA, "")], WriteFailure::ListsRefused),
        (&[("spec.devices[0].attributes[numa].ints", "")], WriteFailure::ListsRefused),
        (&[], WriteFailure::Invalid),
        (&[("spec.devices[0].attributes[v]", "exactly one value must be specified")], WriteFailure::Invalid),
        (&[("spec.devices[1].attributes[numa]", "exactly one value must be specified")], WriteFailure::Invalid),
        (&[("spec.devices[0].attributes[numa]x", "")], WriteFailure::Invalid),
        (&[(NUMA, "exactly one value must be specified"), ("spec.driver", "")], WriteFailure::Invalid),
    ] {
        assert_eq!(WriteFailure::from_status(&invalid(causes), &write), wanted, "{causes:?}");
    }
    let delete = SliceWrite::Delete { name: "a".to_owned(), uid: "u".to_owned(), resource_version: "1".to_owned() };
    assert_eq!(WriteFailure::from_status(&invalid(&told), &delete), WriteFailure::Invalid);
}

#[test]
fn fields_of_gates_that_are_off_are_not_sent() {
    let (sets, mut devices) = partitions();
    devices.extend(with_lists());
    let skip = ["*".to_owned()];
    let spec = pool(&devices).with_counter_sets(&sets).with_skip_node_operations(Some(&skip));
    let wanted = ordered(&spec);
    let gates: Vec<Gate> = SliceLimits::of(Profile::V1_34).gates_off().collect();
    let mut memory = Memory::default().with_gates_off(gates.iter().copied());
    let first = pass(&[], &wanted, &mut memory, &ReconcileOptions::default());
    let [SliceWrite::Create { slice, .. }] = first.writes.as_slice() else { panic!("{first:?}") };
    let names: Vec<&str> = slice.spec.devices.iter().flatten().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["full", "a"]);
    let server = ApiServer::new(Component::new(
        Profile::V1_37,
        gates.iter().fold(GateSet::of(Profile::V1_37), |all, gate| all.without(*gate)),
    ));
    let stored = server.validate_slice(Write::create(slice)).unwrap();
    assert_eq!(stored.dropped, [], "nothing is left to drop");
    let answered = memory.answered(&first.writes[0], WriteResponse::Stored(&stored.object), NOW);
    assert_eq!((answered.next, answered.dropped), (NextStep::Continue, Vec::new()));
    let second = pass(&[stored.object], &wanted, &mut memory, &ReconcileOptions::default());
    assert_eq!(second.writes, []);
    assert!(second.same_but_dropped.contains(&Gate::OptionalNodeOperations));
}

#[test]
fn a_pool_whose_contents_are_all_left_out_says_that_the_driver_runs() {
    let (sets, _) = partitions();
    let wanted = ordered(&pool(&[]).with_counter_sets(&sets));
    let mut memory = Memory::default().with_gates_off([Gate::PartitionableDevices]);
    let first = pass(&[], &wanted, &mut memory, &ReconcileOptions::default());
    let [SliceWrite::Create { slice, .. }] = first.writes.as_slice() else { panic!("{first:?}") };
    assert_eq!((slice.spec.devices.as_deref(), slice.spec.shared_counters.as_deref()), (Some(&[][..]), None));
    // It keeps all else that a slice of the pool has.
    let (selector, skip) = (NodeSelector::default(), ["*".to_owned()]);
    let spec = PoolSpec::new("gpu.example.com", "p", NodeChoice::Selector(&selector)).with_counter_sets(&sets);
    let wanted = ordered(&spec.with_skip_node_operations(Some(&skip)));
    let first = pass(&[], &wanted, &mut memory, &ReconcileOptions::default());
    let spec = &first.writes[0].slice().unwrap().spec;
    assert_eq!((&spec.node_selector, spec.skip_node_operations.as_deref()), (&Some(selector), Some(&skip[..])));
}

#[test]
fn nodes_of_devices_cannot_be_told_to_a_server_without_the_gate() {
    let all = devices(1);
    let wanted = ordered(&PoolSpec::new("gpu.example.com", "p", NodeChoice::PerDevice).with_devices(&all));
    let memory = || Memory::default().with_gates_off([Gate::PartitionableDevices]);
    let options = ReconcileOptions::default();
    let error = reconcile(&SCOPE, [], Some(&wanted), &mut memory(), &options).unwrap_err();
    let text = "the pool is not written: spec.perDeviceNodeSelection: feature gate DRAPartitionableDevices is off";
    assert_eq!(error.to_string(), text);
    let report = ReconcileOptions { sends_dropped_fields: true, ..options };
    assert_eq!(reconcile(&SCOPE, [], Some(&wanted), &mut memory(), &report).unwrap().writes.len(), 1);
}

#[test]
fn fields_of_a_gate_are_news_once() {
    let all = [Device { taints: Some(vec![taint(None)]), ..devices(1).remove(0) }];
    let mut memory = Memory::default();
    let write = pass(&[], &ordered(&pool(&all)), &mut memory, &ReconcileOptions::default()).writes.remove(0);
    let mut stored = write.slice().unwrap().clone();
    stored.spec.devices.as_mut().unwrap()[0].taints = None;
    let mut answered = || memory.answered(&write, WriteResponse::Stored(&stored), NOW);
    let (first, second) = (answered(), answered());
    assert_eq!((first.next, first.dropped.len()), (NextStep::PlanAgain, 1));
    assert_eq!((second.next, second.dropped.len()), (NextStep::Continue, 0));
}

#[test]
fn pools_of_former_names_are_withdrawn() {
    let all = devices(1);
    let own = published(&pool(&all), &mut Memory::default()).remove(0);
    let changed = |name: &str, change: fn(&mut ResourceSlice)| {
        let mut slice = own.clone();
        slice.metadata.name = Some(name.to_owned());
        slice.spec.pool.name = "former".to_owned();
        change(&mut slice);
        slice
    };
    let stored = [
        own.clone(),
        changed("b", |_| {}),
        changed("a", |slice| slice.spec.pool.name = "older".to_owned()),
        changed("driver", |slice| slice.spec.driver = "nic.example.com".to_owned()),
        changed("node", |slice| slice.spec.node_name = Some("node-2".to_owned())),
        changed("network", |slice| slice.spec.node_name = None),
        changed("going", |slice| slice.metadata.deletion_timestamp = Some(Time(NOW))),
    ];
    let names = |node: Option<&str>, pools: &[&str]| -> Vec<String> {
        let writes = withdraw_others("gpu.example.com", node, pools, &stored).into_iter();
        writes.map(|write| if let SliceWrite::Delete { name, .. } = write { name } else { panic!() }).collect()
    };
    assert_eq!(names(Some("node-1"), &["p"]), ["a", "b"]);
    assert_eq!(names(Some("node-1"), &["p", "former"]), ["a"]);
    assert_eq!(names(None, &["p"]), ["network"]);
    assert_eq!(names(Some("node-1"), &[]).len(), 3, "the driver leaves");
}

#[test]
fn own_writes_are_in_the_view_until_the_watch_shows_them() {
    let mut memory = Memory::default();
    let stored = published(&pool(&devices(1)), &mut memory);
    assert_eq!(memory.view([]).len(), 1);
    assert_eq!(memory.last_unconfirmed_write_at(), Some(NOW));
    assert!(!memory.shown(&stored[0]), "the echo of an own write");
    assert_eq!((memory.view([]).len(), memory.last_unconfirmed_write_at()), (0, None));
    // An answer that comes after the deletion brings nothing back.
    assert!(memory.deleted(&stored[0], NOW));
    let late = SliceWrite::Create { index: dra_attrs::Index::FIRST, slice: stored[0].clone() };
    memory.answered(&late, WriteResponse::Stored(&stored[0]), NOW);
    assert_eq!(memory.view([]).len(), 0);
    let minute = Timestamp::from_second(60).unwrap();
    memory.expire(minute);
    memory.answered(&late, WriteResponse::Stored(&stored[0]), minute);
    assert_eq!(memory.view([]).len(), 1);
    memory.expire(Timestamp::from_second(120).unwrap());
    assert_eq!(memory.view([]).len(), 0);
}

#[test]
fn each_failure_has_its_next_step() {
    let delete = SliceWrite::Delete { name: "a".to_owned(), uid: "u".to_owned(), resource_version: "1".to_owned() };
    let create = SliceWrite::Create { index: dra_attrs::Index::FIRST, slice: ResourceSlice::default() };
    let cases = [
        (&delete, WriteFailure::NotFound, NextStep::Continue),
        (&delete, WriteFailure::Conflict, NextStep::PlanAgain),
        (&delete, WriteFailure::Forbidden, NextStep::BackOff),
        (&create, WriteFailure::AlreadyExists, NextStep::PlanAgain),
        (&create, WriteFailure::NotFound, NextStep::PlanAgain),
        (&create, WriteFailure::Invalid, NextStep::BackOff),
        (&create, WriteFailure::Unknown, NextStep::BackOff),
    ];
    for (write, failure, next) in cases {
        let answered = Memory::default().answered(write, WriteResponse::Failed(failure), NOW);
        assert_eq!(answered.next, next, "{failure:?}");
    }
}

#[test]
fn a_generation_is_never_used_twice() {
    let all = devices(100);
    let wanted = ordered(&pool(&all));
    let mut memory = Memory::default().with_generation_floor(7);
    for generation in [8, 9] {
        // Nothing of the pass before was seen to be stored.
        let writes = pass(&[], &wanted, &mut memory, &ReconcileOptions::default()).writes;
        assert_eq!(writes[0].slice().unwrap().spec.pool.generation, generation);
    }
    let mut asked = wanted.clone();
    asked.generation = Some(5);
    let writes = pass(&[], &asked, &mut memory, &ReconcileOptions::default()).writes;
    assert_eq!(writes[0].slice().unwrap().spec.pool.generation, 10);
}

#[test]
fn slices_split_by_the_driver_are_published_as_they_are() {
    let consumption = DeviceCounterConsumption { counter_set: "nowhere".to_owned(), ..Default::default() };
    let device = Device { name: "a".to_owned(), consumes_counters: Some(vec![consumption]), ..Device::default() };
    let slice = SlicePlan { devices: Some(vec![&device]), ..SlicePlan::default() };
    let plan = PoolPlan::new(NodeChoice::All, vec![slice]);
    let error = reconcile(&SCOPE, [], Some(&plan), &mut Memory::default(), &ReconcileOptions::default());
    assert!(error.unwrap_err().to_string().contains("the pool has no counter set nowhere"));
}
