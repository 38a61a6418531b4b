//! Consolidation: fewer nodes, other nodes, moved pods, such that every claim keeps or finds its devices.
//!
//! | question | answer |
//! |---|---|
//! | Which nodes can be emptied, and who moves where, in which order? | [`ScaleSimulator::consolidate`](crate::autoscaler::ScaleSimulator::consolidate) |
//! | Which new nodes stand in for these? | [`ScaleSimulator::replace_nodes`](crate::autoscaler::ScaleSimulator::replace_nodes) |
//! | Which new nodes do these pods need? | [`ScaleSimulator::nodes_needed`](crate::autoscaler::ScaleSimulator::nodes_needed) |
//! | Who has to move so that these pods fit? | [`ScaleSimulator::make_moves`](crate::autoscaler::ScaleSimulator::make_moves) |
//! | Does a plan still hold? | [`MovePlan::check`] |
//!
//! Devices do not migrate. A move deletes a pod and takes its claims back; its controller makes it anew, and it gets other devices.
//! Nobody but the scheduler chooses the new node, so that a plan holds under its guards ([`MovePlan::guards`]).
//!
//! Which pods may move, and at which cost, is data of the caller: [`MoveRules`].
//!
//! Tests: `tests/consolidation`.

mod consolidate;
mod joint_places;
mod make_moves;
mod move_plan;
mod move_rules;
mod moves_answer;
mod new_nodes;
mod node_class;
mod order;
mod plan_check;
mod replace_nodes;
mod replaced_pods;
mod sequence;
mod subsets;
mod unit;
mod work;

pub use consolidate::{Consolidation, KeptNodeError};
pub use move_plan::{MoveGuard, MovePlan, MoveProof, NewDaemon, NewNode, PlanStep, PodMove};
pub use move_rules::MoveRules;
pub use moves_answer::{MovesAnswer, NoMovesError};
pub use new_nodes::{NodeOffer, NodesNeeded, OfferError};
pub use plan_check::PlanFaultError;
pub use replace_nodes::ReplaceError;
