//! Pod snapshots: the fields of a pod that matter to nominations, and its requested resources.

mod claim_resources;
mod snapshot;

pub(crate) use claim_resources::claim_amounts;
pub(crate) use snapshot::parse_node_name;
pub use snapshot::{PodError, PodKey, PodPlacement, PodSnapshot, ScheduledCondition};
