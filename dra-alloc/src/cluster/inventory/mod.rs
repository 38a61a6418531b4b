//! Index over the `ResourceSlice`s and `DeviceTaintRule`s of a cluster, built once and read by many allocations.
//!
//! Building reads nothing. The first node that is asked is looked for in all slices, of which only `nodeName` is read; the
//! second one has the slices listed by node. Slices that several nodes can see are listed by what a node must have to see
//! them (`shared_index`). The rest is computed on first use, too: the view of a node (`view`), the state of a pool
//! ([`pool`]), and the facts about a device. What is computed is kept until one of the slices changes that it depends on.
//!
//! The latest changes are remembered ([`changes`]), so that who keeps verdicts about nodes learns which nodes they concern.
//!
//! An inventory holds its objects by [`Arc`] and never changes or copies them. It is `Send + Sync`: any number of
//! allocators in any number of threads may read it.
//!
//! Tests: `tests/it/inventory.rs`, `tests/it/look_ups.rs`.

pub(crate) mod changes;
pub(crate) mod device;
pub(crate) mod facts;
mod flags;
pub(crate) mod kept;
mod layer;
pub(crate) mod lens;
mod lists;
mod node_view;
pub(crate) mod pool;
pub(crate) mod pool_capacities;
pub(crate) mod pool_counters;
pub(crate) mod pool_devices;
pub(crate) mod pool_selections;
pub(crate) mod shape;
mod shared_index;
pub(crate) mod sight;
mod slice_facts;
pub(crate) mod view;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use changes::{Changed, Changes, node_key, pool_key};
use dra_device::ApplyOutcome;
use dra_device::internal::ResourceVersion;
use dra_device::internal::may_select;
use dra_device::pool::slice_devices;
use dra_device::taint::taint_by_rule;
use dra_device::{DeviceId, InventoryError};
use k8s_openapi::api::resource::v1::{Device, DeviceTaint, DeviceTaintRule, ResourceSlice};
use kept::Kept;

use crate::cluster::stamp::Stamp;
pub use layer::InventoryLayer;
use lists::{Key, List, Lists, Name, SliceIndex};
use shape::Shapes;
use shared_index::SharedIndex;
use view::CachedPools;

/// Change of a slice or taint rule, as a watch reports it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum InventoryEvent {
    /// A slice was added or changed.
    Slice(Arc<ResourceSlice>),
    /// A slice was deleted.
    SliceDeleted {
        /// Name of the slice.
        name: String,
        /// UID of the slice. With it, a late deletion leaves a slice alone that was created anew under the name; without it,
        /// whatever has the name is deleted.
        uid: Option<String>,
    },
    /// A taint rule was added or changed.
    TaintRule(Arc<DeviceTaintRule>),
    /// A taint rule was deleted.
    TaintRuleDeleted {
        /// Name of the taint rule.
        name: String,
        /// UID of the taint rule, as that of a slice.
        uid: Option<String>,
    },
}

/// Index over slices and taint rules.
///
/// ```
/// use std::sync::Arc;
/// use dra_alloc::ApplyOutcome;
/// use dra_alloc::{Inventory, InventoryEvent};
/// use k8s_openapi::api::resource::v1::ResourceSlice;
///
/// let mut slice = ResourceSlice::default();
/// slice.metadata.name = Some("node-1-gpus".into());
/// slice.metadata.resource_version = Some("7".into());
/// slice.spec.driver = "gpu.example.com".into();
/// slice.spec.node_name = Some("node-1".into());
///
/// let mut inventory = Inventory::new([slice.clone()]);
/// let former = Arc::new(slice.clone());
/// slice.metadata.resource_version = Some("10".into());
/// slice.spec.pool.generation = 1;
/// assert_eq!(inventory.apply(InventoryEvent::Slice(Arc::new(slice)))?, ApplyOutcome::Applied);
/// assert_eq!(inventory.apply(InventoryEvent::Slice(former))?, ApplyOutcome::Older);
/// assert_eq!(inventory.slices().next().map(|slice| slice.spec.pool.generation), Some(1));
/// let deleted = InventoryEvent::SliceDeleted { name: "node-1-gpus".into(), uid: None };
/// assert_eq!(inventory.apply(deleted)?, ApplyOutcome::Applied);
/// assert_eq!(inventory.slices().count(), 0);
/// # Ok::<(), dra_alloc::InventoryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Inventory {
    /// Slices by position. Deletion leaves a gap, so that the positions of later slices stay valid.
    slices: Vec<Option<Arc<ResourceSlice>>>,
    /// Number of slices in `slices`, not counting gaps.
    live: usize,
    /// The node that was asked first, with its slices.
    first: OnceLock<First>,
    /// Node-local slices by node name, with the pools that they make; listed when a second node is asked.
    on_node: OnceLock<Lists<CachedPools>>,
    /// Shared slices, which several nodes can see, listed when a node is asked.
    shared: OnceLock<SharedIndex>,
    /// Pools of nodes that see shared slices.
    kept: Kept,
    /// Shapes of pools. Copies of the inventory share them.
    shapes: Arc<Shapes>,
    /// Slices by pool, indexed when the first incomplete pool of a node is found.
    pools: OnceLock<Lists>,
    /// Slices by name, indexed on the first event. Several slices may have one name in hand-made input, though not in a
    /// cluster.
    names: Option<Lists>,
    /// Taint rules by name. Hand-made input may have several rules of one name, or rules without a name.
    rules: BTreeMap<String, Vec<Arc<DeviceTaintRule>>>,
    /// Last change of the taint rules.
    rules_stamp: Stamp,
    /// Latest changes of slices.
    changes: Changes,
}

