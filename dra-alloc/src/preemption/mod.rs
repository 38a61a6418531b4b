//! Preemption: which pods give up their devices for a pod.
//!
//! No release of Kubernetes preempts a pod for its devices. KEP-5690 will, and this module decides as its text does:
//!
//! - [`may_preempt`] says if a pod may preempt others;
//! - [`Preemption::make_room`] chooses victims and a node, by kube-scheduler's own rule ([`Harm::Kube`]) or with the least
//!   harm ([`Harm::KubeExact`], [`Harm::Cost`]), and says who is in the way if nobody helps;
//! - [`Preemption::make_room_for_gang`] does so for all pods of a gang at once, over several nodes;
//! - [`Holds`] are the devices that wait for a pod from its preemption on until it runs.
//!
//! The answer is a plan as data: evictions, deallocations, the node to nominate. The `nnn` crate announces it.
//!
//! Source: `pkg/scheduler/framework/preemption` of kube-scheduler 1.36 and 1.37, KEP-5690.
//!
//! Tests: `tests/it/preemption.rs`, `tests/it/preemption_rules.rs`, `tests/it/preemption_gangs.rs`.

mod answer;
mod asked;
mod blockers;
mod bounds;
mod candidates;
mod disruption;
mod dry_run;
mod eligibility;
mod gang;
mod halt;
mod harm_value;
mod held_claim;
mod holds;
mod least;
mod make_room;
mod member;
mod node_search;
mod occupant;
mod pending_claim;
mod placing;
mod question;
mod reach;
mod room;
mod site;
mod trial;
mod units;
mod view;
mod work;

pub use answer::{Blocker, HarmProof, NoRoom, PodPlace, PreemptionAnswer, PreemptionCandidate, Room};
pub use disruption::BudgetPolicy;
pub use eligibility::{Eligibility, GroupPreemption, PreemptorSituation, may_preempt};
pub use gang::{PreemptingGang, PreemptingMember};
pub use halt::PreemptionError;
pub use harm_value::HarmValue;
pub use holds::{Hold, Holds};
pub use occupant::InMemoryStage;
pub use question::{CandidateLimit, DevicePreemption, Harm, Preemption};
pub use view::{InMemoryPlace, PreemptionView};

pub(crate) use disruption::DisruptionBudgets;
pub use nnn::scheduling::VictimDevices;
pub(crate) use pending_claim::least_devices;
