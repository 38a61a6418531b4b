//! Pods that Kubernetes workloads ask for: Deployments, `ReplicaSets`, `StatefulSets`, `DaemonSets`, Jobs and `CronJobs`.
//!
//! A [`Demand`] is a workload with the pods that it asks for. It says which of them are lacking, which are too many, and which to
//! make or delete now. The status of a workload follows from its pods ([`status`]); [`server_rules`] has the rules of an API server for
//! workloads. Nothing here talks to a cluster: the caller
//! has read the objects, and carries out what is decided.
//!
//! Left out: schedules of `CronJobs`, rollouts in steps (`maxSurge`, `maxUnavailable`, `partition`), volume claims of
//! `StatefulSets`, policies of Jobs about failures of single pods, and quotas.
//!
//! ```
//! use k8s_openapi::api::apps::v1::StatefulSet;
//! use workload_pods::Demand;
//!
//! let set: StatefulSet = serde_json::from_value(serde_json::json!({
//!     "metadata": {"name": "db"}, "spec": {"replicas": 2, "selector": {}, "template": {"spec": {"containers": []}}},
//! }))?;
//! let demand = Demand::of_stateful_set(&set);
//! let lacking = demand.lacking(&[], &[], usize::MAX);
//! let names: Vec<_> = lacking.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect();
//! assert_eq!(names, ["db-0", "db-1"]);
//! let now = demand.changes(&[], &[], usize::MAX);
//! assert_eq!(now.make.len(), 1, "the second one is made when the first one is ready");
//! # Ok::<(), serde_json::Error>(())
//! ```

mod changes;
mod daemon;
mod demand;
mod indexes;
mod replica_set;
mod revision;
pub mod server_rules;
mod state;
pub mod status;

pub use changes::Changes;
pub use daemon::node_of;
pub use demand::{Demand, Idle, MOST_PODS, Pods, controller};
pub use replica_set::{TEMPLATE_HASH, replica_set_of};
