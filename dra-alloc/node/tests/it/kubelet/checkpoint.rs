//! Tests of the checkpoint file: restarts, upgrades, downgrades and damage.

use dra_attrs::Profile;
use dra_device::skip::SkipSet;
use dra_node::kubelet::{CheckpointError, ClaimCache, Operation};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{BOTH, GPU, NIC, World, claim, edit, forget_skips, pod, sealed};

fn read(file: &str) -> Result<ClaimCache, CheckpointError> {
    ClaimCache::from_checkpoint(file.as_bytes())
}

/// Returns the file of a kubelet, with a checksum that a Go program has computed.
fn known(data: &str, checksum: u32) -> String {
    json!({"Data": data, "Checksum": checksum}).to_string()
}

const HEAD: &str = r#"{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":["#;

#[test]
fn files_of_kubelets() {
    let one = r#"{"ClaimUID":"u1","ClaimName":"c","Namespace":"ns","PodUIDs":{"p1":{}},"DriverState":{"d.example.com":{"Devices":null"#;
    let rows = [
        (format!("{HEAD}]}}"), 2_361_995_144, None),
        (format!(r#"{HEAD}{one},"SkipNodeOperations":["*"]}}}}}}]}}"#), 653_848_689, Some(SkipSet::EVERYTHING)),
        (format!("{HEAD}{one}}}}}}}]}}"), 1_351_016_939, Some(SkipSet::NONE)),
    ];
    for (data, checksum, skips) in rows {
        let file = known(&data, checksum);
        let cache = read(&file).unwrap();
        let found = cache.claims().values().next().map(|info| info.drivers["d.example.com"].skips);
        assert_eq!(found, skips);
        let written: Value = serde_json::from_str(&cache.to_checkpoint(Profile::V1_37)).unwrap();
        assert_eq!(written["Data"], data, "byte for byte");
        assert_eq!(written["Checksum"], checksum);
    }
}

#[test]
fn everything_of_a_claim_survives_but_prepared() {
    // req: 5945-CKPT-1
    let declared = [json!(["*"]), json!(["NodeUnprepareResources"]), json!(null), json!(true)];
    for profile in BOTH {
        let mut world = World::new(profile, &[GPU, NIC]);
        for (index, skip) in declared.iter().enumerate() {
            let name = format!("c{index}");
            let object = claim(&name, &[(GPU, skip.clone()), (NIC, json!(null))]);
            world.prepare(&pod("p", &[name.as_str()]), &[object]).unwrap();
        }
        let restarted = world.clone().restart();
        for (key, info) in world.cache.claims() {
            let again = &restarted.cache.claims()[key];
            assert_eq!((&again.uid, &again.pods, &again.drivers), (&info.uid, &info.pods, &info.drivers));
            assert!(!again.prepared);
        }
    }
}

#[test]
fn the_form_of_the_field_is_the_profiles_and_both_are_read() {
    let object = claim("c", &[(GPU, json!(true))]);
    for (profile, text) in
        [(Profile::Kep, r#"\"SkipNodeOperations\":true"#), (Profile::V1_37, r#"\"SkipNodeOperations\":[\"*\"]"#)]
    {
        let mut world = World::new(profile, &[]);
        world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).unwrap();
        assert!(world.file.contains(text), "{}", world.file);
        assert_eq!(
            read(&world.file).unwrap().claims().values().next().unwrap().drivers[GPU].skips,
            SkipSet::EVERYTHING
        );
    }
}

#[test]
fn a_reader_that_does_not_know_the_field() {
    // req: 5945-CKPT-2, 5945-CKPT-5
    // Unknown keys are ignored at every level, as in Go.
    let mut world = World::new(Profile::Kep, &[GPU]);
    world.prepare(&pod("p", &["c"]), &[claim("c", &[(GPU, json!(true))])]).unwrap();
    let newer = edit(&world.file, |data| {
        data["Future"] = json!(1);
        data["ClaimInfoStateList"][0]["Future"] = json!({"a": []});
        data["ClaimInfoStateList"][0]["DriverState"][GPU]["Future"] = json!("x");
    });
    assert_eq!(read(&newer).unwrap().claims(), read(&world.file).unwrap().claims());
    let older = world.restart_in_older_release();
    assert_eq!(older.cache.claims().values().next().unwrap().drivers[GPU].skips, SkipSet::NONE);
}

#[test]
fn a_file_without_the_field_skips_nothing() {
    // req: 5945-CKPT-3, 5945-CKPT-8
    for profile in BOTH {
        let mut world = World::new(profile, &[GPU]);
        world.prepare(&pod("p", &["c"]), &[claim("c", &[(GPU, json!(null))])]).unwrap();
        world.file = forget_skips(&world.file);
        world = world.restart();
        world.registered.clear();
        let error = world.unprepare(&pod("p", &["c"])).unwrap_err();
        assert_eq!(error.to_string(), "unprepare dynamic resources: DRA driver gpu.example.com is not registered");
        assert!(world.cache.may_need_unprepare("p-uid"));
    }
}

#[test]
fn keys_in_another_case_and_missing_lists() {
    let data = r#"{"claiminfostatelist":[{"claimuid":"u","CLAIMNAME":"c","namespace":"ns","driverstate":{"d":{"skipnodeoperations":["*"]}}}]}"#;
    let cache = read(&sealed(data)).unwrap();
    let info = cache.claims().values().next().unwrap();
    assert_eq!((info.uid.as_str(), info.drivers["d"].skips), ("u", SkipSet::EVERYTHING));
    assert!(info.pods.is_empty());
    assert!(read(&sealed(r#"{"kind":"DRACheckpoint","ClaimInfoStateList":null}"#)).unwrap().claims().is_empty());
}

#[test]
fn another_kind_or_version_is_refused() {
    let newer = HEAD.replace("/v1\"", "/v2\"") + "]}";
    let error = read(&sealed(&newer)).unwrap_err();
    assert!(matches!(&error, CheckpointError::OtherVersion { field: "apiVersion", .. }), "{error}");
    assert!(error.to_string().ends_with("use the kubelet that wrote it"), "{error}");
    let pod = HEAD.replace("DRACheckpoint", "Pod") + "]}";
    assert!(matches!(read(&sealed(&pod)), Err(CheckpointError::OtherVersion { field: "kind", .. })));
}

#[test]
fn damage_is_named() {
    // req: 5945-CKPT-4
    let good = ClaimCache::default().to_checkpoint(Profile::Kep);
    let mut world = World::new(Profile::Kep, &[GPU]);
    world.prepare(&pod("p", &["c"]), &[claim("c", &[(GPU, json!(null))])]).unwrap();
    let full = world.file;
    let twice = edit(&full, |data| {
        let first = data["ClaimInfoStateList"][0].clone();
        data["ClaimInfoStateList"].as_array_mut().unwrap().push(first);
    });
    let rows = [
        (String::new(), "file is not JSON"),
        (good[..good.len() / 2].to_owned(), "file is not JSON"),
        (good.replace("DRACheckpoint", "DRACheckpoinT"), "the checksum of Data is"),
        ("{}".to_owned(), "Data: nothing instead of a string"),
        (r#"{"Data":null,"Checksum":0}"#.to_owned(), "Data: nothing instead of a string"),
        (r#"{"Data":"{}"}"#.to_owned(), "Checksum: nothing instead of a number of 32 bits"),
        (r#"{"Data":"{}","Checksum":4294967296}"#.to_owned(), "Checksum: a number instead of a number of 32 bits"),
        (sealed("{"), "Data is not JSON"),
        (sealed(r#"{"ClaimInfoStateList":7}"#), "ClaimInfoStateList: a number instead of a list"),
        (sealed(r#"{"ClaimInfoStateList":[null]}"#), "ClaimInfoStateList[0]: nothing instead of an object"),
        (
            sealed(r#"{"ClaimInfoStateList":[{"ClaimUID":7}]}"#),
            "ClaimInfoStateList[0].ClaimUID: a number instead of a string",
        ),
        (
            edit(&full, |data| data["ClaimInfoStateList"][0]["DriverState"][GPU]["SkipNodeOperations"] = json!("*")),
            r#"ClaimInfoStateList[0].DriverState["gpu.example.com"].SkipNodeOperations: a string instead of a bool or a list"#,
        ),
        (
            edit(&full, |data| data["ClaimInfoStateList"][0]["DriverState"][GPU]["SkipNodeOperations"] = json!([null])),
            "SkipNodeOperations: a list instead of a bool or a list of operation names",
        ),
        (sealed("{}"), "kind: nothing instead of a string"),
        (sealed(r#"{"ClaimInfoStateList":[{"ClaimUID":"u"}]}"#), "ClaimInfoStateList[0]: no claim name"),
        (
            edit(&full, |data| {
                let mut other = data["ClaimInfoStateList"][0].clone();
                other["ClaimName"] = json!("d");
                data["ClaimInfoStateList"].as_array_mut().unwrap().push(other);
            }),
            "ClaimInfoStateList[1]: claim with UID",
        ),
        (sealed("[]"), "Data: a list instead of an object"),
        (sealed("null"), "Data: nothing instead of an object"),
        (
            edit(&full, |data| data["ClaimInfoStateList"][0]["DriverState"][GPU] = json!(5)),
            r#"ClaimInfoStateList[0].DriverState["gpu.example.com"]: a number instead of an object"#,
        ),
        (
            edit(&full, |data| data["ClaimInfoStateList"][0]["DriverState"][GPU]["Devices"] = json!([true])),
            r#"ClaimInfoStateList[0].DriverState["gpu.example.com"].Devices[0]: a bool instead of an object"#,
        ),
        (twice, "ClaimInfoStateList[1]: claim ns/c is there twice"),
        (
            edit(&full, |data| data["ClaimInfoStateList"][0]["PodUIDs"]["p-uid"] = json!(5)),
            r#"ClaimInfoStateList[0].PodUIDs["p-uid"]: a number instead of an object"#,
        ),
        (edit(&full, |data| data["kind"] = json!(5)), "kind: a number instead of a string"),
        (r#"{"version":"v1","entries":[],"checksum":7}"#.to_owned(), "the format of kubelets before 1.32"),
        (r#"{"version":"v1","checksum":7}"#.to_owned(), "the format of kubelets before 1.32"),
    ];
    for (file, expected) in rows {
        let error = read(&file).unwrap_err().to_string();
        assert!(error.starts_with("checkpoint is corrupted: ") && error.contains(expected), "{error}");
    }
}

#[test]
fn texts_are_escaped_as_go_does() {
    let mut world = World::new(Profile::V1_37, &[]);
    let odd = claim("c", &[("a<b>&\u{2028}.example.com", json!(["*"]))]);
    world.prepare(&pod("p", &["c"]), &[odd]).unwrap();
    assert!(world.file.contains(r"a\\u003cb\\u003e\\u0026\\u2028.example.com"), "{}", world.file);
    assert_eq!(read(&world.file).unwrap().claims().len(), 1);
}

#[test]
fn the_gate_that_is_off_keeps_what_the_file_says() {
    // req: 5945-CKPT-5, 5945-CKPT-7
    for profile in BOTH {
        let object = claim("c", &[(GPU, json!(true))]);
        let mut world = World::new(profile, &[]);
        world.prepare(&pod("p", &["c"]), std::slice::from_ref(&object)).unwrap();
        world = world.restart().gate_off();
        let text = world.prepare(&pod("q", &["c"]), &[object]).unwrap_err().to_string();
        assert!(text.contains("DRAOptionalNode"), "{text}");
        // Another claim makes the kubelet rewrite its file.
        world.prepare(&pod("q", &["other"]), &[claim("other", &[])]).unwrap();
        world = world.restart();
        world.unprepare(&pod("p", &["c"])).unwrap();
        assert_eq!(world.counts.count(Operation::Unprepare, GPU), 1);
        assert!(world.calls.is_empty());
    }
}

#[test]
fn an_older_release_has_to_call_the_driver() {
    // req: 5945-CKPT-6, 5945-SKEW-6
    let mut world = World::new(Profile::Kep, &[]);
    world.prepare(&pod("p", &["c"]), &[claim("c", &[(GPU, json!(true))])]).unwrap();
    world = world.restart_in_older_release();
    for _ in 0..2 {
        let error = world.unprepare(&pod("p", &["c"])).unwrap_err();
        assert!(error.to_string().contains("is not registered"));
        assert!(world.cache.may_need_unprepare("p-uid"));
    }
    world.registered.insert(GPU.to_owned());
    world.unprepare(&pod("p", &["c"])).unwrap();
    assert_eq!(world.called(Operation::Unprepare)[GPU], [["c-claim"]]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A flipped bit is detected wherever it is in `Data`.
    #[test]
    fn one_turned_bit_is_noticed(at in 0_usize..10_000, bit in 0_u8..7) {
        let mut world = World::new(Profile::V1_37, &[GPU]);
        world.prepare(&pod("p", &["c"]), &[claim("c", &[(GPU, json!(null)), (NIC, json!(["*"]))])]).unwrap();
        let file: Value = serde_json::from_str(&world.file).unwrap();
        let mut data = file["Data"].as_str().unwrap().as_bytes().to_vec();
        let at = at % data.len();
        data[at] ^= 1 << bit;
        let damaged = json!({"Data": String::from_utf8(data).unwrap(), "Checksum": file["Checksum"]}).to_string();
        prop_assert!(matches!(read(&damaged).unwrap_err(), CheckpointError::Checksum { .. }), "a wrong checksum");
    }
}

#[test]
fn prepared_devices_byte_for_byte() {
    // Files from before share IDs, from 1.34 and later, and with the field of the KEP.
    let file = |share: &str, skips: &str| {
        format!(
            r#"{HEAD}{{"ClaimUID":"067798be-454e-4be4-9047-1aa06aea63f7","ClaimName":"example","Namespace":"default","PodUIDs":{{"139cdb46-f989-4f17-9561-ca10cfb509a6":{{}}}},"DriverState":{{"test-driver.cdi.k8s.io":{{"Devices":[{{"PoolName":"worker-1","DeviceName":"dev-1",{share}"RequestNames":["test request"],"CDIDeviceIDs":["example.com/example=cdi-example"]}}]{skips}}}}}}}]}}"#
        )
    };
    let skips = r#","SkipNodeOperations":["*"]"#;
    let null = r#""ShareID":null,"#;
    let shared = r#""ShareID":"s-1","#;
    let rows = [
        (file("", ""), Some(1_656_016_162), file(null, "")),
        (file(null, ""), Some(2_570_581_864), file(null, "")),
        (file("", skips), Some(1_725_091_760), file(null, skips)),
        (file(shared, ""), None, file(shared, "")),
    ];
    for (data, checksum, expected) in rows {
        let cache = read(&known(&data, checksum.unwrap_or_else(|| crc32fast::hash(data.as_bytes())))).unwrap();
        let written = |profile: Profile| -> Value { serde_json::from_str(&cache.to_checkpoint(profile)).unwrap() };
        assert_eq!(written(Profile::V1_37)["Data"], expected);
        let without = expected.replace(null, "").replace(shared, "");
        assert_eq!(written(Profile::V1_34)["Data"], without);
    }
}
