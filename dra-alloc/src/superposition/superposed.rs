//! The question: which shapes serve pods on one node that does not exist yet.

use dra_attrs::Index;
use k8s_openapi::api::core::v1::Pod;

use super::answer::{LostShape, Superposed};
use super::beside::Beside;
use super::node_shape::{NodeShape, ShapeError};
use super::one_shape::{OneShape, Question};
use crate::autoscaler::ScaleSimulator;
use crate::cluster::inventory::InventoryLayer;
use crate::pods::ClaimTracker;

impl ScaleSimulator<'_> {
    /// Decides which of several shapes one new node may have so that it serves all pods together, and which of its labels must be
    /// narrowed for that.
    ///
    /// Devices of the cluster count as well as those that come with the node. A device that only nodes with some labels see
    /// narrows the labels, and the least narrowing is chosen: devices that all nodes of the shape see are used first. `beside` are
    /// nodes about which the question was asked before and that do not exist yet either: as long as nobody has decided, each of
    /// their ways may come true, so that of each device and counter the largest use is taken.
    ///
    /// Give the pods in the order in which a scheduler tries them, first those of daemon sets.
    ///
    /// ```
    /// use dra_alloc::autoscaler::{NodeTemplate, ScaleSimulator};
    /// use dra_alloc::pods::{ClaimTracker, PodOptions};
    /// use dra_alloc::selector::SelectorCache;
    /// use dra_alloc::superposition::NodeShape;
    /// use dra_alloc::{Classes, Inventory, Profile};
    /// use k8s_openapi::api::core::v1::{Node, Pod};
    /// use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
    /// use k8s_openapi::jiff::Timestamp;
    /// use serde_json::{from_value, json};
    ///
    /// // One device that nodes of zone a see, and one for zone b.
    /// let slice = |zone: &str| from_value::<ResourceSlice>(json!({"metadata": {"name": zone}, "spec": {"driver": "d.example.com",
    ///     "pool": {"name": zone, "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "nic"}],
    ///     "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]}}}));
    /// let mut inventory = Inventory::new([slice("a")?, slice("b")?]);
    /// let class: DeviceClass = from_value(json!({"metadata": {"name": "nic"}, "spec": {}}))?;
    /// let claim: ResourceClaim = from_value(json!({"metadata": {"name": "c", "uid": "c"}, "spec": {
    ///     "devices": {"requests": [{"name": "nic", "exactly": {"deviceClassName": "nic"}}]}}}))?;
    /// let pod: Pod = from_value(json!({"metadata": {"name": "p", "uid": "p"}, "spec": {"containers": [],
    ///     "resourceClaims": [{"name": "nic", "resourceClaimName": "c"}]}}))?;
    /// let options = PodOptions::new(Profile::V1_37);
    /// let (classes, selectors) = (Classes::new([class]), SelectorCache::default());
    /// let mut tracker = ClaimTracker::new(Profile::V1_37);
    /// tracker.observe(claim)?;
    /// let node = |name: &str| from_value::<Node>(json!({"metadata": {"name": name}}));
    /// let template = |name| -> Result<_, Box<dyn std::error::Error>> {
    ///     Ok(NodeTemplate::new(node(name)?, Vec::<ResourceSlice>::new())?)
    /// };
    /// let (small, large) = (template("small")?, template("large")?);
    /// let shapes = [
    ///     NodeShape::new(&small, 3).with_label("zone", ["a", "b"]),
    ///     NodeShape::new(&large, 7).with_label("zone", ["b"]),
    /// ];
    ///
    /// let simulator = ScaleSimulator::new(&classes, &selectors, options, Timestamp::UNIX_EPOCH);
    /// let node = simulator.superposed(&mut inventory, &tracker, &shapes, &[], &[&pod])?;
    /// let zones: Vec<_> = node.together.iter().map(|one| (one.labels["zone"].first(), one.shapes.len())).collect();
    /// assert_eq!(zones, [(Some(&"b".to_owned()), 2), (Some(&"a".to_owned()), 1)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A template is not new to the cluster, a label has no value, or the labels make more than 1,000 kinds of nodes that devices,
    /// claims or the check of [`ScaleSimulator::with_fit`] tell apart.
    ///
    /// # Complexity
    /// For each shape linear in the slices and in the node selectors times kinds of nodes, and one filter call for each pod and box
    /// of labels: one box if no narrowing is needed, at most 2,000, and up to 64 times as many where unknown values are matched.
    /// Nodes in `beside` add a copy of the devices in use for each of their ways to each call.
    pub fn superposed<'i>(
        &self,
        inventory: impl Into<InventoryLayer<'i>>,
        tracker: &ClaimTracker,
        shapes: &[NodeShape<'_>],
        beside: &[&Superposed],
        pods: &[&Pod],
    ) -> Result<Superposed, ShapeError> {
        let (mut layer, beside) = (inventory.into(), Beside(beside));
        let required = beside.required(pods, tracker);
        let seen = beside.claims_for(pods, tracker);
        let question = Question { simulator: self, tracker: &seen, pods, required: &required, beside };
        let mut answer = Superposed { survivors: Vec::new(), lost: Vec::new(), together: Vec::new() };
        for (position, shape) in shapes.iter().enumerate() {
            let position = Index::from(position);
            match OneShape::new(question, layer.layer(), shape, position)?.judge(shape, position) {
                Ok(survivor) => answer.survivors.push(survivor),
                Err(reason) => answer.lost.push(LostShape { shape: position, reason }),
            }
        }
        answer.compare();
        Ok(answer)
    }
}
