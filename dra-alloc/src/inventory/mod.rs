//! The index over the `ResourceSlice`s and `DeviceTaintRule`s of a cluster: built once, asked often.
//!
//! Building only lists the slices of each node. What a node sees is found when it is first asked for (`view`), what a
//! pool is worth ([`pool`]) when a search first comes to it, and what a device offers when a request first looks at it. What
//! depends on nothing but the node's own slices is kept until one of them changes.
//!
//! An inventory holds its objects by [`Arc`] and never changes or copies them. It is `Send + Sync`; any number of
//! allocators in any number of threads may read it.

pub(crate) mod device;
mod flags;
mod lists;
pub mod pool;
pub(crate) mod view;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::resource::v1::{Device, DeviceTaint, DeviceTaintRule, ResourceSlice};

use crate::taint::taint_by_rule;
use lists::{Key, List, Lists, Positions, insert_sorted};
use view::Kept;

/// A change of a cluster's objects, as a watch reports it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// A slice was added, or the slice of that name was changed.
    Slice(Arc<ResourceSlice>),
    /// The slice of that name was deleted.
    SliceDeleted(String),
    /// A taint rule was added, or the rule of that name was changed.
    TaintRule(Arc<DeviceTaintRule>),
    /// The taint rule of that name was deleted.
    TaintRuleDeleted(String),
}

/// Why a change can't be applied. The inventory is as before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// An object without a name can't be told from others.
    #[error("{kind} metadata.name: must not be empty")]
    NoName {
        /// Kind of the object.
        kind: &'static str,
    },
    /// The object to delete is not there.
    #[error("{kind} {name:?}: not found")]
    NotFound {
        /// Kind of the object.
        kind: &'static str,
        /// Its name.
        name: String,
    },
}

/// Position of a slice. Positions keep the order in which slices were given; a changed slice keeps its own.
pub(crate) type SliceIndex = usize;

