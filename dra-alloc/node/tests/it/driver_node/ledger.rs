//! Ledger: the table of decisions, the checkpoint, and start-up.

use dra_node::driver::{
    ClaimReply, CleanUp, EntryState, HeldDevice, Ledger, LedgerError, LedgerStep, LookedUpClaim, MetadataRequest,
    NodeContext, PrepareClaimError, StartAction,
};
use dra_node::kubelet::ClaimRef;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

const DRIVER: &str = "gpu.example.com";
const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn node() -> NodeContext<'static> {
    NodeContext::new(DRIVER, "b1")
}

fn result(device: &str) -> Value {
    json!({"request": "gpu", "driver": DRIVER, "pool": "p", "device": device})
}

fn claim(results: Value) -> ResourceClaim {
    from_value(json!({
        "metadata": {"namespace": "ns", "name": "c1", "uid": "u1", "resourceVersion": "7"},
        "status": {"allocation": {"devices": {"results": results}}},
    }))
    .unwrap()
}

fn entry(state: &str, boot: &str, results: Value) -> Value {
    json!({"namespace": "ns", "name": "c", "state": state, "bootId": boot, "results": results})
}

fn ledger(entries: Value) -> Ledger {
    from_value(json!({"entries": entries})).unwrap()
}

fn asked() -> ClaimRef {
    ClaimRef::new("ns", "c1", "u1")
}

fn prepare(ledger: &Ledger, results: Value) -> Result<Vec<LedgerStep>, PrepareClaimError> {
    ledger.plan_prepare(&node(), &asked(), Some(&claim(results)), NOW).map(|plan| plan.steps().to_vec())
}

const FRESH: [LedgerStep; 4] =
    [LedgerStep::WriteStarted, LedgerStep::Setup, LedgerStep::WriteCdi, LedgerStep::WriteCompleted];

#[test]
fn the_first_reason_counts() {
    let held = ledger(json!({"u2": entry("Started", "b1", json!([result("a")]))}));
    assert_eq!(held.plan_prepare(&node(), &asked(), None, NOW).unwrap_err(), PrepareClaimError::ClaimNotFound);
    let mut other = claim(json!([]));
    other.metadata.uid = Some("u9".to_owned());
    assert_eq!(held.plan_prepare(&node(), &asked(), Some(&other), NOW).unwrap_err(), PrepareClaimError::ClaimReplaced);
    other.metadata.uid = Some("u1".to_owned());
    other.status = None;
    assert_eq!(held.plan_prepare(&node(), &asked(), Some(&other), NOW).unwrap_err(), PrepareClaimError::NotAllocated);
    let twice = PrepareClaimError::DeviceTwiceInClaim { pool: "p".to_owned(), device: "a".to_owned() };
    assert_eq!(prepare(&held, json!([result("b"), result("a"), result("a")])).unwrap_err(), twice);
    let in_use = PrepareClaimError::InUse { pool: "p".to_owned(), device: "a".to_owned(), claim: "u2".to_owned() };
    assert_eq!(prepare(&held, json!([result("b"), result("a")])).unwrap_err(), in_use);
    assert_eq!(in_use.to_string(), "device p/a is in use by claim u2");
}

#[test]
fn a_device_tells_that_it_needs_no_preparation() {
    let skips = |operations: Value| {
        let mut result = result("a");
        result["skipNodeOperations"] = operations;
        let plan = Ledger::default().plan_prepare(&node(), &asked(), Some(&claim(json!([result]))), NOW).unwrap();
        plan.devices()[0].skips_prepare
    };
    for (operations, expected) in [
        (Value::Null, false),
        (json!([]), false),
        (json!(["*"]), true),
        (json!(["NodePrepareResources"]), true),
        (json!(["NodeUnprepareResources"]), false),
    ] {
        assert_eq!(skips(operations.clone()), expected, "{operations}");
    }
}

