//! Tests of the diagnosis of problems with skipped node operations.

use dra_attrs::Profile;
use dra_device::DeviceId;
use dra_device::skip::{SkipDiagnosis, SkipEvidence, SkipField, SkipSymptom};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use serde_json::{Value, json};

fn slice(generation: i64, skips: Value) -> ResourceSlice {
    SkipField::read(json!({"metadata": {"name": format!("slice-{generation}")}, "spec": {"driver": "d.example.com",
        "pool": {"name": "p", "generation": generation, "resourceSliceCount": 1}, "devices": [{"name": "x"}],
        "skipNodeOperations": skips}}))
    .unwrap()
}

fn claim(skips: Value) -> ResourceClaim {
    SkipField::read(json!({"spec": {}, "status": {"allocation": {"devices": {"results": [
        {"request": "r", "driver": "d.example.com", "pool": "p", "device": "x", "skipNodeOperations": skips}]}}}}))
    .unwrap()
}

#[test]
fn symptoms_and_their_causes() {
    // req: 5945-OBS-4
    let device = DeviceId::new("d.example.com", "p", "x");
    let slice_name = "slice-1".to_owned();
    let gate = "DRAOptionalNodePreparation";
    let rows = [
        (
            json!(true),
            json!(null),
            SkipSymptom::None,
            vec![SkipDiagnosis::NotCopied { device: device.clone(), slice: slice_name.clone() }],
        ),
        (json!(true), json!(true), SkipSymptom::None, vec![]),
        (json!(null), json!(null), SkipSymptom::None, vec![]),
        (
            json!(false),
            json!(true),
            SkipSymptom::None,
            vec![SkipDiagnosis::SliceChanged { device: device.clone(), slice: slice_name.clone() }],
        ),
        (
            json!(true),
            json!(true),
            SkipSymptom::AllocationFailed("… but the DRAOptionalNodePreparation feature gate is disabled"),
            vec![SkipDiagnosis::SchedulerGateOff { gate }],
        ),
        (json!(true), json!(true), SkipSymptom::AllocationFailed("cannot allocate all claims"), vec![]),
        (
            json!(true),
            json!(true),
            SkipSymptom::PrepareFailed(
                "prepare dynamic resources: ResourceClaim c: DRAOptionalNodePreparationDisabled: …",
            ),
            vec![SkipDiagnosis::KubeletGateOff { gate }],
        ),
        (
            json!(true),
            json!(null),
            SkipSymptom::PrepareFailed("prepare dynamic resources: DRA driver d.example.com is not registered"),
            vec![
                SkipDiagnosis::DriverMissing { driver: "d.example.com".to_owned() },
                SkipDiagnosis::NotCopied { device: device.clone(), slice: slice_name.clone() },
            ],
        ),
        (
            json!(true),
            json!(true),
            SkipSymptom::UnprepareSkipped,
            vec![SkipDiagnosis::SkipRecorded { device: device.clone() }],
        ),
        (
            json!(true),
            json!(true),
            SkipSymptom::HardwareMissing,
            vec![SkipDiagnosis::SliceMisconfigured { device, slice: slice_name }],
        ),
        (json!(null), json!(null), SkipSymptom::HardwareMissing, vec![]),
    ];
    for (published, recorded, symptom, expected) in rows {
        let (slices, claim) = ([slice(1, published)], claim(recorded));
        let causes =
            SkipEvidence::diagnose(SkipEvidence { profile: Profile::Kep, slices: &slices, claim: &claim, symptom });
        assert_eq!(causes, expected, "{symptom:?}");
    }
}

#[test]
fn the_newest_slice_counts_and_texts_say_what_to_do() {
    let (slices, claim) = ([slice(2, json!(null)), slice(1, json!(true))], claim(json!(null)));
    let evidence = SkipEvidence { profile: Profile::V1_37, slices: &slices, claim: &claim, symptom: SkipSymptom::None };
    assert_eq!(SkipEvidence::diagnose(evidence), []);
    let message = "ResourceClaim c: DRAOptionalNodeOperations feature gate is disabled on kubelet";
    let causes = SkipEvidence::diagnose(SkipEvidence { symptom: SkipSymptom::PrepareFailed(message), ..evidence });
    assert_eq!(causes[0].to_string(), "enable the feature gate DRAOptionalNodeOperations on the kubelet of the node");
}

#[test]
fn a_node_that_does_not_declare_the_feature_is_not_the_gate_of_the_scheduler() {
    // req: 5945-OBS-4
    let (slices, claim) = ([slice(1, json!(["*"]))], ResourceClaim::default());
    for (profile, feature, gate) in [
        (Profile::V1_37, "DRAOptionalNodeOperations", "DRAOptionalNodeOperations"),
        (Profile::Kep, "DraOptionalNodePreparation", "DRAOptionalNodePreparation"),
    ] {
        let explained =
            "claim ns/c, request r: none of 1 device of class k can be used: 1 needs a node that declares the feature";
        let rejected = "Pod requires node features that are not available";
        for symptom in [
            SkipSymptom::AllocationFailed(&format!("{explained} {feature}")),
            SkipSymptom::AllocationFailed(&format!(
                "0/1 nodes are available: 1 node(s) didn't match Pod's required features ({feature})."
            )),
            SkipSymptom::PrepareFailed(&format!("{rejected}: {feature}")),
        ] {
            let causes = SkipEvidence::diagnose(SkipEvidence { profile, slices: &slices, claim: &claim, symptom });
            assert_eq!(causes, [SkipDiagnosis::KubeletGateOff { gate }], "{symptom:?}");
        }
    }
}
