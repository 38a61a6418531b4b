//! One question: the members with their claims, and the work so far.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use smallvec::SmallVec;

use super::gang::PreemptingGang;
use super::halt::PreemptionError;
use super::member::Members;
use super::occupant::Occupant;
use super::question::Preemption;
use super::view::names_of;
use super::work::Work;
use crate::allocator::Attempt;
use crate::search::budget::Budget;

/// Claims of members by their positions, sorted.
pub(super) type ClaimSet = SmallVec<[usize; 4]>;

/// Pods that ask for room, with their claims, and the work so far.
pub(super) struct Asked<'q> {
    pub(super) rules: &'q Preemption<'q>,
    pub(super) members: Members<'q>,
    /// Number of members that have to fit.
    pub(super) quorum: usize,
    /// Pods of lower priority may go.
    pub(super) priority: i32,
    /// True if several members use one claim.
    pub(super) shares_claims: bool,
    attempts: RefCell<BTreeMap<ClaimSet, Rc<Attempt<'q>>>>,
    pub(super) work: Work<'q>,
}

impl<'q> Asked<'q> {
    /// Asks for one pod.
    pub(super) fn of_pod(rules: &'q Preemption<'q>, pod: &'q Pod, budget: Budget<'q>) -> Result<Self, PreemptionError> {
        let members = Members::new(rules, std::iter::once((pod, None)))?;
        Ok(Self::new(rules, members, 1, Occupant::new(pod).priority, budget))
    }

    /// Asks for a gang.
    pub(super) fn of_gang(
        rules: &'q Preemption<'q>,
        gang: &'q PreemptingGang<'q>,
        budget: Budget<'q>,
    ) -> Result<Self, PreemptionError> {
        let pods = gang.members().iter().map(|member| (member.pod, member.nodes.as_ref()));
        let members = Members::new(rules, pods)?;
        Ok(Self::new(rules, members, gang.quorum(), gang.priority(), budget))
    }

    fn new(rules: &'q Preemption<'q>, members: Members<'q>, quorum: usize, priority: i32, budget: Budget<'q>) -> Self {
        let shares_claims = members.share_claims();
        let (attempts, work) = (RefCell::default(), Work::new(budget));
        Self { rules, members, quorum, priority, shares_claims, attempts, work }
    }

    /// Returns true if the caller checks nodes by what has nothing to do with claims.
    pub(super) const fn is_checked(&self) -> bool {
        self.rules.fit.is_some()
    }

    /// Returns the claims of the members.
    pub(super) fn own(&self) -> &[&'q ResourceClaim] {
        &self.members.claims
    }

    /// Returns true for a claim of a member.
    pub(super) fn is_own(&self, claim: &ResourceClaim) -> bool {
        self.own().iter().any(|own| names_of(own) == names_of(claim))
    }

    /// Returns true for a pod that asks for room itself.
    pub(super) fn is_preemptor(&self, other: &Occupant<'_>) -> bool {
        self.members.all.iter().any(|member| {
            other.name() == member.occupant.name() && other.pod.metadata.uid == member.occupant.pod.metadata.uid
        })
    }

    /// Returns the number of devices that the members need at least, of those that can't be shared.
    pub(super) fn wanted_devices(&self) -> usize {
        self.members.wanted_devices(self.quorum)
    }

    /// Returns the attempt to allocate some claims together on one node.
    pub(super) fn attempt(&self, claims: &ClaimSet) -> Rc<Attempt<'q>> {
        if let Some(known) = self.attempts.borrow().get(claims) {
            return Rc::clone(known);
        }
        let objects = claims.iter().filter_map(|claim| self.own().get(*claim)).copied();
        let attempt = Rc::new(self.rules.allocator.attempt(self.rules.state, objects));
        self.attempts.borrow_mut().insert(claims.clone(), Rc::clone(&attempt));
        attempt
    }
}
