//! Layers: changes of an inventory that are kept or taken back together.

use std::ops::Deref;
use std::sync::Arc;

use dra_device::ApplyOutcome;
use dra_device::InventoryError;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceSlice};

use super::lists::SliceIndex;
use super::{Inventory, InventoryEvent};
use crate::cluster::stamp::Stamp;

/// Layer over an inventory for a what-if question, such as one more node or one node less: its changes are kept by
/// [`InventoryLayer::keep`] and taken back when the layer is dropped otherwise.
///
/// An inventory is an index and no persistent table, so that a layer writes down what it replaces. Nodes that see none of the
/// changed slices keep what is known about them.
///
/// A layer on a layer ([`InventoryLayer::layer`]) is dropped alone, and kept it becomes a part of the one below. Questions that take
/// `impl Into<InventoryLayer>` make a layer of their own on an inventory as on a layer.
///
/// ```
/// use std::sync::Arc;
/// use dra_alloc::{Inventory, InventoryEvent};
/// use k8s_openapi::api::resource::v1::ResourceSlice;
///
/// let mut slice = ResourceSlice::default();
/// slice.metadata.name = Some("new-node-gpus".into());
/// slice.spec.node_name = Some("new-node".into());
///
/// let mut inventory = Inventory::default();
/// let mut layer = inventory.layer();
/// layer.apply(InventoryEvent::Slice(Arc::new(slice)))?;
/// assert_eq!(layer.slices_of_node("new-node").count(), 1);
/// drop(layer);
/// assert_eq!(inventory.slices().count(), 0);
/// # Ok::<(), dra_alloc::InventoryError>(())
/// ```
#[derive(Debug)]
pub struct InventoryLayer<'i> {
    below: &'i mut Inventory,
    /// State before each change, the latest change last.
    before: Vec<Before>,
    /// That of the layer on which this one is, if it is on one.
    outer: Option<&'i mut Vec<Before>>,
    /// Number of positions of what is below.
    positions: usize,
    rules_stamp: Stamp,
}

/// Part of the inventory as it was before a change.
#[derive(Debug)]
enum Before {
    Slice(SliceIndex, Option<Arc<ResourceSlice>>),
    Rules(String, Option<Vec<Arc<DeviceTaintRule>>>),
}

impl Inventory {
    /// Begins a layer, for changes that are kept or taken back together.
    ///
    /// # Complexity
    /// The first time linear in the number of slices, which are listed then. Afterwards a layer costs as much as its changes,
    /// as [`Inventory::apply`] does; a changed slice that several nodes see makes the lists of such slices be made anew.
    pub fn layer(&mut self) -> InventoryLayer<'_> {
        // A node that is asked first is remembered until a slice changes; the lists of all nodes stay.
        self.on_node();
        let (positions, rules_stamp) = (self.slices.len(), self.rules_stamp);
        InventoryLayer { below: self, before: Vec::new(), outer: None, positions, rules_stamp }
    }
}

impl<'i> From<&'i mut Inventory> for InventoryLayer<'i> {
    fn from(inventory: &'i mut Inventory) -> Self {
        inventory.layer()
    }
}

impl<'i> From<&'i mut InventoryLayer<'_>> for InventoryLayer<'i> {
    fn from(layer: &'i mut InventoryLayer<'_>) -> Self {
        layer.layer()
    }
}

