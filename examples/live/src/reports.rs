//! Reports about prepared devices: one for each claim, in the background, until it is written or the claim is unprepared.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::device_status_calls::report;
use super::say::say;
use dra_node::driver::{ConditionReport, DeviceReport};
use dra_node::kubelet::{ClaimRef, PreparedDevice};
use kube::Client;
use tokio::task::AbortHandle;

/// Reports that may be under way, by the UID of their claim. Clones are the same reports.
///
/// Begin them within a runtime of tokio, or give it to threads of others by its handle.
#[derive(Clone, Debug, Default)]
pub struct Reports(Arc<Mutex<BTreeMap<String, AbortHandle>>>);

impl Reports {
    /// Begins to report the devices of a claim; an earlier report about it ends.
    pub fn begin(&self, client: &Client, driver: &str, claim: &ClaimRef, reports: Vec<DeviceReport>) {
        self.end(&claim.uid);
        if reports.is_empty() {
            return;
        }
        let (uid, client, driver, claim) = (claim.uid.clone(), client.clone(), driver.to_owned(), claim.clone());
        let task = tokio::spawn(async move {
            let refused = |error: &_| say(&format_args!("{driver}: {}: status not written: {error}", claim.key));
            report(&client, &driver, &claim, &reports, refused).await;
        });
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, task| !task.is_finished());
        running.insert(uid, task.abort_handle());
    }

    /// Ends the report about a claim, if there is one.
    pub fn end(&self, claim_uid: &str) {
        if let Some(task) = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(claim_uid) {
            task.abort();
        }
    }
}

/// Returns the report about a prepared device: it is ready, unless a reason says why not.
#[must_use]
pub fn device_report(device: &PreparedDevice, not_ready: Option<&str>) -> DeviceReport {
    let (status, reason) = if not_ready.is_some() { ("False", "DeviceGone") } else { ("True", "Prepared") };
    let condition = ConditionReport {
        type_: "Ready".to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: not_ready.unwrap_or_default().to_owned(),
    };
    DeviceReport {
        pool: device.pool.clone(),
        device: device.device.clone(),
        share_id: device.share_id.clone(),
        conditions: vec![condition],
        ..DeviceReport::default()
    }
}
