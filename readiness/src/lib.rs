//! Whether a node is ready for work, by the gates that its agents report on (KEP-5233).
//!
//! A Node lists gates in `spec.readinessGates`; agents report on each in `status.conditions`. A pod is scheduled only when
//! kubelet's own Ready and every gate is True. A gate that is not met in time is released: its condition becomes
//! `Unknown`/`TimeoutExceeded`, and its failure action comes into force, a taint or a warning.
//!
//! The KEP was not merged: no release of Kubernetes has the field. The crate is for simulators, and for controllers that
//! bring the field themselves; [`rule`] relates it to node-readiness-controller, which was built instead.
//!
//! Three layers, each of use without the others:
//!
//! - [`mod@validate`]: what the API server would refuse or warn of, for a list of gates and for a change.
//! - [`evaluate`]: the filter of a scheduler, stateless and without a clock.
//! - [`reconcile`]: timers, failure actions, reboots and labels, as a state machine.
//!
//! Around them: [`gate`], [`node`] and [`pod`] are the types; [`policy`] says what the KEP leaves open, with the presets
//! [`policy::Policy::kep`] and [`policy::Policy::hardened`]; [`name`], [`label`] and [`taint`] are the rules of Kubernetes that
//! gates touch.
//!
//! For those who work with gates: [`registration`] (kubelet's configuration), [`reporter`] (an agent's own condition),
//! [`preview`] (a change over many nodes before it is made), [`autoscaler`], [`network`] (several gates as one, and kubelet's
//! admission by it), [`partition`] (what the node lifecycle controller does to a lost node), [`rule`] (rules in the style of
//! node-readiness-controller as gates).
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use readiness::evaluate::{FilterOptions, filter};
//! use readiness::{node::GatedNode, pod::PodView};
//!
//! // `kubectl get node -o json` as it is: k8s-openapi's Node does not know the gates, so they are read beside it.
//! let node: GatedNode = serde_json::from_str(r#"{
//!     "metadata": {"name": "node-1"},
//!     "spec": {"readinessGates": [{"conditionType": "datadog.com/AgentReady", "timeoutSeconds": 180,
//!         "failureAction": "BypassWithWarning"}]},
//!     "status": {"conditions": [{"type": "Ready", "status": "True"},
//!         {"type": "datadog.com/AgentReady", "status": "False", "reason": "Initializing"}]}}"#)?;
//! let pod = Pod::default();
//! let verdict = filter(FilterOptions::kep(), &node.view(), PodView::new(&pod));
//! assert_eq!(
//!     verdict.to_string(),
//!     r#"readiness gate "datadog.com/AgentReady": condition status is False (Initializing)"#
//! );
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! Nothing here does IO or reads a clock; the same input gives the same output. What a caller of the reconciler has to keep
//! to stands at [`reconcile`]. Gates get into a spec by kubelet's configuration ([`registration`]); a webhook or a node class
//! can give the same list.
//!
//! Feature `schemars`: `JsonSchema` for the crate's own API types. The crate needs the Kubernetes types of 1.37.

pub mod autoscaler;
pub mod condition;
pub mod evaluate;
pub mod gate;
pub mod label;
mod lookup;
pub mod name;
pub mod network;
pub mod node;
pub mod partition;
pub mod pod;
pub mod policy;
pub mod preview;
pub mod reconcile;
pub mod registration;
pub mod reporter;
pub mod rule;
pub mod taint;
pub mod validate;

k8s_openapi::k8s_if_le_1_36! {
    compile_error!(
        "readiness needs the Kubernetes 1.37 types: enable the feature `v1_37` or `latest` of k8s-openapi in the binary that uses it"
    );
}
