//! Decisions of a scheduler about a pod with claims, from its queue to its binding.
//!
//! The allocator answers for claims; this module answers for pods, as kube-scheduler's DRA plugin does at its extension
//! points. [`ClaimTracker`] is the memory of one scheduler: claims as the watch shows them, as the scheduler has written
//! them, and allocations in flight. [`PodCycle`] is one attempt to schedule one pod:
//!
//! | extension point | call | result |
//! |---|---|---|
//! | `PreEnqueue` | [`pre_enqueue`] | [`BlockedError`] |
//! | `PreFilter` | [`PodCycle::pre_filter`] | a cycle, nothing to do, or [`BlockedError`] |
//! | `Filter` | [`PodCycle::filter`], then [`PodCycle::record`] | [`FilterVerdict`] |
//! | `Score`, `NormalizeScore` | [`PodCycle::score`], [`normalize_scores`] | numbers |
//! | node resources of devices (KEP-5517) | [`PodNodeResources`] | amounts, demand, [`NodeResourcesRefusal`] |
//! | best fit, an option | [`PodCycle::room_left`] | room that nodes would have left |
//! | `Reserve` | [`PodCycle::reserve`] | allocations in flight in the tracker |
//! | `PreBindPreFlight` | [`PodCycle::pre_flight`] | work to do, or none |
//! | `PreBind` | [`PreBind`] | one [`ClaimWrite`] after the other |
//! | a whole binding cycle, from the nomination to the binding | [`Binding`] | one [`BindingStep`] after the other |
//! | `Unreserve` | [`PodCycle::unreserve`] | [`ClaimCalls`] |
//! | `PostFilter` | [`PodCycle::post_filter`] | [`PostFilter`] |
//! | a whole pod group | [`GangSearch::place`] | all pods or none, or at least a quorum |
//! | the pod is gone | [`claim_controller`](crate::claim_controller) frees its claims, [`ClaimTracker::observe`] sees it | devices are free again |
//! | queueing hints | [`QueueHint::after_claim_change`], [`QueueHint::after_pod_change`] | [`QueueHint`] |
//!
//! A pod with extended resources that a device class serves (KEP-5004) has one more claim, the last of its cycle
//! ([`CycleClaim::is_for_extended_resources`]): its requests depend on the node ([`ExtendedRequests`]), and the binding
//! creates it.
//!
//! Nothing here calls an API server. Writes are values; the caller sends them in order and returns each answer.
//!
//! ```
//! use dra_attrs::Component;
//! use dra_alloc::pods::{
//!     ApiResponse, BindStep, ClaimTracker, ClaimWrite, GroupRound, PodCycle, PodOptions, PreBind, pre_enqueue,
//! };
//! use dra_alloc::{Allocator, Budget, Classes, Inventory, Profile};
//! use k8s_openapi::api::core::v1::{Node, Pod};
//! use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
//! use k8s_openapi::jiff::Timestamp;
//! use serde_json::{from_value, json};
//!
//! let slice: ResourceSlice = from_value(json!({"metadata": {"name": "s"}, "spec": {"driver": "gpu.example.com",
//!     "nodeName": "node-1", "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
//!     "devices": [{"name": "gpu-0"}]}}))?;
//! let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}}))?;
//! let claim: ResourceClaim = from_value(json!({"metadata": {"namespace": "default", "name": "c", "uid": "c-uid"},
//!     "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}}))?;
//! let pod: Pod = from_value(json!({"metadata": {"namespace": "default", "name": "p", "uid": "p-uid"},
//!     "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}}))?;
//! let node: Node = from_value(json!({"metadata": {"name": "node-1"}}))?;
//!
//! let options = PodOptions::new(Profile::V1_37);
//! let (inventory, classes) = (Inventory::new([slice]), Classes::new([class]));
//! let mut tracker = ClaimTracker::new(options.scheduler());
//! tracker.observe(claim)?;
//! assert!(pre_enqueue(&pod, &tracker, options).is_ok());
//!
//! let mut round = GroupRound::default();
//! let mut cycle = PodCycle::pre_filter(&pod, None, &tracker, &classes, &round, options)?.ok_or("the pod has a claim")?;
//! let allocator = Allocator::new(options.scheduler(), &inventory, &classes);
//! let now = Timestamp::UNIX_EPOCH;
//! let verdict = cycle.filter(&node, &allocator, tracker.state(), now, Budget::work(100_000));
//! assert!(verdict.refusal().is_none());
//! cycle.record("node-1", verdict);
//! cycle.reserve("node-1", &mut tracker, &mut round)?;
//!
//! let mut binding = PreBind::default();
//! let mut reserved = Vec::new();
//! loop {
//!     match binding.next(&mut cycle, &mut tracker, now) {
//!         BindStep::Write(ClaimWrite::UpdateStatus { claim }) => {
//!             reserved = claim.status.clone().unwrap_or_default().reserved_for.unwrap_or_default();
//!             binding.answer(&mut cycle, &mut tracker, ApiResponse::Object(claim), now);
//!         }
//!         BindStep::Write(ClaimWrite::Update { claim }) => {
//!             binding.answer(&mut cycle, &mut tracker, ApiResponse::Object(claim), now);
//!         }
//!         step => break assert!(matches!(step, BindStep::Done)),
//!     }
//! }
//! assert_eq!(reserved[0].uid, "p-uid");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Source of the rules: `pkg/scheduler/framework/plugins/dynamicresources` of kube-scheduler 1.36 and 1.37.
//!
//! Tests: `tests/it/pods`.

