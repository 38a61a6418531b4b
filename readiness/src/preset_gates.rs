//! Predefined gates for common node services (KEP-5233, Risks: common readiness-gate patterns).

use k8s_openapi::api::core::v1::Taint;

use crate::condition::CNI_READY;
use crate::gate::NodeReadinessGate;
use crate::taint::NO_SCHEDULE;

impl NodeReadinessGate {
    /// Creates the gate of a node's CNI plugin, `network.kubernetes.io/CNIReady`. After three minutes the node gets the
    /// taint of the plugin, such as `node.cilium.io/agent-not-ready`.
    ///
    /// ```
    /// use readiness::NodeReadinessGate;
    /// let gate = NodeReadinessGate::cni("node.cilium.io/agent-not-ready");
    /// assert_eq!(gate.condition_type, "network.kubernetes.io/CNIReady");
    /// assert_eq!(gate.releases_after().map(|time| time.as_secs()), Some(180));
    /// ```
    #[must_use]
    pub fn cni(taint_key: &str) -> Self {
        Self::new(CNI_READY, 180).with_taint(not_ready(taint_key))
    }

    /// Creates the gate of a service mesh's agent on the node, `<domain>/MeshReady`. After three minutes pods start without
    /// it, with a warning.
    ///
    /// ```
    /// use readiness::NodeReadinessGate;
    /// let gate = NodeReadinessGate::service_mesh("mesh.example.com");
    /// assert_eq!(gate.condition_type, "mesh.example.com/MeshReady");
    /// assert!(gate.taint().is_none());
    /// ```
    #[must_use]
    pub fn service_mesh(domain: &str) -> Self {
        Self::new(format!("{domain}/MeshReady"), 180).with_bypass_warning()
    }

    /// Creates the gate of a device driver, `<domain>/DriverReady`. After ten minutes, which the build of a kernel module
    /// may take, the node gets the taint `<domain>/driver-not-ready`.
    ///
    /// ```
    /// use readiness::NodeReadinessGate;
    /// let gate = NodeReadinessGate::device_driver("gpu.example.com");
    /// assert_eq!(gate.condition_type, "gpu.example.com/DriverReady");
    /// assert_eq!(gate.taint().map(|taint| taint.key.as_str()), Some("gpu.example.com/driver-not-ready"));
    /// ```
    #[must_use]
    pub fn device_driver(domain: &str) -> Self {
        Self::new(format!("{domain}/DriverReady"), 600).with_taint(not_ready(&format!("{domain}/driver-not-ready")))
    }
}

fn not_ready(key: &str) -> Taint {
    Taint { key: key.to_owned(), effect: NO_SCHEDULE.to_owned(), ..Taint::default() }
}
