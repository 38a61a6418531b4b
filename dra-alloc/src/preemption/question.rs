//! Questions of preemption: what a cluster and its scheduler have in common for any number of pods.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroUsize;

use dra_attrs::Index;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};

use super::disruption::BudgetPolicy;
use super::view::PreemptionView;
use crate::allocator::Allocator;
use crate::cluster::state::AllocatedState;
use crate::pods::NodeCheck;

/// Decides which pods give up their devices for a pod, or for a gang: [`Preemption::make_room`], [`Preemption::make_room_for_gang`].
///
/// ```
/// use dra_alloc::preemption::{Harm, Preemption, PreemptionAnswer, PreemptionView};
/// use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Component, Inventory, Profile};
/// use k8s_openapi::api::core::v1::{Node, Pod};
/// use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
/// use k8s_openapi::jiff::Timestamp;
/// use serde_json::{from_value, json};
///
/// let slice: ResourceSlice = from_value(json!({"metadata": {"name": "s"}, "spec": {"driver": "gpu.example.com",
///     "nodeName": "node-1", "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
///     "devices": [{"name": "gpu-0"}]}}))?;
/// let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}}))?;
/// let node: Node = from_value(json!({"metadata": {"name": "node-1"}}))?;
/// let requests = json!({"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}});
/// let claims: [ResourceClaim; 2] = from_value(json!([
///     {"metadata": {"namespace": "ml", "name": "held", "uid": "1"}, "spec": requests, "status": {
///         "allocation": {"devices": {"results": [
///             {"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}]}},
///         "reservedFor": [{"resource": "pods", "name": "notebook", "uid": "n"}]}},
///     {"metadata": {"namespace": "ml", "name": "wanted", "uid": "2"}, "spec": requests},
/// ]))?;
/// let notebook: Pod = from_value(json!({"metadata": {"namespace": "ml", "name": "notebook", "uid": "n"},
///     "spec": {"containers": [], "nodeName": "node-1", "priority": 10}}))?;
/// let training: Pod = from_value(json!({"metadata": {"namespace": "ml", "name": "training", "uid": "t"},
///     "spec": {"containers": [], "priority": 100, "resourceClaims": [{"name": "gpu", "resourceClaimName": "wanted"}]}}))?;
///
/// let (inventory, classes) = (Inventory::new([slice]), Classes::new([class]));
/// let allocator = Allocator::new(Profile::V1_37, &inventory, &classes);
/// let state = AllocatedState::from_claims(&claims, Component::of(Profile::V1_37))?;
/// let view = PreemptionView::new([&node], [&notebook], &claims);
/// let preemption = Preemption::new(&allocator, &state, &view, Timestamp::UNIX_EPOCH).with_harm(Harm::KubeExact);
/// let PreemptionAnswer::Room(room) = preemption.make_room(&training, Budget::default())? else { panic!("no room") };
/// assert_eq!((room.node(), room.victims[0].name.as_str()), ("node-1", "notebook"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Preemption<'p> {
    pub(super) allocator: &'p Allocator<'p>,
    pub(super) state: &'p AllocatedState,
    pub(super) view: &'p PreemptionView<'p>,
    pub(super) now: Timestamp,
    pub(super) harm: Harm,
    pub(super) devices: DevicePreemption,
    pub(super) budgets: BudgetPolicy,
    pub(super) candidates: Option<CandidateLimit>,
    pub(super) unresolvable: BTreeSet<&'p str>,
    pub(super) cost: Option<&'p dyn Fn(&Pod) -> u64>,
    pub(super) fit: Option<&'p dyn NodeCheck>,
}

/// Rule by which victims are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "kube-scheduler's rule, its criteria as an aim, or the caller's cost")]
pub enum Harm {
    /// That of kube-scheduler: on each node all pods of lower priority are taken out and put back one by one, those that a
    /// budget protects first, then the most important. Of the nodes it takes the first by: violated budgets, highest priority
    /// of a victim, sum and number of priorities, latest start.
    #[default]
    Kube,
    /// The least of all sets and nodes by those same criteria.
    KubeExact,
    /// The least cost of all sets and nodes ([`Preemption::with_costs`]), then the least number of pods.
    Cost,
}

