//! Amounts that the pods of one node take of it apart from devices.

use dra_attrs::Resources;

use super::host_ports::HostPorts;
use super::pod_usage::PodUsage;

/// Resources, ports and number of the pods on one node.
///
/// ```
/// use dra_attrs::Resources;
/// use nnn::memory::{NodeUsage, PodUsage};
/// let pod = PodUsage::default().with_resources(&Resources::new([("cpu", "2".parse()?)]));
/// let mut usage = NodeUsage::default();
/// usage.add(&pod);
/// usage.add(&pod);
/// usage.remove(&pod);
/// assert_eq!((usage.pods, usage.resources.quantity("cpu")), (1, "2".parse()?));
/// # Ok::<(), dra_attrs::QuantityError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeUsage {
    /// Sum of what the pods take.
    pub resources: Resources,
    /// Ports that the pods have.
    pub ports: HostPorts,
    /// Number of the pods.
    pub pods: u32,
}

impl NodeUsage {
    /// Adds a pod.
    ///
    /// # Complexity
    /// Logarithmic, for each resource and port of the pod.
    pub fn add(&mut self, pod: &PodUsage) {
        self.resources.add(&pod.resources);
        pod.ports.iter().for_each(|port| self.ports.add(port));
        self.pods = self.pods.saturating_add(1);
    }

    /// Removes a pod that was added with the same usage.
    ///
    /// # Complexity
    /// Logarithmic, for each resource and port of the pod.
    pub fn remove(&mut self, pod: &PodUsage) {
        self.resources.subtract(&pod.resources);
        pod.ports.iter().for_each(|port| self.ports.remove(port));
        self.pods = self.pods.saturating_sub(1);
    }
}
