//! Ledgers of prepared claims: a readable file is written and read back as the same, and any sequence of calls, killed at
//! any step, never holds a device for two claims and leaves nothing.
#![no_main]

use dra_alloc::driver::{ClaimPlan, Ledger, LedgerStep, NodeContext};
use dra_alloc::kubelet::ClaimRef;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use serde_json::json;

const CLAIMS: [&str; 3] = ["u0", "u1", "u2"];

/// Carries out the first steps of a plan.
fn carry_out(ledger: &mut Ledger, plan: &ClaimPlan, steps: usize) {
    for step in plan.steps().iter().take(steps) {
        match step {
            LedgerStep::WriteStarted => ledger.start(plan),
            LedgerStep::WriteCompleted => ledger.complete(plan.claim_uid(), &[]).expect("it was started"),
            LedgerStep::WriteUndoing => ledger.begin_undo(plan.claim_uid()),
            LedgerStep::DeleteEntry => ledger.remove(plan.claim_uid(), Timestamp::UNIX_EPOCH),
            _ => {}
        }
    }
}

fn claim(uid: &str, devices: u8) -> ResourceClaim {
    let results: Vec<_> = (0..3_u8)
        .filter(|device| devices & 1 << device != 0)
        .map(|device| json!({"request": "r", "driver": "d", "pool": "p", "device": format!("{device}")}))
        .collect();
    serde_json::from_value(json!({
        "metadata": {"name": uid, "uid": uid},
        "status": {"allocation": {"devices": {"results": results}}},
    }))
    .expect("a claim")
}

fuzz_target!(|data: &[u8]| {
    let _ = Ledger::from_checkpoint(data);
    // The checksum is made to fit, so that the data itself is parsed.
    let text = String::from_utf8_lossy(data);
    let file = json!({"version": 1, "checksum": crc32fast::hash(text.as_bytes()), "data": text}).to_string();
    if let Ok(mut ledger) = Ledger::from_checkpoint(file.as_bytes()) {
        let written = ledger.to_checkpoint();
        assert_eq!(Ledger::from_checkpoint(written.as_bytes()).as_ref(), Ok(&ledger));
        for uid in ledger.entries().keys().cloned().collect::<Vec<_>>() {
            let plan = ledger.plan_unprepare(&NodeContext::new("d", "b"), &uid);
            carry_out(&mut ledger, &plan, usize::MAX);
        }
        assert!(ledger.entries().is_empty());
    }
    let mut ledger = Ledger::default();
    for step in data.chunks_exact(3) {
        let uid = CLAIMS[usize::from(step[0] % 3)];
        let boot = ["b0", "b1"][usize::from(step[0] >> 2 & 1)];
        let node = NodeContext::new("d", boot);
        let asked = ClaimRef::new("", uid, uid);
        let plan = match step[0] >> 3 & 1 {
            0 => ledger.plan_prepare(&node, &asked, Some(&claim(uid, step[1])), Timestamp::UNIX_EPOCH).ok(),
            _ => Some(ledger.plan_unprepare(&node, uid)),
        };
        if let Some(plan) = plan {
            carry_out(&mut ledger, &plan, usize::from(step[2] % 8));
        }
        let live = ledger.entries().values().filter(|entry| entry.is_of_boot(boot));
        let mut held: Vec<_> = live.flat_map(|entry| &entry.devices).map(|held| &held.device).collect();
        let count = held.len();
        held.sort();
        held.dedup();
        assert_eq!(held.len(), count, "a device is held for two claims");
    }
});
