//! Slices of a template: those of a node, for one more node of its kind.

use std::collections::{BTreeMap, BTreeSet};

use dra_device::internal::name_of;
use dra_device::pool::{LatestGeneration, group_by_pool};
use k8s_openapi::api::resource::v1::{DeviceTaint, ResourceSlice, ResourceSliceSpec};

use super::node_copy::NodeCopy;
use super::node_template::NodeTemplateError;

/// Rules of making a template. The default is what Cluster Autoscaler does: everything is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct TemplateRules {
    newest_generation: bool,
    counted: bool,
    /// Taints that a new node would not have; none if absent.
    dropped_taints: Option<fn(&DeviceTaint) -> bool>,
    /// Attributes whose values name the old node's hardware; none if absent.
    placeholders: Option<fn(&str) -> bool>,
}

impl TemplateRules {
    /// Leaves out slices of older generations, which a new node would not have.
    #[must_use]
    pub const fn with_newest_generation_only(self) -> Self {
        Self { newest_generation: true, ..self }
    }

    /// Sets `resourceSliceCount` to the number of slices that the pool has in the template, so that an incomplete pool
    /// makes a complete one. Implies [`TemplateRules::with_newest_generation_only`].
    #[must_use]
    pub const fn with_counted_slices(self) -> Self {
        Self { newest_generation: true, counted: true, ..self }
    }

    /// Leaves out taints, such as those of ill devices.
    #[must_use]
    pub const fn without_taints(self, is_dropped: fn(&DeviceTaint) -> bool) -> Self {
        Self { dropped_taints: Some(is_dropped), ..self }
    }

    /// Replaces the texts of attributes that a new node has values of its own for, such as a serial number or `pcieRoot`.
    /// Devices with equal values of an attribute get equal placeholders, and others different ones, so that constraints see
    /// the structure of the old node. `is_unknown` is asked with the attribute's name as `domain/name`. Name the same
    /// attributes in [`super::NodeTemplate::with_unknown_attributes`], for selectors that read them.
    ///
    /// ```
    /// use dra_alloc::autoscaler::{NodeCopy, TemplateRules};
    /// use k8s_openapi::api::resource::v1::ResourceSlice;
    /// use serde_json::{from_value, json};
    /// let root = |name: &str, root: &str| json!({"name": name, "attributes": {"pcieRoot": {"string": root}}});
    /// let slice: ResourceSlice = from_value(json!({"metadata": {"name": "s"}, "spec": {"driver": "d.example.com", "nodeName": "n1",
    ///     "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
    ///     "devices": [root("gpu", "pci0000:40"), root("nic", "pci0000:40"), root("far-nic", "pci0000:80")]}}))?;
    /// let rules = TemplateRules::default().with_placeholders(|name| name == "d.example.com/pcieRoot");
    /// let copy = NodeCopy::new("n1", "t", "1").slices([&slice], rules)?;
    /// let devices = copy.slices[0].spec.devices.iter().flatten();
    /// let roots: Vec<_> = devices.filter_map(|one| one.attributes.as_ref()?["pcieRoot"].string.as_deref()).collect();
    /// assert_eq!(roots, ["unknown-0", "unknown-0", "unknown-1"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn with_placeholders(self, is_unknown: fn(&str) -> bool) -> Self {
        Self { placeholders: Some(is_unknown), ..self }
    }
}

/// Slices of a template.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TemplateSlices {
    /// Slices of the new node, without UIDs.
    pub slices: Vec<ResourceSlice>,
    /// Names of the pools of the old node, which [`NodeCopy::claims`] needs.
    pub old_pools: BTreeSet<String>,
}

impl NodeCopy<'_> {
    /// Copies the slices of a node for one more node of its kind.
    ///
    /// Names of slices and pools get the suffix, and `nodeName` is the new node. Devices with their attributes, capacities,
    /// taints and counters, and all other metadata stay, also attributes that name the old host.
    ///
    /// # Errors
    /// A slice is not of one node.
    ///
    /// # Complexity
    /// n log n in slices, beside the copies.
    pub fn slices<'s>(
        &self,
        slices: impl IntoIterator<Item = &'s ResourceSlice>,
        rules: TemplateRules,
    ) -> Result<TemplateSlices, NodeTemplateError> {
        let slices: Vec<&ResourceSlice> = slices.into_iter().collect();
        let is_shared = |slice: &&&ResourceSlice| slice.spec.node_name.as_deref().is_none_or(str::is_empty);
        if let Some(shared) = slices.iter().find(is_shared) {
            return Err(NodeTemplateError::NotNodeLocal { slice: name_of(shared).to_owned() });
        }
        let old_pools = slices.iter().map(|slice| slice.spec.pool.name.clone()).collect();
        let mut copies: Vec<ResourceSlice> = if rules.newest_generation {
            self.newest(slices, rules)
        } else {
            slices.into_iter().map(|slice| self.slice(slice, rules)).collect()
        };
        if let Some(is_unknown) = rules.placeholders {
            put_placeholders(&mut copies, is_unknown);
        }
        Ok(TemplateSlices { slices: copies, old_pools })
    }

    /// Copies the newest generation of each pool.
    fn newest(&self, mut slices: Vec<&ResourceSlice>, rules: TemplateRules) -> Vec<ResourceSlice> {
        let mut copies = Vec::new();
        for pool in group_by_pool(&mut slices).filter_map(LatestGeneration::from_slices) {
            let count = i64::try_from(pool.count()).unwrap_or(i64::MAX);
            copies.extend(pool.slices().map(|slice| {
                let mut copy = self.slice(slice, rules);
                if rules.counted {
                    copy.spec.pool.resource_slice_count = count;
                }
                copy
            }));
        }
        copies
    }

    fn slice(&self, slice: &ResourceSlice, rules: TemplateRules) -> ResourceSlice {
        let mut copy = slice.clone();
        copy.metadata.uid = None;
        copy.metadata.name = Some(self.suffixed(name_of(slice)));
        copy.spec.node_name = Some(self.new_name.to_owned());
        copy.spec.pool.name = self.pool(&slice.spec.pool.name);
        if let Some(is_dropped) = rules.dropped_taints {
            for taints in copy.spec.devices.iter_mut().flatten().filter_map(|device| device.taints.as_mut()) {
                taints.retain(|taint| !is_dropped(taint));
            }
        }
        copy
    }
}

/// Replaces texts by placeholders, numbered for each attribute in the order in which its values occur.
fn put_placeholders(slices: &mut [ResourceSlice], is_unknown: impl Fn(&str) -> bool) {
    let mut known: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for ResourceSliceSpec { driver, devices, .. } in slices.iter_mut().map(|slice| &mut slice.spec) {
        let attributes = devices.iter_mut().flatten().flat_map(|device| device.attributes.iter_mut().flatten());
        for (name, attribute) in attributes {
            let name = if name.contains('/') { name.clone() } else { format!("{driver}/{name}") };
            if !is_unknown(&name) {
                continue;
            }
            let values = known.entry(name).or_default();
            for text in attribute.string.iter_mut().chain(attribute.strings.iter_mut().flatten()) {
                let next = values.len();
                let number = values.entry(std::mem::take(text)).or_insert(next);
                *text = format!("unknown-{number}");
            }
        }
    }
}