#[test]
fn metadata_is_written_before_the_claim_is_prepared_and_removed_with_it() {
    use LedgerStep::{
        DeleteEntry, EnsureCdi, RemoveCdi, RemoveMetadata, Setup, Undo, WriteCdi, WriteCompleted, WriteMetadata,
        WriteStarted, WriteUndoing,
    };
    let node = node().with_metadata();
    let mut wanted = claim(json!([result("a")]));
    let name = ("resource.kubernetes.io/pod-claim-name".to_owned(), "train".to_owned());
    wanted.metadata.annotations = Some([name].into());
    let mut ledger = Ledger::default();
    let plan = ledger.plan_prepare(&node, &asked(), Some(&wanted), NOW).unwrap();
    assert_eq!(plan.steps(), [WriteStarted, Setup, WriteMetadata, WriteCdi, WriteCompleted]);
    ledger.start(&plan);
    ledger.complete("u1", &[]).unwrap();
    let entry = &ledger.entries()["u1"];
    assert_eq!(entry.pod_claim_name.as_deref(), Some("train"), "the files can be made anew without the API server");
    assert_eq!(
        json!(MetadataRequest::from_held(DRIVER, &entry.devices)),
        json!([{"name": "gpu", "devices": [{"driver": DRIVER, "pool": "p", "name": "a"}]}])
    );
    let again = ledger.plan_prepare(&node, &asked(), Some(&wanted), NOW).unwrap();
    assert_eq!(again.steps(), [WriteMetadata, EnsureCdi]);
    let steps = |ledger: &Ledger| ledger.plan_unprepare(&node, "u1").steps().to_vec();
    assert_eq!(steps(&ledger), [WriteUndoing, Undo, RemoveMetadata, RemoveCdi, DeleteEntry]);
    assert_eq!(steps(&Ledger::default()), [RemoveMetadata, RemoveCdi], "by the UID alone");
}

#[test]
fn a_claim_without_devices_of_the_driver() {
    let foreign = json!([{"request": "r", "driver": "nic.example.com", "pool": "p", "device": "a"}]);
    let plan = Ledger::default().plan_prepare(&node(), &asked(), Some(&claim(foreign.clone())), NOW).unwrap();
    assert_eq!((plan.reply(), plan.steps()), (ClaimReply::Empty, [].as_slice()));
    let had_one = ledger(json!({"u1": entry("Completed", "b1", json!([result("a")]))}));
    assert_eq!(prepare(&had_one, foreign).unwrap_err(), PrepareClaimError::Reallocated);
}

#[test]
fn shares_and_administrators() {
    let with = |fields: Value| {
        let mut result = result("a");
        result.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        result
    };
    let (admin, one, two) =
        (with(json!({"adminAccess": true})), with(json!({"shareID": "1"})), with(json!({"shareID": "2"})));
    let whole = result("a");
    for (held, wanted, together) in [
        (&whole, &whole, false),
        (&whole, &one, false),
        (&one, &whole, false),
        (&one, &one, false),
        (&one, &two, true),
        (&admin, &whole, true),
        (&whole, &admin, true),
        (&admin, &admin, true),
    ] {
        for state in ["Started", "Completed", "Undoing"] {
            let other = ledger(json!({"u2": entry(state, "b1", json!([held]))}));
            assert_eq!(prepare(&other, json!([wanted])).is_ok(), together, "{held} {wanted}");
        }
        assert_eq!(prepare(&Ledger::default(), json!([held, wanted])).is_ok(), together, "{held} {wanted}");
        let earlier = ledger(json!({"u2": entry("Completed", "b0", json!([held]))}));
        let plan = earlier.plan_prepare(&node(), &asked(), Some(&claim(json!([wanted]))), NOW).unwrap();
        assert_eq!(plan.dropped_entries().is_empty(), together, "{held} {wanted}");
    }
}

#[test]
fn devices_that_overlap_are_as_one() {
    let overlaps = |one: &HeldDevice, other: &HeldDevice| one.device == "card" || other.device == "card";
    let node = node().with_overlaps(&overlaps);
    let plan = |ledger: &Ledger, devices: &[&str]| {
        let results = devices.iter().map(|device| result(device)).collect();
        ledger.plan_prepare(&node, &asked(), Some(&claim(results)), NOW).map(|plan| plan.steps().to_vec())
    };
    let part = ledger(json!({"u2": entry("Completed", "b1", json!([result("part-0")]))}));
    assert!(matches!(plan(&part, &["card"]), Err(PrepareClaimError::InUse { device, .. }) if device == "card"));
    assert_eq!(plan(&part, &["part-1"]).unwrap(), FRESH);
    assert!(matches!(plan(&Ledger::default(), &["part-0", "card"]), Err(PrepareClaimError::DeviceTwiceInClaim { .. })));
}