/// An index over slices and taint rules.
///
/// ```
/// use std::sync::Arc;
/// use dra_alloc::inventory::{Change, Inventory};
/// use k8s_openapi::api::resource::v1::ResourceSlice;
///
/// let mut slice = ResourceSlice::default();
/// slice.metadata.name = Some("node-1-gpus".into());
/// slice.spec.driver = "gpu.example.com".into();
/// slice.spec.node_name = Some("node-1".into());
///
/// let mut inventory = Inventory::new([slice.clone()], []);
/// slice.spec.pool.generation = 1;
/// inventory.apply(Change::Slice(Arc::new(slice)))?;
/// assert_eq!(inventory.slices().next().map(|slice| slice.spec.pool.generation), Some(1));
/// inventory.apply(Change::SliceDeleted("node-1-gpus".into()))?;
/// assert_eq!(inventory.slices().count(), 0);
/// # Ok::<(), dra_alloc::inventory::ChangeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Inventory {
    /// A deleted slice leaves a gap, so that positions stay what they are.
    slices: Vec<Option<Arc<ResourceSlice>>>,
    /// How many of them are there.
    live: usize,
    /// By node, with what the node sees.
    on_node: Lists<Kept>,
    /// Slices that are not for one node.
    shared: Positions,
    /// By pool, from the first pool on that is not complete on a node.
    pools: OnceLock<Lists>,
    /// By name, from the first change on. The API server has no two slices of one name; a hand-made list may.
    names: Option<Lists>,
    /// By name. A hand-made list may have several of one, or without any.
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
    /// Builds the index. The order of the slices is kept; rules apply in the order of their names.
    ///
    /// # Complexity
    /// Linear in the number of slices, whatever the number of their devices. Nothing is copied.
    pub fn new(
        slices: impl IntoIterator<Item = impl Into<Arc<ResourceSlice>>>,
        rules: impl IntoIterator<Item = Arc<DeviceTaintRule>>,
    ) -> Self {
        let mut inventory =
            Self { slices: slices.into_iter().map(|slice| Some(slice.into())).collect(), ..Self::default() };
        for index in 0..inventory.slices.len() {
            inventory.place(index);
        }
        for rule in rules {
            inventory.rules.entry(rule.metadata.name.clone().unwrap_or_default()).or_default().push(rule);
        }
        inventory
    }

    /// Applies one change. The state afterwards is that of an inventory built from the changed list of objects.
    ///
    /// # Errors
    /// A name that is missing or unknown.
    ///
    /// # Complexity
    /// Linear in the number of slices of the same node or pool. The first change is linear in the number of all, and so
    /// is a deletion now and then: when half of the slices have gone, the list is built anew.
    pub fn apply(&mut self, change: Change) -> Result<(), ChangeError> {
        match change {
            Change::Slice(slice) => self.set_slice(slice),
            Change::SliceDeleted(name) => self.delete_slice(&name),
            Change::TaintRule(rule) => {
                self.rules.insert(name_of("DeviceTaintRule", rule.metadata.name.as_deref())?, vec![rule]);
                Ok(())
            }
            Change::TaintRuleDeleted(name) => {
                let removed = self.rules.remove(&name);
                removed.map(|_| ()).ok_or(ChangeError::NotFound { kind: "DeviceTaintRule", name })
            }
        }
    }

    /// The slices, in their order.
    pub fn slices(&self) -> impl Iterator<Item = &ResourceSlice> {
        self.slices.iter().flatten().map(|slice| &**slice)
    }

    /// The taint rules, by name.
    pub fn taint_rules(&self) -> impl Iterator<Item = &DeviceTaintRule> {
        self.rules.values().flatten().map(|rule| &**rule)
    }

    /// The taints of a device: its own, then those of the rules.
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

    fn set_slice(&mut self, slice: Arc<ResourceSlice>) -> Result<(), ChangeError> {
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

    fn delete_slice(&mut self, name: &str) -> Result<(), ChangeError> {
        let known = self.named(name);
        if known.is_empty() {
            return Err(ChangeError::NotFound { kind: "ResourceSlice", name: name.to_owned() });
        }
        for index in known {
            self.remove(index);
        }
        self.close_gaps();
        Ok(())
    }

    /// The slices of a name.
    fn named(&mut self, name: &str) -> Vec<SliceIndex> {
        let names = self.names.get_or_insert_with(|| Lists::of(Key::Name, &self.slices));
        names.get(&self.slices, [name, ""]).map_or_else(Vec::new, |list| list.positions().to_vec())
    }

    /// The slices of a pool, on whatever node.
    fn pool_slices(&self, driver: &str, pool: &str) -> impl Iterator<Item = &Arc<ResourceSlice>> {
        let pools = self.pools.get_or_init(|| Lists::of(Key::Pool, &self.slices));
        self.at(pools.get(&self.slices, [driver, pool]).map_or(&[], List::positions))
    }

    /// The slices that are for one node only, and the place for what it sees.
    fn own_slices(&self, node: &str) -> (impl Iterator<Item = &Arc<ResourceSlice>> + Clone, Option<&Kept>) {
        let list = self.on_node.get(&self.slices, [node, ""]);
        (self.at(list.map_or(&[], List::positions)), list.map(List::memo))
    }

    /// The slices that are not for one node.
    fn shared_slices(&self) -> impl Iterator<Item = &Arc<ResourceSlice>> {
        self.at(&self.shared)
    }

    fn at<'i>(&'i self, positions: &'i [SliceIndex]) -> impl Iterator<Item = &'i Arc<ResourceSlice>> + Clone {
        positions.iter().filter_map(|index| self.slices.get(*index)?.as_ref())
    }

    /// Enters the slice at a position into the lists.
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

    /// Builds anew once more than half of the positions are gaps, so that memory follows the number of slices.
    fn close_gaps(&mut self) {
        if self.slices.len() > 2 * self.live + 16 {
            let objects: Vec<_> = self.slices.drain(..).flatten().collect();
            *self = Self { rules: std::mem::take(&mut self.rules), ..Self::new(objects, []) };
        }
    }
}

/// Whether only one node sees a slice.
pub(crate) fn is_for_one_node(slice: &ResourceSlice) -> bool {
    slice.spec.node_name.as_ref().is_some_and(|node| !node.is_empty())
}

fn name_of(kind: &'static str, name: Option<&str>) -> Result<String, ChangeError> {
    name.filter(|name| !name.is_empty()).map(str::to_owned).ok_or(ChangeError::NoName { kind })
}
