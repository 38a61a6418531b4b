//! The question of preemption: who has to go so that a pod fits, or a gang?

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, Pod};

use super::answer::{NoRoom, PreemptionAnswer};
use super::asked::Asked;
use super::candidates::by_kube;
use super::eligibility::{Eligibility, PreemptorSituation, may_preempt};
use super::gang::PreemptingGang;
use super::halt::PreemptionError;
use super::least::by_least_harm;
use super::occupant::{Occupant, Place};
use super::question::{DevicePreemption, Harm, Preemption};
use super::view::node_name;
use crate::pods::StatusCode;
use crate::search::budget::Budget;

impl Preemption<'_> {
    /// Decides which pods have to go so that a pod fits on a node, by the rule of [`Preemption::with_harm`].
    ///
    /// A pod may go if it is less important than the preemptor. [`Harm::Kube`] takes pods of the node alone; the other rules take
    /// also pods elsewhere that hold devices which the node sees, whole pod groups, and claims that nobody uses. On a node for
    /// which pods are nominated that are not less important, these get their devices first.
    ///
    /// A "no" has its reason: [`NoRoom`].
    ///
    /// # Errors
    /// A claim of the pod is not there, or invalid, or a device that it may get is invalid.
    ///
    /// # Complexity
    /// At most the work of the budget: a unit for each test beside the allocator's own, for each claim in reach of a node, and for
    /// each choice that is compared.
    ///
    /// For [`Harm::Kube`] one test more on a node than there are pods of lower priority on it that hold devices.
    pub fn make_room(&self, pod: &Pod, budget: Budget<'_>) -> Result<PreemptionAnswer, PreemptionError> {
        if self.harm == Harm::Kube && self.devices == DevicePreemption::Off {
            return Ok(PreemptionAnswer::NoRoom(NoRoom::GateOff));
        }
        let eligibility = self.eligibility(pod);
        if eligibility != Eligibility::Eligible {
            return Ok(PreemptionAnswer::NoRoom(NoRoom::MayNotPreempt(eligibility)));
        }
        let asked = Asked::of_pod(self, pod, budget)?;
        let nodes: Vec<&Node> = self.usable().collect();
        self.answer(&asked, &nodes.chunks(1).collect::<Vec<_>>())
    }

    /// Decides which pods have to go so that a gang fits on its nodes, all members at once, by the rule of
    /// [`Preemption::with_harm`].
    ///
    /// A pod may go if it is less important than the gang: its group, or else the least important member. Who is in reach of one of the
    /// nodes counts as for [`Preemption::make_room`]. The members' claims are allocated together, those that members share once; on nodes
    /// for which pods are nominated that are not less important, these get their devices first.
    ///
    /// Kube-scheduler's rule is that of pod groups (KEP-5710): pods of all nodes are put back in one order. KEP-5690 frees no devices for
    /// a group.
    ///
    /// Places are searched exactly where no two of the nodes see the same devices; otherwise a shared device goes to the first member that
    /// can use it, and the answer may be [`NoRoom::Open`](super::NoRoom::Open), or
    /// [`HarmProof::Irreducible`](super::HarmProof::Irreducible).
    ///
    /// ```
    /// use dra_alloc::preemption::{
    ///     Harm, Preemption, PreemptingGang, PreemptingMember, PreemptionAnswer, PreemptionView,
    /// };
    /// use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Component, Inventory, Profile};
    /// use k8s_openapi::api::core::v1::{Node, Pod};
    /// use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
    /// use k8s_openapi::jiff::Timestamp;
    /// use serde_json::{from_value, json};
    ///
    /// let slice = |node: &str| json!({"metadata": {"name": node}, "spec": {"driver": "gpu.example.com", "nodeName": node,
    ///     "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "gpu-0"}]}});
    /// let slices: [ResourceSlice; 2] = from_value(json!([slice("a"), slice("b")]))?;
    /// let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}}))?;
    /// let nodes: [Node; 2] = from_value(json!([{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]))?;
    /// let spec = json!({"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}});
    /// let claims: [ResourceClaim; 3] = from_value(json!([
    ///     {"metadata": {"name": "held", "uid": "1"}, "spec": spec, "status": {
    ///         "allocation": {"devices": {"results": [
    ///             {"request": "gpu", "driver": "gpu.example.com", "pool": "a", "device": "gpu-0"}]}},
    ///         "reservedFor": [{"resource": "pods", "name": "notebook", "uid": "n"}]}},
    ///     {"metadata": {"name": "w0", "uid": "2"}, "spec": spec},
    ///     {"metadata": {"name": "w1", "uid": "3"}, "spec": spec},
    /// ]))?;
    /// let notebook: Pod = from_value(json!({"metadata": {"name": "notebook", "uid": "n"},
    ///     "spec": {"containers": [], "nodeName": "a", "priority": 10}}))?;
    /// let worker = |name: &str| from_value::<Pod>(json!({"metadata": {"name": name, "uid": name}, "spec": {
    ///     "containers": [], "priority": 100, "resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}}));
    /// let workers = [worker("w0")?, worker("w1")?];
    ///
    /// let (inventory, classes) = (Inventory::new(slices), Classes::new([class]));
    /// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
    /// let state = AllocatedState::from_claims(&claims, Component::of(Profile::V1_37))?;
    /// let view = PreemptionView::new(&nodes, [&notebook], &claims);
    /// let preemption = Preemption::new(&allocator, &state, &view, Timestamp::UNIX_EPOCH).with_harm(Harm::KubeExact);
    /// let gang = PreemptingGang::new(workers.iter().map(PreemptingMember::new));
    /// let PreemptionAnswer::Room(room) = preemption.make_room_for_gang(&gang, Budget::default())? else { panic!("no room") };
    /// let nodes: Vec<&str> = room.places.iter().map(|place| place.node.as_str()).collect();
    /// assert_eq!((nodes, room.victims[0].name.as_str()), (vec!["a", "b"], "notebook"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Preemption::make_room`]; a gang without enough members, or with a pod that is there twice.
    ///
    /// # Complexity
    /// At most the work of the budget, in the units of [`Preemption::make_room`] and one for each node that is tried for a member.
    /// All nodes of the gang are one question: the largest work on a node is that of the call.
    pub fn make_room_for_gang(
        &self,
        gang: &PreemptingGang<'_>,
        budget: Budget<'_>,
    ) -> Result<PreemptionAnswer, PreemptionError> {
        check(gang)?;
        if self.harm == Harm::Kube && self.devices == DevicePreemption::Off {
            return Ok(PreemptionAnswer::NoRoom(NoRoom::GateOff));
        }
        if gang.never_preempts() {
            return Ok(PreemptionAnswer::NoRoom(NoRoom::MayNotPreempt(Eligibility::PolicyNever)));
        }
        let eligibility = gang.members().iter().map(|member| self.eligibility(member.pod));
        if let Some(reason) = eligibility.into_iter().find(|eligibility| *eligibility != Eligibility::Eligible) {
            return Ok(PreemptionAnswer::NoRoom(NoRoom::MayNotPreempt(reason)));
        }
        let asked = Asked::of_gang(self, gang, budget)?;
        let is_used = |node: &&Node| asked.members.all.iter().any(|member| member.may_use(node));
        let nodes: Vec<&Node> = self.usable().filter(is_used).collect();
        self.answer(&asked, &[nodes.as_slice()])
    }

    /// Asks about sets of nodes, which are sorted by their first ones.
    fn answer<'q>(&'q self, asked: &Asked<'q>, sites: &[&[&'q Node]]) -> Result<PreemptionAnswer, PreemptionError> {
        match self.harm {
            Harm::Kube => by_kube(asked, sites),
            Harm::KubeExact | Harm::Cost => by_least_harm(asked, sites),
        }
    }

    /// Returns the nodes on which preemption may help, sorted by name.
    fn usable(&self) -> impl Iterator<Item = &Node> {
        self.view.nodes().iter().copied().filter(|node| !self.unresolvable.contains(node_name(node)))
    }

    /// Decides if the pod may preempt others, by what the view knows of its nominated node.
    fn eligibility(&self, pod: &Pod) -> Eligibility {
        let nominated = match Occupant::new(pod).place {
            Place::Nominated(node) => Some(node),
            Place::On(_) | Place::Nowhere => None,
        };
        let known = nominated.filter(|name| self.view.nodes().iter().any(|node| node_name(node) == *name));
        let on_nominated: Option<Vec<&Pod>> = known.map(|name| {
            self.view.pods_on(name).iter().filter_map(|position| Some(self.view.pod(*position)?.pod)).collect()
        });
        let is_lost = nominated.is_some_and(|name| self.unresolvable.contains(name));
        let situation = PreemptorSituation {
            on_nominated: on_nominated.as_deref(),
            nominated_status: is_lost.then_some(StatusCode::UnschedulableAndUnresolvable),
            ..PreemptorSituation::default()
        };
        may_preempt(pod, &situation)
    }
}

/// Checks that enough pods are members of a gang, each once.
fn check(gang: &PreemptingGang<'_>) -> Result<(), PreemptionError> {
    let (members, quorum) = (gang.members().len(), gang.quorum());
    if members < quorum || members == 0 {
        return Err(PreemptionError::TooFewMembers { members, quorum });
    }
    let mut known = BTreeSet::new();
    for member in gang.members() {
        let [namespace, name] = Occupant::new(member.pod).name();
        if !known.insert([namespace, name]) {
            return Err(PreemptionError::MemberTwice { namespace: namespace.to_owned(), name: name.to_owned() });
        }
    }
    Ok(())
}
