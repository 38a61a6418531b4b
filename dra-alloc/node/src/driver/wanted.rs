//! Contents of a slice as they are to be published: those of the plan, in the form that the API server takes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::Gate;
use dra_device::internal::{Same, TaintTimes, gated_fields, has_list, same_items, without_fields};
use k8s_openapi::api::core::v1::NodeSelector;
use k8s_openapi::api::resource::v1::{
    CounterSet, Device, DeviceAttribute, ResourcePool, ResourceSlice, ResourceSliceSpec,
};

use crate::driver::dropped::SafeDevices;
use crate::driver::equality::same_devices;
use crate::driver::slice_plan::SlicePlan;
use crate::driver::split::{NodeChoice, PoolPlan};

/// Contents of one slice.
pub(super) struct Wanted<'a> {
    /// Gates that are off and whose fields are left out.
    pub(super) left_out: BTreeSet<Gate>,
    pub(super) devices: Option<Vec<Cow<'a, Device>>>,
    counter_sets: Vec<Cow<'a, CounterSet>>,
    node_selector: Option<&'a NodeSelector>,
    all_nodes: bool,
    per_device_node_selection: Option<bool>,
    partition_type_attribute: Option<&'a str>,
    skip_node_operations: Option<&'a [String]>,
}

/// Form in which contents are sent.
pub(super) struct Form<'m> {
    /// Gates that are known to be off.
    pub(super) gates_off: &'m BTreeSet<Gate>,
    /// True if fields of these gates are sent nevertheless.
    pub(super) sends_dropped_fields: bool,
}

static NO_GATES: BTreeSet<Gate> = BTreeSet::new();

impl<'m> Form<'m> {
    /// Returns the gates whose fields are not sent: a field that is not stored need not be, and without it a device may be
    /// unsafe.
    pub(super) fn left_out(&self) -> &'m BTreeSet<Gate> {
        if self.sends_dropped_fields { &NO_GATES } else { self.gates_off }
    }

    /// Returns the gates whose fields are sent, though they are known to be off.
    pub(super) fn sent_though_off(&self) -> &'m BTreeSet<Gate> {
        if self.sends_dropped_fields { self.gates_off } else { &NO_GATES }
    }
}

/// Contents of a pool as they are sent.
pub(super) struct WantedPool<'a> {
    pub(super) slices: Vec<Wanted<'a>>,
    /// Names of the devices that are not published.
    pub(super) withheld: Vec<String>,
}

/// Returns the contents of a plan in a form. A slice from which everything is left out is none.
pub(super) fn wanted<'a>(plan: &PoolPlan<'a>, form: &Form<'_>) -> WantedPool<'a> {
    let left_out = form.left_out();
    // A server refuses lists, which it does not store, instead of dropping them.
    let has_scalars_only = form.gates_off.contains(&Gate::ListTypeAttributes);
    let (mut safe, mut withheld) = (SafeDevices::new(left_out), Vec::new());
    let (mut slices, mut emptied) = (Vec::with_capacity(plan.slices.len()), None);
    for slice in &plan.slices {
        let devices = slice.devices.as_ref().map(|devices| {
            let mut kept = Vec::with_capacity(devices.len());
            for device in devices {
                if safe.admits(device) {
                    kept.push(if has_scalars_only { scalar_form(device) } else { Cow::Borrowed(*device) });
                } else {
                    withheld.push(device.name.clone());
                }
            }
            kept
        });
        let wanted = Wanted {
            left_out: BTreeSet::new(),
            devices,
            counter_sets: slice.counter_sets.iter().map(|set| Cow::Borrowed(*set)).collect(),
            node_selector: if let NodeChoice::Selector(selector) = plan.node { Some(selector) } else { None },
            all_nodes: plan.node == NodeChoice::All,
            per_device_node_selection: slice.per_device_node_selection,
            partition_type_attribute: slice.partition_type_attribute,
            skip_node_operations: plan.skip_node_operations,
        };
        let wanted = wanted.without(left_out);
        if wanted.is_empty() && !is_empty(slice) {
            emptied.get_or_insert(wanted);
        } else {
            slices.push(wanted);
        }
    }
    if slices.is_empty() {
        // A slice without devices says that the driver runs.
        slices.extend(emptied.map(|slice| Wanted { devices: Some(Vec::new()), ..slice }));
    }
    WantedPool { slices, withheld }
}

fn is_empty(slice: &SlicePlan<'_>) -> bool {
    slice.counter_sets.is_empty() && slice.devices.iter().all(Vec::is_empty)
}

/// Returns the device with the first value of each list attribute instead of the list.
fn scalar_form(device: &Device) -> Cow<'_, Device> {
    if !has_list(device) {
        return Cow::Borrowed(device);
    }
    let mut device = device.clone();
    let attributes = device.attributes.take().unwrap_or_default();
    let scalars = attributes.into_iter().filter_map(|(name, attribute)| {
        let DeviceAttribute { bool, bools, int, ints, string, strings, version, versions } = attribute;
        let attribute = DeviceAttribute {
            bool: bool.or_else(|| bools?.into_iter().next()),
            int: int.or_else(|| ints?.into_iter().next()),
            string: string.or_else(|| strings?.into_iter().next()),
            version: version.or_else(|| versions?.into_iter().next()),
            ..DeviceAttribute::default()
        };
        // An empty list has no scalar form.
        (attribute != DeviceAttribute::default()).then_some((name, attribute))
    });
    device.attributes = Some(scalars.collect());
    Cow::Owned(device)
}

