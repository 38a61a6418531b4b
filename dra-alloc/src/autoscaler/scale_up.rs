//! One more node: the pods that it would take, and the best of several templates.

use std::sync::Arc;

use dra_device::InventoryError;
use k8s_openapi::api::core::v1::Pod;

use super::node_template::NodeTemplate;
use super::placing::{PlacementError, Placing};
use super::simulator::ScaleSimulator;
use super::unknown_attribute::UnknownAttributes;
use crate::cluster::inventory::{InventoryEvent, InventoryLayer};
use crate::pods::{ClaimTracker, GangPlacement, PodIdentity};

/// Answer to the question whether one more node would help.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ScaleUp {
    /// Pods that the node would take together, each with the devices that it would get.
    pub placed: Vec<GangPlacement>,
    /// Pods that it would not take, with the reasons.
    pub refused: Vec<(PodIdentity, PlacementError)>,
}

impl ScaleUp {
    /// Returns true if the node would take a pod.
    #[must_use]
    pub const fn helps(&self) -> bool {
        !self.placed.is_empty()
    }
}

/// One of several templates, with what it costs and what it would take.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ExpansionOption<'t> {
    /// The template.
    pub template: &'t NodeTemplate,
    /// Price of one node, in the caller's unit.
    pub price: u64,
    /// Pods that one node would take, and those that it would not take.
    pub scale_up: ScaleUp,
}

/// Reason why the question can't be asked: the cluster has the node, or a slice of it, already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleUpError {
    /// The cluster has slices of a node of the template's name.
    #[error("node {node:?} of the template has slices in the cluster already")]
    NodeExists {
        /// Name of the node.
        node: String,
    },
    /// The cluster has a slice of the name of one of the template's.
    #[error("slice {slice:?} of the template is in the cluster already")]
    SliceExists {
        /// Name of the slice.
        slice: String,
    },
    /// A slice can't be added.
    #[error(transparent)]
    Slice(#[from] InventoryError),
}

impl ScaleSimulator<'_> {
    /// Decides which pods one more node of a template would take, all of them together.
    ///
    /// Give the pods that no node can take, in the order in which a scheduler tries them, and before them the pods that the new
    /// node would run in any case, such as those of daemon sets. Members of a group are judged one by one: count them.
    ///
    /// # Errors
    /// The template is not new to the cluster.
    ///
    /// # Complexity
    /// That of one filter call a pod, on the new node alone, beside the template's slices: other nodes make no difference. See
    /// [`Inventory::layer`](crate::Inventory::layer) for the first question.
    pub fn scale_up<'i, 'p>(
        &self,
        inventory: impl Into<InventoryLayer<'i>>,
        tracker: &ClaimTracker,
        template: &NodeTemplate,
        pods: impl IntoIterator<Item = &'p Pod>,
    ) -> Result<ScaleUp, ScaleUpError> {
        let mut layer: InventoryLayer<'_> = inventory.into();
        template.add_to(&mut layer)?;
        let (classes, selectors, profile) = (self.classes, self.selectors, self.options().profile());
        let unknown = UnknownAttributes { template, classes, selectors, profile };
        let mut placing = Placing::new(tracker.clone(), 1);
        let mut refused = Vec::new();
        self.search(&layer, &[template.node()], |search| {
            for pod in pods {
                let placed = is_pending(pod)
                    .and_then(|()| unknown.check(pod, tracker))
                    .and_then(|()| placing.place(search, pod, self.group_of(pod)));
                if let Err(reason) = placed {
                    refused.push((PodIdentity::new(pod, self.options()), reason));
                }
            }
        });
        Ok(ScaleUp { placed: placing.placed, refused })
    }

    /// Orders templates by what one node of each would do for its price: the lowest price for a pod that it takes first. Of
    /// equal ones the one that takes more pods is first, then the first in the input; templates that take no pod are last.
    ///
    /// # Errors
    /// A template is not new to the cluster.
    ///
    /// # Complexity
    /// That of [`ScaleSimulator::scale_up`] for each template.
    pub fn expansion_options<'i, 't>(
        &self,
        inventory: impl Into<InventoryLayer<'i>>,
        tracker: &ClaimTracker,
        priced: impl IntoIterator<Item = (&'t NodeTemplate, u64)>,
        pods: &[&Pod],
    ) -> Result<Vec<ExpansionOption<'t>>, ScaleUpError> {
        let (mut layer, mut options) = (inventory.into(), Vec::new());
        for (template, price) in priced {
            let scale_up = self.scale_up(&mut layer, tracker, template, pods.iter().copied())?;
            options.push(ExpansionOption { template, price, scale_up });
        }
        options.sort_by(|left, right| {
            let [taken, other] = [left, right].map(|option| option.scale_up.placed.len() as u128);
            // Prices for one pod, multiplied by the pods of both.
            let for_one_pod = (u128::from(left.price) * other).cmp(&(u128::from(right.price) * taken));
            (taken == 0).cmp(&(other == 0)).then(for_one_pod).then(other.cmp(&taken))
        });
        Ok(options)
    }
}

impl NodeTemplate {
    /// Adds the slices that come with the node.
    pub(crate) fn add_to(&self, layer: &mut InventoryLayer<'_>) -> Result<(), ScaleUpError> {
        if layer.slices_of_node(self.name()).next().is_some() {
            return Err(ScaleUpError::NodeExists { node: self.name().to_owned() });
        }
        for slice in self.slices() {
            let name = slice.metadata.name.as_deref().unwrap_or_default();
            if layer.has_slice(name) {
                return Err(ScaleUpError::SliceExists { slice: name.to_owned() });
            }
            layer.apply(InventoryEvent::Slice(Arc::clone(slice)))?;
        }
        Ok(())
    }
}

fn is_pending(pod: &Pod) -> Result<(), PlacementError> {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    if node.is_empty() { Ok(()) } else { Err(PlacementError::OnNode { node: node.to_owned() }) }
}
