//! The operations `driver.configs`, `driver.ledger` and `driver.status`: what a claim asks of a driver.

use std::collections::BTreeMap;

use dra_alloc::driver::{
    ClaimError, ClaimPlan, ClaimReply, ConditionReport, ConfigError, DeviceReport, DeviceStatusError, Ledger,
    LedgerEntry, LookedUpClaim, NodeContext, PrepareClaimError, StartAction, claim_responses, device_configs,
    request_names,
};
use dra_alloc::kubelet::{ClaimRef, Responses};
use k8s_openapi::api::resource::v1::{AllocationResult, NetworkDeviceData, ResourceClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde::Deserialize;
use serde_json::{Value, json};

use super::refused;
use crate::operation::Operation;
use crate::refusal::Refusal;

#[derive(Deserialize)]
struct ConfigsInput {
    driver: String,
    allocation: AllocationResult,
    request: String,
}

pub(crate) fn configs(input: Value) -> Result<Operation, Refusal> {
    super::operation(input, |ConfigsInput { driver, allocation, request }: &ConfigsInput| {
        Ok(match device_configs(allocation, driver, request) {
            Ok(configs) => {
                let indices: Vec<usize> = configs.iter().map(|config| config.index.into()).collect();
                json!({"winner": indices.last(), "lowestFirst": indices})
            }
            Err(ConfigError::NotOpaque { index }) => refused("NotOpaque", json!({"index": usize::from(index)})),
            Err(ConfigError::UnknownSource { index }) => refused("UnknownSource", json!({"index": usize::from(index)})),
            Err(error) => return Err(Refusal::new("Config", error.to_string())),
        })
    })
}

/// Name of a claim as the kubelet gives it.
#[derive(Deserialize)]
struct NamedClaim {
    namespace: String,
    name: String,
    uid: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Lookup {
    Same,
    Gone,
    Replaced,
    Deallocated,
    Failed,
}

/// Question about the ledger, by the function that answers it.
#[derive(Deserialize)]
#[serde(tag = "fn", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum LedgerInput {
    Prepare {
        driver: String,
        boot_id: String,
        now: Time,
        ledger: Ledger,
        claim: NamedClaim,
        api_claim: Option<Box<ResourceClaim>>,
    },
    Unprepare {
        driver: String,
        boot_id: String,
        ledger: Ledger,
        claim: NamedClaim,
    },
    CleanUp {
        boot_id: String,
        entry: LedgerEntry,
        lookup: Lookup,
    },
    StartUp {
        boot_id: String,
        ledger: Ledger,
        #[serde(default)]
        cdi_files: Vec<String>,
    },
    Answer {
        #[serde(default)]
        requested: Vec<String>,
        #[serde(default)]
        results: BTreeMap<String, Outcome>,
    },
    RequestNames {
        #[serde(default)]
        requests: Vec<String>,
    },
}

/// Result of one claim in a call.
#[derive(Clone, Deserialize)]
struct Outcome {
    #[serde(default)]
    devices: Vec<Value>,
    error: Option<Value>,
}

pub(crate) fn ledger(input: Value) -> Result<Operation, Refusal> {
    super::operation(input, |question: &LedgerInput| Ok(answer(question)))
}

fn answer(question: &LedgerInput) -> Value {
    match question {
        LedgerInput::Prepare { driver, boot_id, now, ledger, claim, api_claim } => {
            let node = NodeContext::new(driver, boot_id);
            let claim = ClaimRef::new(&claim.namespace, &claim.name, &claim.uid);
            match ledger.plan_prepare(&node, &claim, api_claim.as_deref(), now.0) {
                Ok(plan) => planned(&plan),
                Err(refusal) => refusal_of_prepare(&refusal),
            }
        }
        LedgerInput::Unprepare { driver, boot_id, ledger, claim } => {
            planned(&ledger.plan_unprepare(&NodeContext::new(driver, boot_id), &claim.uid))
        }
        LedgerInput::CleanUp { boot_id, entry, lookup } => {
            let lookup = match lookup {
                Lookup::Same => LookedUpClaim::Same,
                Lookup::Gone => LookedUpClaim::Gone,
                Lookup::Replaced => LookedUpClaim::Replaced,
                Lookup::Deallocated => LookedUpClaim::Deallocated,
                Lookup::Failed => LookedUpClaim::Failed,
            };
            json!({"decision": entry.clean_up(boot_id, lookup)})
        }
        LedgerInput::StartUp { boot_id, ledger, cdi_files } => {
            let start = ledger.start_up(boot_id, cdi_files.iter().map(String::as_str));
            let entries: BTreeMap<_, _> =
                start.entries.iter().map(|(uid, action)| (uid, start_action(*action))).collect();
            json!({"entries": entries, "removeCdiFiles": start.remove_cdi_files})
        }
        LedgerInput::Answer { requested, results } => {
            let outcome = |outcome: Outcome| match outcome.error {
                None => Ok(outcome.devices),
                Some(error) => Err(error.as_str().map_or_else(|| error.to_string(), str::to_owned)),
            };
            let outcomes: Responses<_> =
                results.clone().into_iter().map(|(uid, result)| (uid, outcome(result))).collect();
            let answers = claim_responses(requested.iter().map(String::as_str), outcomes);
            json!({"claims": answers.into_iter().map(claim_answer).collect::<Vec<_>>()})
        }
        LedgerInput::RequestNames { requests } => {
            json!({"requestNames": request_names(requests.iter().map(String::as_str))})
        }
    }
}

fn planned(plan: &ClaimPlan) -> Value {
    let reply = match plan.reply() {
        ClaimReply::Prepared => "prepared",
        ClaimReply::Stored => "stored",
        ClaimReply::Empty => "empty",
        _ => "ok",
    };
    json!({"reply": reply, "actions": plan.steps(), "dropEntries": plan.dropped_entries()})
}

fn refusal_of_prepare(refusal: &PrepareClaimError) -> Value {
    match refusal {
        PrepareClaimError::ClaimNotFound => refused("ClaimNotFound", json!({})),
        PrepareClaimError::ClaimReplaced => refused("ClaimReplaced", json!({})),
        PrepareClaimError::NotAllocated => refused("NotAllocated", json!({})),
        PrepareClaimError::StalePrepare => refused("StalePrepare", json!({})),
        PrepareClaimError::Reallocated => refused("Reallocated", json!({})),
        PrepareClaimError::DeviceTwiceInClaim { pool, device } => {
            refused("DeviceTwiceInClaim", json!({"pool": pool, "device": device}))
        }
        PrepareClaimError::InUse { pool, device, claim } => {
            refused("InUse", json!({"pool": pool, "device": device, "claim": claim}))
        }
        other => refused("Other", json!({"message": other.to_string()})),
    }
}

fn start_action(action: StartAction) -> &'static str {
    match action {
        StartAction::Keep => "Keep",
        StartAction::RebuildCdi => "RebuildCdi",
        StartAction::KeepPending => "KeepPending",
        StartAction::MarkRebooted => "MarkRebooted",
        StartAction::AdoptBoot { .. } => "AdoptBoot",
        _ => "Other",
    }
}

