//! The question of preemption: who has to go so that a pod fits?

use k8s_openapi::api::core::v1::{Node, Pod};

use super::answer::{NoRoom, PreemptionAnswer};
use super::asked::Asked;
use super::candidates::by_kube;
use super::eligibility::{Eligibility, PreemptorSituation, may_preempt};
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
        let asked = Asked::new(self, pod, budget)?;
        let is_tried = |node: &&&Node| !self.unresolvable.contains(node_name(node));
        let nodes: Vec<&Node> = self.view.nodes().iter().filter(is_tried).copied().collect();
        match self.harm {
            Harm::Kube => by_kube(&asked, &nodes),
            Harm::KubeExact | Harm::Cost => by_least_harm(&asked, &nodes),
        }
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
