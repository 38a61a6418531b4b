//! New nodes of several shapes, as many as pods need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_attrs::Index;
use dra_device::internal::PodFields;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::move_plan::{MoveProof, NewNode, PodMove};
use crate::autoscaler::{
    ClaimCopyError, NodeCopy, NodeTemplate, NodeTemplateError, PlacementError, Rehearsal, ScaleSimulator, ScaleUpError,
    TemplateRules, UnknownAttributes, claims_of,
};
use crate::cluster::inventory::{InventoryEvent, InventoryLayer};
use crate::pods::{ClaimLookup, ClaimTracker, GangPlacement, KnownRefusals, Member, PodIdentity};
use crate::preemption::least_devices;

/// Label with the name of a node, which a copy has its own value of.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Largest number of nodes of an offer, unless the caller sets another one.
const MOST_NODES: usize = 1_000;

/// Shape of new nodes, with its price: as many of them as are wanted.
#[derive(Clone, Debug)]
pub struct NodeOffer<'o> {
    template: &'o NodeTemplate,
    price: u64,
    most: usize,
    daemons: Vec<&'o Pod>,
}

impl<'o> NodeOffer<'o> {
    /// Offers nodes like a template. The price is that of one node, in the caller's unit.
    #[must_use]
    pub const fn new(template: &'o NodeTemplate, price: u64) -> Self {
        Self { template, price, most: MOST_NODES, daemons: Vec::new() }
    }

    /// Sets the largest number of nodes; 1,000 by default.
    #[must_use]
    pub fn with_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Sets the pods that each such node runs in any case, those of daemon sets. They get their devices first. Their claims are there,
    /// without allocation.
    #[must_use]
    pub fn with_daemons(self, pods: impl IntoIterator<Item = &'o Pod>) -> Self {
        Self { daemons: pods.into_iter().collect(), ..self }
    }
}

/// New nodes that pods need.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NodesNeeded {
    /// The nodes.
    pub nodes: Vec<NewNode>,
    /// Pods with their places on the nodes.
    pub placed: Vec<PodMove>,
    /// Pods that no offer takes, with the reason of the first one.
    pub refused: Vec<(PodIdentity, PlacementError)>,
    /// Sum of the prices.
    pub price: u64,
    /// Quality of the choice.
    pub proof: MoveProof,
}

