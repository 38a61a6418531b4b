//! Memory of one scheduler about claims: seen, assumed, in flight.
//!
//! Source: `claimTracker` and the assume cache of kube-scheduler (`dra_manager.go`, `util/assumecache`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use dra_attrs::GateSet;
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceRequest, ResourceClaim};

use super::identity::PodIdentity;
use super::in_flight::{InFlight, Release};
use super::lookup::{ClaimLookup, uid_of};
use super::special_claim;
use crate::cluster::state::{AllocatedState, StateError};
use crate::cluster::trie::{Trie, hash};
use crate::config::gates::DraGate;

/// Memory of one scheduler about the claims of a cluster, and the devices that they hold.
///
/// A claim is in one or more of three states: *seen* (the watch showed it), *assumed* (an API call of this scheduler
/// returned it, and the watch has not caught up), *in flight* (devices were chosen, and nothing is written yet). The
/// devices of all three are in use, each allocation counted once: [`ClaimTracker::state`].
///
/// Nothing has to be given back by hand: a claim that is seen again replaces what was counted for it. A clone is a
/// snapshot: it costs no more than what is in flight, and a change afterwards copies what it changes.
///
/// ```
/// use dra_alloc::pods::{ClaimLookup, ClaimTracker};
/// use dra_alloc::{DeviceId, GateSet};
/// use k8s_openapi::api::resource::v1::ResourceClaim;
/// use serde_json::{from_value, json};
/// let claim: ResourceClaim = from_value(json!({"metadata": {"namespace": "ns", "name": "c", "uid": "1"},
///     "status": {"allocation": {"devices": {"results": [
///         {"request": "r", "driver": "d.example.com", "pool": "p", "device": "a"}]}}}}))?;
/// let mut tracker = ClaimTracker::new(GateSet::default());
/// tracker.observe(claim.clone())?;
/// tracker.observe(claim)?; // a watch may show an object twice
/// assert!(tracker.state().is_allocated(&DeviceId::new("d.example.com", "p", "a")));
/// tracker.observe_deleted("ns", "c");
/// assert!(tracker.claim("ns", "c").is_none());
/// assert_eq!(tracker.state(), ClaimTracker::new(GateSet::default()).state());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ClaimTracker {
    /// Claims by the hash of namespace and name.
    claims: Trie<Tracked>,
    in_flight: InFlight,
    /// Claims for extended resources, by the hash of the pod's UID.
    made_for: Trie<MadeFor>,
    /// UIDs of the claims with an allocation in flight while the API server has another one: both are counted.
    beside: BTreeSet<String>,
    state: AllocatedState,
}

/// Namespaces and names of the claims that schedulers have made for the extended resources of one pod: one, or more if
/// attempts to bind the pod were interrupted.
#[derive(Clone, Debug)]
struct MadeFor {
    /// UID of the pod.
    pod: String,
    claims: BTreeSet<[String; 2]>,
}

/// A claim in the cache.
#[derive(Clone, Debug)]
struct Tracked {
    /// The claim as the watch showed it.
    seen: Arc<ResourceClaim>,
    /// The claim as it counts: the one that was seen, or a later one that was assumed.
    current: Arc<ResourceClaim>,
}

impl ClaimTracker {
    /// Creates the memory of a scheduler with the feature gates `gates` that has seen nothing.
    #[must_use]
    pub fn new(gates: GateSet<DraGate>) -> Self {
        Self {
            claims: Trie::default(),
            made_for: Trie::default(),
            in_flight: InFlight::default(),
            beside: BTreeSet::new(),
            state: AllocatedState::new(gates),
        }
    }

    /// Returns the devices in use: of claims that are allocated, and of allocations in flight.
    #[must_use]
    pub const fn state(&self) -> &AllocatedState {
        &self.state
    }

