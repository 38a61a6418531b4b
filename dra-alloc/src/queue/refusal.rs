//! Refusals of a pod, as the remedies that it waits for.

use std::collections::BTreeSet;

use dra_device::claims::{ClaimKey, PodClaim};
use dra_device::internal::PodFields;
use k8s_openapi::api::core::v1::Pod;

use super::event::ClusterEvent;
use super::remedy::Remedy;
use crate::allocator::Allocator;
use crate::fit::Misfit;
use crate::pods::{BlockedError, CycleClaim, ExtendedResourceError, NodeFilterError, PodCycle, QueueHint};

/// Refusal of a pod, or of a group of pods: the remedies that it waits for.
///
/// A pod that was tried on all nodes waits for each remedy that lifts the first obstacle of one of them. An obstacle that the
/// caller has found itself, such as a taint of the node, is added by [`Refusal::add`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    remedies: BTreeSet<Remedy>,
    /// True if some node was not searched to its end: the pod comes back without an event, too.
    is_unsure: bool,
    /// UID of the pod whose requests were added last: those of its other nodes are the same.
    devices_of: Option<String>,
}

impl Refusal {
    /// Builds a refusal that waits for remedies. Without any, it waits for the time of [`QueueOptions`](super::QueueOptions)
    /// alone.
    #[must_use]
    pub fn new(remedies: impl IntoIterator<Item = Remedy>) -> Self {
        Self { remedies: remedies.into_iter().collect(), ..Self::default() }
    }

    /// Begins the refusal of a pod that no node can run, before any node is added: it waits for another node.
    #[must_use]
    pub fn of_nodes() -> Self {
        Self::new([Remedy::NodeAdded])
    }

    /// Builds the refusal of a pod whose claims keep it from every node: `PreEnqueue` or `PreFilter` has said so.
    ///
    /// ```
    /// use dra_alloc::claims::ClaimKey;
    /// use dra_alloc::pods::BlockedError;
    /// use dra_alloc::queue::{Refusal, Remedy};
    /// let claim = ClaimKey::new("ns", "c");
    /// let refusal = Refusal::blocked(&Default::default(), &BlockedError::NotFound { claim: claim.clone() });
    /// assert!(refusal.is_helped_by(&Remedy::Claim { claim }) && !refusal.is_helped_by(&Remedy::AnyDevices));
    /// ```
    ///
    /// # Complexity
    /// `n log n` in the number of the pod's claims.
    #[must_use]
    pub fn blocked(pod: &Pod, reason: &BlockedError) -> Self {
        let own = match reason {
            BlockedError::NotFound { claim } | BlockedError::InFlight { claim } => {
                return Self::new([Remedy::Claim { claim: claim.clone() }, Remedy::OwnClaims]);
            }
            BlockedError::BeingDeleted { claim } => {
                let claim = ClaimKey::new(pod.namespace(), claim);
                return Self::new([Remedy::Claim { claim }, Remedy::OwnClaims]);
            }
            BlockedError::Name(_) => return Self::new([Remedy::OwnClaims]),
            BlockedError::ClassNotFound { class, .. } => Some(Remedy::Class { name: class.clone() }),
            BlockedError::GroupNotFound { group } => Some(group_of(pod, group)),
            BlockedError::Consumer(_) => pod.group_name().map(|group| group_of(pod, group)),
            BlockedError::Requests { .. } => Some(Remedy::OwnRequests),
            _ => None,
        };
        Self::new(claims_of(pod).chain([Remedy::OwnClaims]).chain(own))
    }

    /// Adds a remedy.
    pub fn add(&mut self, remedy: Remedy) {
        self.remedies.insert(remedy);
    }

    /// Adds all that another refusal waits for, as of another pod of the group.
    pub fn add_all(&mut self, other: Self) {
        self.remedies.extend(other.remedies);
        self.is_unsure |= other.is_unsure;
    }

    /// Adds the refusal of one node. `allocator` is the one of the filter: a class whose selectors name a driver waits for
    /// devices of that driver, any other for all devices.
    ///
    /// After a search that was stopped the pod comes back by time as well.
    ///
    /// # Complexity
    /// Linear in the requests of the pod's claims, times a look-up of the class.
    pub fn add_node(&mut self, cycle: &PodCycle, allocator: &Allocator<'_>, reason: &NodeFilterError) {
        match reason {
            NodeFilterError::OutOfReach { claims } => {
                self.remedies.extend(claims.iter().map(|claim| Remedy::Claim { claim: claim.clone() }));
                self.add(Remedy::NodeLabels);
            }
            NodeFilterError::FeatureNotDeclared { claim, .. } => {
                self.remedies.extend([Remedy::Claim { claim: claim.clone() }, Remedy::NodeFeatures]);
            }
            NodeFilterError::LeftOver { claim } => self.add(Remedy::Claim { claim: claim.clone() }),
            NodeFilterError::ExtendedResource(error) => self.add_extended(error),
            NodeFilterError::CannotAllocate | NodeFilterError::Failed(_) => self.add_devices(cycle, allocator),
            // A selector may fail on a device of a driver that nobody asks for.
            NodeFilterError::Invalid(_) => {
                self.add(Remedy::AnyDevices);
                self.add_devices(cycle, allocator);
            }
            NodeFilterError::TimedOut { .. } => {
                self.is_unsure = true;
                self.add_devices(cycle, allocator);
            }
        }
    }

