//! Any devices, counter sets and stored slices: no panic, a plan within the limits, and after one pass that the server
//! stores as it is sent, no further write.
#![no_main]

use dra_alloc::Profile;
use dra_alloc::driver::{
    Memory, NodeChoice, PartitionsLeft, PoolScope, PoolSpec, ReconcileOptions, SliceContents, SliceLimits, SliceWrite,
    dropped, reconcile, split_into_slices,
};
use dra_alloc::pool::validate_pool;
use k8s_openapi::api::resource::v1::{CounterSet, Device, ResourceSlice};
use libfuzzer_sys::fuzz_target;

type Input = (u32, bool, Vec<Device>, Vec<CounterSet>, Vec<ResourceSlice>);

fuzz_target!(|text: &[u8]| {
    let Ok((minor, is_small, devices, sets, stored)) = serde_json::from_slice::<Input>(text) else { return };
    let _ = validate_pool(&stored);
    let _ = PartitionsLeft::by_type(&stored, Some("d/type"), |device| device.len() % 2 == 0);
    if let [one, other, ..] = stored.as_slice() {
        let _ = dropped(one, other);
    }
    let pool = PoolSpec::new("d", "p", NodeChoice::Node("n")).with_devices(&devices).with_counter_sets(&sets);
    let (limits, layout) = (SliceLimits::of(Profile::of_minor(minor)), SliceContents::from_slices(&stored));
    let limits = if is_small { limits } else { limits.filling_slices() };
    let Ok(plan) = split_into_slices(&pool, &limits, Some(&layout)) else { return };
    assert!(plan.slices.iter().flat_map(|slice| &slice.devices).all(|devices| devices.len() <= limits.max_devices));
    let scope = PoolScope { driver: "d", pool: "p", node_name: Some("n"), owner: None };
    let options = ReconcileOptions { sends_dropped_fields: true, ..ReconcileOptions::default() };
    let mut memory = Memory::default();
    let Ok(pass) = reconcile(&scope, &stored, Some(&plan), &mut memory, &options) else { return };
    if !pass.terminating.is_empty() || pass.writes.iter().any(|write| matches!(write, SliceWrite::Delete { .. })) {
        return;
    }
    // Slices that are not written stay; two of one name can't be told apart.
    let sent: Vec<ResourceSlice> = pass.writes.iter().filter_map(SliceWrite::slice).cloned().collect();
    if !sent.is_empty() && sent.len() == plan.slices.len() {
        let again = reconcile(&scope, &sent, Some(&plan), &mut memory, &options).expect("it was planned before");
        assert!(again.writes.is_empty(), "{:?}", again.writes);
    }
});