    /// Returns all claims as they count, also those that were assumed, by namespace and name.
    ///
    /// ```
    /// use dra_alloc::pods::ClaimTracker;
    /// use dra_alloc::{DraGate, GateSet};
    /// use k8s_openapi::api::resource::v1::ResourceClaim;
    /// use serde_json::{from_value, json};
    ///
    /// let mut tracker = ClaimTracker::new(GateSet::<DraGate>::default());
    /// for name in ["two", "one"] {
    ///     tracker.observe(from_value::<ResourceClaim>(json!({"metadata": {"name": name, "uid": name}}))?)?;
    /// }
    /// let names: Vec<_> = tracker.claims().filter_map(|claim| claim.metadata.name.as_deref()).collect();
    /// assert_eq!(names, ["one", "two"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Complexity
    /// `n log n` in the number of claims.
    pub fn claims(&self) -> impl Iterator<Item = &Arc<ResourceClaim>> {
        let mut claims: Vec<&Arc<ResourceClaim>> = self.claims.iter().map(|known| &known.current).collect();
        claims.sort_unstable_by(|one, other| names_of(one).cmp(&names_of(other)));
        claims.into_iter()
    }

    /// Records a claim that the watch shows. An object that is older than the known one changes nothing; a claim with
    /// another UID replaces the one of its name.
    ///
    /// # Errors
    /// A consumed capacity of the allocation is not a quantity. The claim is known then, and holds no device.
    ///
    /// # Complexity
    /// Logarithmic in the number of claims, and for each device of the allocation in the number of devices in use.
    pub fn observe(&mut self, claim: impl Into<Arc<ResourceClaim>>) -> Result<(), StateError> {
        let claim = claim.into();
        let shown = || Tracked { seen: Arc::clone(&claim), current: Arc::clone(&claim) };
        let names = names_of(&claim);
        let mut is_new = false;
        let added = || {
            is_new = true;
            shown()
        };
        let known = self.claims.entry(hash(names), |known| names_of(&known.current) == names, added);
        if is_older(&claim, &known.current) && uid_of(&known.current) == uid_of(&claim) {
            return Ok(());
        }
        let before = std::mem::replace(known, shown()).current;
        self.index(Some(&*before).filter(|_| !is_new), Some(&claim));
        if uid_of(&before) != uid_of(&claim) {
            self.recount(&before, None)?;
        }
        self.recount(&claim, Some(&claim))
    }

    /// Records the claims of a new list of all claims. Claims that are not in it are gone, also those that this scheduler
    /// has created: the list has to be newer than the answer to that call.
    ///
    /// # Errors
    /// The first claim with a consumed capacity that is no quantity. The others are recorded.
    pub fn replace<C: Into<Arc<ResourceClaim>>>(
        &mut self,
        claims: impl IntoIterator<Item = C>,
    ) -> Result<(), StateError> {
        let claims: Vec<Arc<ResourceClaim>> = claims.into_iter().map(Into::into).collect();
        let known: Vec<Arc<ResourceClaim>> = self.claims.iter().map(|known| Arc::clone(&known.current)).collect();
        let mut gone: BTreeSet<[&str; 2]> = known.iter().map(|claim| names_of(claim)).collect();
        for claim in &claims {
            gone.remove(&names_of(claim));
        }
        for [namespace, name] in gone {
            self.observe_deleted(namespace, name);
        }
        let mut result = Ok(());
        for claim in claims {
            let observed = self.observe(claim);
            result = result.and(observed);
        }
        result
    }

    /// Records that the watch shows a claim's deletion. An allocation in flight stays until the attempt that made it ends.
    pub fn observe_deleted(&mut self, namespace: &str, name: &str) {
        let names = [namespace, name];
        let Some(gone) = self.claims.remove(hash(names), |known| names_of(&known.current) == names) else { return };
        self.index(Some(&gone.current), None);
        // Without an allocation of its own there is nothing to read, and so nothing to fail.
        let _ = self.recount(&gone.current, None);
    }

    /// Records a claim that an API call of this scheduler returned, ahead of the watch. Returns false, and changes
    /// nothing, if the claim is not known, or known in a newer version.
    ///
    /// # Errors
    /// A consumed capacity of the allocation is not a quantity. The claim is known then, and holds no device.
    pub fn assume(&mut self, claim: impl Into<Arc<ResourceClaim>>) -> Result<bool, StateError> {
        let claim = claim.into();
        let Some(known) = self.tracked_mut(names_of(&claim)) else { return Ok(false) };
        if uid_of(&known.current) != uid_of(&claim) || version(&claim) < version(&known.current) {
            return Ok(false);
        }
        known.current = Arc::clone(&claim);
        self.recount(&claim, Some(&claim)).map(|()| true)
    }

