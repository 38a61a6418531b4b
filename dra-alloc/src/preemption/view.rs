//! Objects of a cluster as preemption reads them, indexed once for all nodes.

use std::sync::OnceLock;

use dra_device::claims::{ClaimKey, PodClaim};
use dra_device::internal::{PodFields, extended_claim, of_allocation};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;

use super::disruption::DisruptionBudgets;
use super::held_claim::{HeldClaim, User};
use super::occupant::{InMemoryStage, Occupant, Place};
use crate::cluster::trie::hash;

/// Table that is looked up and never listed.
type Table<K, V> = HashMap<K, V, FixedState>;

/// Objects of a cluster, indexed once for any number of preemptions.
///
/// The objects are borrowed. Their order does not matter: answers are sorted by importance and by name.
#[derive(Debug, Default)]
pub struct PreemptionView<'c> {
    /// Nodes, sorted by name.
    nodes: Vec<&'c Node>,
    pods: Vec<Occupant<'c>>,
    claims: Vec<HeldClaim<'c>>,
    budgets: DisruptionBudgets<'c>,
    pod_of_uid: Table<&'c str, usize>,
    pods_on: Table<&'c str, Vec<usize>>,
    nominated: Table<&'c str, Vec<usize>>,
    members: Table<[&'c str; 2], Vec<usize>>,
    /// Namespaces and names of pod groups, by UID.
    groups: Table<&'c str, [&'c str; 2]>,
    /// All claims by namespace and name.
    claim_of_name: Table<[&'c str; 2], &'c ResourceClaim>,
    /// Allocated claims by namespace and name.
    held_of_name: Table<[&'c str; 2], usize>,
    /// Positions of the claims that earlier preemptions free.
    releasing: Vec<usize>,
    /// Allocated claims by the hash of driver and pool of their devices, listed when they are first asked for.
    claims_in_pool: OnceLock<Table<u64, Vec<usize>>>,
}

/// A place that a pod holds in the scheduler's memory, before it is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a caller says each of them")]
pub struct InMemoryPlace<'c> {
    /// UID of the pod.
    pub uid: &'c str,
    /// Name of the node.
    pub node: &'c str,
    /// Stage of the pod.
    pub stage: InMemoryStage,
}

impl<'c> PreemptionView<'c> {
    /// Indexes the nodes, pods and claims of a cluster: all of them, also claims of pods that wait, and pods that are done.
    ///
    /// A claim that is allocated in the scheduler's memory, and not yet on the API server, counts with that allocation.
    ///
    /// # Complexity
    /// Linear in the number of pods, claims and consumers, `n log n` in the number of nodes.
    pub fn new(
        nodes: impl IntoIterator<Item = &'c Node>,
        pods: impl IntoIterator<Item = &'c Pod>,
        claims: impl IntoIterator<Item = &'c ResourceClaim>,
    ) -> Self {
        let mut view = Self { nodes: nodes.into_iter().collect(), ..Self::default() };
        view.nodes.sort_by_key(|node| node_name(node));
        view.pods = pods.into_iter().map(Occupant::new).collect();
        view.pod_of_uid.reserve(view.pods.len());
        for (position, occupant) in view.pods.iter().enumerate() {
            view.pod_of_uid.insert(occupant.pod.uid(), position);
            match occupant.place {
                Place::On(node) => view.pods_on.entry(node).or_default().push(position),
                Place::Nominated(node) => view.nominated.entry(node).or_default().push(position),
                Place::Nowhere => {}
            }
            if let Some(group) = occupant.group() {
                view.members.entry(group).or_default().push(position);
            }
        }
        view.add_claims(claims);
        view.add_names();
        view
    }

    /// Adds the disruption budgets of the cluster.
    #[must_use]
    pub fn with_budgets(self, budgets: impl IntoIterator<Item = &'c PodDisruptionBudget>) -> Self {
        Self { budgets: DisruptionBudgets::new(budgets), ..self }
    }

    /// Adds the pod groups of the cluster, for which claims may be reserved (KEP-5729).
    ///
    /// # Complexity
    /// Linear in the number of claims and their consumers, and in the pods of groups that have claims.
    #[must_use]
    pub fn with_groups(mut self, groups: impl IntoIterator<Item = &'c PodGroup>) -> Self {
        for group in groups {
            let texts = [&group.metadata.uid, &group.metadata.namespace, &group.metadata.name];
            let [uid, namespace, name] = texts.map(|text| text.as_deref().unwrap_or_default());
            self.groups.insert(uid, [namespace, name]);
        }
        for (position, held) in self.claims.iter().enumerate() {
            for user in &held.users {
                let User::Group(uid) = user else { continue };
                let members = self.groups.get(uid).and_then(|group| self.members.get(group)).into_iter().flatten();
                for member in members {
                    if let Some(occupant) = self.pods.get_mut(*member).filter(|pod| !pod.claims.contains(&position)) {
                        occupant.claims.push(position);
                    }
                }
            }
        }
        self
    }

    /// Adds the places that pods hold in the scheduler's memory. Places of pods that are not known do not count.
    #[must_use]
    pub fn with_in_memory(mut self, places: impl IntoIterator<Item = InMemoryPlace<'c>>) -> Self {
        for InMemoryPlace { uid, node, stage } in places {
            let Some(position) = self.pod_of_uid.get(uid).copied() else { continue };
            let Some(occupant) = self.pods.get_mut(position) else { continue };
            if let Place::Nominated(node) = occupant.place
                && let Some(listed) = self.nominated.get_mut(node)
            {
                listed.retain(|other| *other != position);
            }
            if occupant.node().is_none() {
                self.pods_on.entry(node).or_default().push(position);
            }
            (occupant.place, occupant.stage) = (Place::On(node), Some(stage));
        }
        self
    }