#[test]
fn what_another_claim_holds_by_now_is_not_undone() {
    let both = ledger(json!({
        "u1": entry("Undoing", "b0", json!([result("a"), result("b")])),
        "u2": entry("Completed", "b1", json!([result("a")])),
    }));
    let plan = both.plan_unprepare(&node(), "u1");
    assert_eq!(plan.steps(), [LedgerStep::UndoPersistent, LedgerStep::RemoveCdi, LedgerStep::DeleteEntry]);
    assert_eq!(plan.devices_to_undo().iter().map(|held| held.device.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_late_retry_does_not_recreate() {
    let mut ledger = Ledger::default();
    let wanted = claim(json!([result("a")]));
    let plan = ledger.plan_prepare(&node(), &asked(), Some(&wanted), NOW).unwrap();
    ledger.start(&plan);
    ledger.complete("u1", &[]).unwrap();
    ledger.remove("u1", NOW);
    assert_eq!(prepare(&ledger, json!([result("a")])).unwrap_err(), PrepareClaimError::StalePrepare);
    let mut changed = wanted.clone();
    changed.metadata.resource_version = Some("8".to_owned());
    assert!(ledger.plan_prepare(&node(), &asked(), Some(&changed), NOW).is_ok(), "the claim has changed since");
    let later = NOW + SignedDuration::from_secs(100);
    let plan = ledger.plan_prepare(&node(), &asked(), Some(&wanted), later).unwrap();
    ledger.start(&plan);
    assert!(!ledger.to_checkpoint().contains("tombstones"), "it goes with a new entry");
    ledger.remove("u1", later);
    ledger.remove("u2", later + SignedDuration::from_secs(100));
    assert!(!ledger.to_checkpoint().contains("tombstones"), "it goes with time");
}

#[test]
fn completed_needs_started() {
    let mut ledger = ledger(json!({"u1": entry("Undoing", "b1", json!([]))}));
    assert_eq!(ledger.complete("u1", &[]).unwrap_err().to_string(), "claim u1 is not being prepared");
    assert!(ledger.complete("u2", &[]).is_err());
}

#[test]
fn start_up_and_clean_up() {
    let mut old = entry("Completed", "", json!([]));
    old.as_object_mut().unwrap().remove("bootId");
    let mut ledger = ledger(json!({
        "kept": entry("Completed", "b1", json!([])), "lost": entry("Completed", "b1", json!([])),
        "pending": entry("Undoing", "b1", json!([])), "earlier": entry("Started", "b0", json!([])), "old": old,
    }));
    let start = ledger.start_up("b1", ["earlier", "unknown", "pending", "kept"]);
    let wanted = [
        ("earlier", StartAction::MarkRebooted),
        ("kept", StartAction::Keep),
        ("lost", StartAction::RebuildCdi),
        ("old", StartAction::AdoptBoot { rebuild_cdi: true }),
        ("pending", StartAction::KeepPending),
    ];
    assert_eq!(start.entries, wanted.map(|(uid, action)| (uid.to_owned(), action)).into());
    assert_eq!(start.remove_cdi_files, ["earlier", "unknown"]);
    ledger.adopt_boot("b1");
    assert_eq!(ledger.entries()["old"].boot_id.as_deref(), Some("b1"));
    assert_eq!(ledger.entries()["earlier"].boot_id.as_deref(), Some("b0"));

    for (uid, stale) in [("kept", CleanUp::Report), ("pending", CleanUp::Undo), ("earlier", CleanUp::Drop)] {
        let entry = &ledger.entries()[uid];
        for lookup in [LookedUpClaim::Gone, LookedUpClaim::Replaced, LookedUpClaim::Deallocated] {
            assert_eq!(entry.clean_up("b1", lookup), stale, "{uid} {lookup:?}");
        }
        for lookup in [LookedUpClaim::Same, LookedUpClaim::Failed] {
            assert_eq!(entry.clean_up("b1", lookup), CleanUp::Keep, "{uid} {lookup:?}");
        }
    }
    let found = claim(json!([]));
    assert_eq!(LookedUpClaim::from_claim("u1", Some(&found)), LookedUpClaim::Same);
    assert_eq!(LookedUpClaim::from_claim("u2", Some(&found)), LookedUpClaim::Replaced);
    assert_eq!(LookedUpClaim::from_claim("u2", None), LookedUpClaim::Gone);
    let pending = ResourceClaim { status: None, ..found };
    assert_eq!(LookedUpClaim::from_claim("u1", Some(&pending)), LookedUpClaim::Deallocated);
}

/// Returns a file whose checksum fits.
fn file(data: &str) -> Vec<u8> {
    let checksum = crc32(data.as_bytes());
    json!({"version": 1, "checksum": checksum, "data": data}).to_string().into_bytes()
}

/// CRC-32 bit by bit, independent of the library's.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (!(crc & 1)).wrapping_add(1)))
    })
}

