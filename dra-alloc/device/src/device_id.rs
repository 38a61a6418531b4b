//! Identity of a device in a cluster: driver, pool and device name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Identity of a device in a cluster: driver, pool and device name.
///
/// The text form is `driver/pool/device`. Only pool names may contain slashes, so that the text is unambiguous.
///
/// ```
/// use dra_device::DeviceId;
/// let id: DeviceId = "gpu.example.com/rack-1/node-7/gpu-0".parse()?;
/// assert_eq!((id.pool.as_str(), id.device.as_str()), ("rack-1/node-7", "gpu-0"));
/// assert_eq!(id.to_string(), "gpu.example.com/rack-1/node-7/gpu-0");
/// assert!("gpu-0".parse::<DeviceId>().is_err());
/// # Ok::<(), dra_device::DeviceIdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema), schemars(with = "String"))]
#[expect(clippy::exhaustive_structs, reason = "these three names identify a device")]
pub struct DeviceId {
    /// Name of the driver that published the device.
    pub driver: String,
    /// Name of the driver's pool.
    pub pool: String,
    /// Name of the device, unique in the pool.
    pub device: String,
}

/// A text that is not of the form `driver/pool/device`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not of the form driver/pool/device")]
#[non_exhaustive]
pub struct DeviceIdError {
    /// The text that was parsed.
    pub text: String,
}

impl DeviceId {
    /// Creates the identity of a device.
    ///
    /// ```
    /// use dra_device::DeviceId;
    /// assert_eq!(DeviceId::new("gpu.example.com", "node-1", "gpu-0").to_string(), "gpu.example.com/node-1/gpu-0");
    /// ```
    #[must_use]
    pub fn new(driver: &str, pool: &str, device: &str) -> Self {
        Self { driver: driver.to_owned(), pool: pool.to_owned(), device: device.to_owned() }
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.driver, self.pool, self.device)
    }
}

impl FromStr for DeviceId {
    type Err = DeviceIdError;

    fn from_str(text: &str) -> Result<Self, DeviceIdError> {
        let parts = text.split_once('/').and_then(|(driver, rest)| Some((driver, rest.rsplit_once('/')?)));
        let (driver, (pool, device)) = parts.ok_or_else(|| DeviceIdError { text: text.to_owned() })?;
        Ok(Self::new(driver, pool, device))
    }
}

impl Serialize for DeviceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DeviceId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