    /// Forgets what was assumed about a claim: the claim that the watch showed counts again.
    pub fn restore(&mut self, namespace: &str, name: &str) {
        let Some(known) = self.tracked_mut([namespace, name]) else { return };
        known.current = Arc::clone(&known.seen);
        let seen = Arc::clone(&known.seen);
        // What was seen has been counted before, or its error has been returned.
        let _ = self.recount(&seen, Some(&seen));
    }

    /// Returns the claim that a scheduler has made for the extended resources of a pod, the first by name of several.
    pub(super) fn made_for(&self, pod: &PodIdentity) -> Option<&Arc<ResourceClaim>> {
        let of_pod = self.made_for.find(hash(&pod.uid), |made| made.pod == pod.uid)?;
        let mut claims = of_pod.claims.iter().filter_map(|[namespace, name]| self.claim(namespace, name));
        claims.find(|claim| special_claim::is_made_for(pod, claim))
    }

    /// Keeps the index of the claims for extended resources, when a claim replaces another one or is gone.
    fn index(&mut self, before: Option<&ResourceClaim>, after: Option<&ResourceClaim>) {
        let pods = [before, after].map(|claim| claim.and_then(special_claim::pod_of));
        if pods == [None, None] || pods.iter().all(Option::is_some) && pods.first() == pods.last() {
            return;
        }
        let names = |claim: &ResourceClaim| names_of(claim).map(str::to_owned);
        if let (Some(claim), [Some(pod), _]) = (before, pods)
            && let Some(made) = self.made_for.find_mut(hash(pod), |made| made.pod == pod)
        {
            made.claims.remove(&names(claim));
            if made.claims.is_empty() {
                self.made_for.remove(hash(pod), |made| made.pod == pod);
            }
        }
        if let (Some(claim), [_, Some(pod)]) = (after, pods) {
            let make = || MadeFor { pod: pod.to_owned(), claims: BTreeSet::new() };
            self.made_for.entry(hash(pod), |made| made.pod == pod, make).claims.insert(names(claim));
        }
    }

    /// Returns the claims with an allocation in flight, each with that allocation in its status, by UID.
    pub fn in_flight(&self) -> impl Iterator<Item = &Arc<ResourceClaim>> {
        self.in_flight.claims()
    }

    /// Records that an allocation is in flight, made elsewhere than by [`super::PodCycle::reserve`]: by another profile of
    /// the scheduler, say. `claim` has the allocation in its status.
    ///
    /// # Errors
    /// A consumed capacity of the allocation is not a quantity. Nothing is recorded then.
    pub fn begin_allocation(&mut self, claim: impl Into<Arc<ResourceClaim>>) -> Result<(), StateError> {
        let claim = claim.into();
        let uid = uid_of(&claim).to_owned();
        self.add_in_flight(&uid, &claim)
    }

    pub(super) fn allocation_in_flight(&self, uid: &str) -> Option<&AllocationResult> {
        allocation_of(self.in_flight.get(uid)?)
    }

    pub(super) fn add_in_flight(&mut self, uid: &str, claim: &Arc<ResourceClaim>) -> Result<(), StateError> {
        self.in_flight.add(uid, Arc::clone(claim));
        let counted = self.recount_known(claim);
        if counted.is_err() {
            self.release(uid, Release::OneSharer);
        }
        counted
    }

    /// Ends an allocation in flight, for one pod or for all. Returns true if it is no longer in flight and was before.
    pub(super) fn release(&mut self, uid: &str, release: Release) -> bool {
        let Some(ended) = self.in_flight.release(uid, release) else { return false };
        // The cached claim has been counted before, or its error has been returned.
        let _ = self.recount_known(&ended);
        true
    }

    fn tracked(&self, names: [&str; 2]) -> Option<&Tracked> {
        self.claims.find(hash(names), |known| names_of(&known.current) == names)
    }

