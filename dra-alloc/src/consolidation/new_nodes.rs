//! New nodes of several shapes, as many as pods need.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dra_attrs::Index;
use dra_device::claims::ClaimOrigin;
use dra_device::internal::PodFields;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::move_plan::{HOSTNAME, MoveProof, NewDaemon, NewNode, PodMove};
use super::unit::priority_of;
use crate::autoscaler::{
    ClaimCopyError, NodeCopy, NodeTemplate, NodeTemplateError, PlacementError, Rehearsal, ScaleSimulator, ScaleUpError,
    TemplateRules, UnknownAttributes, claims_of,
};
use crate::cluster::inventory::{InventoryEvent, InventoryLayer};
use crate::pods::{ClaimLookup, ClaimTracker, GangPlacement, KnownRefusals, Member, PodIdentity};
use crate::preemption::least_devices;

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

/// A new node with the pods that it takes beside those of daemon sets.
pub(super) struct Made {
    pub(super) new: NewNode,
    pub(super) placed: Vec<PodMove>,
}

/// Pod of a daemon set with the claims that are its own.
type Daemon = (Pod, Vec<ResourceClaim>);

/// New nodes that were chosen in one way.
#[derive(Default)]
struct Choice<'p> {
    /// Priorities of the pods without a place, the highest first, and the price: the least choice is the best one.
    key: (Vec<i32>, u64),
    made: Vec<Made>,
    left: Vec<&'p Pod>,
}

impl<'p> Choice<'p> {
    fn new(made: Vec<Made>, left: Vec<&'p Pod>) -> Self {
        let mut priorities: Vec<i32> = left.iter().map(|pod| priority_of(pod)).collect();
        priorities.sort_unstable_by(|left, right| right.cmp(left));
        let price = made.iter().map(|made| made.new.price).fold(0, u64::saturating_add);
        Self { key: (priorities, price), made, left }
    }
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
        let (mut new, daemons) = self.one_more(offer, index, made)?;
        for (_, claims) in &daemons {
            NewDaemon::make_claims(claims, &mut rehearsal.tracker);
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
        let on_node = simulator.search(layer, &[&new.node], |search| {
            let mut known = KnownRefusals::new(1);
            let mut here: Vec<GangPlacement> = Vec::new();
            let mut arrive = |pod: &Pod| {
                unknown.check(pod, &rehearsal.tracker).ok()?;
                let group = simulator.group_of(pod);
                let member = Member { pod, group, placed: &here, gone: &[], among: None };
                let arrival = rehearsal.come(search, &member, &mut known).ok()?;
                let moved = PodMove::new(pod, simulator.options(), None, Some(&arrival.placement.node));
                here.push(GangPlacement { cycle: None, ..arrival.placement });
                Some(PodMove { results: arrival.results, ..moved })
            };
            // A node that does not serve the pod of a daemon set is as good for others.
            let daemons = daemons.into_iter().filter_map(|(pod, claims)| {
                let place = arrive(&pod)?;
                Some(NewDaemon { pod, claims, place })
            });
            let daemons: Vec<NewDaemon> = daemons.collect();
            for (position, pod) in pods.iter().enumerate() {
                let Some(moved) = arrive(pod) else { continue };
                devices += devices_wanted(&self.rehearsal.tracker, pod).max(1);
                taken.insert(position);
                placed.push(moved);
            }
            daemons
        });
        new.daemons = on_node;
        self.layer.undo_to(mark);
        let made = Made { new, placed };
        Ok((!taken.is_empty()).then_some(Trial { offer: index, made, rehearsal, taken, devices }))
    }

