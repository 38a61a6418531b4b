//! Index over the `ResourceSlice`s and `DeviceTaintRule`s of a cluster, built once and read by many allocations.
//!
//! Building only lists the slices of each node. The rest is computed on first use: the view of a node (`view`), the
//! state of a pool ([`pool`]), and the facts about a device. Results that depend only on node-local slices are kept
//! until one of these slices changes.
//!
//! An inventory holds its objects by [`Arc`] and never changes or copies them. It is `Send + Sync`: any number of
//! allocators in any number of threads may read it.

pub(crate) mod device;
mod flags;
mod lists;
mod node_view;
pub mod pool;
pub(crate) mod view;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::resource::v1::{Device, DeviceTaint, DeviceTaintRule, ResourceSlice};

use crate::device::taint::taint_by_rule;
use lists::{Key, List, Lists, Positions, SliceIndex, insert_sorted};
use view::CachedView;

/// Change of a slice or taint rule, as a watch reports it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum InventoryEvent {
    /// A slice was added or changed.
    Slice(Arc<ResourceSlice>),
    /// The slice of the given name was deleted.
    SliceDeleted(String),
    /// A taint rule was added or changed.
    TaintRule(Arc<DeviceTaintRule>),
    /// The taint rule of the given name was deleted.
    TaintRuleDeleted(String),
}

/// Reason why an event can't be applied. The inventory is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InventoryError {
    /// The slice or taint rule of the event has no name.
    #[error("{kind} metadata.name: must not be empty")]
    NoName {
        /// Kind of the object.
        kind: &'static str,
    },
}

/// Index over slices and taint rules.
///
/// ```
/// use std::sync::Arc;
/// use dra_alloc::{Inventory, InventoryEvent};
/// use k8s_openapi::api::resource::v1::ResourceSlice;
///
/// let mut slice = ResourceSlice::default();
/// slice.metadata.name = Some("node-1-gpus".into());
/// slice.spec.driver = "gpu.example.com".into();
/// slice.spec.node_name = Some("node-1".into());
///
/// let mut inventory = Inventory::new([slice.clone()]);
/// slice.spec.pool.generation = 1;
/// inventory.apply(InventoryEvent::Slice(Arc::new(slice)))?;
/// assert_eq!(inventory.slices().next().map(|slice| slice.spec.pool.generation), Some(1));
/// inventory.apply(InventoryEvent::SliceDeleted("node-1-gpus".into()))?;
/// assert_eq!(inventory.slices().count(), 0);
/// # Ok::<(), dra_alloc::InventoryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Inventory {
    /// Slices by position. Deletion leaves a gap, so that the positions of later slices stay valid.
    slices: Vec<Option<Arc<ResourceSlice>>>,
    /// Number of slices in `slices`, not counting gaps.
    live: usize,
    /// Node-local slices by node name, with the cached view of the node.
    on_node: Lists<CachedView>,
    /// Positions of shared slices, which several nodes can see.
    shared: Positions,
    /// Slices by pool, indexed when the first incomplete pool of a node is found.
    pools: OnceLock<Lists>,
    /// Slices by name, indexed on the first event. Several slices may have one name in hand-made input, though not in a
    /// cluster.
    names: Option<Lists>,
    /// Taint rules by name. Hand-made input may have several rules of one name, or rules without a name.
    rules: BTreeMap<String, Vec<Arc<DeviceTaintRule>>>,
}

impl Default for Inventory {
    fn default() -> Self {
        Self {
            slices: Vec::new(),
            live: 0,
            on_node: Lists::new(Key::Node),
            shared: Positions::new(),
            pools: OnceLock::new(),
            names: None,
            rules: BTreeMap::new(),
        }
    }
}

impl Inventory {
    /// Builds the index from slices, without taint rules. Slices keep the order of the input.
    ///
    /// # Complexity
    /// Linear in the number of slices, independently of the number of their devices. Nothing is copied.
    pub fn new(slices: impl IntoIterator<Item = impl Into<Arc<ResourceSlice>>>) -> Self {
        let mut inventory =
            Self { slices: slices.into_iter().map(|slice| Some(slice.into())).collect(), ..Self::default() };
        for index in 0..inventory.slices.len() {
            inventory.place(index);
        }
        inventory
    }

    /// Sets the taint rules, which apply in the order of their names.
    #[must_use]
    pub fn with_taint_rules(mut self, rules: impl IntoIterator<Item = impl Into<Arc<DeviceTaintRule>>>) -> Self {
        self.replace_taint_rules(rules);
        self
    }

    /// Replaces all slices, as after a re-list of a watch, and keeps the taint rules.
    ///
    /// # Complexity
    /// That of [`Inventory::new`].
    pub fn replace(&mut self, slices: impl IntoIterator<Item = impl Into<Arc<ResourceSlice>>>) {
        *self = Self { rules: std::mem::take(&mut self.rules), ..Self::new(slices) };
    }

    /// Replaces all taint rules, as after a re-list of a watch.
    pub fn replace_taint_rules(&mut self, rules: impl IntoIterator<Item = impl Into<Arc<DeviceTaintRule>>>) {
        self.rules.clear();
        for rule in rules.into_iter().map(Into::into) {
            self.rules.entry(rule.metadata.name.clone().unwrap_or_default()).or_default().push(rule);
        }
    }

