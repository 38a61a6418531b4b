//! Members: the pods for which room is made, one alone or those of a gang.

use std::collections::{BTreeMap, BTreeSet};

use dra_device::claims::PodClaim;
use dra_device::internal::extended_claim;
use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimSpec};
use smallvec::SmallVec;

use super::halt::PreemptionError;
use super::occupant::Occupant;
use super::pending_claim::{is_allocated, least_devices};
use super::question::Preemption;
use super::view::node_name;
use crate::pods::{PodIdentity, PodOptions};

/// A pod for which room is made.
pub(super) struct Member<'q> {
    pub(super) occupant: Occupant<'q>,
    pub(super) identity: PodIdentity,
    /// Claims of the pod by their positions among those of all members, in the order of its entries.
    pub(super) claims: SmallVec<[usize; 2]>,
    /// Names of the nodes that the pod may use; `None` for all.
    nodes: Option<&'q BTreeSet<&'q str>>,
}

/// Members with their claims.
pub(super) struct Members<'q> {
    /// Members by importance.
    pub(super) all: Vec<Member<'q>>,
    /// Claims of all members, each once.
    pub(super) claims: Vec<&'q ResourceClaim>,
    /// Positions of the members in the order in which they get nodes: those that are alike side by side, the most last.
    pub(super) order: Vec<usize>,
    /// Kind of each member of that order. Members of one kind can stand in for each other.
    pub(super) kinds: Vec<usize>,
}

impl Member<'_> {
    pub(super) fn may_use(&self, node: &Node) -> bool {
        self.nodes.is_none_or(|nodes| nodes.contains(node_name(node)))
    }
}

impl<'q> Members<'q> {
    /// Reads pods with their claims, and with the nodes that each may use.
    pub(super) fn new(
        rules: &'q Preemption<'q>,
        pods: impl Iterator<Item = (&'q Pod, Option<&'q BTreeSet<&'q str>>)>,
    ) -> Result<Self, PreemptionError> {
        let mut members = Self { all: Vec::new(), claims: Vec::new(), order: Vec::new(), kinds: Vec::new() };
        let mut pods: Vec<_> = pods.map(|(pod, nodes)| (Occupant::new(pod), nodes)).collect();
        pods.sort_by_cached_key(|(pod, _)| pod.importance());
        let mut known = BTreeMap::new();
        for (occupant, nodes) in pods {
            let identity = PodIdentity::new(occupant.pod, PodOptions::new(rules.allocator.scheduler()));
            let mut claims = SmallVec::new();
            for claim in own_claims(rules, occupant.pod)? {
                let position = *known.entry(std::ptr::from_ref(claim)).or_insert(members.claims.len());
                if position == members.claims.len() {
                    members.claims.push(claim);
                }
                claims.push(position);
            }
            members.all.push(Member { occupant, identity, claims, nodes });
        }
        members.arrange(rules);
        Ok(members)
    }

    /// Puts members that are alike side by side.
    fn arrange(&mut self, rules: &Preemption<'_>) {
        if let [_] = self.all.as_slice() {
            (self.order, self.kinds) = (vec![0], vec![0]);
            return;
        }
        let shared = self.shared();
        let mut kinds: Vec<(Option<Likeness<'_>>, Vec<usize>)> = Vec::new();
        for (position, member) in self.all.iter().enumerate() {
            let likeness = Likeness::new(member, &self.claims, &shared, rules);
            match kinds.iter_mut().find(|(kind, _)| likeness.is_some() && *kind == likeness) {
                Some((_, members)) => members.push(position),
                None => kinds.push((likeness, vec![position])),
            }
        }
        kinds.sort_by_key(|(_, members)| members.len());
        let arranged = kinds
            .into_iter()
            .enumerate()
            .flat_map(|(kind, (_, members))| members.into_iter().map(move |member| (member, kind)));
        (self.order, self.kinds) = arranged.unzip();
    }

    /// Returns the claims that several members use.
    fn shared(&self) -> BTreeSet<usize> {
        let mut used = BTreeSet::new();
        let claims = self.all.iter().flat_map(|member| member.claims.iter().copied());
        claims.filter(|claim| !used.insert(*claim)).collect()
    }

    /// Returns true if several members use one claim.
    pub(super) fn share_claims(&self) -> bool {
        self.all.len() > 1 && !self.shared().is_empty()
    }

    /// Returns the number of devices that a number of members need at least, of those that can't be shared.
    pub(super) fn wanted_devices(&self, quorum: usize) -> usize {
        if quorum >= self.all.len() {
            return self.claims.iter().map(|claim| least_devices(claim)).fold(0, usize::saturating_add);
        }
        let shared = self.shared();
        let of_member = |member: &Member<'_>| {
            let own = member.claims.iter().filter(|claim| !shared.contains(claim));
            let own = own.filter_map(|claim| self.claims.get(*claim));
            own.map(|claim| least_devices(claim)).fold(0, usize::saturating_add)
        };
        let mut wanted: Vec<usize> = self.all.iter().map(of_member).collect();
        wanted.sort_unstable();
        wanted.into_iter().take(quorum).fold(0, usize::saturating_add)
    }
}

/// Properties that members have in common if they can stand in for each other.
#[derive(PartialEq)]
struct Likeness<'m> {
    claims: Vec<Option<&'m ResourceClaimSpec>>,
    nodes: Option<&'m BTreeSet<&'m str>>,
    /// All that the caller's check of nodes may look at; `None` if there is none.
    seen: Option<Seen<'m>>,
}

/// Labels and spec of a pod.
type Seen<'m> = (Option<&'m BTreeMap<String, String>>, Box<PodSpec>);

impl<'m> Likeness<'m> {
    /// Reads a member; `None` for one that none can stand in for, since its claims are allocated already, or used by others.
    fn new(
        member: &'m Member<'_>,
        claims: &[&'m ResourceClaim],
        shared: &BTreeSet<usize>,
        rules: &Preemption<'_>,
    ) -> Option<Self> {
        let own = member.claims.iter().filter_map(|claim| claims.get(*claim));
        if member.claims.iter().any(|claim| shared.contains(claim)) || own.clone().any(|claim| is_allocated(claim)) {
            return None;
        }
        let pod = member.occupant.pod;
        let seen = rules.fit.map(|_| {
            let spec = pod.spec.clone().unwrap_or_default();
            (pod.metadata.labels.as_ref(), Box::new(PodSpec { resource_claims: None, ..spec }))
        });
        Some(Self { claims: own.map(|claim| claim.spec.as_ref()).collect(), nodes: member.nodes, seen })
    }
}

/// Returns the claims of a pod, each once, in the order of its entries. That for extended resources comes last.
fn own_claims<'q>(rules: &'q Preemption<'q>, pod: &Pod) -> Result<Vec<&'q ResourceClaim>, PreemptionError> {
    let entries = pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten());
    let named = entries.map(|entry| PodClaim::of_entry(pod, entry)).filter_map(Result::transpose);
    let mut own: Vec<&ResourceClaim> = Vec::new();
    for named in named.chain(extended_claim(pod).map(Ok)) {
        let key = named?.claim;
        let claim = rules.view.claim(&key).ok_or(PreemptionError::ClaimNotFound { claim: key })?;
        if !own.iter().any(|other| std::ptr::eq(*other, claim)) {
            own.push(claim);
        }
    }
    Ok(own)
}
