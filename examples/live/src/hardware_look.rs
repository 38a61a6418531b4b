//! Looks at the hardware of a driver that runs: its pools are passed on as they change, and devices that are in use and gone are
//! told.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use dra_device::claims::ClaimKey;
use dra_node::driver::{DeviceReport, HeldDevice, Ledger, LedgerEntry};
use dra_node::kubelet::{ClaimRef, PreparedDevice};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use nnn::PodKey;
use tokio::sync::watch;

use super::claim_lookup;
use super::connect::Cluster;
use super::driver::DriverSettings;
use super::events::Events;
use super::failure::LiveError;
use super::plugin::{Plugin, PluginError, Pool};
use super::prepared_claims::PreparedClaims;
use super::reports::{Reports, device_report};
use super::say::say;

/// Pause between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Claim by UID, and a device of it as `pool/name`.
type Lost = (String, String);

/// Looks of one driver.
pub(super) struct HardwareLook<'a, P> {
    claims: &'a Arc<PreparedClaims<P>>,
    publish: watch::Sender<Vec<Pool>>,
    settings: &'a DriverSettings,
    cluster: &'a Cluster,
    reports: Reports,
    events: Events,
    /// Devices that were gone at the last look; `None` before the first one.
    gone: Option<BTreeSet<Lost>>,
    /// Reason of the last look that failed.
    trouble: Option<String>,
}

impl<'a, P: Plugin> HardwareLook<'a, P> {
    pub(super) fn new(
        claims: &'a Arc<PreparedClaims<P>>,
        publish: watch::Sender<Vec<Pool>>,
        settings: &'a DriverSettings,
        cluster: &'a Cluster,
        reports: Reports,
    ) -> Self {
        let events = Events::new("dra-driver");
        Self { claims, publish, settings, cluster, reports, events, gone: None, trouble: None }
    }

    /// Looks again and again. Returns why it can't.
    pub(super) async fn run(mut self) -> LiveError {
        loop {
            let claims = Arc::clone(self.claims);
            // Hardware and files may take their time.
            let seen = tokio::task::spawn_blocking(move || (claims.plugin().pools(), claims.ledger())).await;
            match seen {
                Ok((Ok(pools), ledger)) => self.take(pools, &ledger.unwrap_or_default()).await,
                Ok((Err(error), _)) => self.fail(&error),
                Err(error) => return LiveError::Runtime(io::Error::other(error)),
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn fail(&mut self, error: &PluginError) {
        let text = error.to_string();
        if self.trouble.as_ref() != Some(&text) {
            let driver = &self.settings.driver;
            say(&format_args!("{driver}: the hardware can't be read: {text}; what is published stays"));
        }
        self.trouble = Some(text);
    }

    async fn take(&mut self, pools: Vec<Pool>, ledger: &Ledger) {
        self.trouble = None;
        let gone = gone(&pools, ledger);
        let is_first = self.gone.is_none();
        let before = self.gone.replace(gone.clone()).unwrap_or_default();
        for (uid, device) in gone.difference(&before) {
            if let Some(entry) = ledger.entries().get(uid) {
                let claim = ClaimKey { namespace: entry.namespace.clone(), name: entry.name.clone() };
                self.tell(&claim, &format!("device {device} of claim {claim} is gone")).await;
            }
        }
        let changed: BTreeSet<&String> = gone.symmetric_difference(&before).map(|(uid, _)| uid).collect();
        for (uid, entry) in ledger.entries().iter().filter(|(uid, _)| changed.contains(uid)) {
            let claim = ClaimRef::new(&entry.namespace, &entry.name, uid);
            let reports = reports(uid, entry, &gone);
            self.reports.begin(&self.cluster.client, &self.settings.driver, &claim, reports);
        }
        self.publish.send_if_modified(|published| {
            let is_new = is_first || *published != pools;
            *published = pools;
            is_new
        });
    }

    /// Tells people, by a line and by events of the node and of the pods that use the claim.
    async fn tell(&self, claim: &ClaimKey, message: &str) {
        say(&format_args!("{}: {message}", self.settings.driver));
        let client = &self.cluster.client;
        if let Ok(node) = Api::<Node>::all(client.clone()).get(&self.settings.node).await {
            self.events.warning(client, &node, "DeviceGone", message).await;
        }
        let found = claim_lookup::find(client, claim).await.ok().flatten();
        let users = found.and_then(|found| found.status?.reserved_for).unwrap_or_default();
        for user in users.iter().filter(|user| user.resource == "pods") {
            let pod = PodKey::new(&claim.namespace, &user.name, &user.uid);
            self.events.warning(client, &pod, "DeviceGone", message).await;
        }
    }
}

/// Returns the reports about the devices of a claim, of which some may be gone.
fn reports(uid: &str, entry: &LedgerEntry, gone: &BTreeSet<Lost>) -> Vec<DeviceReport> {
    let answer = entry.answer();
    let report = |device: &PreparedDevice| {
        let PreparedDevice { pool, device: name, .. } = device;
        let is_gone = gone.contains(&(uid.to_owned(), format!("{pool}/{name}")));
        device_report(device, is_gone.then_some("the device is gone"))
    };
    answer.iter().map(report).collect()
}

/// Returns the devices that claims hold and that are not there.
fn gone(pools: &[Pool], ledger: &Ledger) -> BTreeSet<Lost> {
    let there: BTreeMap<&str, BTreeSet<&str>> = pools
        .iter()
        .map(|pool| (pool.name.as_str(), pool.devices.iter().map(|device| device.name.as_str()).collect()))
        .collect();
    let is_there = |held: &HeldDevice| {
        let pool = there.get(held.pool.as_str());
        held.admin_access || pool.is_some_and(|devices| devices.contains(held.device.as_str()))
    };
    let held = ledger.entries().iter().flat_map(|(uid, entry)| entry.devices.iter().map(move |held| (uid, held)));
    held.filter(|(_, held)| !is_there(held))
        .map(|(uid, held)| (uid.clone(), format!("{}/{}", held.pool, held.device)))
        .collect()
}