    /// Applies one event. Afterwards the inventory equals one that is built from the changed objects. The deletion of
    /// an unknown object changes nothing, because a watch may repeat events.
    ///
    /// # Errors
    /// The object has no name.
    ///
    /// # Complexity
    /// Linear in the number of slices of the same node or pool. The first change is linear in the number of all slices.
    /// So is an occasional deletion: when more than half of the positions are gaps, the index is rebuilt.
    pub fn apply(&mut self, event: InventoryEvent) -> Result<(), InventoryError> {
        match event {
            InventoryEvent::Slice(slice) => self.set_slice(slice),
            InventoryEvent::SliceDeleted(name) => {
                self.delete_slice(&name);
                Ok(())
            }
            InventoryEvent::TaintRule(rule) => {
                self.rules.insert(name_of("DeviceTaintRule", rule.metadata.name.as_deref())?, vec![rule]);
                Ok(())
            }
            InventoryEvent::TaintRuleDeleted(name) => {
                self.rules.remove(&name);
                Ok(())
            }
        }
    }

    /// Returns the slices in the order of the input.
    pub fn slices(&self) -> impl Iterator<Item = &ResourceSlice> {
        self.slices.iter().flatten().map(|slice| &**slice)
    }

    /// Returns the taint rules, sorted by name.
    pub fn taint_rules(&self) -> impl Iterator<Item = &DeviceTaintRule> {
        self.rules.values().flatten().map(|rule| &**rule)
    }

    /// Returns the taints of a device: those in its slice, then those that taint rules add.
    pub(crate) fn taints<'i>(
        &'i self,
        driver: &'i str,
        pool: &'i str,
        device: &'i Device,
    ) -> impl Iterator<Item = &'i DeviceTaint> {
        let by_rule =
            self.rules.values().flatten().filter_map(move |rule| taint_by_rule(rule, driver, pool, &device.name));
        device.taints.iter().flatten().chain(by_rule)
    }

    fn set_slice(&mut self, slice: Arc<ResourceSlice>) -> Result<(), InventoryError> {
        let name = name_of("ResourceSlice", slice.metadata.name.as_deref())?;
        let known = self.named(&name);
        for index in &known {
            self.remove(*index);
        }
        let index = known.first().copied().unwrap_or(self.slices.len());
        if index == self.slices.len() {
            self.slices.push(None);
        }
        if let Some(entry) = self.slices.get_mut(index) {
            *entry = Some(slice);
        }
        self.place(index);
        Ok(())
    }

    fn delete_slice(&mut self, name: &str) {
        for index in self.named(name) {
            self.remove(index);
        }
        self.close_gaps();
    }

    /// Returns the positions of the slices that are named `name`.
    fn named(&mut self, name: &str) -> Vec<SliceIndex> {
        let names = self.names.get_or_insert_with(|| Lists::from_slices(Key::Name, &self.slices));
        names.get(&self.slices, [name, ""]).map_or_else(Vec::new, |list| list.positions().to_vec())
    }

    /// Returns the slices of a pool on all nodes.
    fn pool_slices(&self, driver: &str, pool: &str) -> impl Iterator<Item = &Arc<ResourceSlice>> {
        let pools = self.pools.get_or_init(|| Lists::from_slices(Key::Pool, &self.slices));
        self.at(pools.get(&self.slices, [driver, pool]).map_or(&[], List::positions))
    }

    /// Returns the node-local slices of a node, and the cell for the cached view of the node.
    fn own_slices(&self, node: &str) -> (impl Iterator<Item = &Arc<ResourceSlice>> + Clone, Option<&CachedView>) {
        let list = self.on_node.get(&self.slices, [node, ""]);
        (self.at(list.map_or(&[], List::positions)), list.map(List::cached))
    }

    /// Returns the shared slices, which several nodes can see.
    fn shared_slices(&self) -> impl Iterator<Item = &Arc<ResourceSlice>> {
        self.at(&self.shared)
    }

    fn at<'i>(&'i self, positions: &'i [SliceIndex]) -> impl Iterator<Item = &'i Arc<ResourceSlice>> + Clone {
        positions.iter().filter_map(|index| self.slices.get(*index)?.as_ref())
    }

    /// Adds the slice at a position to the indexes.
    fn place(&mut self, index: SliceIndex) {
        let Some(slice) = self.slices.get(index).and_then(Option::as_ref) else { return };
        self.live = self.live.saturating_add(1);
        if is_for_one_node(slice) {
            self.on_node.insert(&self.slices, index);
        } else {
            insert_sorted(&mut self.shared, index);
        }
        for lists in self.pools.get_mut().into_iter().chain(&mut self.names) {
            lists.insert(&self.slices, index);
        }
    }

    fn remove(&mut self, index: SliceIndex) {
        let Some(slice) = self.slices.get(index).and_then(Option::as_ref) else { return };
        if is_for_one_node(slice) {
            self.on_node.remove(&self.slices, index);
        } else if let Ok(position) = self.shared.binary_search(&index) {
            self.shared.remove(position);
        }
        for lists in self.pools.get_mut().into_iter().chain(&mut self.names) {
            lists.remove(&self.slices, index);
        }
        if let Some(entry) = self.slices.get_mut(index) {
            *entry = None;
            self.live = self.live.saturating_sub(1);
        }
    }

    /// Rebuilds the inventory without gaps if more than half of the positions are gaps.
    fn close_gaps(&mut self) {
        if self.slices.len() > 2 * self.live + 16 {
            let objects: Vec<_> = self.slices.drain(..).flatten().collect();
            self.replace(objects);
        }
    }
}

/// Returns true if the slice is node-local: only one node sees it.
pub(crate) fn is_for_one_node(slice: &ResourceSlice) -> bool {
    slice.spec.node_name.as_ref().is_some_and(|node| !node.is_empty())
}

fn name_of(kind: &'static str, name: Option<&str>) -> Result<String, InventoryError> {
    name.filter(|name| !name.is_empty()).map(str::to_owned).ok_or(InventoryError::NoName { kind })
}
