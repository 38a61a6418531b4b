//! One shape alone: the widest labels with which it serves all pods.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use dra_attrs::Index;
use dra_device::claims::ClaimKey;
use k8s_openapi::api::core::v1::{Node, NodeSelector, Pod};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceSlice};

use super::answer::{LostShapeError, PlacedPod, Survivor, UnknownCondition, Way};
use super::beside::{Beside, Required};
use super::corners::{Corners, LabelBox};
use super::label_values::LabelValues;
use super::node_shape::{NodeShape, ShapeError};
use super::scopes::{Scopes, selectors};
use super::unknown::{conditions, matched, with_values};
use crate::autoscaler::{NodeTemplate, PlacementError, Rehearsal, ScaleSimulator, UnknownAttributes};
use crate::cluster::inventory::{InventoryEvent, InventoryLayer};
use crate::cluster::state::ClaimId;
use crate::pods::{ClaimLookup, ClaimTracker, FitQuestion, KnownRefusals, Member, NodeCheck, PodIdentity};

/// Largest number of boxes of labels that are tried for a shape, the widest first; then each kind of node is tried alone that none
/// of the boxes found has, so that a "no" is one.
const MOST_BOXES: usize = 1_000;

/// One shape, with all that counts for its pods.
pub(super) struct OneShape<'q, 'i> {
    simulator: &'q ScaleSimulator<'q>,
    /// Devices of the cluster and of the node.
    layer: InventoryLayer<'i>,
    tracker: &'q ClaimTracker,
    pods: &'q [&'q Pod],
    required: &'q [Required<'q>],
    beside: Beside<'q>,
    template: &'q NodeTemplate,
    corners: Corners,
    scopes: Scopes,
    /// Slices of the cluster; none unless values of unknown attributes are matched.
    cluster: Vec<Arc<ResourceSlice>>,
    /// Unknown attributes that the claims match.
    matched: BTreeSet<String>,
}

/// Question about shapes: all but the shape.
#[derive(Clone, Copy)]
pub(super) struct Question<'q> {
    pub(super) simulator: &'q ScaleSimulator<'q>,
    pub(super) tracker: &'q ClaimTracker,
    pub(super) pods: &'q [&'q Pod],
    pub(super) required: &'q [Required<'q>],
    pub(super) beside: Beside<'q>,
}

impl<'q, 'i> OneShape<'q, 'i> {
    /// Begins with the devices of the cluster in a layer of their own, to which those of the node are added.
    pub(super) fn new(
        question: Question<'q>,
        mut layer: InventoryLayer<'i>,
        shape: &NodeShape<'q>,
        position: Index<NodeTemplate>,
    ) -> Result<Self, ShapeError> {
        let Question { simulator, tracker, pods, required, beside } = question;
        let template = shape.template();
        let matched = matched(pods, tracker, template);
        let cluster = if matched.is_empty() { Vec::new() } else { layer.shared_slices().cloned().collect() };
        template.add_to(&mut layer).map_err(|source| ShapeError::NotNew { shape: position, source })?;
        let labeled: Vec<Arc<ResourceSlice>> =
            layer.shared_slices().filter(|slice| selectors(slice).next().is_some()).cloned().collect();
        let of_slices = labeled.iter().flat_map(|slice| selectors(slice)).map(|(_, selector)| selector);
        let read: Vec<&NodeSelector> = of_slices.chain(required.iter().filter_map(|one| one.nodes)).collect();
        let corners = Corners::new(shape, position, &read, simulator.is_checked())?;
        let scopes = Scopes::new(&labeled, &corners);
        Ok(Self { simulator, layer, tracker, pods, required, beside, template, corners, scopes, cluster, matched })
    }