mod best_fit;
mod binding;
mod binding_conditions;
mod blocked;
mod claim_calls;
mod claims;
mod consumer;
mod counted;
mod cycle;
mod explanation;
mod extended_requests;
mod extended_resources;
mod filter;
mod gang;
mod gang_error;
mod gang_placement;
mod hints;
mod identity;
mod in_flight;
mod kept_devices;
mod known_refusals;
mod lookup;
mod node_allocatable;
mod node_allocatable_wire;
mod node_check;
mod nodes_filter;
mod observed;
mod options;
mod owner;
mod post_filter;
mod pre_bind;
mod pre_flight;
mod reserve;
mod score;
mod selector_problems;
mod special_claim;
mod status_code;
mod tracker;
mod turns;
mod write;

pub use best_fit::RoomLeft;
pub use binding::{Binding, BindingCall, BindingMemory, BindingRequest, BindingStep, BindingWait, UnboundError};
pub use binding_conditions::{BindingFailure, BindingReport, BindingState, DeviceBinding};
pub use blocked::BlockedError;
pub use claim_calls::ClaimCalls;
pub use claims::{GroupClaimError, claim_of_group_entry, pre_enqueue};
pub use consumer::{ClaimFullError, Consumer, ConsumerError, can_reserve, is_reserved_for};
pub use cycle::{ClaimSituation, CycleClaim, GroupRound, PodCycle};
pub use explanation::{GangHolding, PodExplanation, RefusedNodes, SuggestedChange};
pub use extended_requests::{ExtendedRequests, ExtendedResourceError};
pub use extended_resources::ResourceProvider;
pub use filter::{FilterVerdict, NodeFilter, NodeFilterError};
pub use gang::GangSearch;
pub use gang_error::{GangError, MemberError};
pub use gang_placement::{GangPlacement, PlacedGang};
pub use hints::QueueHint;
pub use identity::PodIdentity;
pub use kept_devices::KeptDevices;
pub use lookup::ClaimLookup;
pub use node_allocatable::{ClaimDevice, NodeResourcesRefusal, PodNodeResources, PodNodeResourcesError};
pub use node_allocatable_wire::{claim_amounts_from_json, with_node_allocatable_resources};
pub use node_check::{FitQuestion, NodeCheck};
pub use nodes_filter::NodesFilter;
pub use observed::{ClaimChange, ClaimDeletion, Observed};
pub use options::PodOptions;
pub use owner::{OwnerError, check_group_owner, check_owner};
pub use post_filter::PostFilter;
pub use pre_bind::{BindError, BindStep, PreBind};
pub use reserve::ReserveError;
pub use score::{ScoreError, claims_score, normalize_scores};
pub use status_code::StatusCode;
pub use tracker::ClaimTracker;
pub use write::{ApiResponse, ClaimWrite};

pub(crate) use gang::Member;
pub(crate) use hints::{freed_drivers, is_news_of_claim};
pub(crate) use known_refusals::KnownRefusals;
pub(crate) use owner::block_owner_deletion;
pub(crate) use post_filter::deallocated;
pub(crate) use reserve::with_allocation;
