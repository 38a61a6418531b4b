//! CDI names and specs.

use std::collections::BTreeSet;

use dra_node::driver::{CdiDevice, CdiEdits, CdiError, CdiKind, CdiSpec, HeldDevice};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

#[test]
fn names_as_the_parser_of_cdi_takes_them() {
    for vendor in ["a", "gpu.example.com", "A_b-c.9"] {
        assert!(CdiKind::new(vendor, "gpu").is_ok(), "{vendor}");
    }
    for vendor in ["", "9gpu.example.com", "-a", "a-", "a.", "a/b", "a b", "ä", "a=b"] {
        let wanted = CdiError::Vendor { vendor: vendor.to_owned() };
        assert_eq!(CdiKind::new(vendor, "gpu").unwrap_err(), wanted);
        let wanted = CdiError::Class { class: vendor.to_owned() };
        assert_eq!(CdiKind::new("a", vendor).unwrap_err(), wanted);
    }
    let kind = CdiKind::new("a", "b").unwrap();
    for device in ["0", "gpu:0", "0000:c1:00.0", "x_y"] {
        assert_eq!(kind.device_id(device).unwrap(), format!("a/b={device}"));
    }
    for device in ["", ":a", "a:", "a/b", "a=b", "é"] {
        assert!(kind.device_id(device).is_err(), "{device}");
    }
}

#[test]
fn a_file_name_leads_back_to_its_claim() {
    let kind = CdiKind::new("gpu.example.com", "claim").unwrap();
    assert_eq!(kind.claim_of_file(&kind.file_name("a_b-c")), Some("a_b-c"));
    for other in [
        "gpu.example.com-claims_u.json",
        "gpu.example.com-claim_u.yaml",
        "gpu.example.com-claim_u.json.tmp",
        "gpu.example.com-claim-u.json",
        "xgpu.example.com-claim_u.json",
        ".tmp123",
    ] {
        assert_eq!(kind.claim_of_file(other), None, "{other}");
    }
}

fn spec(devices: Vec<CdiDevice>) -> CdiSpec {
    CdiSpec::new(&CdiKind::new("a", "b").unwrap(), devices).unwrap()
}

fn device(edits: CdiEdits) -> CdiDevice {
    CdiDevice::new("d", edits)
}

#[test]
fn a_spec_without_devices_is_refused() {
    let kind = CdiKind::new("gpu.example.com", "claim").unwrap();
    let error = CdiSpec::new(&kind, Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "CDI spec of gpu.example.com/claim: it needs at least one device");
}

#[test]
fn the_smallest_version_that_has_it_all() {
    let edits = |fields: Value| from_value::<CdiEdits>(fields).unwrap();
    let (mount, tmpfs) = (
        json!({"hostPath": "/a", "containerPath": "/b"}),
        json!({"hostPath": "", "containerPath": "", "type": "tmpfs"}),
    );
    let table = [
        ("0.3.0", edits(json!({"env": ["A=1"], "mounts": [mount]}))),
        ("0.3.0", edits(json!({"deviceNodes": [{"path": "/dev/x"}]}))),
        ("0.4.0", edits(json!({"mounts": [tmpfs]}))),
        ("0.5.0", edits(json!({"deviceNodes": [{"hostPath": "/dev/x"}], "mounts": [tmpfs]}))),
        ("0.7.0", edits(json!({"additionalGids": [7]}))),
        ("0.7.0", edits(json!({"intelRdt": {}}))),
        ("1.1.0", edits(json!({"intelRdt": {"schemata": ["L3:0=f"]}}))),
        ("1.1.0", edits(json!({"intelRdt": {"enableMonitoring": true}}))),
        ("1.1.0", edits(json!({"netDevices": [{"hostInterfaceName": "eth1", "name": "net1"}]}))),
    ];
    for (version, edits) in table {
        assert_eq!(spec(vec![device(edits.clone())]).cdi_version, version, "{edits:?}");
        let mut for_all = spec(vec![device(CdiEdits::default())]);
        for_all.container_edits = edits;
        assert_eq!(for_all.minimum_version(), version);
    }
    let digit = CdiDevice::new("0", CdiEdits::default());
    assert_eq!(spec(vec![digit]).cdi_version, "0.5.0");
    let mut noted = device(CdiEdits::default());
    noted.annotations = [("a".to_owned(), "b".to_owned())].into();
    assert_eq!(spec(vec![noted]).cdi_version, "0.6.0");
    let dotted = CdiSpec::new(&CdiKind::new("a", "b.c").unwrap(), vec![device(CdiEdits::default())]).unwrap();
    assert_eq!(dotted.cdi_version, "0.6.0");
}

#[test]
fn the_file_has_the_keys_of_the_specification() {
    let text = json!({
        "cdiVersion": "1.1.0", "kind": "a/b", "annotations": {"k": "v"},
        "devices": [{"name": "d", "annotations": {"k": "v"}, "containerEdits": {
            "env": ["A=1"],
            "deviceNodes": [{"path": "/dev/x", "hostPath": "/dev/y", "type": "c", "major": 1, "minor": 3,
                "fileMode": 438, "permissions": "rw", "uid": 1, "gid": 2}],
            "netDevices": [{"hostInterfaceName": "eth1", "name": "net1"}],
            "hooks": [{"hookName": "createContainer", "path": "/bin/x", "args": ["x"], "env": ["B=2"], "timeout": 3}],
            "mounts": [{"hostPath": "/a", "containerPath": "/b", "options": ["ro"], "type": "bind"}],
            "intelRdt": {"closID": "c", "l3CacheSchema": "l", "memBwSchema": "m", "schemata": ["s"],
                "enableMonitoring": true},
            "additionalGids": [5],
        }}],
        "containerEdits": {"env": ["C=3"]},
    });
    let spec: CdiSpec = from_value(text.clone()).unwrap();
    assert_eq!(serde_json::to_value(&spec).unwrap(), text, "nothing is lost");
    assert_eq!(spec.minimum_version(), "1.1.0");
    let small = json!({"cdiVersion": "0.3.0", "kind": "a/b", "devices": [{"name": "d", "containerEdits": {}}]});
    let spec: CdiSpec = from_value(small.clone()).unwrap();
    assert_eq!(serde_json::to_value(&spec).unwrap(), small, "nothing is added");
}

fn held(request: &str, pool: &str, device: &str, share: Option<&str>) -> HeldDevice {
    from_value(json!({"request": request, "pool": pool, "device": device, "shareID": share})).unwrap()
}

#[test]
fn names_within_a_claim() {
    let devices = [
        held("gpu/large", "p", "d", None),
        held("watch", "p", "d", None),
        held("watch", "q", "d", None),
        held("watch", "r", "d", None),
        held("part", "p", "d", Some("s1")),
    ];
    assert_eq!(CdiDevice::names("u", &devices), ["u-d", "u-d-watch", "u-d-watch-2", "u-d-watch-3", "u-d-s1"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Names are unique in a claim, whatever it holds.
    #[test]
    fn names_are_unique(parts in prop::collection::vec((0_u8..2, 0_u8..2, 0_u8..2, prop::option::of(0_u8..2)), 0..12)) {
        let part = |(request, pool, device, share): &(u8, u8, u8, Option<u8>)| {
            let share = share.map(|share| format!("{share}"));
            held(&format!("{request}"), &format!("{pool}"), &format!("d{device}"), share.as_deref())
        };
        let devices: Vec<_> = parts.iter().map(part).collect();
        let names = CdiDevice::names("u", &devices);
        prop_assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), devices.len());
    }
}