    /// Finds the widest boxes of labels with which the shape serves all pods.
    pub(super) fn judge(
        mut self,
        shape: &NodeShape<'_>,
        position: Index<NodeTemplate>,
    ) -> Result<Survivor, LostShapeError> {
        let all = self.corners.all();
        let mut open = BTreeSet::from([(Reverse(all.len()), all)]);
        let (mut found, mut refused): (Vec<(LabelBox, Way)>, BTreeSet<Vec<bool>>) = (Vec::new(), BTreeSet::new());
        let (mut last, mut left, mut is_complete) = (None, MOST_BOXES, true);
        while left > 0
            && let Some((_, labels)) = open.pop_first()
        {
            if found.iter().any(|(wider, _)| labels.is_within(wider)) {
                continue;
            }
            left -= 1;
            match self.attempt(&labels, &mut refused) {
                Ok(way) => found.push((labels, way)),
                Err(reason) => {
                    last = reason.or(last);
                    open.extend(labels.narrower().map(|narrower| (Reverse(narrower.len()), narrower)));
                }
            }
            // No more than these are tried.
            while open.len() > MOST_BOXES {
                open.pop_last();
                is_complete = false;
            }
        }
        is_complete &= open.is_empty();
        for single in self.corners.singles().filter(|_| !is_complete) {
            if found.iter().any(|(wider, _)| single.is_within(wider)) {
                continue;
            }
            match self.attempt(&single, &mut refused) {
                Ok(way) => found.push((single, way)),
                Err(reason) => last = reason.or(last),
            }
        }
        if let Some(reason) = last.filter(|_| found.is_empty()) {
            return Err(reason);
        }
        let pools =
            self.template.slices().iter().map(|slice| [slice.spec.driver.clone(), slice.spec.pool.name.clone()]);
        Ok(Survivor {
            shape: position,
            price: shape.price(),
            ways: found.into_iter().map(|(_, way)| way).collect(),
            is_complete,
            offered: shape.offered(),
            own_pools: pools.collect(),
        })
    }

    /// Tries a box of labels. The error has no reason if nodes of the box see nothing else than those of a box that was refused.
    fn attempt(&mut self, labels: &LabelBox, refused: &mut BTreeSet<Vec<bool>>) -> Result<Way, Option<LostShapeError>> {
        let corners = self.corners.of(labels);
        if let Some(claim) = self.elsewhere(&corners) {
            return Err(Some(LostShapeError::ClaimElsewhere { claim }));
        }
        let (hidden, seen) = self.scopes.hidden(&corners);
        if !self.simulator.is_checked() && refused.contains(&seen) {
            return Err(None);
        }
        let mark = self.layer.mark();
        self.put(&hidden);
        let placed = self.place(&corners);
        let outcome = match placed {
            Ok(way) => self.known_for_sure(way),
            Err(reason) => Err(self.if_true(&corners, &hidden).unwrap_or(reason)),
        };
        self.layer.undo_to(mark);
        match outcome {
            Ok(way) => Ok(Way { labels: self.corners.narrowed(labels), ..way }),
            Err(reason) => {
                refused.insert(seen);
                Err(Some(reason))
            }
        }
    }