impl<'a> Wanted<'a> {
    pub(super) fn devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().flatten().map(AsRef::as_ref)
    }

    pub(super) fn counter_sets(&self) -> impl Iterator<Item = &CounterSet> {
        self.counter_sets.iter().map(AsRef::as_ref)
    }

    fn is_empty(&self) -> bool {
        self.devices().next().is_none() && self.counter_sets.is_empty()
    }

    /// Returns the contents without the fields that gates govern.
    fn without(self, gates: &BTreeSet<Gate>) -> Self {
        if gates.is_empty() {
            return self;
        }
        let whole = ResourceSlice {
            spec: self.to_spec(&ResourceSliceSpec::default(), ResourcePool::default()),
            ..ResourceSlice::default()
        };
        let used: BTreeSet<Gate> = gated_fields(&whole).into_iter().map(|(gate, _)| gate).collect();
        let left_out: BTreeSet<Gate> = &used & gates;
        if left_out.is_empty() {
            return self;
        }
        let kept = without_fields(&whole, &left_out).spec;
        Self {
            left_out,
            devices: kept.devices.map(|devices| devices.into_iter().map(Cow::Owned).collect()),
            counter_sets: kept.shared_counters.into_iter().flatten().map(Cow::Owned).collect(),
            per_device_node_selection: kept.per_device_node_selection,
            partition_type_attribute: self.partition_type_attribute.filter(|_| kept.partition_type_attribute.is_some()),
            skip_node_operations: self.skip_node_operations.filter(|_| kept.skip_node_operations.is_some()),
            ..self
        }
    }

    fn from_spec(spec: &'a ResourceSliceSpec) -> Self {
        Self {
            left_out: BTreeSet::new(),
            devices: spec.devices.as_ref().map(|devices| devices.iter().map(Cow::Borrowed).collect()),
            counter_sets: spec.shared_counters.iter().flatten().map(Cow::Borrowed).collect(),
            node_selector: spec.node_selector.as_ref(),
            all_nodes: spec.all_nodes.unwrap_or(false),
            per_device_node_selection: spec.per_device_node_selection,
            partition_type_attribute: spec.partition_type_attribute.as_deref(),
            skip_node_operations: spec.skip_node_operations.as_deref(),
        }
    }

    /// Returns true if a stored slice has the contents.
    pub(super) fn is_stored_in(&self, stored: &ResourceSliceSpec) -> bool {
        same_items(&stored.node_selector, self.node_selector, TaintTimes::Exact)
            && stored.all_nodes.unwrap_or(false) == self.all_nodes
            && stored.per_device_node_selection == self.per_device_node_selection
            && stored.partition_type_attribute.as_deref() == self.partition_type_attribute
            && stored.skip_node_operations.as_deref().unwrap_or_default()
                == self.skip_node_operations.unwrap_or_default()
            && same_devices(stored.devices.iter().flatten(), self.devices())
            && same_items(stored.shared_counters.iter().flatten(), self.counter_sets(), TaintTimes::Exact)
    }

    /// Returns the gates without whose fields a stored slice has the contents; `None` if it has not. Only gates that are
    /// known to be off count, and only if the stored slice has none of their fields.
    pub(super) fn is_stored_without(&self, stored: &ResourceSlice, off: &BTreeSet<Gate>) -> Option<BTreeSet<Gate>> {
        let gates = |slice: &ResourceSlice| -> BTreeSet<Gate> {
            gated_fields(slice).into_iter().map(|(gate, _)| gate).filter(|gate| off.contains(gate)).collect()
        };
        let spec = self.to_spec(&stored.spec, stored.spec.pool.clone());
        let sent = ResourceSlice { metadata: stored.metadata.clone(), spec };
        let missing: BTreeSet<Gate> = &gates(&sent) - &gates(stored);
        let kept = without_fields(&sent, &missing);
        Wanted::from_spec(&kept.spec).is_stored_in(&stored.spec).then_some(missing)
    }

    /// Returns the spec of a slice with the contents. Driver and node are those of `like`. Taints keep the times that
    /// `like` has for them, since the server sets the time of a taint that has none.
    pub(super) fn to_spec(&self, like: &ResourceSliceSpec, pool: ResourcePool) -> ResourceSliceSpec {
        let counter_sets: Vec<CounterSet> = self.counter_sets().cloned().collect();
        ResourceSliceSpec {
            driver: like.driver.clone(),
            node_name: like.node_name.clone(),
            pool,
            node_selector: self.node_selector.cloned(),
            all_nodes: self.all_nodes.then_some(true),
            per_device_node_selection: self.per_device_node_selection,
            devices: self.devices.as_ref().map(|_| with_times(self.devices(), like.devices.as_deref())),
            shared_counters: (!counter_sets.is_empty()).then_some(counter_sets),
            partition_type_attribute: self.partition_type_attribute.map(str::to_owned),
            skip_node_operations: self.skip_node_operations.map(<[String]>::to_vec),
        }
    }
}

/// Returns copies of the devices, with the times of taints that the stored devices of the same names have.
fn with_times<'d>(devices: impl Iterator<Item = &'d Device>, stored: Option<&[Device]>) -> Vec<Device> {
    let is_tainted = |device: &&Device| device.taints.as_ref().is_some_and(|taints| !taints.is_empty());
    let tainted: Vec<&Device> = stored.unwrap_or_default().iter().filter(is_tainted).collect();
    let mut by_name: BTreeMap<&str, &Device> = BTreeMap::new();
    for device in tainted {
        by_name.entry(&device.name).or_insert(device);
    }
    let mut devices: Vec<Device> = devices.cloned().collect();
    for device in &mut devices {
        let Some(old) = by_name.get(device.name.as_str()) else { continue };
        for taint in device.taints.iter_mut().flatten().filter(|taint| taint.time_added.is_none()) {
            let same = old.taints.iter().flatten().find(|old| old.same(taint, TaintTimes::Any));
            taint.time_added = same.and_then(|old| old.time_added.clone());
        }
    }
    devices
}