    /// Makes the next node of an offer, without the pods of daemon sets, and these with their claims.
    fn one_more(
        &self,
        offer: &NodeOffer<'_>,
        index: usize,
        number: usize,
    ) -> Result<(NewNode, Vec<Daemon>), OfferError> {
        let (template, price, offer_index) = (offer.template, offer.price, Index::from(index));
        let new = |node, slices| NewNode { offer: offer_index, price, node, slices, daemons: Vec::new() };
        if number == 0 {
            let daemons = offer.daemons.iter().map(|pod| (Pod::clone(pod), self.own_claims(pod)));
            return Ok((new(template.node().clone(), template.slices().to_vec()), daemons.collect()));
        }
        let (name, suffix) = (format!("{}-{number}", template.name()), number.to_string());
        let copy = NodeCopy::new(template.name(), &name, &suffix);
        let slices = copy.slices(template.slices().iter().map(|slice| &**slice), TemplateRules::default())?.slices;
        let mut node: Node = template.node().clone();
        node.metadata.name = Some(name.clone());
        if let Some(label) = node.metadata.labels.as_mut().and_then(|labels| labels.get_mut(HOSTNAME)) {
            label.clone_from(&name);
        }
        let daemons = offer.daemons.iter().map(|pod| self.daemon(pod, &copy, &suffix)).collect::<Result<_, _>>()?;
        Ok((new(node, slices.into_iter().map(Arc::new).collect()), daemons))
    }

    /// Returns the claims that were made from templates for a pod.
    fn own_claims(&self, pod: &Pod) -> Vec<ResourceClaim> {
        let own = claims_of(pod).filter(|named| named.origin == ClaimOrigin::Template).map(|named| named.claim);
        own.filter_map(|key| self.before.claim(&key.namespace, &key.name).map(|claim| ResourceClaim::clone(claim)))
            .collect()
    }

    /// Copies a pod of a daemon set with the claims that are its own.
    fn daemon(&self, pod: &Pod, copy: &NodeCopy<'_>, suffix: &str) -> Result<Daemon, ClaimCopyError> {
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
    /// Nodes are chosen one by one, by the price for a device that they serve, among all offers and among each one alone, for the
    /// largest pods first and for those of the highest priority first. Of these choices those count that leave out the fewest pods of
    /// the highest priority, and so on down, and the cheapest of them. [`MoveProof::Least`] says that counting devices proves that no
    /// nodes for the same pods are cheaper.
    ///
    /// # Errors
    /// A template is not new to the cluster, or can't be copied for a second node.
    ///
    /// # Complexity
    /// For each new node and each offer a filter call a pod, four times.
    pub fn nodes_needed<'i>(
        &self,
        inventory: impl Into<InventoryLayer<'i>>,
        tracker: &ClaimTracker,
        offers: &[NodeOffer<'_>],
        pods: &[&Pod],
    ) -> Result<NodesNeeded, OfferError> {
        let inventory = &mut inventory.into();
        let alone = (0..offers.len()).map(|offer| BTreeSet::from([offer]));
        let choices: Vec<BTreeSet<usize>> = std::iter::once((0..offers.len()).collect()).chain(alone).collect();
        let mut best: Option<Choice<'_>> = None;
        for pods in orders(tracker, pods) {
            for among in &choices {
                let mut new = NewNodes::new(self, inventory.layer(), Rehearsal::new(tracker.clone()), offers);
                let left = new.add(pods.clone(), among)?;
                let choice = Choice::new(new.nodes, left);
                if best.as_ref().is_none_or(|best| choice.key < best.key) {
                    best = Some(choice);
                }
            }
        }
        let Choice { key: (_, price), made, left } = best.unwrap_or_default();
        let mut refused = Vec::new();
        for pod in &left {
            refused.extend(self.refusal(inventory, tracker, offers, pod)?);
        }
        let is_left = |pod: &&&Pod| left.iter().any(|left| std::ptr::eq(*left, **pod));
        let placed: Vec<&Pod> = pods.iter().filter(|pod| !is_left(pod)).copied().collect();
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

/// Returns the orders in which nodes are looked for: the largest pods first, and those of the highest priority first, if that is
/// another order.
fn orders<'p>(tracker: &ClaimTracker, pods: &[&'p Pod]) -> Vec<Vec<&'p Pod>> {
    let mut by_size = pods.to_vec();
    by_size.sort_by_cached_key(|pod| Reverse(devices_wanted(tracker, pod)));
    let mut by_priority = by_size.clone();
    by_priority.sort_by_key(|pod| Reverse(priority_of(pod)));
    let is_same = by_size.iter().zip(&by_priority).all(|(left, right)| std::ptr::eq(*left, *right));
    if is_same { vec![by_size] } else { vec![by_size, by_priority] }
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