/// State of the feature gate `DRAPreemption` of KEP-5690, which no release has yet. It counts for [`Harm::Kube`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a gate is off or on")]
pub enum DevicePreemption {
    /// No pod is preempted for its devices, as in Kubernetes 1.37.
    Off,
    /// Pods are preempted for their devices.
    #[default]
    On,
}

/// Limit on the nodes that [`Harm::Kube`] tries. kube-scheduler tries them from a random one on, until it has a tenth of them,
/// or a hundred, as candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a caller says both")]
pub struct CandidateLimit {
    /// Position of the first node, among the nodes sorted by name. Beyond the last node it begins anew.
    pub first: Index<Node>,
    /// Number of candidates after which no further node is tried, if one of them breaks no budget. Of the candidates that
    /// break one, no more than this number are kept.
    pub count: NonZeroUsize,
}

impl<'p> Preemption<'p> {
    /// Asks about a cluster: its devices, the devices in use, and its objects. `now` is the start of pods that the kubelet has
    /// not taken yet.
    ///
    /// `state` has the claims of the view, and those in flight.
    #[must_use]
    pub const fn new(
        allocator: &'p Allocator<'p>,
        state: &'p AllocatedState,
        view: &'p PreemptionView<'p>,
        now: Timestamp,
    ) -> Self {
        Self {
            allocator,
            state,
            view,
            now,
            harm: Harm::Kube,
            devices: DevicePreemption::On,
            budgets: BudgetPolicy::LastResort,
            candidates: None,
            unresolvable: BTreeSet::new(),
            cost: None,
            fit: None,
        }
    }

    /// Sets the rule by which victims are chosen; that of kube-scheduler by default.
    #[must_use]
    pub fn with_harm(self, harm: Harm) -> Self {
        Self { harm, ..self }
    }

    /// Sets the gate of KEP-5690; it is on by default.
    #[must_use]
    pub fn with_devices(self, devices: DevicePreemption) -> Self {
        Self { devices, ..self }
    }

    /// Sets the treatment of disruption budgets by the rules of least harm. kube-scheduler's rule has its own.
    #[must_use]
    pub fn with_budget_policy(self, budgets: BudgetPolicy) -> Self {
        Self { budgets, ..self }
    }

    /// Limits the nodes that kube-scheduler's rule tries; all of them by default.
    #[must_use]
    pub fn with_candidates(self, limit: CandidateLimit) -> Self {
        Self { candidates: Some(limit), ..self }
    }

    /// Leaves out the nodes on which preemption does not help, by their names: those with
    /// [`StatusCode::UnschedulableAndUnresolvable`](crate::pods::StatusCode::UnschedulableAndUnresolvable) in the last cycle.
    #[must_use]
    pub fn with_unresolvable(self, nodes: impl IntoIterator<Item = &'p str>) -> Self {
        Self { unresolvable: nodes.into_iter().collect(), ..self }
    }

    /// Sets the cost of a pod for [`Harm::Cost`]; 1 by default.
    #[must_use]
    pub fn with_costs(self, cost: &'p dyn Fn(&Pod) -> u64) -> Self {
        Self { cost: Some(cost), ..self }
    }

    /// Sets the check of nodes by what has nothing to do with claims, such as CPU, taints and ports. It is asked with the pods that
    /// would be gone, and with the members of a gang that have a node already; pods that hold no devices may go for it, too.
    #[must_use]
    pub fn with_fit(self, fit: &'p dyn NodeCheck) -> Self {
        Self { fit: Some(fit), ..self }
    }
}

impl fmt::Debug for Preemption<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Preemption").field("harm", &self.harm).field("budgets", &self.budgets).finish_non_exhaustive()
    }
}
