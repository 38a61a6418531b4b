//! Readiness gates of Kubernetes nodes (KEP-5233): pods are scheduled to a node only when its agents have reported that they
//! are ready.
//!
//! [`filter`](filter()) answers if a pod may be scheduled to a node; [`step`](step()) runs the timers and returns the taints,
//! conditions and labels to write.
//!
//! ```
//! use readiness::{FilterOptions, GatedNode, GatedPod, filter};
//!
//! // The output of `kubectl get node -o json`.
//! let node: GatedNode = serde_json::from_str(r#"{
//!     "spec": {"readinessGates": [{"conditionType": "datadog.com/AgentReady", "timeoutSeconds": 180,
//!         "failureAction": "BypassWithWarning"}]},
//!     "status": {"conditions": [{"type": "Ready", "status": "True"},
//!         {"type": "datadog.com/AgentReady", "status": "False", "reason": "Initializing"}]}}"#)?;
//! let pod = GatedPod::default();
//! let verdict = filter(FilterOptions::hardened(), &node.view(), pod.view());
//! assert!(!verdict.is_allowed());
//! assert_eq!(
//!     verdict.to_string(),
//!     r#"readiness gate "datadog.com/AgentReady": condition status is False (Initializing)"#
//! );
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! A Node lists gates in `spec.readinessGates`; agents report the condition of each gate in `status.conditions`. Pods are
//! scheduled only when kubelet's own Ready and every gate are True. If a condition is not True in time, the reconciler sets
//! it to `Unknown`/`TimeoutExceeded`, the gate is released, and its failure action applies: a taint or a warning.
//!
//! The KEP was not merged: no release of Kubernetes has the field. The crate is for simulators, and for controllers that
//! bring the field themselves. Module [`rule`] relates gates to node-readiness-controller, which was built instead.
//!
//! # Contents
//!
//! - **Objects**: [`NodeReadinessGate`], [`GatedNode`], [`GatedPod`] hold the fields that k8s-openapi's types do not have;
//!   [`GatedNodeView`] and [`GatedPodView`] are what the functions take.
//! - **Validation** (module [`validate`](mod@validate)): the errors and warnings of the API server for a list of gates and for
//!   a change of it.
//! - **Filter**: [`filter`](filter()) with [`FilterOptions`], stateless and without a clock.
//! - **Reconciler**: [`step`](step()) with a [`Policy`] ([`Policy::kep`] or [`Policy::hardened`]) and a [`NodeState`] that
//!   survives restarts; [`NodeWrite::apply`] for simulators, [`NodeState::shutdown_writes`] for a downgrade.
//! - **Around gates**: [`KubeletConfiguration::merge_gates`] (registration by kubelet), [`reporter`] (an agent's own condition), [`GateProposal`]
//!   (a change that is not made yet), [`GatedNodeView::is_starting`] (for autoscalers), [`GatedPodView::missing_tolerations`],
//!   [`NodeReadinessGate::label_key`], [`network`] (several gates as one, and kubelet's admission by it), [`rule`] (rules of node-readiness-controller as gates).
//!
//! # Guarantees
//!
//! - **No IO, no clock.** Time is an argument. The same input gives the same output.
//! - **Objects come decoded.** Those of a cluster are decoded after [`dra_attrs::saturate_times`]: k8s-openapi can't hold
//!   times after 9999-12-30T22:00Z, which an API server stores.
//! - **Bounded, without panics**, for objects of any form: also for those that the API server would refuse.
//! - **Versioned state.** [`NodeState`] and [`network::HoldDown`] are JSON with a `version`; another version is a
//!   [`StoredStateError`].
//!
//! # Features
//!
//! `schemars` adds `JsonSchema` to the API types of this crate. The binary that uses this crate chooses the Kubernetes
//! version of its `k8s-openapi` dependency, 1.37 or newer (`k8s-openapi/v1_37` or `latest`).
//!
//! Tests: `tests/it`.

pub mod network;
pub mod reporter;
pub mod rule;
pub mod validate;

mod autoscaler;
mod condition;
mod filter;
mod gate;
mod gate_label;
mod lookup;
mod node;
mod pod;
mod policy;
mod preview;
mod reconcile;
mod registration;
mod taint;
mod words;

pub use condition::condition_status::ConditionStatus;
pub use filter::{FilterCause, FilterOptions, FilterOutcome, FilterReason, ReadinessVerdict, filter};
pub use gate::{FailureAction, NodeReadinessGate};
pub use gate_label::GateLabelError;
pub use node::{GatedNode, GatedNodeView};
pub use pod::{GatedPod, GatedPodView, NodeReadinessRequirement};
pub use policy::{Policy, PolicyMode};
pub use preview::{GateProposal, NodePreview};
pub use reconcile::{
    BlockReason, ClockReading, EffectiveStatus, EvaluatorRole, ExpectedCondition, GateDecision, GatePhase, GateState,
    NodeChange, NodeState, NodeVerdict, NodeWrite, ReadinessCounters, StepResult, StoredStateError, step,
};
pub use registration::KubeletConfiguration;

k8s_openapi::k8s_if_le_1_36! {
    compile_error!(
        "readiness needs the Kubernetes 1.37 types: enable the feature `v1_37` or `latest` of k8s-openapi in the binary that uses it"
    );
}