#[test]
fn what_a_later_version_added_survives() {
    let data = r#"{"entries":{"u1":{"namespace":"ns","name":"c1","state":"Completed","future":[1],
        "results":[{"request":"gpu","pool":"p","device":"a","driver":"d","consumedCapacity":{"x":"1"}}]}},
        "tombstones":{"u2":{"resourceVersion":"3","until":"2026-11-22T10:00:00Z","why":"x"}},"host":"node-1"}"#;
    let mut ledger = Ledger::from_checkpoint(&file(data)).unwrap();
    ledger.begin_undo("u1");
    let again = ledger.to_checkpoint();
    let written: Value = serde_json::from_str(&again).unwrap();
    let written: Value = serde_json::from_str(written["data"].as_str().unwrap()).unwrap();
    let mut wanted: Value = serde_json::from_str(data).unwrap();
    wanted["entries"]["u1"]["state"] = json!("Undoing");
    assert_eq!(written, wanted);
    assert_eq!(Ledger::from_checkpoint(again.as_bytes()).unwrap(), ledger);
    assert_eq!(ledger.entries()["u1"].state, EntryState::Undoing);
}

#[test]
fn files_that_can_not_be_used() {
    let good = file(r#"{"entries":{}}"#);
    assert!(Ledger::from_checkpoint(&good).is_ok());
    let read = |bytes: &[u8]| Ledger::from_checkpoint(bytes).unwrap_err();
    for cut in 0..good.len() {
        assert!(matches!(read(&good[..cut]), LedgerError::Invalid { field, .. } if field == "file"));
    }
    let changed = String::from_utf8(good).unwrap().replace("entries", "entriez");
    assert!(matches!(read(changed.as_bytes()), LedgerError::Checksum { .. }));
    assert_eq!(read(br#"{"version": 2, "ledger": []}"#), LedgerError::Version { found: 2 });
    for data in ["", "[", r#"{"entries": []}"#, r#"{"entries": {"u": {"state": "Done"}}}"#] {
        assert!(matches!(read(&file(data)), LedgerError::Invalid { field, .. } if field == "data"), "{data}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// An administrator's result on any device changes no decision about other claims.
    #[test]
    fn an_admin_result_changes_nothing(wanted in prop::collection::btree_set(0_u8..3, 1..3), boot in 0_u8..2) {
        let admin: Vec<Value> = (0_u8..3)
            .map(|number| {
                let mut result = result(&format!("d{number}"));
                result["adminAccess"] = json!(true);
                result
            })
            .collect();
        let with = ledger(json!({"u2": entry("Completed", &format!("b{boot}"), json!(admin))}));
        let wanted: Vec<Value> = wanted.iter().map(|number| result(&format!("d{number}"))).collect();
        let plans = [&with, &Ledger::default()]
            .map(|ledger| ledger.plan_prepare(&node(), &asked(), Some(&claim(json!(wanted))), NOW).unwrap());
        prop_assert_eq!(&plans[0], &plans[1]);
    }
}
