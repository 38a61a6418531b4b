//! Memory of one scheduler about claims: seen, assumed, in flight.
//!
//! Source: `claimTracker` and the assume cache of kube-scheduler (`dra_manager.go`, `util/assumecache`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use dra_attrs::Component;
use dra_device::internal::ResourceVersion;
use dra_device::{DeviceId, allocated_devices};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::counted::Counted;
use super::identity::PodIdentity;
use super::in_flight::{InFlight, Share};
use super::lookup::{ClaimLookup, allocation_of, uid_of};
use super::observed::{ClaimChange, ClaimDeletion, Observed};
use super::special_claim;
use super::turns::Turns;
use crate::cluster::state::{AllocatedState, ClaimId, DeviceUsage, StateError};
use crate::cluster::trie::{Trie, hash};

/// Memory of one scheduler about the claims of a cluster, and the devices that they hold.
///
/// A claim is in one or more of three states: *seen* (the watch showed it), *assumed* (an answer of the API server
/// showed it, and the watch has not caught up), *in flight* (devices were chosen, and nothing is known to be written yet).
/// The devices of all three are in use, each allocation counted once: [`ClaimTracker::state`].
///
/// Nothing has to be given back by hand: a claim that is seen again replaces what was counted for it, a cycle that is dropped
/// gives back what it had in flight, and the deletion of a claim ends what is in flight for its UID. Only a write that may be
/// stored or not keeps its devices: until the claim is shown in a later version, or the claim's next cycle writes the same
/// allocation once more. A clone is a snapshot: it costs no more than what is in flight, and a change afterwards copies what
/// it changes.
///
/// ```
/// use dra_attrs::Component;
/// use dra_attrs::Profile;
/// use dra_alloc::pods::{ClaimChange, ClaimDeletion, ClaimLookup, ClaimTracker};
/// use dra_alloc::{ClaimId, DeviceId, GateSet};
/// use k8s_openapi::api::resource::v1::ResourceClaim;
/// use serde_json::{from_value, json};
/// let claim: ResourceClaim = from_value(json!({"metadata": {"namespace": "ns", "name": "c", "uid": "1"},
///     "status": {"allocation": {"devices": {"results": [
///         {"request": "r", "driver": "d.example.com", "pool": "p", "device": "a"}]}}}}))?;
/// let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
/// assert_eq!(tracker.observe(claim.clone())?.change, ClaimChange::Added);
/// tracker.observe(claim.clone())?; // a watch may show an object twice
/// assert!(tracker.state().is_allocated(&DeviceId::new("d.example.com", "p", "a")));
/// assert_eq!(tracker.observe_deleted(&ClaimId::from(&claim)), ClaimDeletion::Deleted);
/// assert!(tracker.claim("ns", "c").is_none());
/// assert_eq!(tracker.state(), ClaimTracker::new(Component::of(Profile::V1_37)).state());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ClaimTracker {
    /// Claims by the hash of namespace and name.
    claims: Trie<Arc<ResourceClaim>>,
    in_flight: InFlight,
    /// Claims for extended resources, by the hash of the pod's UID.
    made_for: Trie<MadeFor>,
    /// Devices in use.
    counted: Counted,
    /// Claims that bindings write now.
    turns: Turns,
}

/// Namespaces and names of the claims that schedulers have made for the extended resources of one pod: one, or more if
/// attempts to bind the pod were interrupted.
#[derive(Clone, Debug)]
struct MadeFor {
    /// UID of the pod.
    pod: String,
    claims: BTreeSet<[String; 2]>,
}

impl ClaimTracker {
    /// Creates the memory of a scheduler that has seen nothing.
    #[must_use]
    pub fn new(scheduler: impl Into<Component>) -> Self {
        let in_flight = InFlight::default();
        let counted = Counted::new(AllocatedState::new(scheduler), in_flight.ends());
        Self { claims: Trie::default(), made_for: Trie::default(), in_flight, counted, turns: Turns::default() }
    }

    /// Returns the devices in use: of claims that are allocated, and of allocations in flight.
    ///
    /// # Complexity
    /// Constant. After cycles were dropped that had something in flight, the first call until the next change is linear in
    /// their devices.
    #[must_use]
    pub fn state(&self) -> &AllocatedState {
        self.counted.without_ended(&self.in_flight, |held, claim| {
            // What is given back needs no reading, and what stays has been counted before.
            let _ = held.count(claim, self.same(claim).map(|known| &**known), None);
        })
    }

