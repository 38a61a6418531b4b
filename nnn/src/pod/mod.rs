//! Pod snapshots: the fields of a pod that matter to nominations, and its requested resources.

mod claim_resources;
mod resources;
mod snapshot;

pub(crate) use claim_resources::claim_resources;
pub use resources::Resources;
pub use snapshot::{
    PodError, PodKey, PodPhase, PodPlacement, PodSnapshot, PreemptionPolicy, ScheduledCondition, parse_node_name,
};