    /// Adds the refusal of one node for a reason apart from devices.
    ///
    /// Source: `EventsToRegister` of the plugins `NodeUnschedulable`, `TaintToleration`, `NodeAffinity`, `NodePorts` and
    /// `NodeResourcesFit`.
    ///
    /// ```
    /// use dra_alloc::fit::Misfit;
    /// use dra_alloc::queue::{Refusal, Remedy};
    /// let mut refusal = Refusal::of_nodes();
    /// refusal.add_misfit(&Misfit::Unschedulable);
    /// assert!(refusal.is_helped_by(&Remedy::NodeTaints) && !refusal.is_helped_by(&Remedy::Room));
    /// ```
    pub fn add_misfit(&mut self, misfit: &Misfit) {
        match misfit {
            Misfit::Unschedulable | Misfit::UntoleratedTaint { .. } => {
                self.remedies.extend([Remedy::NodeTaints, Remedy::OwnTolerations]);
            }
            Misfit::NotSelected => self.add(Remedy::NodeLabels),
            Misfit::PortTaken { .. } => self.add(Remedy::Room),
            Misfit::TooManyPods { .. } => self.remedies.extend([Remedy::Room, Remedy::NodeAllocatable]),
            Misfit::Insufficient { resource, .. } => {
                self.remedies.extend([Remedy::Room, Remedy::NodeAllocatable, Remedy::OwnRequests]);
                // A device class may serve it from now on.
                if resource.contains('/') {
                    self.add(Remedy::ExtendedResource { name: resource.clone() });
                }
            }
        }
    }

    /// Returns the remedies, each once, in their order.
    pub fn remedies(&self) -> impl Iterator<Item = &Remedy> {
        self.remedies.iter()
    }

    /// Returns true if a remedy is among those that the refusal waits for.
    ///
    /// # Complexity
    /// Logarithmic in the number of remedies.
    #[must_use]
    pub fn is_helped_by(&self, remedy: &Remedy) -> bool {
        let is_devices = |remedy: &Remedy| matches!(remedy, Remedy::AnyDevices | Remedy::Devices { .. });
        self.remedies.contains(remedy)
            || is_devices(remedy) && self.remedies.contains(&Remedy::AnyDevices)
            || *remedy == Remedy::AnyDevices && self.remedies.iter().any(is_devices)
    }

    /// Decides if an event can help, for a caller with a queue of its own.
    ///
    /// # Complexity
    /// Linear in the size of the event's objects.
    #[must_use]
    pub fn hint(&self, event: &ClusterEvent<'_>) -> QueueHint {
        let helps = event.remedies().iter().any(|remedy| self.is_helped_by(remedy));
        if helps { QueueHint::Queue } else { QueueHint::Skip }
    }

    /// Returns true if the pod comes back without an event.
    pub(super) const fn is_unsure(&self) -> bool {
        self.is_unsure
    }

    /// Adds everything that decides about devices on a node.
    fn add_devices(&mut self, cycle: &PodCycle, allocator: &Allocator<'_>) {
        if self.devices_of.as_ref() == Some(&cycle.pod().uid) {
            return;
        }
        self.devices_of = Some(cycle.pod().uid.clone());
        let claims = cycle.claims().iter();
        self.remedies.extend([Remedy::NodeLabels, Remedy::NodeFeatures]);
        for claim in claims.filter(|claim| !claim.is_for_extended_resources()) {
            self.add(Remedy::Claim { claim: ClaimKey::from_metadata(&claim.claim().metadata) });
            self.add_requests(claim, allocator);
        }
        for resource in cycle.extended_resource_names() {
            self.add_driver(allocator.driver_of_resource(resource));
            self.add(Remedy::ExtendedResource { name: resource.to_owned() });
            self.remedies.extend([Remedy::NodeAllocatable, Remedy::OwnRequests]);
        }
    }

    fn add_requests(&mut self, claim: &CycleClaim, allocator: &Allocator<'_>) {
        let devices = claim.claim().spec.as_ref().and_then(|spec| spec.devices.as_ref());
        for request in devices.into_iter().flat_map(|devices| devices.requests.iter().flatten()) {
            let exactly = request.exactly.iter().map(|one| (&one.device_class_name, one.selectors.as_deref()));
            let alternatives = request.first_available.iter().flatten();
            let alternatives = alternatives.map(|one| (&one.device_class_name, one.selectors.as_deref()));
            for (class, selectors) in exactly.chain(alternatives) {
                self.add_driver(allocator.pinned_driver(class, selectors.unwrap_or_default()));
                self.add(Remedy::Class { name: class.clone() });
            }
        }
    }

    fn add_driver(&mut self, driver: Option<String>) {
        self.add(driver.map_or(Remedy::AnyDevices, |driver| Remedy::Devices { driver }));
    }

    fn add_extended(&mut self, error: &ExtendedResourceError) {
        self.remedies.extend([Remedy::NodeAllocatable, Remedy::OwnRequests]);
        if let ExtendedResourceError::NoProvider { resource } = error {
            self.add(Remedy::ExtendedResource { name: resource.clone() });
        }
    }
}

fn group_of(pod: &Pod, name: &str) -> Remedy {
    Remedy::Group { namespace: pod.namespace().to_owned(), name: name.to_owned() }
}

/// Returns the claims that the pod names, or that its status names.
fn claims_of(pod: &Pod) -> impl Iterator<Item = Remedy> {
    let entries = pod.spec.as_ref().and_then(|spec| spec.resource_claims.as_deref()).unwrap_or_default();
    let named = entries.iter().filter_map(|entry| PodClaim::of_entry(pod, entry).ok().flatten());
    named.map(|claim| Remedy::Claim { claim: claim.claim })
}
