//! Contents of one slice, as planned and as stored before.

use std::cmp::Reverse;

use dra_device::pool::slice_devices;
use k8s_openapi::api::resource::v1::{CounterSet, Device, ResourceSlice};

/// Contents of one slice of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "drivers that split devices by themselves write it")]
pub struct SlicePlan<'a> {
    /// Devices; `None` in a slice of counter sets, where the API server refuses even an empty list.
    pub devices: Option<Vec<&'a Device>>,
    /// Counter sets.
    pub counter_sets: Vec<&'a CounterSet>,
    /// Attribute with the type of a partition, if a device of the slice consumes counters.
    pub partition_type_attribute: Option<&'a str>,
    /// Value of `perDeviceNodeSelection`.
    pub per_device_node_selection: Option<bool>,
}

/// Contents of one slice by name, as they were planned or stored before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "callers that remember a plan write it")]
pub struct SliceContents<'a> {
    /// Names of the devices.
    pub devices: Vec<&'a str>,
    /// Names of the counter sets.
    pub counter_sets: Vec<&'a str>,
}

impl<'a> SliceContents<'a> {
    /// Reads the contents of the stored slices of a pool, in the order of their positions. Slices whose names begin
    /// with no position are left out.
    ///
    /// ```
    /// use dra_node::driver::SliceContents;
    /// use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
    /// let mut slice = ResourceSlice::default();
    /// slice.metadata.name = Some("00000-gpu.example.com-node-1-9053acc98f".to_owned());
    /// slice.spec.devices = Some(vec![Device { name: "gpu-0".to_owned(), ..Device::default() }]);
    /// assert_eq!(SliceContents::from_slices([&slice])[0].devices, ["gpu-0"]);
    /// ```
    pub fn from_slices(stored: impl IntoIterator<Item = &'a ResourceSlice>) -> Vec<Self> {
        let mut found: Vec<(_, &ResourceSlice)> = stored
            .into_iter()
            .filter_map(|slice| {
                let count = usize::try_from(slice.spec.pool.resource_slice_count).unwrap_or(0);
                Some((SlicePlan::decode_index(slice.metadata.name.as_deref()?, count)?, slice))
            })
            .collect();
        found.sort_by_key(|(index, slice)| (*index, Reverse(slice.spec.pool.generation)));
        found.dedup_by_key(|(index, _)| *index);
        found.into_iter().map(|(_, slice)| Self::from_slice(slice)).collect()
    }

    fn from_slice(slice: &'a ResourceSlice) -> Self {
        Self {
            devices: slice_devices(slice).iter().map(|device| device.name.as_str()).collect(),
            counter_sets: slice.spec.shared_counters.iter().flatten().map(|set| set.name.as_str()).collect(),
        }
    }
}

impl SlicePlan<'_> {
    pub(super) fn has_partitions(&self) -> bool {
        let consumes = |device: &&Device| device.consumes_counters.as_ref().is_some_and(|sets| !sets.is_empty());
        self.devices.iter().flatten().any(consumes)
    }
}
