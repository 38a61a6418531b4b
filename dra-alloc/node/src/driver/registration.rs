//! Registration of a driver with the kubelet: the plugin's side of `pluginregistration.Registration`.
//!
//! The kubelet finds the registration socket, asks [`PluginInfo`] by `GetInfo`, and tells by `NotifyRegistrationStatus`
//! whether it took the plugin. It asks again after its restart and after every failure, so that each instance of a
//! driver has one [`Registration`] for its lifetime. During a rolling update two instances are registered side by side:
//! the kubelet calls the newest one that is connected, and either may get any call.
//!
//! Source of the rules: `pkg/kubelet/pluginmanager`, `pkg/kubelet/cm/dra/plugin` of Kubernetes 1.33 to 1.37.

use std::mem;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// Time that a driver may be without registration until a liveness probe should fail: the longest back-off of the
/// kubelet's attempts is 2 minutes and 2 seconds.
const REGISTRATION_GRACE: SignedDuration = SignedDuration::from_secs(122);

/// gRPC service that a driver serves on its DRA socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PluginService {
    /// `k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin`, of kubelets from 1.34.
    DraV1,
    /// `k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin`: as v1, but without share IDs in answers.
    DraV1beta1,
    /// `v1.DRAResourceHealth`, of kubelets from 1.37.
    HealthV1,
    /// `v1alpha1.DRAResourceHealth`, of kubelets from 1.34.
    HealthV1alpha1,
}

impl PluginService {
    /// All services, best first within an API: the kubelet takes the first one that it knows.
    const BEST_FIRST: [Self; 4] = [Self::DraV1, Self::DraV1beta1, Self::HealthV1, Self::HealthV1alpha1];

    /// Returns the name in `supported_versions`.
    #[must_use]
    pub const fn short_name(self) -> &'static str {
        match self {
            Self::DraV1 => "v1.DRAPlugin",
            Self::DraV1beta1 => "v1beta1.DRAPlugin",
            Self::HealthV1 => "v1.DRAResourceHealth",
            Self::HealthV1alpha1 => "v1alpha1.DRAResourceHealth",
        }
    }
}

/// Answer of `GetInfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginInfo {
    /// Type of the plugin: [`PluginInfo::TYPE`].
    pub plugin_type: &'static str,
    /// Name of the driver.
    pub name: String,
    /// Absolute path of the DRA socket, as the kubelet sees it.
    pub endpoint: String,
    /// Short names of the services, best first.
    pub supported_versions: Vec<&'static str>,
}

impl PluginInfo {
    /// Type of a DRA plugin in the answer of `GetInfo`.
    pub const TYPE: &str = "DRAPlugin";

    /// Creates the answer for a driver that serves `services` on the socket `endpoint`. The order of `services` does not
    /// matter.
    ///
    /// ```
    /// use dra_node::driver::{PluginInfo, PluginService};
    /// let socket = "/var/lib/kubelet/plugins/gpu.example.com/dra.sock";
    /// let info = PluginInfo::new("gpu.example.com", socket, &[PluginService::HealthV1, PluginService::DraV1]);
    /// assert_eq!(info.supported_versions, ["v1.DRAPlugin", "v1.DRAResourceHealth"]);
    /// ```
    #[must_use]
    pub fn new(driver: &str, endpoint: &str, services: &[PluginService]) -> Self {
        let offered = PluginService::BEST_FIRST.into_iter().filter(|service| services.contains(service));
        Self {
            plugin_type: Self::TYPE,
            name: driver.to_owned(),
            endpoint: endpoint.to_owned(),
            supported_versions: offered.map(PluginService::short_name).collect(),
        }
    }
}

/// State of a driver's registration with the kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Registration {
    /// No kubelet has asked yet.
    #[default]
    Waiting,
    /// The kubelet has asked by `GetInfo` and not told the outcome yet.
    Asked {
        /// The outcome of the attempt before, for probes.
        last: LastOutcome,
    },
    /// The kubelet has taken the plugin.
    Registered,
    /// The kubelet has refused the plugin and will ask again. The driver keeps serving: pods that run need it.
    Failed {
        /// Message of the kubelet.
        error: String,
    },
    /// The driver is stopping, and its registration socket is removed.
    Stopped,
}

/// Outcome of the last finished attempt to register.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LastOutcome {
    /// No attempt has finished.
    #[default]
    None,
    /// The plugin was registered.
    Registered,
    /// The plugin was refused, with the message of the kubelet.
    Failed(String),
}

/// Event in the registration of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistrationEvent {
    /// The kubelet calls `GetInfo`.
    GetInfo,
    /// The kubelet calls `NotifyRegistrationStatus`; `Err` has the message of a refusal.
    Notified(Result<(), String>),
    /// The driver stops.
    Stop,
}

/// Action that a driver takes upon an event of its registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistrationReply {
    /// Answer with [`PluginInfo`].
    Info,
    /// Answer without error.
    Acknowledge,
    /// Refuse the call: the driver is stopping.
    Unavailable,
    /// Remove the file of the registration socket; calls that run may end, and slices stay.
    RemoveSocket,
}

impl Registration {
    /// Applies an event and returns the action for it.
    ///
    /// A notification that no question preceded is taken as it is: the kubelet's word about the registration is the
    /// newest there is. After [`RegistrationEvent::Stop`] nothing changes any more.
    ///
    /// ```
    /// use dra_node::driver::{Registration, RegistrationEvent, RegistrationReply};
    /// let mut registration = Registration::default();
    /// assert_eq!(registration.apply(RegistrationEvent::GetInfo), RegistrationReply::Info);
    /// registration.apply(RegistrationEvent::Notified(Ok(())));
    /// assert_eq!(registration, Registration::Registered);
    /// ```
    pub fn apply(&mut self, event: RegistrationEvent) -> RegistrationReply {
        let before = mem::take(self);
        let (next, reply) = match (before, event) {
            (Self::Stopped, RegistrationEvent::Stop) => (Self::Stopped, RegistrationReply::RemoveSocket),
            (Self::Stopped, _) => (Self::Stopped, RegistrationReply::Unavailable),
            (_, RegistrationEvent::Stop) => (Self::Stopped, RegistrationReply::RemoveSocket),
            (before, RegistrationEvent::GetInfo) => {
                (Self::Asked { last: before.into_outcome() }, RegistrationReply::Info)
            }
            (_, RegistrationEvent::Notified(Ok(()))) => (Self::Registered, RegistrationReply::Acknowledge),
            (_, RegistrationEvent::Notified(Err(error))) => (Self::Failed { error }, RegistrationReply::Acknowledge),
        };
        *self = next;
        reply
    }

    fn into_outcome(self) -> LastOutcome {
        match self {
            Self::Registered => LastOutcome::Registered,
            Self::Failed { error } => LastOutcome::Failed(error),
            Self::Asked { last } => last,
            Self::Waiting | Self::Stopped => LastOutcome::None,
        }
    }

    /// Returns the answer of a liveness probe: the driver is registered, or was so at the last attempt, or has waited
    /// for less than its grace since `started_at`.
    #[must_use]
    pub fn is_live(&self, started_at: Timestamp, now: Timestamp) -> bool {
        match self {
            Self::Registered | Self::Asked { last: LastOutcome::Registered } => true,
            Self::Waiting | Self::Asked { last: LastOutcome::None } => {
                now.duration_since(started_at) < REGISTRATION_GRACE
            }
            Self::Asked { last: LastOutcome::Failed(_) } | Self::Failed { .. } | Self::Stopped => false,
        }
    }
}
