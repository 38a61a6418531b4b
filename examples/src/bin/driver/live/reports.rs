//! Reports about prepared devices: one for each claim, in the background, until it is written or the claim is unprepared.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use dra_alloc::driver::{ConditionReport, DeviceReport};
use dra_alloc::kubelet::{ClaimRef, PreparedDevice};
use examples::live::device_status_calls::report;
use kube::Client;
use tokio::task::AbortHandle;

use crate::note;

/// Reports that may be under way, by the UID of their claim. Clones are the same reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports(Arc<Mutex<BTreeMap<String, AbortHandle>>>);

impl Reports {
    /// Begins to report the devices of a claim; an earlier report about it ends.
    pub(crate) fn begin(&self, client: &Client, driver: &str, claim: &ClaimRef, devices: &[PreparedDevice]) {
        self.end(claim);
        if devices.is_empty() {
            return;
        }
        let reports: Vec<DeviceReport> = devices.iter().map(ready).collect();
        let (uid, client, driver, claim) = (claim.uid.clone(), client.clone(), driver.to_owned(), claim.clone());
        let task = tokio::spawn(async move {
            let say = |error: &_| note(&format_args!("{}: status not written: {error}", claim.key));
            report(&client, &driver, &claim, &reports, say).await;
        });
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, task| !task.is_finished());
        running.insert(uid, task.abort_handle());
    }

    /// Ends the report about a claim, if there is one.
    pub(crate) fn end(&self, claim: &ClaimRef) {
        if let Some(task) = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&claim.uid) {
            task.abort();
        }
    }
}

fn ready(device: &PreparedDevice) -> DeviceReport {
    let condition = ConditionReport {
        type_: "Ready".to_owned(),
        status: "True".to_owned(),
        reason: "Prepared".to_owned(),
        message: String::new(),
    };
    DeviceReport {
        pool: device.pool.clone(),
        device: device.device.clone(),
        share_id: device.share_id.clone(),
        conditions: vec![condition],
        ..DeviceReport::default()
    }
}