    fn tracked_mut(&mut self, names: [&str; 2]) -> Option<&mut Tracked> {
        self.claims.find_mut(hash(names), |known| names_of(&known.current) == names)
    }

    /// Counts the allocations of a claim anew, after a change of the allocation in flight.
    fn recount_known(&mut self, claim: &ResourceClaim) -> Result<(), StateError> {
        let cached = self.tracked(names_of(claim)).map(|known| Arc::clone(&known.current));
        let cached = cached.filter(|cached| uid_of(cached) == uid_of(claim));
        self.recount(claim, cached.as_ref())
    }

    /// Counts the allocations of a claim anew: that of the claim in the cache, and that in flight if it is another one.
    fn recount(&mut self, claim: &ResourceClaim, cached: Option<&Arc<ResourceClaim>>) -> Result<(), StateError> {
        let cached = cached.and_then(|cached| allocation_of(cached));
        let in_flight = self.in_flight.get(uid_of(claim)).and_then(|in_flight| allocation_of(in_flight));
        let other = in_flight.filter(|in_flight| cached.is_some_and(|cached| cached.devices != in_flight.devices));
        if other.is_some() {
            self.beside.insert(uid_of(claim).to_owned());
        }
        if other.is_some() || self.beside.remove(uid_of(claim)) {
            count(&mut self.state, &in_flight_beside(claim), other)?;
        }
        count(&mut self.state, claim, cached.or(in_flight))
    }
}

/// Shows the claims and what is in flight. The devices in use follow from these.
impl fmt::Debug for ClaimTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claims, in_flight, made_for: _, beside: _, state: _ } = self;
        let claims: BTreeMap<_, _> = claims.iter().map(|known| (names_of(&known.current), known)).collect();
        f.debug_struct("ClaimTracker").field("claims", &claims).field("in_flight", in_flight).finish_non_exhaustive()
    }
}

/// Counts an allocation of a claim, or that it has none. If the allocation can't be counted, the claim holds nothing.
fn count(
    state: &mut AllocatedState,
    claim: &ResourceClaim,
    allocation: Option<&AllocationResult>,
) -> Result<(), StateError> {
    let counted = allocation.map(|allocation| state.assume(claim, allocation));
    if !matches!(counted, Some(Ok(_))) {
        state.forget(claim);
    }
    counted.transpose().map(drop)
}

/// Returns the identity under which an allocation in flight is counted while the API server has another one.
fn in_flight_beside(claim: &ResourceClaim) -> ResourceClaim {
    let mut beside = ResourceClaim::default();
    beside.metadata.namespace.clone_from(&claim.metadata.namespace);
    beside.metadata.name.clone_from(&claim.metadata.name);
    beside.metadata.uid = Some(format!("{} in flight", uid_of(claim)));
    beside
}

impl ClaimLookup for ClaimTracker {
    fn claim(&self, namespace: &str, name: &str) -> Option<&Arc<ResourceClaim>> {
        Some(&self.tracked([namespace, name])?.current)
    }
}

/// Returns the requests of a claim.
pub(super) fn requests_of(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceRequest> {
    let devices = claim.spec.as_ref().and_then(|spec| spec.devices.as_ref());
    devices.into_iter().flat_map(|devices| devices.requests.iter().flatten())
}

/// Returns the allocation in a claim's status.
pub(super) fn allocation_of(claim: &ResourceClaim) -> Option<&AllocationResult> {
    claim.status.as_ref()?.allocation.as_ref()
}

/// Returns namespace and name of a claim.
fn names_of(claim: &ResourceClaim) -> [&str; 2] {
    [&claim.metadata.namespace, &claim.metadata.name].map(|text| text.as_deref().unwrap_or_default())
}

/// Returns the version of a claim as a number; versions of Kubernetes objects compare as numbers (KEP-5504). `None` if it
/// has none that is a number.
fn version(claim: &ResourceClaim) -> Option<u128> {
    claim.metadata.resource_version.as_deref()?.parse().ok()
}

/// Returns true if `claim` is known to be older than `other`.
fn is_older(claim: &ResourceClaim, other: &ResourceClaim) -> bool {
    version(claim).is_some_and(|one| version(other).is_some_and(|other| one < other))
}