impl Default for Inventory {
    fn default() -> Self {
        Self {
            slices: Vec::new(),
            live: 0,
            first: OnceLock::new(),
            on_node: OnceLock::new(),
            shared: OnceLock::new(),
            kept: Kept::default(),
            shapes: Arc::default(),
            pools: OnceLock::new(),
            names: None,
            rules: BTreeMap::new(),
            rules_stamp: Stamp::default(),
            changes: Changes::default(),
        }
    }
}

impl Inventory {
    /// Builds the index from slices, without taint rules. Slices keep the order of the input.
    ///
    /// # Complexity
    /// Linear in the number of slices; nothing of them is read or copied. The first two nodes that are asked list the
    /// slices, in time linear in their number and independently of the number of their devices.
    pub fn new(slices: impl IntoIterator<Item = impl Into<Arc<ResourceSlice>>>) -> Self {
        let slices: Vec<_> = slices.into_iter().map(|slice| Some(slice.into())).collect();
        Self { live: slices.len(), slices, changes: Changes::begin(), ..Self::default() }
    }

    /// Sets the taint rules, which apply in the order of their names.
    #[must_use]
    pub fn with_taint_rules(mut self, rules: impl IntoIterator<Item = impl Into<Arc<DeviceTaintRule>>>) -> Self {
        self.replace_taint_rules(rules);
        self
    }

    /// Replaces all slices, as after a re-list of a watch, and keeps the taint rules.
    ///
    /// The list is taken as it is, also where it has older versions: so ends the memory of a cluster that was restored from a
    /// backup. A list must therefore not be older than what events have shown; otherwise slices created since are missing.
    ///
    /// # Complexity
    /// That of [`Inventory::new`].
    pub fn replace(&mut self, slices: impl IntoIterator<Item = impl Into<Arc<ResourceSlice>>>) {
        let (rules, shapes) = (std::mem::take(&mut self.rules), Arc::clone(&self.shapes));
        *self = Self { rules, shapes, rules_stamp: self.rules_stamp, ..Self::new(slices) };
    }

    /// Replaces all taint rules, as after a re-list of a watch. The list is taken as it is, as by [`Inventory::replace`].
    pub fn replace_taint_rules(&mut self, rules: impl IntoIterator<Item = impl Into<Arc<DeviceTaintRule>>>) {
        self.rules_stamp = Stamp::next();
        self.rules.clear();
        for rule in rules.into_iter().map(Into::into) {
            self.rules.entry(rule.metadata.name.clone().unwrap_or_default()).or_default().push(rule);
        }
    }

    /// Applies one event, and tells what came of it. Afterwards the inventory equals one that is built from the changed
    /// objects.
    ///
    /// Events may be repeated and late. An older version of a known object changes nothing (the lower version of one UID), nor does
    /// the deletion of an object that is not known, or has been created anew with another UID. An object whose version is
    /// not known replaces the one of its name. A late version of an object that is deleted adds it again.
    ///
    /// # Errors
    /// The object has no name.
    ///
    /// # Complexity
    /// Linear in the number of slices of the same node or pool. The first change is linear in the number of all slices.
    /// So is an occasional deletion: when more than half of the positions are gaps, the index is rebuilt.
    pub fn apply(&mut self, event: InventoryEvent) -> Result<ApplyOutcome, InventoryError> {
        let outcome = self.change(event)?;
        self.close_gaps();
        Ok(outcome)
    }

    /// Returns the slices in the order of the input.
    pub fn slices(&self) -> impl Iterator<Item = &ResourceSlice> {
        self.slices.iter().flatten().map(|slice| &**slice)
    }