    /// Returns all claims as they count, also those that were assumed, by namespace and name.
    ///
    /// ```
    /// use dra_attrs::Component;
    /// use dra_attrs::Profile;
    /// use dra_alloc::pods::ClaimTracker;
    /// use dra_alloc::{Gate, GateSet};
    /// use k8s_openapi::api::resource::v1::ResourceClaim;
    /// use serde_json::{from_value, json};
    ///
    /// let mut tracker = ClaimTracker::new(Component::of(Profile::V1_37));
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
        let mut claims: Vec<&Arc<ResourceClaim>> = self.claims.iter().collect();
        claims.sort_unstable_by(|one, other| names_of(one).cmp(&names_of(other)));
        claims.into_iter()
    }

    /// Records a claim that the watch shows, and tells what is new. An object that is older than the known one changes
    /// nothing, whatever its UID: the watch is behind an answer or a list. A newer one with another UID replaces the one of
    /// its name. Where versions can go back, as after a restore of the API server's store, take a new list without a version.
    ///
    /// # Errors
    /// A consumed capacity of the allocation is not a quantity. The claim is known then, and holds no device.
    ///
    /// # Complexity
    /// Logarithmic in the number of claims, and for each device of the allocation in the number of devices in use.
    pub fn observe(&mut self, claim: impl Into<Arc<ResourceClaim>>) -> Result<Observed, StateError> {
        self.show(&claim.into())
    }

    /// Records the claims of a new list of all claims. A claim that is not in it is gone, unless it is known in a version after
    /// `version`, the `resourceVersion` of the list: an older list takes nothing away. Without a version, every claim that
    /// is not in the list is gone, also one that this scheduler has created: such a list has to be newer than the answer to
    /// that call. A cycle keeps what it has in flight for a claim that is gone, until it ends: its next write will tell it.
    ///
    /// # Errors
    /// The first claim with a consumed capacity that is no quantity. The others are recorded.
    pub fn replace<C: Into<Arc<ResourceClaim>>>(
        &mut self,
        claims: impl IntoIterator<Item = C>,
        version: Option<&str>,
    ) -> Result<(), StateError> {
        self.give_back_ended();
        let listed = ResourceVersion::parse(version);
        let is_later = |claim: &ResourceClaim| ResourceVersion::of(&claim.metadata).is_newer_than(listed);
        let claims: Vec<Arc<ResourceClaim>> = claims.into_iter().map(Into::into).collect();
        let known: Vec<Arc<ResourceClaim>> = self.claims.iter().map(Arc::clone).collect();
        let mut gone: BTreeSet<ClaimId> =
            known.iter().filter(|claim| !is_later(claim)).map(|claim| ClaimId::from(&**claim)).collect();
        for claim in &claims {
            gone.remove(&ClaimId::from(&**claim));
        }
        for id in gone {
            let ended = self.in_flight.end_but_cycles(&id.uid);
            self.remove(&id, ended);
        }
        let mut result = Ok(());
        for claim in claims {
            let observed = self.show(&claim);
            if result.is_ok() {
                result = observed.map(drop);
            }
        }
        result
    }

    /// Records the deletion of a claim, by the watch or by the answer to a call, and tells if it was known. Another claim of the
    /// same name stays. What is in flight for the UID has ended.
    ///
    /// # Complexity
    /// That of [`ClaimTracker::observe`].
    pub fn observe_deleted(&mut self, claim: &ClaimId) -> ClaimDeletion {
        self.give_back_ended();
        let ended = self.in_flight.end(&claim.uid);
        self.remove(claim, ended)
    }

    /// Forgets a claim. `ended` is the claim if its allocation in flight has ended.
    fn remove(&mut self, claim: &ClaimId, ended: Option<Arc<ResourceClaim>>) -> ClaimDeletion {
        let names = [claim.namespace.as_str(), &claim.name];
        let uid = self.tracked(names).map(|known| uid_of(known) == claim.uid);
        let gone =
            if uid == Some(true) { self.claims.remove(hash(names), |known| names_of(known) == names) } else { None };
        if let Some(gone) = &gone {
            self.index(Some(gone), None);
        }
        if let Some(claim) = gone.or(ended) {
            // Without an allocation of its own there is nothing to read, and so nothing to fail.
            let _ = self.recount(&claim);
        }
        match uid {
            Some(true) => ClaimDeletion::Deleted,
            Some(false) => ClaimDeletion::OtherUid,
            None => ClaimDeletion::Unknown,
        }
    }

    /// Records a claim that an answer of the API server shows, ahead of the watch. Returns false, and changes nothing, if
    /// the claim is not known, or known in a newer version. A claim of the same name with another UID and a later version
    /// replaces the known one, which is gone.
    ///
    /// # Errors
    /// A consumed capacity of the allocation is not a quantity. The claim is known then, and holds no device.
    pub fn assume(&mut self, claim: impl Into<Arc<ResourceClaim>>) -> Result<bool, StateError> {
        self.give_back_ended();
        let claim = claim.into();
        let Some(known) = self.tracked(names_of(&claim)) else { return Ok(false) };
        let (version, before) = (ResourceVersion::of(&claim.metadata), ResourceVersion::of(&known.metadata));
        let is_same = uid_of(known) == uid_of(&claim);
        if if is_same { version.is_older_than(before) } else { !version.is_newer_than(before) } {
            return Ok(false);
        }
        self.put(&claim).map(|_| true)
    }

    /// Records a claim that a call of this scheduler has created, ahead of the watch.
    pub(super) fn assume_created(&mut self, claim: &Arc<ResourceClaim>) {
        self.give_back_ended();
        // The claim has no allocation yet, so that there is nothing to count.
        let _ = self.put(claim);
    }

    /// Records a claim that the API server has, unless the known one of its name is newer.
    fn show(&mut self, claim: &Arc<ResourceClaim>) -> Result<Observed, StateError> {
        self.give_back_ended();
        let version = ResourceVersion::of(&claim.metadata);
        let known = self.tracked(names_of(claim));
        if known.is_some_and(|known| version.is_older_than(ResourceVersion::of(&known.metadata))) {
            return Ok(Observed::older());
        }
        let change = self.put(claim)?;
        Ok(Observed { change, held_twice: self.held_twice(claim) })
    }

    /// Puts a claim in the place of the one of its name, and counts its devices.
    fn put(&mut self, claim: &Arc<ResourceClaim>) -> Result<ClaimChange, StateError> {
        let names = names_of(claim);
        let mut is_new = false;
        let known = self.claims.entry(
            hash(names),
            |known| names_of(known) == names,
            || {
                is_new = true;
                Arc::clone(claim)
            },
        );
        let before = std::mem::replace(known, Arc::clone(claim));
        let is_same = uid_of(&before) == uid_of(claim);
        self.index(Some(&*before).filter(|_| !is_new), Some(claim));
        self.in_flight.show(uid_of(claim), claim);
        if !is_same {
            self.in_flight.end(uid_of(&before));
            self.recount(&before)?;
        }
        self.recount(claim)?;
        Ok(match (is_new, is_same) {
            (true, _) => ClaimChange::Added,
            (false, true) => ClaimChange::Changed,
            (false, false) => ClaimChange::Replaced,
        })
    }

    /// Returns the devices of a claim that another claim holds as well.
    fn held_twice(&self, claim: &ResourceClaim) -> Vec<DeviceId> {
        let devices = allocated_devices(claim).iter();
        let ids = devices.map(|result| DeviceId::new(&result.driver, &result.pool, &result.device));
        let is_twice = |device: &DeviceId| self.counted.state().device(device).is_some_and(DeviceUsage::is_held_twice);
        ids.filter(is_twice).collect()
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
    /// the scheduler, say. `claim` has the allocation in its status. It ends with [`ClaimTracker::end_allocation`], when the claim is
    /// shown with this allocation, or when it is deleted.
    ///
    /// # Errors
    /// A consumed capacity of the allocation is not a quantity. Nothing is recorded then.
    pub fn begin_allocation(&mut self, claim: impl Into<Arc<ResourceClaim>>) -> Result<(), StateError> {
        self.give_back_ended();
        let claim = claim.into();
        self.in_flight.add_elsewhere(uid_of(&claim), &claim);
        self.recount(&claim).inspect_err(|_| self.end_allocation(uid_of(&claim)))
    }

    /// Ends an allocation that [`ClaimTracker::begin_allocation`] has begun, or one that is in doubt since nobody knows if its
    /// write was stored, by the UID of its claim. Of an allocation that cycles have in flight it ends no more than that.
    /// Nothing happens if there is none.
    pub fn end_allocation(&mut self, uid: &str) {
        self.give_back_ended();
        self.end_write(uid);
        if let Some(ended) = self.in_flight.end_elsewhere(uid) {
            self.recount_known(&ended);
        }
    }

    pub(super) fn allocation_in_flight(&self, uid: &str) -> Option<&AllocationResult> {
        allocation_of(self.in_flight.get(uid)?)
    }

    /// Returns the claims with an allocation that may be stored or not, and that no cycle has in flight.
    pub(super) fn in_doubt(&self) -> impl Iterator<Item = &Arc<ResourceClaim>> {
        self.in_flight.in_doubt()
    }

    /// Returns the allocation of a claim that may be stored or not, and that no cycle has in flight.
    pub(super) fn allocation_in_doubt(&self, uid: &str) -> Option<&AllocationResult> {
        self.in_flight.doubtful(uid)
    }

    /// Adds an allocation in flight, for one cycle.
    pub(super) fn add_in_flight(&mut self, uid: &str, claim: &Arc<ResourceClaim>) -> Result<Share, StateError> {
        self.give_back_ended();
        let share = self.in_flight.add(uid, claim);
        match self.recount(claim) {
            Ok(()) => Ok(share),
            Err(error) => {
                self.release(uid, &share);
                Err(error)
            }
        }
    }

    /// Ends one cycle's share of an allocation in flight.
    pub(super) fn release(&mut self, uid: &str, share: &Share) {
        self.give_back_ended();
        if let Some(ended) = self.in_flight.release(uid, share) {
            self.recount_known(&ended);
        }
    }

    /// Ends an allocation in flight for all cycles: it is stored, and counted as such.
    pub(super) fn end_stored(&mut self, uid: &str) {
        self.give_back_ended();
        if let Some(ended) = self.in_flight.end(uid) {
            self.recount_known(&ended);
        }
    }

    /// Notes that the allocation in flight for a claim is being written, from this version of the claim: it may be stored from
    /// now on.
    pub(super) fn begin_write(&mut self, claim: &ResourceClaim) {
        self.in_flight.begin_write(uid_of(claim), ResourceVersion::of(&claim.metadata));
    }

    /// Notes that the answer to the write of the allocation in flight for a claim was lost.
    pub(super) fn lose_write(&mut self, uid: &str) {
        self.in_flight.lose_write(uid);
    }

    /// Notes that the server has refused the write of the allocation in flight for a claim. It stays in doubt if the answer to
    /// another write from the same version was lost.
    pub(super) fn refuse_write(&mut self, uid: &str) {
        if let Some(ended) = self.in_flight.refuse_write(uid) {
            self.recount_known(&ended);
        }
    }

    /// Notes that the write of the allocation in flight for a claim was not stored, and will not be.
    pub(super) fn end_write(&mut self, uid: &str) {
        if let Some(ended) = self.in_flight.end_write(uid) {
            self.recount_known(&ended);
        }
    }

    /// Returns the claims that bindings write now.
    pub(super) const fn turns(&mut self) -> &mut Turns {
        &mut self.turns
    }

    fn tracked(&self, names: [&str; 2]) -> Option<&Arc<ResourceClaim>> {
        self.claims.find(hash(names), |known| names_of(known) == names)
    }

    /// Returns the known claim with name and UID of a claim.
    fn same(&self, claim: &ResourceClaim) -> Option<&Arc<ResourceClaim>> {
        self.tracked(names_of(claim)).filter(|known| uid_of(known) == uid_of(claim))
    }

    /// Gives back what dropped cycles had in flight.
    fn give_back_ended(&mut self) {
        let ends = self.in_flight.ends();
        if !self.counted.forget_later(ends) {
            return;
        }
        for ended in self.in_flight.take_ended() {
            self.recount_known(&ended);
        }
    }

    /// Counts the allocations of a claim anew that can be counted: nothing was added.
    fn recount_known(&mut self, claim: &ResourceClaim) {
        // The known claim has been counted before, or its error has been returned.
        let _ = self.recount(claim);
    }

    /// Counts the allocations of a claim anew: that of the claim in the cache, and that in flight if it is another one.
    fn recount(&mut self, claim: &ResourceClaim) -> Result<(), StateError> {
        let names = names_of(claim);
        let known = self.claims.find(hash(names), |known| names_of(known) == names);
        let cached = known.filter(|known| uid_of(known) == uid_of(claim));
        let in_flight = self.in_flight.get(uid_of(claim));
        self.counted.held_mut().count(claim, cached.map(|claim| &**claim), in_flight.map(|claim| &**claim))
    }
}

/// Shows the claims and what is in flight. The devices in use follow from these.
impl fmt::Debug for ClaimTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { claims, in_flight, made_for: _, counted: _, turns: _ } = self;
        let claims: BTreeMap<_, _> = claims.iter().map(|known| (names_of(known), known)).collect();
        f.debug_struct("ClaimTracker").field("claims", &claims).field("in_flight", in_flight).finish_non_exhaustive()
    }
}

impl ClaimLookup for ClaimTracker {
    fn claim(&self, namespace: &str, name: &str) -> Option<&Arc<ResourceClaim>> {
        self.tracked([namespace, name])
    }
}

/// Returns namespace and name of a claim.
fn names_of(claim: &ResourceClaim) -> [&str; 2] {
    [&claim.metadata.namespace, &claim.metadata.name].map(|text| text.as_deref().unwrap_or_default())
}
