//! Case: a cluster with a question that is asked of each of its nodes.

use std::sync::Arc;

use dra_alloc::explain::Detail;
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, DeviceId, Inventory, Profile, Verdict};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};

use crate::objects::{FABRIC, GPU, NIC, class};

/// Objects of a cluster with the question that is asked of some of its nodes.
#[derive(Debug)]
pub struct Case {
    /// Slices of the cluster.
    pub slices: Vec<Arc<ResourceSlice>>,
    /// Classes `gpu`, `nic` and `fabric`.
    pub classes: Classes,
    /// Nodes that are asked.
    pub nodes: Vec<Node>,
    /// Devices in use.
    pub state: AllocatedState,
    /// Claims that are asked for.
    pub claims: [ResourceClaim; 1],
    /// Detail of explanations.
    pub detail: Detail,
    /// Call that asks.
    pub call: Call,
}

/// Call that asks about several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `allocate_each` for all nodes.
    Each,
    /// `allocate` for each node.
    Loop,
}

impl Case {
    /// Builds a case without devices in use and without explanations.
    #[must_use]
    pub fn new(slices: Vec<Arc<ResourceSlice>>, nodes: Vec<Node>, claims: [ResourceClaim; 1]) -> Self {
        let classes = [("gpu", GPU), ("nic", NIC), ("fabric", FABRIC)].map(|(name, driver)| class(name, driver));
        let (classes, state) = (Classes::new(classes), AllocatedState::default());
        Self { slices, classes, nodes, state, claims, detail: Detail::Off, call: Call::Each }
    }

    /// Holds all devices.
    #[must_use]
    pub fn full(self) -> Self {
        self.held(|_| true)
    }

    /// Holds the devices whose numbers `is_held` accepts.
    #[must_use]
    pub fn held(mut self, is_held: impl Fn(usize) -> bool) -> Self {
        let devices = self.slices.iter().flat_map(|slice| {
            let pool = (&slice.spec.driver, &slice.spec.pool.name);
            slice.spec.devices.iter().flatten().map(move |device| DeviceId::new(pool.0, pool.1, &device.name))
        });
        for (_, device) in devices.enumerate().filter(|(number, _)| is_held(*number)) {
            self.state.hold(&device);
        }
        self
    }

    /// Builds the index over the slices.
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        Inventory::new(self.slices.iter().cloned())
    }

    /// Makes an allocator that is prepared for the nodes.
    #[must_use]
    pub fn prepared<'a>(&'a self, inventory: &'a Inventory) -> Allocator<'a> {
        let allocator = Allocator::new(Profile::V1_37, inventory, &self.classes).with_explanation(self.detail);
        allocator.prepare(&self.state, &self.nodes);
        allocator
    }

    /// Asks about each node, and hands over the verdicts.
    pub fn ask(&self, allocator: &Allocator<'_>, mut look: impl FnMut(Verdict)) {
        let budget = Budget::default();
        match self.call {
            Call::Each => allocator
                .allocate_each(&self.state, &self.nodes, &self.claims, budget)
                .for_each(|verdict| look(verdict.expect("a verdict"))),
            Call::Loop => self.nodes.iter().for_each(|node| {
                look(allocator.allocate(&self.state, node, &self.claims, budget).expect("a verdict"));
            }),
        }
    }
}
