//! The index over the `ResourceSlice`s and `DeviceTaintRule`s of a cluster: built once, asked often.
//!
//! Building only groups: slices by node, and by pool. What a pool is worth on a node ([`pool`]) is found when the node is
//! first visited, and what a device offers when a request first looks at it.
//!
//! An inventory holds its objects by [`Arc`] and never changes or copies them. It is `Send + Sync`; any number of
//! allocators in any number of threads may read it.

pub mod pool;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::resource::v1::{Device, DeviceTaint, DeviceTaintRule, ResourceSlice};

use crate::taint::taint_by_rule;

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

/// Position of a pool in [`Inventory::pools`].
pub(crate) type PoolIndex = usize;

/// All slices of one driver and pool name, of whatever generation.
#[derive(Clone, Debug)]
pub(crate) struct PoolEntry {
    pub(crate) driver: Arc<str>,
    pub(crate) name: Arc<str>,
    /// In ascending order. Empty when the last slice of a pool was deleted.
    slices: Vec<SliceIndex>,
}

#[derive(Clone, Debug)]
struct SliceEntry {
    object: Arc<ResourceSlice>,
    pool: PoolIndex,
}

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
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// A deleted slice leaves a gap, so that positions stay what they are.
    slices: Vec<Option<SliceEntry>>,
    /// Positions by name. The API server has no two slices of one name; a hand-made list may.
    names: BTreeMap<String, Vec<SliceIndex>>,
    pools: Vec<PoolEntry>,
    pool_names: BTreeMap<Arc<str>, BTreeMap<Arc<str>, PoolIndex>>,
    on_node: BTreeMap<String, Vec<SliceIndex>>,
    shared: Vec<SliceIndex>,
    rules: BTreeMap<String, Arc<DeviceTaintRule>>,
}

impl Inventory {
    /// Builds the index. The order of the slices is kept; rules apply in the order of their names.
    ///
    /// # Complexity
    /// `O(n log n)` for `n` slices, whatever the number of their devices. Nothing is copied but names.
    pub fn new(
        slices: impl IntoIterator<Item = impl Into<Arc<ResourceSlice>>>,
        rules: impl IntoIterator<Item = Arc<DeviceTaintRule>>,
    ) -> Self {
        let mut inventory = Self::default();
        slices.into_iter().for_each(|slice| inventory.append(slice.into()));
        inventory.rules =
            rules.into_iter().map(|rule| (rule.metadata.name.clone().unwrap_or_default(), rule)).collect();
        inventory
    }

    /// Applies one change. The state afterwards is that of an inventory built from the changed list of objects.
    ///
    /// # Errors
    /// A name that is missing or unknown.
    ///
    /// # Complexity
    /// Logarithmic in the number of slices, linear in the number of slices on the same node or for all nodes.
    pub fn apply(&mut self, change: Change) -> Result<(), ChangeError> {
        match change {
            Change::Slice(slice) => self.set_slice(slice),
            Change::SliceDeleted(name) => self.delete_slice(&name),
            Change::TaintRule(rule) => {
                self.rules.insert(name_of("DeviceTaintRule", rule.metadata.name.as_deref())?, rule);
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
        self.slices.iter().flatten().map(|entry| &*entry.object)
    }

    /// The taint rules, by name.
    pub fn taint_rules(&self) -> impl Iterator<Item = &DeviceTaintRule> {
        self.rules.values().map(|rule| &**rule)
    }

    /// The taints of a device: its own, then those of the rules.
    pub(crate) fn taints<'i>(
        &'i self,
        driver: &'i str,
        pool: &'i str,
        device: &'i Device,
    ) -> impl Iterator<Item = &'i DeviceTaint> {
        let by_rule = self.rules.values().filter_map(move |rule| taint_by_rule(rule, driver, pool, &device.name));
        device.taints.iter().flatten().chain(by_rule)
    }