    /// Returns a claim that can't be used at one of the corners.
    fn elsewhere(&self, corners: &[usize]) -> Option<ClaimKey> {
        let is_usable = |required: &Required<'_>| {
            let mut nodes = corners.iter().filter_map(|corner| self.corners.nodes().get(*corner));
            let matches = |node: &Node| {
                required.nodes.is_some_and(|nodes| dra_attrs::node_selector_matches(nodes, node).unwrap_or_default())
            };
            nodes.all(matches)
        };
        self.required.iter().find(|required| !is_usable(required)).map(|required| required.claim.clone())
    }

    fn put(&mut self, slices: &[Arc<ResourceSlice>]) {
        for slice in slices {
            // A slice of the inventory has a name.
            let _ = self.layer.apply(InventoryEvent::Slice(Arc::clone(slice)));
        }
    }

    /// Places all pods on the node, as its first corner sees it.
    fn place(&self, corners: &[usize]) -> Result<Way, LostShapeError> {
        let nodes: Vec<&Node> = corners.iter().filter_map(|corner| self.corners.nodes().get(*corner)).collect();
        let (check, first) = (EachCorner { simulator: self.simulator, nodes: &nodes }, nodes.first().copied());
        let fit: Option<&dyn NodeCheck> = if self.simulator.is_checked() { Some(&check) } else { None };
        let (mut rehearsal, mut known) = (Rehearsal::new(self.tracker.clone()), KnownRefusals::new(1));
        let (mut placed, mut claims, mut here) = (Vec::new(), Vec::new(), Vec::new());
        let first: Vec<&Node> = first.into_iter().collect();
        self.simulator.search_beside(&self.layer, &first, Some(&self.beside), fit, |search| {
            for pod in self.pods {
                self.selectors_are_known(pod)?;
                let group = self.simulator.group_of(pod);
                let member = Member { pod, group, placed: &here, gone: &[], among: None };
                let arrival =
                    rehearsal.come(search, &member, &mut known).map_err(|reason| self.no_place(pod, reason))?;
                let id = |key: &ClaimKey| {
                    rehearsal.tracker.claim(&key.namespace, &key.name).map(|claim| ClaimId::from(&**claim))
                };
                let ids = arrival.results.iter().filter_map(|(key, result)| Some((id(key)?, result.clone())));
                claims.extend(ids.collect::<Vec<(ClaimId, AllocationResult)>>());
                let pod = arrival.placement.pod.clone();
                placed.push(PlacedPod { pod, results: arrival.results });
                here.push(arrival.placement);
            }
            Ok(())
        })?;
        Ok(Way { labels: LabelValues::new(), placed, claims })
    }

    fn no_place(&self, pod: &Pod, reason: PlacementError) -> LostShapeError {
        LostShapeError::NoPlace { pod: PodIdentity::new(pod, self.simulator.options()), reason: Box::new(reason) }
    }

    /// Checks that no claim of a pod reads an unknown attribute.
    fn selectors_are_known(&self, pod: &Pod) -> Result<(), LostShapeError> {
        let (classes, selectors) = (self.simulator.classes, self.simulator.selectors);
        let profile = self.simulator.options().profile();
        let unknown = UnknownAttributes { template: self.template, classes, selectors, profile };
        unknown.check(pod, self.tracker).map_err(|reason| match reason {
            PlacementError::UnknownInClaim { claim, attribute } => {
                LostShapeError::Unknown { conditions: vec![UnknownCondition::Selector { claim, attribute }] }
            }
            reason => self.no_place(pod, reason),
        })
    }

    /// Returns a way if it does not depend on an unknown value.
    fn known_for_sure(&self, way: Way) -> Result<Way, LostShapeError> {
        let conditions = conditions(&way.placed, self.tracker, self.template);
        if conditions.is_empty() { Ok(way) } else { Err(LostShapeError::Unknown { conditions }) }
    }

    /// Returns what must be true so that the pods have a place; `None` if they have none whatever is true.
    fn if_true(&mut self, corners: &[usize], hidden: &[Arc<ResourceSlice>]) -> Option<LostShapeError> {
        if self.matched.is_empty() {
            return None;
        }
        for slices in with_values(self.template, &self.cluster, &self.matched) {
            let mark = self.layer.mark();
            self.put(&slices);
            // Those of the node that some corners do not see stay hidden.
            self.put(hidden);
            let placed = self.place(corners);
            self.layer.undo_to(mark);
            let conditions =
                placed.map_or_else(|_| Vec::new(), |way| conditions(&way.placed, self.tracker, self.template));
            if !conditions.is_empty() {
                return Some(LostShapeError::Unknown { conditions });
            }
        }
        None
    }
}

/// Check of the node by the caller's check of each of its kinds.
struct EachCorner<'c> {
    simulator: &'c ScaleSimulator<'c>,
    nodes: &'c [&'c Node],
}

impl NodeCheck for EachCorner<'_> {
    fn fits(&self, question: &FitQuestion<'_>) -> Result<(), String> {
        self.nodes.iter().try_for_each(|node| self.simulator.check(&question.on(node)))
    }
}
