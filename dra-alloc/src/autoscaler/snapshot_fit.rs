//! Check of nodes by resources, taints, labels and ports, for the pods of a snapshot.

use std::collections::BTreeMap;

use dra_device::internal::PodFields;
use k8s_openapi::api::core::v1::{Node, Pod};
use nnn::memory::{NodeUsage, PodMemory, PodUsage};

use super::cluster_snapshot::{ClusterSnapshot, name_of};
use crate::cluster::classes::Classes;
use crate::fit::{Allocatable, PodNeeds};
use crate::pods::{FitQuestion, NodeCheck};

/// Check of nodes by [`fit`](crate::fit), for the questions of a [`ScaleSimulator`](super::ScaleSimulator): CPU and memory, taints,
/// labels, ports. What pods take of their nodes is counted once; pods that come and go during a question are added and taken away.
///
/// ```
/// use dra_alloc::Classes;
/// use dra_alloc::autoscaler::{ClusterSnapshot, SnapshotFit};
/// use dra_alloc::pods::{FitQuestion, NodeCheck};
/// use k8s_openapi::api::core::v1::{Node, Pod};
/// use serde_json::{from_value, json};
/// let node: Node = from_value(json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "2", "pods": "10"}}}))?;
/// let pod = |name: &str, node: Option<&str>| from_value::<Pod>(json!({"metadata": {"name": name, "uid": name}, "spec": {
///     "nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}]}}));
/// let (runs, waits) = (pod("runs", Some("n"))?, pod("waits", None)?);
/// let classes = Classes::default();
/// let fit = SnapshotFit::new(&ClusterSnapshot::new([&node], [&runs, &waits]), &classes);
/// assert_eq!(fit.fits(&FitQuestion::new(&waits, &node)), Err("Insufficient cpu".to_owned()));
/// assert_eq!(fit.fits(&FitQuestion::new(&waits, &node).with_gone(&[&runs])), Ok(()));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SnapshotFit<'c> {
    classes: &'c Classes,
    /// Amounts that pods take of each node, by the node's name.
    usage: BTreeMap<&'c str, NodeUsage>,
    /// Amounts that each pod takes, by UID.
    pods: BTreeMap<&'c str, PodUsage>,
}

impl<'c> SnapshotFit<'c> {
    /// Counts what the pods of a snapshot take of their nodes.
    ///
    /// A pod whose amounts can't be read takes nothing of its node, and fits on none.
    ///
    /// # Complexity
    /// Linear in the containers of all pods.
    #[must_use]
    pub fn new(snapshot: &ClusterSnapshot<'c>, classes: &'c Classes) -> Self {
        let mut fit = Self { classes, usage: BTreeMap::new(), pods: BTreeMap::new() };
        for pod in snapshot.waiting() {
            fit.pods.extend(PodUsage::wanted_by(pod).ok().map(|usage| (pod.uid(), usage)));
        }
        for node in snapshot.nodes() {
            let mut usage = NodeUsage::default();
            for pod in snapshot.pods_on(name_of(node)).unwrap_or_default() {
                let held = PodUsage::held_by(pod).ok().filter(|_| !is_done(pod));
                if let Some(held) = held {
                    usage.add(&held);
                    fit.pods.insert(pod.uid(), held);
                }
            }
            fit.usage.insert(name_of(node), usage);
        }
        fit
    }

    /// Takes what is in use from a memory of pods, which counts pods that are about to be bound, too.
    #[must_use]
    pub fn with_usage_of(mut self, memory: &PodMemory) -> Self {
        for (node, usage) in &mut self.usage {
            usage.clone_from(memory.usage(node));
        }
        self
    }

    /// Returns what is in use on a node when a pod comes to it.
    fn usage_for(&self, question: &FitQuestion<'_>) -> NodeUsage {
        let node = name_of(question.node());
        let mut usage = self.usage.get(node).cloned().unwrap_or_default();
        let was_here = |pod: &&&Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
        for gone in question.gone().iter().filter(was_here) {
            self.pods.get(gone.uid()).into_iter().for_each(|held| usage.remove(held));
        }
        for placed in question.placed_here() {
            self.pods.get(placed.uid.as_str()).into_iter().for_each(|taken| usage.add(taken));
        }
        usage
    }
}

impl NodeCheck for SnapshotFit<'_> {
    fn fits(&self, question: &FitQuestion<'_>) -> Result<(), String> {
        let node: &Node = question.node();
        let needs = PodNeeds::new(question.pod()).map_err(|error| error.to_string())?;
        let allocatable = Allocatable::new(node).map_err(|error| error.to_string())?.without_unstated_limits();
        let misfits = needs.misfits(node, &allocatable, &self.usage_for(question), self.classes);
        misfits.first().map_or(Ok(()), |misfit| Err(misfit.to_string()))
    }
}

fn is_done(pod: &Pod) -> bool {
    matches!(pod.status.as_ref().and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed"))
}
