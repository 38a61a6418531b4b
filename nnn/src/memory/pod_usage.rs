//! Amounts that one pod takes of its node apart from devices.

use dra_attrs::{Quantity, Resources};
use k8s_openapi::api::core::v1::Pod;

use super::host_ports::HostPort;
use crate::pod::{PodError, claim_amounts};

/// Nano-units in one unit, and in one thousandth, the unit of CPU time.
const UNIT: i128 = 1_000_000_000;
const THOUSANDTH: i128 = UNIT / 1000;

/// Resources and ports that one pod takes of its node.
///
/// Amounts are whole, as kube-scheduler counts them: CPU in thousandths, everything else in units, rounded up for each pod.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use nnn::memory::PodUsage;
/// let pod: Pod = serde_json::from_str(r#"{"spec": {"overhead": {"cpu": "100u"}, "containers": [{"name": "a",
///     "ports": [{"containerPort": 80, "hostPort": 8080}], "resources": {"requests": {"cpu": "1"}}}]}}"#)?;
/// let usage = PodUsage::wanted_by(&pod)?;
/// assert_eq!(usage.resources.quantity("cpu"), "1001m".parse()?);
/// assert_eq!(usage.ports[0].to_string(), "0.0.0.0:8080/TCP");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PodUsage {
    /// Requests of the pod, with what its claims take of the node.
    pub resources: Resources,
    /// Ports of the node that its containers have.
    pub ports: Vec<HostPort>,
}

impl PodUsage {
    /// Returns what a pod wants that has no node yet: by its spec alone.
    ///
    /// # Errors
    /// A request that is not a quantity.
    pub fn wanted_by(pod: &Pod) -> Result<Self, PodError> {
        let wanted = pod.spec.as_ref().map(Resources::requested_by).transpose();
        let resources = wanted.map_err(|source| PodError::Request { source })?.unwrap_or_default();
        Ok(Self { resources: rounded(&resources), ports: HostPort::of_pod(pod) })
    }

    /// Returns what a pod has on its node: by its spec, and by its status while it is resized in place
    /// ([`Resources::held_by`]) or where its claims take node resources (KEP-5517).
    ///
    /// # Errors
    /// A request, or an amount of the status, that is not a quantity.
    pub fn held_by(pod: &Pod) -> Result<Self, PodError> {
        let amounts = pod.status.as_ref().map(claim_amounts).transpose();
        let mut claims = Resources::default();
        for amounts in amounts.map_err(|source| PodError::ClaimResource { source })?.unwrap_or_default() {
            claims.add(&amounts.shared());
            claims.add(&amounts.own());
        }
        let resources = Resources::held_by(pod, &claims).map_err(|source| PodError::Request { source })?;
        Ok(Self { resources: rounded(&resources), ports: HostPort::of_pod(pod) })
    }

    /// Sets the resources, such as those of a pod together with the devices that were chosen for it.
    #[must_use]
    pub fn with_resources(self, resources: &Resources) -> Self {
        Self { resources: rounded(resources), ..self }
    }
}

/// Rounds amounts up to whole ones.
fn rounded(resources: &Resources) -> Resources {
    Resources::new(resources.iter().map(|(name, amount)| {
        let unit = if name == "cpu" { THOUSANDTH } else { UNIT };
        let rest = amount.nanos().rem_euclid(unit);
        let up = if rest == 0 { 0 } else { unit - rest };
        (name, amount.saturating_add(Quantity::from_nanos(up, amount.format())))
    }))
}