    /// Returns the slices in the order of the input, to be shared.
    pub(crate) fn shared_slices(&self) -> impl Iterator<Item = &Arc<ResourceSlice>> {
        self.slices.iter().flatten()
    }

    /// Returns the slices that name a node (`nodeName`), in the order of the input.
    pub fn slices_of_node(&self, node: &str) -> impl Iterator<Item = &ResourceSlice> {
        self.at(self.own_slices(node).0).map(|slice| &**slice)
    }

    /// Returns the slices of a pool on all nodes and of all generations, in the order of the input.
    ///
    /// # Complexity
    /// Linear in the number of these slices. The first time linear in the number of all slices.
    pub fn slices_of_pool(&self, driver: &str, pool: &str) -> impl Iterator<Item = &ResourceSlice> {
        self.pool_slices(driver, pool).map(|slice| &**slice)
    }

    /// Returns a published device with its slice; of several devices of one name, that of the latest generation.
    ///
    /// # Complexity
    /// Linear in the number of devices of the pool.
    #[must_use]
    pub fn device(&self, id: &DeviceId) -> Option<(&ResourceSlice, &Device)> {
        let named = self
            .slices_of_pool(&id.driver, &id.pool)
            .filter_map(|slice| Some((slice, slice_devices(slice).iter().find(|device| device.name == id.device)?)));
        named.max_by_key(|(slice, _)| slice.spec.pool.generation)
    }

    /// Returns the taint rules, sorted by name.
    pub fn taint_rules(&self) -> impl Iterator<Item = &DeviceTaintRule> {
        self.rules.values().flatten().map(|rule| &**rule)
    }

    /// Returns true if a taint rule may select devices of a pool.
    pub(crate) fn has_rule_for(&self, driver: &str, pool: &str) -> bool {
        self.rules.values().flatten().any(|rule| may_select(rule, driver, pool))
    }

    pub(crate) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// Shares the shapes of another inventory, so that their nodes can be compared.
    #[cfg(test)]
    pub(crate) fn with_shapes_of(self, other: &Self) -> Self {
        Self { shapes: Arc::clone(&other.shapes), ..self }
    }

    pub(crate) const fn rules_stamp(&self) -> Stamp {
        self.rules_stamp
    }

    /// Returns the mark of the latest change of a slice.
    pub(crate) fn slices_stamp(&self) -> Stamp {
        self.changes.mark()
    }

    /// Returns the changes of slices after a mark; `None` if they are not known.
    pub(crate) fn changes_since(&self, mark: Stamp) -> Option<impl Iterator<Item = Changed>> {
        self.changes.since(mark)
    }

    /// Returns the keys of what the view of a node depends on, but for slices that several nodes see: its name, and the pools
    /// of its own slices.
    pub(crate) fn own_keys(&self, node: &str) -> impl Iterator<Item = u64> {
        let own = self.at(self.own_slices(node).0);
        std::iter::once(node_key(node)).chain(own.map(|slice| pool_key(slice)))
    }

