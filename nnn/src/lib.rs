//! Tracking of `nominatedNodeName` for schedulers and autoscalers: the times at which the field is set and cleared, the
//! room that it reserves on a node, and the nodes that may be removed (KEP-5278).
//!
//! [`NominationTracker`] takes the events of a scheduler (watch events, results of scheduling and binding cycles) and
//! answers with the [`Command`]s to carry out, in order.
//!
//! ```
//! use dra_attrs::Profile;
//! use nnn::{Assumed, Behavior, Command, NominationOptions, NominationTracker, PodSnapshot, PreFlight, TrackerInput};
//!
//! let mut tracker = NominationTracker::new(NominationOptions::new(Profile::V1_37, Behavior::Safe));
//! let pod = PodSnapshot::pending("default", "with-a-slow-volume");
//! tracker.handle(TrackerInput::PodObserved(pod.clone()))?;
//! // A scheduling cycle has chosen node-1, and the plugin VolumeBinding has work to do there.
//! let assumed = Assumed::new(&pod.key, "node-1").with_pre_flights(vec![PreFlight::Success]);
//! let output = tracker.handle(TrackerInput::CycleSucceeded(assumed))?;
//! assert!(matches!(output.commands[..], [Command::PatchNnn { .. }, Command::Bind { .. }]));
//! # Ok::<(), nnn::TransitionError>(())
//! ```
//!
//! # Contents
//!
//! - **Tracker**: [`NominationTracker`], configured by [`NominationOptions`]: a [`Profile`](dra_attrs::Profile), feature gates
//!   ([`Gate`](dra_attrs::Gate)) and a [`Behavior`]. [`TrackerInput`] lists the events, [`NominationState`] the states of a
//!   pod.
//! - **Reservations**: [`Nominator`], the nominations in memory, usable alone; [`PodSnapshot::filter_with_nominated_pods`]
//!   and [`PodSnapshot::fits_unreserved_resources`] judge a node with the room that nominations reserve.
//! - **Decision tables**, pure functions for schedulers with a cache of their own: [`scheduling`] (first node to try,
//!   result of a cycle, preemption) and [`binding`] (announcement, order of plugins, claims, API server).
//! - **Memory**: [`memory`] keeps the pods of a cluster as a scheduler knows them, and what each node has in use.
//! - **Autoscalers**: [`view`] tells which nodes are in use, reserved by nominations, or removable.
//! - **Other writers**: [`external`] has the KEP's alternative, in which other components own their nominations.
//!
//! # Guarantees
//!
//! - **No IO, deterministic.** The same events give the same commands. Time is an argument.
//! - **Objects come decoded.** Those of a cluster are decoded after [`dra_attrs::saturate_times`]: k8s-openapi can't hold
//!   times after 9999-12-30T22:00Z, which an API server stores.
//! - **An illegal event changes nothing**: it is a [`TransitionError`].
//! - **The empty name of a node means unset** wherever one is read.
//! - **Out of scope**: filtering and scoring of nodes, choice of victims, allocation of devices. Devices are counted as
//!   claims have them allocated.
//!
//! Callers carry commands out in order, and report answers to writes in the order of the writes. A caller that uses a
//! [`Nominator`] alone never adds an assumed pod, and reports every pod that is bound or gone; the tracker does both
//! itself.
//!
//! # Features
//!
//! None. The binary that uses this crate chooses the Kubernetes version of its `k8s-openapi` dependency, 1.37 or newer
//! (`k8s-openapi/v1_37` or `latest`).
//!
//! Tests: `tests/it`.

pub mod binding;
pub mod external;
pub mod memory;
pub mod scheduling;
pub mod view;

mod commands;
mod config;
mod nomination;
mod pod;
mod tracker;

pub use binding::assumed::Assumed;
pub use binding::claims::BindingClaim;
pub use binding::failed_stage::FailedStage;
pub use binding::start::PreFlight;
pub use commands::{Command, NoPatchReason};
pub use config::{Behavior, NominationOptions};
pub use nomination::{NodeFit, NominatingInfo, Nomination, NominationState, Nominator, TransitionError};
pub use pod::{PodError, PodKey, PodSnapshot, ScheduledCondition};
pub use scheduling::cycle_result::CycleOutcome;
pub use tracker::{NominationTracker, TrackerInput, TrackerNotice, TrackerOutput};
