//! Health stream of a driver: the messages of `NodeWatchResources` (KEP-4680).
//!
//! Every message has the complete list of devices; the kubelet takes a device that is missing, or that it has not heard
//! of for its timeout, as unknown. Nothing else is needed of a driver than to send the list when the stream opens, when
//! a device changes, and at a third of the smallest timeout.
//!
//! Source of the rules: `pkg/kubelet/cm/dra/healthinfo.go` of Kubernetes 1.36.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// Time after which the kubelet takes a device as unknown that names no timeout.
const DEFAULT_HEALTH_TIMEOUT: SignedDuration = SignedDuration::from_secs(30);

/// Largest length of a health message in bytes. The kubelet cuts longer ones.
const MAX_HEALTH_MESSAGE: usize = 1024;

/// Heartbeats in the time of a timeout: two may be lost.
const HEARTBEATS: i32 = 3;
const ELLIPSIS: &str = "...";

/// Health of a device, with the names of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the values of the kubelet's API")]
pub enum HealthStatus {
    /// Nothing is known about the device: `UNKNOWN`.
    #[default]
    Unknown,
    /// The device works: `HEALTHY`.
    Healthy,
    /// The device does not work: `UNHEALTHY`.
    Unhealthy,
}

/// Health of one device in a message to the kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by the caller; these are the fields of the kubelet's API")]
pub struct DeviceHealth {
    /// Name of the pool.
    pub pool: String,
    /// Name of the device.
    pub device: String,
    /// Health of the device.
    pub health: HealthStatus,
    /// Time after which the kubelet takes the device as unknown without a new message;
    /// 30 seconds if absent or not positive.
    pub timeout: Option<SignedDuration>,
    /// Text for people. [`HealthReporter`] cuts it to 1,024 bytes.
    pub message: String,
}

impl DeviceHealth {
    fn timeout(&self) -> SignedDuration {
        self.timeout.filter(SignedDuration::is_positive).unwrap_or(DEFAULT_HEALTH_TIMEOUT)
    }
}

/// Sender of one open health stream: decides when the list of devices is sent.
///
/// ```
/// use dra_node::driver::{DeviceHealth, HealthReporter, HealthStatus};
/// use k8s_openapi::jiff::Timestamp;
/// let at = |second| Timestamp::from_second(second).unwrap();
/// let gpu = |health| DeviceHealth { pool: "node-1".into(), device: "gpu-0".into(), health, ..Default::default() };
///
/// let mut reporter = HealthReporter::new(vec![gpu(HealthStatus::Healthy)]);
/// assert!(reporter.poll(at(0)).is_some(), "the stream was opened");
/// assert_eq!(reporter.next_due(), Some(at(10)));
/// assert!(reporter.poll(at(4)).is_none());
/// reporter.set_devices(vec![gpu(HealthStatus::Unhealthy)]);
/// assert_eq!(reporter.poll(at(4)).unwrap()[0].health, HealthStatus::Unhealthy);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthReporter {
    devices: Vec<DeviceHealth>,
    /// Time of the last message that had this list; `None` if it was not sent yet.
    last_sent: Option<Timestamp>,
}

impl HealthReporter {
    /// Creates the sender of a stream that was just opened. `devices` is the complete list.
    #[must_use]
    pub fn new(devices: Vec<DeviceHealth>) -> Self {
        Self { devices: cut_messages(devices), last_sent: None }
    }

    /// Replaces the complete list of devices. It is due at once if it differs from the one before.
    pub fn set_devices(&mut self, devices: Vec<DeviceHealth>) {
        let devices = cut_messages(devices);
        if devices != self.devices {
            *self = Self { devices, last_sent: None };
        }
    }

    /// Returns the list if it must be sent now, and counts it as sent. A clock that went back makes it due.
    pub fn poll(&mut self, now: Timestamp) -> Option<&[DeviceHealth]> {
        let waits = self.last_sent.is_some_and(|sent| now >= sent) && self.next_due().is_some_and(|due| now < due);
        if waits {
            return None;
        }
        self.last_sent = Some(now);
        Some(&self.devices)
    }

    /// Returns the time of the next heartbeat; `None` if the list is due at once.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let timeout = self.devices.iter().map(DeviceHealth::timeout).min().unwrap_or(DEFAULT_HEALTH_TIMEOUT);
        // A time beyond what a timestamp can express is never reached.
        self.last_sent.map(|sent| sent.saturating_add(timeout / HEARTBEATS).unwrap_or(Timestamp::MAX))
    }
}

fn cut_messages(mut devices: Vec<DeviceHealth>) -> Vec<DeviceHealth> {
    for device in &mut devices {
        cut(&mut device.message);
    }
    devices
}

/// Cuts a message that is too long at the boundary of a character.
fn cut(message: &mut String) {
    if message.len() > MAX_HEALTH_MESSAGE {
        let room = MAX_HEALTH_MESSAGE - ELLIPSIS.len();
        let end = (0..=room).rev().find(|end| message.is_char_boundary(*end)).unwrap_or_default();
        message.truncate(end);
        message.push_str(ELLIPSIS);
    }
}