    /// Returns the taints that taint rules add to a device. They come after those in its slice.
    pub(crate) fn taints_by_rule<'i>(
        &'i self,
        driver: &'i str,
        pool: &'i str,
        device: &'i Device,
    ) -> impl Iterator<Item = &'i DeviceTaint> {
        self.rules.values().flatten().filter_map(move |rule| taint_by_rule(rule, driver, pool, &device.name))
    }

    /// Applies one event, and keeps the positions of all slices.
    fn change(&mut self, event: InventoryEvent) -> Result<ApplyOutcome, InventoryError> {
        match event {
            InventoryEvent::Slice(slice) => self.set_slice(slice),
            InventoryEvent::SliceDeleted { name, uid } => Ok(self.delete_slice(&name, uid.as_deref())),
            InventoryEvent::TaintRule(rule) => self.set_rule(rule),
            InventoryEvent::TaintRuleDeleted { name, uid } => Ok(self.delete_rule(&name, uid.as_deref())),
        }
    }

    fn set_slice(&mut self, slice: Arc<ResourceSlice>) -> Result<ApplyOutcome, InventoryError> {
        let name = name_of("ResourceSlice", slice.metadata.name.as_deref())?;
        let known = self.named(&name);
        if self.at(&known).any(|known| ResourceVersion::is_older(&slice.metadata, &known.metadata)) {
            return Ok(ApplyOutcome::Older);
        }
        for index in &known {
            self.remove(*index);
        }
        let index = known.first().copied().unwrap_or(self.slices.len());
        self.put(index, slice);
        Ok(ApplyOutcome::Applied)
    }

    fn delete_slice(&mut self, name: &str, uid: Option<&str>) -> ApplyOutcome {
        let mut known = self.named(name);
        let is_known = !known.is_empty();
        known.retain(|index| {
            self.slice(*index).is_some_and(|slice| ResourceVersion::is_deleted_by(&slice.metadata, uid))
        });
        for index in &known {
            self.remove(*index);
        }
        deletion(is_known, !known.is_empty())
    }

    fn set_rule(&mut self, rule: Arc<DeviceTaintRule>) -> Result<ApplyOutcome, InventoryError> {
        let name = name_of("DeviceTaintRule", rule.metadata.name.as_deref())?;
        let mut known = self.rules.get(&name).into_iter().flatten();
        if known.any(|known| ResourceVersion::is_older(&rule.metadata, &known.metadata)) {
            return Ok(ApplyOutcome::Older);
        }
        self.rules.insert(name, vec![rule]);
        self.rules_stamp = Stamp::next();
        Ok(ApplyOutcome::Applied)
    }

    fn delete_rule(&mut self, name: &str, uid: Option<&str>) -> ApplyOutcome {
        let Some(known) = self.rules.get_mut(name) else { return ApplyOutcome::Unknown };
        let before = known.len();
        known.retain(|rule| !ResourceVersion::is_deleted_by(&rule.metadata, uid));
        let is_changed = known.len() < before;
        if known.is_empty() {
            self.rules.remove(name);
        }
        if is_changed {
            self.rules_stamp = Stamp::next();
        }
        deletion(true, is_changed)
    }

    /// Sets the slice at a position that has none.
    fn put(&mut self, index: SliceIndex, slice: Arc<ResourceSlice>) {
        if index == self.slices.len() {
            self.slices.push(None);
        }
        debug_assert!(matches!(self.slices.get(index), Some(None)), "the position has no slice");
        if let Some(entry) = self.slices.get_mut(index) {
            *entry = Some(slice);
        }
        self.place(index);
    }

    /// Returns the positions of the slices that are named `name`.
    fn named(&mut self, name: &str) -> Vec<SliceIndex> {
        let names = self.names.get_or_insert_with(|| Lists::from_slices(Key::Name, &self.slices));
        names.get(&self.slices, Name::Slice(name)).map_or_else(Vec::new, |list| list.positions().to_vec())
    }

    /// Returns the slices of a pool on all nodes.
    fn pool_slices(&self, driver: &str, pool: &str) -> impl Iterator<Item = &Arc<ResourceSlice>> {
        let pools = self.pools.get_or_init(|| Lists::from_slices(Key::Pool, &self.slices));
        self.at(pools.get(&self.slices, Name::Pool { driver, pool }).map_or(&[], List::positions))
    }

    /// Returns the positions of the node-local slices of a node, and the cell for the pools that they make.
    fn own_slices(&self, node: &str) -> (&[SliceIndex], Option<&CachedPools>) {
        let first = || self.first.get_or_init(|| First::find(&self.slices, node));
        if self.on_node.get().is_none() && first().node == node {
            return (first().list.positions(), Some(first().list.cached()));
        }
        let list = self.on_node().get(&self.slices, Name::Node(node));
        (list.map_or(&[], List::positions), list.map(List::cached))
    }

    /// Returns the node-local slices by node name.
    fn on_node(&self) -> &Lists<CachedPools> {
        self.on_node.get_or_init(|| {
            let mut lists = Lists::<CachedPools>::with_capacity(Key::Node, self.live);
            for (index, _) in self.present().filter(|(_, slice)| is_for_one_node(slice)) {
                lists.insert(&self.slices, index);
            }
            // The pools of the node that was asked first are known: they keep their stamps.
            if let Some(first) = self.first.get()
                && let Some(known) = first.list.cached().get()
                && let Some(list) = lists.get(&self.slices, Name::Node(&first.node))
            {
                list.cached().get_or_init(|| known.clone());
            }
            lists
        })
    }

    /// Returns the index of the shared slices.
    fn shared(&self) -> &SharedIndex {
        self.shared.get_or_init(|| {
            let mut shared = SharedIndex::default();
            for (index, slice) in self.present().filter(|(_, slice)| !is_for_one_node(slice)) {
                shared.insert(slice, index);
            }
            shared
        })
    }

    /// Returns the slices with their positions.
    fn present(&self) -> impl Iterator<Item = (SliceIndex, &Arc<ResourceSlice>)> {
        self.slices.iter().enumerate().filter_map(|(index, slice)| Some((index, slice.as_ref()?)))
    }

    fn slice(&self, index: SliceIndex) -> Option<&Arc<ResourceSlice>> {
        self.slices.get(index)?.as_ref()
    }

    fn at<'i>(&'i self, positions: &'i [SliceIndex]) -> impl Iterator<Item = &'i Arc<ResourceSlice>> + Clone {
        positions.iter().filter_map(|index| self.slice(*index))
    }

    /// Adds the slice at a position to the indexes.
    fn place(&mut self, index: SliceIndex) {
        debug_assert!(matches!(self.slices.get(index), Some(Some(_))), "the position has a slice");
        let Some(slice) = self.slices.get(index).and_then(Option::as_ref) else { return };
        self.live = self.live.saturating_add(1);
        self.changes.add(slice, is_for_one_node(slice) && !self.is_pool_shared(slice));
        self.kept.forget_pool(&slice.spec.driver, &slice.spec.pool.name);
        if is_for_one_node(slice) {
            self.first.take();
            if let Some(on_node) = self.on_node.get_mut() {
                on_node.insert(&self.slices, index);
            }
        } else {
            self.kept.forget_sets();
            if let Some(shared) = self.shared.get_mut() {
                shared.insert(slice, index);
            }
        }
        for lists in self.pools.get_mut().into_iter().chain(&mut self.names) {
            lists.insert(&self.slices, index);
        }
    }

    fn remove(&mut self, index: SliceIndex) {
        let Some(slice) = self.slices.get(index).and_then(Option::as_ref) else { return };
        self.changes.add(slice, is_for_one_node(slice) && !self.is_pool_shared(slice));
        self.kept.forget_pool(&slice.spec.driver, &slice.spec.pool.name);
        if is_for_one_node(slice) {
            self.first.take();
            if let Some(on_node) = self.on_node.get_mut() {
                on_node.remove(&self.slices, index);
            }
        } else {
            self.kept.forget_sets();
            if let Some(shared) = self.shared.get_mut() {
                shared.remove(slice, index);
            }
        }
        for lists in self.pools.get_mut().into_iter().chain(&mut self.names) {
            lists.remove(&self.slices, index);
        }
        if let Some(entry) = self.slices.get_mut(index) {
            *entry = None;
            self.live = self.live.saturating_sub(1);
        }
    }

    /// Returns true if several nodes may see a slice of the pool of a slice. Before pools are indexed, no view of a node
    /// depends on slices that the node does not see.
    fn is_pool_shared(&self, slice: &ResourceSlice) -> bool {
        let name = Name::Pool { driver: &slice.spec.driver, pool: &slice.spec.pool.name };
        let pool = self.pools.get().and_then(|pools| pools.get(&self.slices, name));
        self.at(pool.map_or(&[], List::positions)).any(|slice| !is_for_one_node(slice))
    }

    /// Rebuilds the inventory without gaps if more than half of the positions are gaps.
    fn close_gaps(&mut self) {
        if self.slices.len() > 2 * self.live + 16 {
            let objects: Vec<_> = self.slices.drain(..).flatten().collect();
            self.replace(objects);
        }
    }
}