    /// Adds the claims that earlier preemptions free and that are still allocated.
    #[must_use]
    pub fn with_releasing<'k>(mut self, claims: impl IntoIterator<Item = &'k ClaimKey>) -> Self {
        for ClaimKey { namespace, name } in claims {
            self.releasing.extend(self.held_of_name.get(&[namespace.as_str(), name.as_str()]));
        }
        self
    }

    fn add_claims(&mut self, claims: impl IntoIterator<Item = &'c ResourceClaim>) {
        for claim in claims {
            let name = names_of(claim);
            self.claim_of_name.insert(name, claim);
            let Some(mut held) = HeldClaim::new(claim) else { continue };
            let position = self.claims.len();
            for reference in claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten()) {
                let known = self.pod_of_uid.get(reference.uid.as_str()).copied();
                let living = known.filter(|pod| self.pods.get(*pod).is_some_and(|pod| !pod.is_done()));
                let user = User::new(reference, living);
                if let User::Pod(pod) = user
                    && let Some(occupant) = self.pods.get_mut(pod)
                    && !occupant.claims.contains(&position)
                {
                    occupant.claims.push(position);
                }
                held.users.push(user);
            }
            self.held_of_name.insert(name, position);
            self.claims.push(held);
        }
    }

    /// Adds to claims without a living consumer the pods that name them.
    fn add_names(&mut self) {
        if self.claims.iter().all(HeldClaim::has_living_user) {
            return;
        }
        for (pod, occupant) in self.pods.iter_mut().enumerate() {
            if occupant.is_done() {
                continue;
            }
            for named in claims_of(occupant.pod) {
                let key = [named.claim.namespace.as_str(), named.claim.name.as_str()];
                let Some(position) = self.held_of_name.get(&key).copied() else { continue };
                let Some(held) = self.claims.get_mut(position).filter(|held| !held.has_living_user()) else { continue };
                if !held.named_by.contains(&pod) {
                    held.named_by.push(pod);
                    occupant.claims.push(position);
                }
            }
        }
    }

    /// Returns the nodes, sorted by name.
    pub(super) fn nodes(&self) -> &[&'c Node] {
        &self.nodes
    }

    pub(super) const fn budgets(&self) -> &DisruptionBudgets<'c> {
        &self.budgets
    }

    pub(super) fn pod(&self, position: usize) -> Option<&Occupant<'c>> {
        self.pods.get(position)
    }

    pub(super) fn held(&self, position: usize) -> Option<&HeldClaim<'c>> {
        self.claims.get(position)
    }

    /// Returns all allocated claims.
    pub(super) fn all_held(&self) -> impl Iterator<Item = &HeldClaim<'c>> {
        self.claims.iter()
    }

    /// Returns the claims that earlier preemptions free, by their positions.
    pub(super) fn releasing(&self) -> &[usize] {
        &self.releasing
    }

    pub(super) fn claim(&self, key: &ClaimKey) -> Option<&'c ResourceClaim> {
        self.claim_of_name.get(&[key.namespace.as_str(), key.name.as_str()]).copied()
    }

    /// Returns the positions of the pods on a node.
    pub(super) fn pods_on(&self, node: &str) -> &[usize] {
        self.pods_on.get(node).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the pods that are nominated for a node.
    pub(super) fn nominated(&self, node: &str) -> impl Iterator<Item = &Occupant<'c>> {
        self.nominated.get(node).into_iter().flatten().filter_map(|position| self.pod(*position))
    }

    /// Returns the positions of the living pods of a group.
    pub(super) fn members<'v>(&'v self, group: [&'v str; 2]) -> impl Iterator<Item = usize> + use<'v, 'c> {
        let members = self.members.get(&group).into_iter().flatten().copied();
        members.filter(|position| self.pod(*position).is_some_and(|pod| !pod.is_done()))
    }

    /// Returns namespace and name of the pod group with a UID.
    pub(super) fn group(&self, uid: &str) -> Option<[&'c str; 2]> {
        self.groups.get(uid).copied()
    }

    /// Returns the positions of the allocated claims that hold a device of a pool, which is given by the hash of its driver and
    /// name. Hashes that are equal by chance add claims that have nothing to do with it.
    pub(super) fn claims_in_pool(&self, pool: u64) -> &[usize] {
        let listed = self.claims_in_pool.get_or_init(|| {
            let mut listed: Table<u64, Vec<usize>> = Table::default();
            for (position, held) in self.claims.iter().enumerate() {
                for result in of_allocation(held.allocation) {
                    let of_pool = listed.entry(hash([&*result.driver, &*result.pool])).or_default();
                    if of_pool.last() != Some(&position) {
                        of_pool.push(position);
                    }
                }
            }
            listed
        });
        listed.get(&pool).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Returns the claims that a pod names, as far as they are made; that for extended resources is one of them.
pub(super) fn claims_of(pod: &Pod) -> impl Iterator<Item = PodClaim> {
    let entries = pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten());
    let named = entries.filter_map(|entry| PodClaim::of_entry(pod, entry).ok().flatten());
    named.chain(extended_claim(pod))
}

pub(super) fn node_name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

/// Returns the name of the first of some nodes.
pub(super) fn first_name<'q>(nodes: &[&'q Node]) -> &'q str {
    nodes.first().map(|node| node_name(node)).unwrap_or_default()
}

/// Returns namespace and name of a claim.
pub(super) fn names_of(claim: &ResourceClaim) -> [&str; 2] {
    [&claim.metadata.namespace, &claim.metadata.name].map(|text| text.as_deref().unwrap_or_default())
}
