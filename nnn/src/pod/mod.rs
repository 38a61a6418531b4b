//! Pod snapshots: the fields of a pod that matter to nominations, and its requested resources.
//!
//! Tests: `tests/it/common.rs`, `tests/it/candidate.rs`.

mod claim_resources;
mod snapshot;

pub(crate) use claim_resources::claim_amounts;
pub use snapshot::{PodError, PodKey, PodSnapshot, ScheduledCondition};
pub(crate) use snapshot::{PodPlacement, parse_node_name};