/// The node that an index was first asked for, with its slices.
#[derive(Clone, Debug)]
struct First {
    node: String,
    list: List<CachedPools>,
}

impl First {
    fn find(slices: &[Option<Arc<ResourceSlice>>], node: &str) -> Self {
        let is_own = |slice: &ResourceSlice| !node.is_empty() && slice.spec.node_name.as_deref() == Some(node);
        let own = slices.iter().enumerate().filter(|(_, slice)| slice.as_deref().is_some_and(is_own));
        Self { node: node.to_owned(), list: List::new(own.map(|(index, _)| index).collect()) }
    }
}

/// Returns true if the slice is node-local: only one node sees it.
pub(crate) fn is_for_one_node(slice: &ResourceSlice) -> bool {
    slice.spec.node_name.as_ref().is_some_and(|node| !node.is_empty())
}

/// Returns the answer to a deletion, by whether its name was known and an object of its UID was removed.
const fn deletion(is_known: bool, is_removed: bool) -> ApplyOutcome {
    match (is_known, is_removed) {
        (_, true) => ApplyOutcome::Applied,
        (true, false) => ApplyOutcome::OtherObject,
        (false, false) => ApplyOutcome::Unknown,
    }
}

fn name_of(kind: &'static str, name: Option<&str>) -> Result<String, InventoryError> {
    name.filter(|name| !name.is_empty()).map(str::to_owned).ok_or(InventoryError::NoName { kind })
}