    fn set_slice(&mut self, slice: Arc<ResourceSlice>) -> Result<(), ChangeError> {
        let name = name_of("ResourceSlice", slice.metadata.name.as_deref())?;
        let Some(&first) = self.names.get(&name).and_then(|known| known.first()) else {
            self.append(slice);
            return Ok(());
        };
        for index in self.names.insert(name, vec![first]).unwrap_or_default() {
            self.unlink(index);
        }
        self.link(first, slice);
        Ok(())
    }

    fn delete_slice(&mut self, name: &str) -> Result<(), ChangeError> {
        let not_found = || ChangeError::NotFound { kind: "ResourceSlice", name: name.to_owned() };
        for index in self.names.remove(name).ok_or_else(not_found)? {
            self.unlink(index);
        }
        self.close_gaps();
        Ok(())
    }

    fn append(&mut self, slice: Arc<ResourceSlice>) {
        let index = self.slices.len();
        self.slices.push(None);
        self.names.entry(slice.metadata.name.clone().unwrap_or_default()).or_default().push(index);
        self.link(index, slice);
    }

    /// Enters a slice at a free position into the lists of its pool and its node.
    fn link(&mut self, index: SliceIndex, object: Arc<ResourceSlice>) {
        let pool = self.pool_index(&object.spec.driver, &object.spec.pool.name);
        if let Some(entry) = self.pools.get_mut(pool) {
            insert_sorted(&mut entry.slices, index);
        }
        insert_sorted(self.list_of(&object), index);
        if let Some(entry) = self.slices.get_mut(index) {
            *entry = Some(SliceEntry { object, pool });
        }
    }

    fn unlink(&mut self, index: SliceIndex) {
        let Some(entry) = self.slices.get_mut(index).and_then(Option::take) else { return };
        if let Some(pool) = self.pools.get_mut(entry.pool) {
            remove_sorted(&mut pool.slices, index);
        }
        remove_sorted(self.list_of(&entry.object), index);
    }

    /// The list in which a node finds a slice.
    fn list_of(&mut self, slice: &ResourceSlice) -> &mut Vec<SliceIndex> {
        match slice.spec.node_name.as_deref() {
            Some(node) if !node.is_empty() => {
                if !self.on_node.contains_key(node) {
                    self.on_node.insert(node.to_owned(), Vec::new());
                }
                self.on_node.get_mut(node).unwrap_or(&mut self.shared)
            }
            _ => &mut self.shared,
        }
    }

    fn pool_index(&mut self, driver: &str, name: &str) -> PoolIndex {
        if let Some(&index) = self.pool_names.get(driver).and_then(|pools| pools.get(name)) {
            return index;
        }
        let known = self.pool_names.get_key_value(driver).map(|(driver, _)| Arc::clone(driver));
        let (driver, name): (Arc<str>, Arc<str>) = (known.unwrap_or_else(|| driver.into()), name.into());
        let index = self.pools.len();
        self.pools.push(PoolEntry { driver: Arc::clone(&driver), name: Arc::clone(&name), slices: Vec::new() });
        self.pool_names.entry(driver).or_default().insert(name, index);
        index
    }

    /// Builds anew once more than half of the positions are gaps, so that memory follows the number of slices.
    fn close_gaps(&mut self) {
        let live = self.slices.iter().flatten().count();
        if self.slices.len() > 2 * live + 16 {
            let objects: Vec<_> = self.slices.drain(..).flatten().map(|entry| entry.object).collect();
            *self = Self { rules: std::mem::take(&mut self.rules), ..Self::new(objects, []) };
        }
    }
}

fn name_of(kind: &'static str, name: Option<&str>) -> Result<String, ChangeError> {
    name.filter(|name| !name.is_empty()).map(str::to_owned).ok_or(ChangeError::NoName { kind })
}

fn insert_sorted(list: &mut Vec<SliceIndex>, index: SliceIndex) {
    let position = list.partition_point(|other| *other < index);
    list.insert(position, index);
}

fn remove_sorted(list: &mut Vec<SliceIndex>, index: SliceIndex) {
    if let Ok(position) = list.binary_search(&index) {
        list.remove(position);
    }
}
