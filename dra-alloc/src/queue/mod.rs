//! Queue of a scheduler: which pod is tried next, and when a refused one is tried again.
//!
//! [`SchedulingQueue`] has the rules of kube-scheduler's queue and neither a clock nor a thread: the time is an argument, and
//! [`SchedulingQueue::next_at`] says when to ask again.
//!
//! | place | a pod comes there | and leaves |
//! |---|---|---|
//! | [`Place::Active`] | when it is new, and when it is to be tried again | by [`SchedulingQueue::pop`], in the order of a [`QueueOrder`] |
//! | [`Place::InFlight`] | by [`SchedulingQueue::pop`] | by [`done`](SchedulingQueue::done), [`refused`](SchedulingQueue::refused) or [`failed`](SchedulingQueue::failed) |
//! | [`Place::Unschedulable`] | by `refused` | with an event that helps, or after five minutes |
//! | [`Place::BackingOff`] | by `failed`, and instead of becoming active before its pause is over | by time |
//! | [`Place::Gated`] | if it has scheduling gates, or a check before the attempt refuses it | with an event that helps |
//!
//! A [`Refusal`] lists the [`Remedy`]s that a pod waits for, and a [`ClusterEvent`] those that it brings. An event whose remedies
//! nobody waits for costs a look-up and wakes nobody. An event that comes during an attempt counts when the attempt is refused.
//!
//! ```
//! use std::sync::Arc;
//! use dra_alloc::Profile;
//! use dra_alloc::pods::{ClaimTracker, PodOptions, pre_enqueue};
//! use dra_alloc::queue::{ClusterEvent, ObjectChange, Place, PrioritySort, QueueOptions, Refusal, Remedy, SchedulingQueue};
//! use k8s_openapi::api::core::v1::Pod;
//! use k8s_openapi::api::resource::v1::ResourceClaim;
//! use k8s_openapi::jiff::Timestamp;
//! use serde_json::{from_value, json};
//!
//! let options = PodOptions::new(Profile::V1_37);
//! let mut tracker = ClaimTracker::new(options.scheduler());
//! let mut queue = SchedulingQueue::new(PrioritySort, QueueOptions::default());
//! let now = Timestamp::UNIX_EPOCH;
//!
//! let pod: Pod = from_value(json!({"metadata": {"namespace": "ns", "name": "p", "uid": "1"},
//!     "spec": {"containers": [], "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}}))?;
//! queue.observe(&ClusterEvent::Pod(ObjectChange::Added(&Arc::new(pod))), now)?;
//!
//! // The claim is not there: the pod is not tried.
//! let check = |pods: &[Arc<Pod>], tracker: &ClaimTracker| {
//!     pods.iter().try_for_each(|pod| {
//!         pre_enqueue(pod, tracker, options).map_err(|reason| Refusal::blocked(pod, &reason))
//!     })
//! };
//! assert!(queue.pop(now, |pods| check(pods, &tracker)).is_none());
//! assert_eq!(queue.place("1"), Some(Place::Gated));
//!
//! // The cache knows of a change first, then the queue.
//! let claim: Arc<ResourceClaim> = Arc::new(from_value(json!({"metadata": {"namespace": "ns", "name": "c", "uid": "2"}}))?);
//! tracker.observe(Arc::clone(&claim))?;
//! assert_eq!(queue.observe(&ClusterEvent::Claim(ObjectChange::Added(&claim)), now)?, 1);
//!
//! let attempt = queue.pop(now, |pods| check(pods, &tracker)).ok_or("the claim is there")?;
//! assert_eq!((attempt.pods().len(), attempt.number()), (1, 1));
//! queue.refused(attempt, Refusal::new([Remedy::Devices { driver: "gpu.example.com".into() }]), now);
//! assert_eq!(queue.wake(&[Remedy::Devices { driver: "nic.example.com".into() }], now), 0);
//! assert_eq!(queue.wake(&[Remedy::Devices { driver: "gpu.example.com".into() }], now), 1);
//! assert_eq!(queue.place("1"), Some(Place::BackingOff));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//!
//! - The caller's caches know of an event before the queue does. Otherwise an attempt may miss it that began in between.
//! - Each [`QueueAttempt`] is given back. What it had reserved is told by [`Remedy::given_back`] and [`SchedulingQueue::wake`].
//! - Each refusal has a remedy for the first obstacle of each node: [`Refusal::add_node`] knows those of devices, the caller adds
//!   those of its own filters.
//!
//! The queue holds the pods by [`Arc`](std::sync::Arc), forgets a pod with its last event, and remembers at most 4,096 remedies for the attempts
//! that are under way.
//!
//! Source of the rules: `pkg/scheduler/backend/queue` of kube-scheduler, KEP-4247 and KEP-5142.
//!
//! Tests: `tests/queue`.

mod attempt;
mod event;
mod options;
mod order;
mod places;
mod pod_change;
mod recent;
mod refusal;
mod remedy;
mod scheduling_queue;
mod unit;
mod waiting;

pub use attempt::QueueAttempt;
pub use event::{ClusterEvent, ObjectChange};
pub use options::{QueueOptions, QueueOptionsError, WhenIdle};
pub use order::{PrioritySort, QueueOrder};
pub use refusal::Refusal;
pub use remedy::Remedy;
pub use scheduling_queue::{QueueError, SchedulingQueue};
pub use unit::Place;
