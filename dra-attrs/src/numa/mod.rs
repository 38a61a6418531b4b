//! NUMA topology, and the attribute `resource.kubernetes.io/numaNode` (KEP-6072).
//!
//! [`NumaTopology`] holds the kernel's data about a machine's nodes; [`NumaTopology::local_nodes`] is the list
//! algorithm of the KEP; [`numa_node_attribute`] is the entry point for drivers.
//!
//! Tests: `tests/it/numa.rs`, `tests/it/numa_sysfs.rs`.

pub(crate) mod attribute;
mod cpu_set;
mod local_nodes;
mod topology;

pub use attribute::{
    NumaError, NumaForm, NumaNodeAttribute, NumaPlace, NumaValueError, numa_node, numa_node_attribute, publish,
};
pub use cpu_set::{CpuSet, CpuSetError};
pub use local_nodes::{Diagnostic, LocalNodes};
pub use topology::{Distances, NumaNode, NumaTopology, SlitFinding, Socket, SocketUnknown, TopologyError};