fn claim_answer((uid, outcome): (String, Result<Vec<Value>, ClaimError>)) -> Value {
    match outcome {
        Ok(devices) => json!({"uid": uid, "devices": devices}),
        Err(ClaimError::Failed(message)) => json!({"uid": uid, "error": {"kind": "Failed", "message": message}}),
        Err(_) => json!({"uid": uid, "error": {"kind": "NoResult"}}),
    }
}

#[derive(Deserialize)]
struct StatusInput {
    driver: String,
    now: Time,
    claim: ResourceClaim,
    #[serde(default)]
    own: Vec<OwnStatus>,
}

/// `AllocatedDeviceStatus` whose conditions have no times.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnStatus {
    driver: String,
    pool: String,
    device: String,
    #[serde(rename = "shareID")]
    share_id: Option<String>,
    #[serde(default)]
    conditions: Vec<OwnCondition>,
    data: Option<RawExtension>,
    network_data: Option<NetworkDeviceData>,
}

#[derive(Deserialize)]
struct OwnCondition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

impl OwnStatus {
    fn report(&self) -> DeviceReport {
        let condition = |condition: &OwnCondition| ConditionReport {
            type_: condition.type_.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        };
        DeviceReport {
            pool: self.pool.clone(),
            device: self.device.clone(),
            share_id: self.share_id.clone(),
            conditions: self.conditions.iter().map(condition).collect(),
            data: self.data.clone(),
            network_data: self.network_data.clone(),
        }
    }
}

pub(crate) fn status(input: Value) -> Result<Operation, Refusal> {
    super::operation(input, |StatusInput { driver, now, claim, own }: &StatusInput| {
        if let Some(foreign) = own.iter().find(|status| status.driver != *driver) {
            return Ok(refused("NotAllocated", json!({"pool": foreign.pool, "device": foreign.device})));
        }
        let reports: Vec<DeviceReport> = own.iter().map(OwnStatus::report).collect();
        Ok(match DeviceReport::merge(claim, driver, &reports, now.0) {
            Ok(Some(devices)) => json!({"devices": devices}),
            Ok(None) => json!({"unchanged": true}),
            Err(DeviceStatusError::NotAllocated { pool, device }) => {
                refused("NotAllocated", json!({"pool": pool, "device": device}))
            }
            Err(DeviceStatusError::TooManyConditions { pool, device }) => {
                refused("TooManyConditions", json!({"pool": pool, "device": device}))
            }
            Err(DeviceStatusError::Duplicate { pool, device }) => {
                refused("Duplicate", json!({"pool": pool, "device": device}))
            }
            Err(error) => return Err(Refusal::new("Status", error.to_string())),
        })
    })
}
