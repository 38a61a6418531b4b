//! Calls of the kubelet, apart from the version of gRPC in which they come.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use dra_device::skip::SkipSet;
use dra_node::driver::{DeviceHealth, HealthStatus, Ledger};
use dra_node::kubelet::{ClaimRef, PreparedDevice};
use k8s_openapi::api::resource::v1::ResourceClaim;

use crate::now;
use crate::plugin::Plugin;
use crate::prepared_claims::PreparedClaims;

/// Calls that a driver answers. [`DriverCalls`] has them for a [`Plugin`].
pub trait KubeletCalls: Send + Sync + 'static {
    /// Prepares a claim, and returns its devices of this driver; the text of an error goes into an event of the pod.
    fn prepare(&self, claim: &ClaimRef) -> impl Future<Output = Result<Vec<PreparedDevice>, String>> + Send;

    /// Unprepares a claim, also one that is not known.
    fn unprepare(&self, claim: &ClaimRef) -> impl Future<Output = Result<(), String>> + Send;

    /// Returns the health of all devices now.
    fn health(&self) -> impl Future<Output = Vec<DeviceHealth>> + Send;
}

/// Look-up of claims by their names.
pub trait ClaimLookup: Send + Sync + 'static {
    /// Returns the claim that has the name now, or the reason that nothing is known about it.
    fn find(&self, claim: &ClaimRef) -> impl Future<Output = Result<Option<ResourceClaim>, String>> + Send;
}

/// Event of a driver that serves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// The driver listens.
    Serves {
        /// Name of the driver.
        driver: String,
        /// Path of the socket for calls.
        socket: String,
    },
    /// A claim is prepared, perhaps since before.
    Prepared {
        /// The claim.
        claim: ClaimRef,
        /// Its devices of the driver.
        devices: Vec<PreparedDevice>,
    },
    /// A claim is unprepared, perhaps since before.
    Unprepared {
        /// The claim.
        claim: ClaimRef,
    },
    /// A claim of a call has failed.
    Failed {
        /// The claim.
        claim: ClaimRef,
        /// Name of the call.
        method: &'static str,
        /// The reason, which the kubelet is told.
        reason: String,
    },
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serves { driver, socket } => write!(f, "{driver} serves {socket}"),
            Self::Prepared { claim, devices } if devices.is_empty() => {
                write!(f, "{}: prepared: no device of this driver", claim.key)
            }
            Self::Prepared { claim, devices } => {
                let ids: Vec<&str> = devices.iter().flat_map(|device| &device.cdi_ids).map(String::as_str).collect();
                write!(f, "{}: prepared: {}", claim.key, ids.join(" "))
            }
            Self::Unprepared { claim } => write!(f, "{}: unprepared", claim.key),
            Self::Failed { claim, method, reason } => write!(f, "{}: {method}: {reason}", claim.key),
        }
    }
}

/// Listener to what happens.
pub type Tell = Arc<dyn Fn(&Happening) + Send + Sync>;

/// Calls of the kubelet for a [`Plugin`]: claims are looked up, and prepared on a thread that may wait for the hardware.
pub struct DriverCalls<P, L> {
    claims: Arc<PreparedClaims<P>>,
    lookup: L,
    tell: Tell,
}

impl<P: Plugin, L: ClaimLookup> DriverCalls<P, L> {
    /// Creates the calls. `tell` hears of each claim.
    pub fn new(claims: Arc<PreparedClaims<P>>, lookup: L, tell: Tell) -> Self {
        Self { claims, lookup, tell }
    }

    /// Says what was done for a claim.
    fn told<T>(
        &self,
        method: &'static str,
        claim: &ClaimRef,
        outcome: Result<T, String>,
        done: impl FnOnce(&T) -> Happening,
    ) -> Result<T, String> {
        (self.tell)(&match &outcome {
            Ok(found) => done(found),
            Err(reason) => Happening::Failed { claim: claim.clone(), method, reason: reason.clone() },
        });
        outcome
    }
}

/// Does work that may wait, on a thread of its own.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err("the driver has failed at this claim".to_owned()))
}

impl<P: Plugin, L: ClaimLookup> KubeletCalls for DriverCalls<P, L> {
    async fn prepare(&self, claim: &ClaimRef) -> Result<Vec<PreparedDevice>, String> {
        let found = self.lookup.find(claim).await;
        let (claims, asked) = (Arc::clone(&self.claims), claim.clone());
        let work = move || claims.prepare(&asked, &|_| found.clone(), now()).map_err(|error| error.to_string());
        self.told(SkipSet::NODE_PREPARE_RESOURCES, claim, apart(work).await, |devices| Happening::Prepared {
            claim: claim.clone(),
            devices: devices.clone(),
        })
    }

    async fn unprepare(&self, claim: &ClaimRef) -> Result<(), String> {
        let (claims, uid) = (Arc::clone(&self.claims), claim.uid.clone());
        let work = move || claims.unprepare(&uid, now()).map_err(|error| error.to_string());
        self.told(SkipSet::NODE_UNPREPARE_RESOURCES, claim, apart(work).await, |()| Happening::Unprepared {
            claim: claim.clone(),
        })
    }

    async fn health(&self) -> Vec<DeviceHealth> {
        let claims = Arc::clone(&self.claims);
        apart(move || Ok(health_of(claims.plugin(), &claims.ledger().unwrap_or_default()))).await.unwrap_or_default()
    }
}

/// Returns the health of all devices: those that are there are well, those that are in use and gone are not, and the plugin may know
/// better.
fn health_of(plugin: &impl Plugin, ledger: &Ledger) -> Vec<DeviceHealth> {
    let Ok(pools) = plugin.pools() else { return Vec::new() };
    let of = |pool: &str, device: &str, health, message: &str| {
        let (pool, device, message) = (pool.to_owned(), device.to_owned(), message.to_owned());
        ((pool.clone(), device.clone()), DeviceHealth { pool, device, health, message, timeout: None })
    };
    let held = ledger.entries().values().flat_map(|entry| &entry.devices);
    let gone = held.map(|held| of(&held.pool, &held.device, HealthStatus::Unhealthy, "the device is gone"));
    let there = pools.iter().flat_map(|pool| pool.devices.iter().map(move |device| (pool, device)));
    let there = there.map(|(pool, device)| of(&pool.name, &device.name, HealthStatus::Healthy, ""));
    let mut all: BTreeMap<(String, String), DeviceHealth> = gone.chain(there).collect();
    let known: BTreeSet<(String, String)> = all.keys().cloned().collect();
    for device in plugin.health() {
        let key = (device.pool.clone(), device.device.clone());
        if known.contains(&key) {
            all.insert(key, device);
        }
    }
    all.into_values().collect()
}

impl<P, L> fmt::Debug for DriverCalls<P, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverCalls").finish_non_exhaustive()
    }
}