impl InventoryLayer<'_> {
    /// Begins a layer on this one.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use dra_alloc::{Inventory, InventoryEvent};
    /// use k8s_openapi::api::resource::v1::ResourceSlice;
    ///
    /// let slice = |name: &str| {
    ///     let mut slice = ResourceSlice::default();
    ///     (slice.metadata.name, slice.spec.node_name) = (Some(name.into()), Some("new-node".into()));
    ///     InventoryEvent::Slice(Arc::new(slice))
    /// };
    /// let mut inventory = Inventory::default();
    /// let mut plan = inventory.layer();
    /// plan.apply(slice("gpus"))?;
    /// let mut trial = plan.layer();
    /// trial.apply(slice("nics"))?;
    /// assert_eq!(trial.slices().count(), 2);
    /// drop(trial);
    /// assert_eq!(plan.slices().count(), 1);
    /// drop(plan);
    /// assert_eq!(inventory.slices().count(), 0);
    /// # Ok::<(), dra_alloc::InventoryError>(())
    /// ```
    ///
    /// # Complexity
    /// That of [`Inventory::layer`].
    pub fn layer(&mut self) -> InventoryLayer<'_> {
        self.below.on_node();
        let (positions, rules_stamp) = (self.below.slices.len(), self.below.rules_stamp);
        let Self { below, before, .. } = self;
        InventoryLayer { below, before: Vec::new(), outer: Some(before), positions, rules_stamp }
    }

    /// Applies one event, as [`Inventory::apply`] does.
    ///
    /// # Errors
    /// The object has no name.
    pub fn apply(&mut self, event: InventoryEvent) -> Result<ApplyOutcome, InventoryError> {
        self.remember(&event);
        self.below.change(event)
    }

    /// Deletes the slices that name a node (`nodeName`), as when the node is gone. Slices that several nodes see stay.
    ///
    /// # Complexity
    /// Linear in the number of slices of the same pools.
    pub(crate) fn delete_slices_of_node(&mut self, node: &str) {
        for index in self.below.own_slices(node).0.to_vec() {
            self.remember_slice(index);
            self.below.remove(index);
        }
    }

    /// Makes the changes of the layer changes of what is below.
    pub fn keep(mut self) {
        self.positions = self.below.slices.len();
        self.rules_stamp = self.below.rules_stamp;
        if let Some(outer) = &mut self.outer {
            outer.append(&mut self.before);
        } else {
            self.before.clear();
            self.below.close_gaps();
        }
    }

    /// Returns a mark, to which [`InventoryLayer::undo_to`] goes back.
    pub(crate) fn mark(&self) -> usize {
        self.before.len()
    }

    /// Takes the changes since a mark back.
    pub(crate) fn undo_to(&mut self, mark: usize) {
        while self.before.len() > mark
            && let Some(before) = self.before.pop()
        {
            match before {
                Before::Slice(index, slice) => {
                    self.below.remove(index);
                    if let Some(slice) = slice {
                        self.below.put(index, slice);
                    }
                }
                Before::Rules(name, Some(rules)) => drop(self.below.rules.insert(name, rules)),
                Before::Rules(name, None) => drop(self.below.rules.remove(&name)),
            }
        }
    }

    /// Returns true if a slice has the name.
    pub(crate) fn has_slice(&mut self, name: &str) -> bool {
        !self.below.named(name).is_empty()
    }

    fn remember(&mut self, event: &InventoryEvent) {
        let (name, adds) = match event {
            InventoryEvent::Slice(slice) => (slice.metadata.name.as_deref().unwrap_or_default(), true),
            InventoryEvent::SliceDeleted { name, .. } => (name.as_str(), false),
            InventoryEvent::TaintRule(rule) => {
                return self.remember_rules(rule.metadata.name.as_deref().unwrap_or_default());
            }
            InventoryEvent::TaintRuleDeleted { name, .. } => return self.remember_rules(name),
        };
        let known = self.below.named(name);
        if known.is_empty() && adds {
            self.remember_slice(self.below.slices.len());
        }
        for index in known {
            self.remember_slice(index);
        }
    }

    fn remember_slice(&mut self, index: SliceIndex) {
        self.before.push(Before::Slice(index, self.below.slice(index).cloned()));
    }

    fn remember_rules(&mut self, name: &str) {
        self.before.push(Before::Rules(name.to_owned(), self.below.rules.get(name).cloned()));
    }
}

impl Drop for InventoryLayer<'_> {
    fn drop(&mut self) {
        self.undo_to(0);
        self.below.slices.truncate(self.positions);
        self.below.rules_stamp = self.rules_stamp;
    }
}

impl Deref for InventoryLayer<'_> {
    type Target = Inventory;

    fn deref(&self) -> &Inventory {
        self.below
    }
}
