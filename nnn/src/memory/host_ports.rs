//! Ports of a node's own addresses that containers of pods ask for.
//!
//! Source: `GetHostPorts` and `HostPortInfo` of kube-scheduler 1.37.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{Container, ContainerPort, Pod};
use serde::Serialize;

/// Address that stands for all of a node. IPv6 has no such address for kube-scheduler.
const ALL: &str = "0.0.0.0";

/// Port of a node that a container asks for with `hostPort`.
///
/// ```
/// use nnn::memory::HostPort;
/// let web = HostPort::new(80, "TCP", "10.0.0.1");
/// assert!(web.conflicts_with(&HostPort::new(80, "TCP", "0.0.0.0")));
/// assert!(!web.conflicts_with(&HostPort::new(80, "TCP", "10.0.0.2")));
/// assert!(!web.conflicts_with(&HostPort::new(80, "UDP", "10.0.0.1")));
/// assert_eq!(web.to_string(), "10.0.0.1:80/TCP");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[non_exhaustive]
pub struct HostPort {
    /// `hostPort`
    pub port: i32,
    /// `protocol`: `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// `hostIP`; `0.0.0.0` stands for every address of the node.
    pub address: String,
}

impl HostPort {
    /// Builds a port from number, protocol and address. An empty protocol is `TCP`, an empty address `0.0.0.0`.
    #[must_use]
    pub fn new(port: i32, protocol: &str, address: &str) -> Self {
        let or = |text: &str, default: &str| if text.is_empty() { default.to_owned() } else { text.to_owned() };
        Self { port, protocol: or(protocol, "TCP"), address: or(address, ALL) }
    }

    /// Returns true if two containers can't have the ports on one node.
    #[must_use]
    pub fn conflicts_with(&self, other: &Self) -> bool {
        let is_common = self.address == other.address || self.address == ALL || other.address == ALL;
        self.port == other.port && self.protocol == other.protocol && is_common
    }

    /// Returns the ports of a pod: those of its containers and of its sidecars.
    pub(super) fn of_pod(pod: &Pod) -> Vec<Self> {
        let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
        let containers = pod
            .spec
            .iter()
            .flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten().filter(is_sidecar)));
        containers.flat_map(|container| container.ports.iter().flatten()).filter_map(Self::of_container).collect()
    }

    fn of_container(port: &ContainerPort) -> Option<Self> {
        let number = port.host_port.filter(|number| *number > 0)?;
        let text = |field: &'_ Option<String>| field.clone().unwrap_or_default();
        Some(Self::new(number, &text(&port.protocol), &text(&port.host_ip)))
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.address, self.port, self.protocol)
    }
}

/// Ports of one node that pods have, each as often as it was added.
///
/// ```
/// use nnn::memory::{HostPort, HostPorts};
/// let web = HostPort::new(80, "", "");
/// let mut taken = HostPorts::default();
/// taken.add(&web);
/// assert_eq!(taken.conflict(&HostPort::new(80, "TCP", "10.0.0.1")), Some(&web));
/// taken.remove(&web);
/// assert_eq!(taken, HostPorts::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPorts {
    /// Ports by their number, each with the number of pods that have it.
    by_number: BTreeMap<i32, BTreeMap<HostPort, u32>>,
}

impl HostPorts {
    /// Adds a port.
    pub fn add(&mut self, port: &HostPort) {
        let count = self.by_number.entry(port.port).or_default().entry(port.clone()).or_default();
        *count = count.saturating_add(1);
    }

    /// Removes a port once. Does nothing if it is not there.
    pub fn remove(&mut self, port: &HostPort) {
        let Some(ports) = self.by_number.get_mut(&port.port) else { return };
        if let Some(count) = ports.get_mut(port) {
            *count = count.saturating_sub(1);
        }
        ports.retain(|_, count| *count > 0);
        if ports.is_empty() {
            self.by_number.remove(&port.port);
        }
    }

    /// Returns a port that conflicts with `port`, the first by protocol and address.
    ///
    /// # Complexity
    /// Linear in the ports with that number.
    #[must_use]
    pub fn conflict(&self, port: &HostPort) -> Option<&HostPort> {
        self.by_number.get(&port.port)?.keys().find(|taken| taken.conflicts_with(port))
    }

    /// Returns true if no port is taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }
}
