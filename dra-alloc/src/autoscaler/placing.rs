//! Pods that a question places one after the other.

use std::collections::{BTreeMap, BTreeSet};

use dra_device::claims::ClaimKey;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;

use crate::pods::{
    ClaimFullError, ClaimTracker, Consumer, GangPlacement, GangSearch, GroupRound, KnownRefusals, Member, MemberError,
    PodCycle,
};

/// Reason why a question has no place for a pod.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// A scheduler would not place the pod either.
    #[error(transparent)]
    Unschedulable(#[from] MemberError),
    /// A claim of the pod would have more consumers than a claim may have.
    #[error("claim {claim}: {full}")]
    ClaimFull {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Number of consumers.
        #[source]
        full: ClaimFullError,
    },
    /// A selector or constraint of a claim, or a selector of one of its classes, depends on an attribute whose value is
    /// not known before the node exists.
    #[error("claim {claim} depends on attribute {attribute}, whose value is not known before the node exists")]
    UnknownInClaim {
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// The attribute, as `domain/name`.
        attribute: String,
    },
    /// A selector of the class that provides an extended resource depends on such an attribute.
    #[error("resource {resource} depends on attribute {attribute}, whose value is not known before the node exists")]
    UnknownInClass {
        /// Name of the extended resource.
        resource: String,
        /// The attribute, as `domain/name`.
        attribute: String,
    },
    /// The pod does not wait for a node.
    #[error("the pod is on node {node} already")]
    OnNode {
        /// Name of the node.
        node: String,
    },
}

/// Pods placed so far, in a snapshot of the tracker. What one of them has allocated, the next one may share.
pub(super) struct Placing {
    pub(super) tracker: ClaimTracker,
    pub(super) placed: Vec<GangPlacement>,
    round: GroupRound,
    known: KnownRefusals,
    /// UIDs of the consumers that claims get beside those that they have.
    consumers: BTreeMap<ClaimKey, BTreeSet<String>>,
}

impl Placing {
    /// Begins with a number of nodes to which all searches are.
    pub(super) fn new(tracker: ClaimTracker, nodes: usize) -> Self {
        let (round, known) = (GroupRound::of_group(), KnownRefusals::new(nodes));
        Self { tracker, placed: Vec::new(), round, known, consumers: BTreeMap::new() }
    }

    pub(super) fn place(
        &mut self,
        search: &GangSearch<'_>,
        pod: &Pod,
        group: Option<&PodGroup>,
    ) -> Result<(), PlacementError> {
        self.place_among(search, pod, group, None)
    }

    /// Places a pod on one of some nodes, by their positions.
    pub(super) fn place_among(
        &mut self,
        search: &GangSearch<'_>,
        pod: &Pod,
        group: Option<&PodGroup>,
        among: Option<&[usize]>,
    ) -> Result<(), PlacementError> {
        let member = Member { pod, group, placed: &self.placed, gone: &[], among };
        let mut placement = search.place_member(&member, &mut self.tracker, &mut self.round, Some(&mut self.known))?;
        let new = placement.cycle.as_ref().map_or_else(|| Ok(Vec::new()), |cycle| self.new_consumers(cycle));
        match new {
            Ok(new) => new.into_iter().for_each(|(claim, consumer)| {
                self.consumers.entry(claim).or_default().insert(consumer);
            }),
            Err(full) => {
                placement.take_back(&mut self.tracker);
                return Err(full);
            }
        }
        self.placed.push(placement);
        Ok(())
    }

    /// Returns the consumers that the claims of a pod do not have yet, if there is room for them.
    fn new_consumers(&self, cycle: &PodCycle) -> Result<Vec<(ClaimKey, String)>, PlacementError> {
        let mut new = Vec::new();
        for claim in cycle.claims().iter().filter(|claim| !claim.is_for_extended_resources()) {
            let (key, consumer) = (ClaimKey::from_metadata(&claim.claim().metadata), claim.consumer().uid());
            let stored = claim.claim().status.iter().flat_map(|status| status.reserved_for.iter().flatten());
            let mut consumers: BTreeSet<&str> = stored.map(|stored| stored.uid.as_str()).collect();
            consumers.extend(self.consumers.get(&key).into_iter().flatten().map(String::as_str));
            if consumers.contains(consumer) {
                continue;
            }
            if consumers.len() >= Consumer::MAX_PER_CLAIM {
                return Err(PlacementError::ClaimFull {
                    claim: key,
                    full: ClaimFullError { consumers: consumers.len() },
                });
            }
            new.push((key, consumer.to_owned()));
        }
        Ok(new)
    }
}