/// Reason why offers can't be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OfferError {
    /// The template is not new to the cluster.
    #[error(transparent)]
    NotNew(#[from] ScaleUpError),
    /// The template can't be copied for a second node.
    #[error(transparent)]
    NotCopied(#[from] NodeTemplateError),
    /// A claim of a daemon set's pod can't be copied.
    #[error(transparent)]
    Claim(#[from] ClaimCopyError),
}

/// Nodes that are added to a rehearsal, one after the other.
pub(super) struct NewNodes<'n, 'i> {
    pub(super) simulator: &'n ScaleSimulator<'n>,
    pub(super) layer: InventoryLayer<'i>,
    pub(super) rehearsal: Rehearsal,
    /// Claims before anybody came.
    before: ClaimTracker,
    offers: &'n [NodeOffer<'n>],
    /// Number of nodes of each offer.
    made: Vec<usize>,
    pub(super) nodes: Vec<Made>,
}

/// A new node with the pods on it.
pub(super) struct Made {
    pub(super) new: NewNode,
    /// Pods of daemon sets, which come first.
    pub(super) daemons: Vec<Pod>,
    /// Claims of these pods that were made for the node.
    pub(super) claims: Vec<ResourceClaim>,
    pub(super) placed: Vec<PodMove>,
}

/// One more node as an offer has it.
struct OneMore {
    new: NewNode,
    daemons: Vec<Pod>,
    claims: Vec<ResourceClaim>,
}

/// One more node, and what it would take.
struct Trial {
    offer: usize,
    made: Made,
    rehearsal: Rehearsal,
    /// Positions of the pods that it takes.
    taken: BTreeSet<usize>,
    /// Number of their devices.
    devices: usize,
}

impl<'n, 'i> NewNodes<'n, 'i> {
    pub(super) fn new(
        simulator: &'n ScaleSimulator<'n>,
        layer: InventoryLayer<'i>,
        rehearsal: Rehearsal,
        offers: &'n [NodeOffer<'n>],
    ) -> Self {
        let before = rehearsal.tracker.clone();
        Self { simulator, layer, rehearsal, before, offers, made: vec![0; offers.len()], nodes: Vec::new() }
    }

    /// Adds nodes until all pods have a place, or no node takes one of them: each time the node with the lowest price for a device
    /// that it serves. Returns the pods without a place.
    pub(super) fn add(&mut self, mut pods: Vec<&'n Pod>, among: &BTreeSet<usize>) -> Result<Vec<&'n Pod>, OfferError> {
        while !pods.is_empty() {
            let mut best: Option<Trial> = None;
            for offer in among {
                let Some(trial) = self.trial(*offer, &pods)? else { continue };
                if best.as_ref().is_none_or(|best| Self::is_better(&trial, best)) {
                    best = Some(trial);
                }
            }
            let Some(best) = best else { break };
            self.apply(&best.made.new)?;
            let mut position = 0;
            pods.retain(|_| {
                position += 1;
                !best.taken.contains(&(position - 1))
            });
            if let Some(made) = self.made.get_mut(best.offer) {
                *made += 1;
            }
            self.rehearsal = best.rehearsal;
            self.nodes.push(best.made);
        }
        Ok(pods)
    }

    /// Returns true for a node with a lower price for a device, or at the same price with more devices.
    fn is_better(trial: &Trial, than: &Trial) -> bool {
        let [price, other] = [trial, than].map(|one| u128::from(one.made.new.price));
        let left = price.saturating_mul(than.devices as u128);
        let right = other.saturating_mul(trial.devices as u128);
        (left, than.devices) < (right, trial.devices)
    }

    /// Tries one more node of an offer; `None` if it takes no pod.
    fn trial(&mut self, index: usize, pods: &[&Pod]) -> Result<Option<Trial>, OfferError> {
        let made = self.made.get(index).copied().unwrap_or_default();
        let Some(offer) = self.offers.get(index).filter(|offer| made < offer.most) else { return Ok(None) };
        let mut rehearsal = self.rehearsal.clone();
        let OneMore { new, daemons, claims } = self.one_more(offer, index, made)?;
        for claim in &claims {
            // Without an allocation there is nothing to read, and so nothing to fail.
            let _ = rehearsal.tracker.observe(claim.clone());
        }
        let mark = self.layer.mark();
        self.apply(&new)?;
        let (mut placed, mut taken, mut devices) = (Vec::new(), BTreeSet::new(), 0);
        let (simulator, layer) = (self.simulator, &self.layer);
        let unknown = UnknownAttributes {
            template: offer.template,
            classes: simulator.classes,
            selectors: simulator.selectors,
            profile: simulator.options().profile(),
        };
        simulator.search(layer, &[&new.node], |search| {
            let mut known = KnownRefusals::new(1);
            let mut here: Vec<GangPlacement> = Vec::new();
            let first = daemons.iter().map(|pod| (None, pod));
            for (position, pod) in first.chain(pods.iter().enumerate().map(|(position, pod)| (Some(position), *pod))) {
                if unknown.check(pod, &rehearsal.tracker).is_err() {
                    continue;
                }
                let group = simulator.group_of(pod);
                let member = Member { pod, group, placed: &here, gone: &[], among: None };
                let Ok(arrival) = rehearsal.come(search, &member, &mut known) else { continue };
                here.push(GangPlacement { cycle: None, ..arrival.placement });
                let Some(position) = position else { continue };
                devices += devices_wanted(&self.rehearsal.tracker, pod).max(1);
                taken.insert(position);
                let to = new.node.metadata.name.clone();
                let pod = PodIdentity::new(pod, simulator.options());
                placed.push(PodMove { pod, from: None, to, results: arrival.results });
            }
        });
        self.layer.undo_to(mark);
        let made = Made { new, daemons, claims, placed };
        Ok((!taken.is_empty()).then_some(Trial { offer: index, made, rehearsal, taken, devices }))
    }

    /// Makes the next node of an offer, and the pods of daemon sets on it with their claims.
    fn one_more(&self, offer: &NodeOffer<'_>, index: usize, number: usize) -> Result<OneMore, OfferError> {
        let (template, price, offer_index) = (offer.template, offer.price, Index::from(index));
        if number == 0 {
            let (node, slices) = (template.node().clone(), template.slices().to_vec());
            let daemons = offer.daemons.iter().copied().cloned().collect();
            return Ok(OneMore {
                new: NewNode { offer: offer_index, price, node, slices },
                daemons,
                claims: Vec::new(),
            });
        }
        let (name, suffix) = (format!("{}-{number}", template.name()), number.to_string());
        let copy = NodeCopy::new(template.name(), &name, &suffix);
        let slices = copy.slices(template.slices().iter().map(|slice| &**slice), TemplateRules::default())?.slices;
        let slices = slices.into_iter().map(Arc::new).collect();
        let mut node: Node = template.node().clone();
        node.metadata.name = Some(name.clone());
        if let Some(label) = node.metadata.labels.as_mut().and_then(|labels| labels.get_mut(HOSTNAME)) {
            label.clone_from(&name);
        }
        let new = NewNode { offer: offer_index, price, node, slices };
        let (mut daemons, mut claims) = (Vec::new(), Vec::new());
        for pod in &offer.daemons {
            let (daemon, own) = self.daemon(pod, &copy, &suffix)?;
            daemons.push(daemon);
            claims.extend(own);
        }
        Ok(OneMore { new, daemons, claims })
    }

    /// Copies a pod of a daemon set with the claims that are its own.
    fn daemon(
        &self,
        pod: &Pod,
        copy: &NodeCopy<'_>,
        suffix: &str,
    ) -> Result<(Pod, Vec<ResourceClaim>), ClaimCopyError> {
        let suffixed = |text: &String| format!("{text}-{suffix}");
        let mut daemon = Pod::clone(pod);
        daemon.metadata.name = pod.metadata.name.as_ref().map(suffixed);
        daemon.metadata.uid = pod.metadata.uid.as_ref().map(suffixed);
        let named = claims_of(pod).map(|named| named.claim);
        let claims: Vec<Arc<ResourceClaim>> =
            named.filter_map(|key| self.before.claim(&key.namespace, &key.name).cloned()).collect();
        let copies = copy.claims(pod, &daemon, claims.iter().map(|claim| &**claim), &BTreeSet::new())?;
        // Claims that the pod does not own are shared, and come back as they are.
        let own = copies.into_iter().filter(|claim| claim.metadata.uid.is_none()).map(|mut claim| {
            claim.metadata.uid.clone_from(&claim.metadata.name);
            claim
        });
        let own: Vec<ResourceClaim> = own.collect();
        if let Some(status) = &mut daemon.status {
            let is_own = |name: &str| own.iter().any(|claim| claim.metadata.name == Some(suffixed(&name.to_owned())));
            status.resource_claim_statuses = Some(copy.claim_names(pod, is_own));
        }
        Ok((daemon, own))
    }

    fn apply(&mut self, new: &NewNode) -> Result<(), ScaleUpError> {
        if self.layer.slices_of_node(new.name()).next().is_some() {
            return Err(ScaleUpError::NodeExists { node: new.name().to_owned() });
        }
        for slice in &new.slices {
            let name = slice.metadata.name.as_deref().unwrap_or_default();
            if self.layer.has_slice(name) {
                return Err(ScaleUpError::SliceExists { slice: name.to_owned() });
            }
            self.layer.apply(InventoryEvent::Slice(Arc::clone(slice)))?;
        }
        Ok(())
    }
}

impl ScaleSimulator<'_> {
    /// Finds new nodes that pods need: as many of each shape as are cheap together. Give the pods that no node can take; other nodes
    /// make no difference.
    ///
    /// Nodes are chosen one by one, by the price for a device that they serve, among all offers and among each one alone; the cheapest
    /// of these choices that takes the most pods counts. [`MoveProof::Least`] says that counting devices proves that none is cheaper.
    ///
    /// # Errors
    /// A template is not new to the cluster, or can't be copied for a second node.
    ///
    /// # Complexity
    /// For each new node and each offer a filter call a pod, twice.
    pub fn nodes_needed<'i>(
        &self,
        inventory: impl Into<InventoryLayer<'i>>,
        tracker: &ClaimTracker,
        offers: &[NodeOffer<'_>],
        pods: &[&Pod],
    ) -> Result<NodesNeeded, OfferError> {
        let (inventory, mut pods) = (&mut inventory.into(), pods.to_vec());
        pods.sort_by_cached_key(|pod| std::cmp::Reverse(devices_wanted(tracker, pod)));
        let alone = (0..offers.len()).map(|offer| BTreeSet::from([offer]));
        let mut best: Option<(usize, u64, Vec<Made>, BTreeSet<usize>)> = None;
        for among in std::iter::once((0..offers.len()).collect()).chain(alone) {
            let mut new = NewNodes::new(self, inventory.layer(), Rehearsal::new(tracker.clone()), offers);
            let left = new.add(pods.clone(), &among)?;
            let price = new.nodes.iter().map(|made| made.new.price).fold(0, u64::saturating_add);
            let left: BTreeSet<usize> =
                left.iter().filter_map(|pod| pods.iter().position(|other| std::ptr::eq(*other, *pod))).collect();
            if best.as_ref().is_none_or(|(refused, least, ..)| (left.len(), price) < (*refused, *least)) {
                best = Some((left.len(), price, new.nodes, left));
            }
        }
        let (_, price, made, left) = best.unwrap_or_default();
        let mut refused = Vec::new();
        for pod in left.iter().filter_map(|position| pods.get(*position)) {
            refused.extend(self.refusal(inventory, tracker, offers, pod)?);
        }
        let placed: Vec<&Pod> =
            pods.iter().enumerate().filter(|(position, _)| !left.contains(position)).map(|(_, pod)| *pod).collect();
        let bound = price_bound(tracker, offers, &placed);
        let proof = if bound >= price { MoveProof::Least } else { MoveProof::AtLeast { cost: bound } };
        let (nodes, moves): (Vec<NewNode>, Vec<Vec<PodMove>>) =
            made.into_iter().map(|made| (made.new, made.placed)).unzip();
        Ok(NodesNeeded { nodes, placed: moves.into_iter().flatten().collect(), refused, price, proof })
    }

    /// Returns the reason why the first offer does not take a pod, if it is asked for that pod alone.
    fn refusal(
        &self,
        inventory: &mut InventoryLayer<'_>,
        tracker: &ClaimTracker,
        offers: &[NodeOffer<'_>],
        pod: &Pod,
    ) -> Result<Option<(PodIdentity, PlacementError)>, ScaleUpError> {
        let Some(offer) = offers.first() else { return Ok(None) };
        let answer = self.scale_up(inventory, tracker, offer.template, offer.daemons.iter().copied().chain([pod]))?;
        Ok(answer.refused.into_iter().find(|(refused, _)| refused.uid == pod.uid()))
    }
}

/// Returns the number of devices that a pod needs at least.
pub(super) fn devices_wanted(claims: &impl ClaimLookup, pod: &Pod) -> usize {
    let claims = claims_of(pod).filter_map(|named| claims.claim(&named.claim.namespace, &named.claim.name));
    claims.map(|claim| least_devices(claim)).fold(0, usize::saturating_add)
}

/// Returns a price that nodes for some pods have at least: that of one node, and that of their devices at the best price for one.
fn price_bound(tracker: &ClaimTracker, offers: &[NodeOffer<'_>], pods: &[&Pod]) -> u64 {
    let Some(one) = offers.iter().map(|offer| offer.price).min().filter(|_| !pods.is_empty()) else { return 0 };
    let mut own: BTreeMap<_, usize> = BTreeMap::new();
    for named in pods.iter().flat_map(|pod| claims_of(pod)) {
        if let Some(claim) = tracker.claim(&named.claim.namespace, &named.claim.name) {
            own.insert(named.claim, least_devices(claim));
        }
    }
    let wanted = own.values().sum::<usize>() as u128;
    let of_devices = offers.iter().map(|offer| {
        let devices = || offer.template.slices().iter().flat_map(|slice| slice.spec.devices.iter().flatten());
        let is_shared = devices().any(|device| device.allow_multiple_allocations == Some(true));
        let count = devices().count() as u128;
        if is_shared || count == 0 { 0 } else { (u128::from(offer.price) * wanted).div_ceil(count) }
    });
    let of_devices = of_devices.min().unwrap_or_default();
    u64::try_from(of_devices).unwrap_or(u64::MAX).max(one)
}
