//! Names of slices and sockets.

use dra_attrs::{Index, NameFormat};
use dra_node::driver::{PluginInfo, SlicePlan};

const UID: &str = "ad4af911-5bcd-47c5-a554-f35cea869472";
const REGISTRY: &str = "/var/lib/kubelet/plugins_registry";

#[test]
fn positions_have_as_many_digits_as_the_last_one() {
    assert_eq!(SlicePlan::generate_name(Index::from(0x10_0000), 0x10_0001, "d", None), "100000-d-");
    assert_eq!(SlicePlan::generate_name(Index::FIRST, 0x10_0001, "d", None), "000000-d-");
    assert_eq!(SlicePlan::decode_index("00001-d-x", 0x10_0001), None);
    for (name, index) in
        [("00002-d", Some(2)), ("fffff-d", Some(0xf_ffff)), ("0000g-d", None), ("00001", None), ("-", None)]
    {
        assert_eq!(SlicePlan::decode_index(name, 3).map(usize::from), index, "{name}");
    }
}

#[test]
fn fixed_names_are_names_of_objects() {
    let long = "n".repeat(240) + ".m";
    for (driver, owner, pool) in
        [("D.example.com", Some("node-1"), "p"), ("d", Some(long.as_str()), "p"), ("d", None, "")]
    {
        let name = SlicePlan::fixed_name(Index::from(2), 3, driver, owner, pool);
        assert!(NameFormat::Subdomain.problems(&name).is_empty(), "{name}");
        assert_eq!(SlicePlan::decode_index(&name, 3), Some(Index::from(2)));
    }
    let names = [("d", Some("a"), "p"), ("d", Some("a"), "q"), ("d", None, "p"), ("e", Some("a"), "p")];
    let names: std::collections::BTreeSet<String> =
        names.map(|(driver, owner, pool)| SlicePlan::fixed_name(Index::FIRST, 1, driver, owner, pool)).into();
    assert_eq!(names.len(), 4);
}

#[test]
fn a_path_of_a_socket_has_at_most_107_bytes() {
    // The directory and a slash have 34 bytes, a UID 36.
    let cases = [(27, "-reg.sock", 1), (28, "-reg.sock", 0), (52, "-reg.sock", 0)];
    for (len, end, uids) in cases {
        let driver = "g".repeat(len);
        let name = PluginInfo::registrar_socket(REGISTRY, &driver, Some(UID)).unwrap();
        assert!(REGISTRY.len() + 1 + name.len() <= 107 && name.ends_with(end), "{name}");
        assert_eq!((name.matches(UID).count(), name.starts_with(&driver)), (uids, true), "{name}");
    }
    let name = PluginInfo::registrar_socket(REGISTRY, &"g".repeat(53), Some(UID)).unwrap();
    assert!(name.starts_with("dra-") && name.len() == "dra-".len() + 22 + "-reg.sock".len(), "{name}");
    assert!(PluginInfo::registrar_socket(REGISTRY, &"g".repeat(65), None).is_err());
    let folder = |len: usize| format!("/var/lib/kubelet/plugins/{}", "g".repeat(len));
    assert_eq!(PluginInfo::data_socket(&folder(36), Some(UID)).unwrap(), format!("dra-{UID}.sock"));
    assert_eq!(PluginInfo::data_socket(&folder(37), Some(UID)).unwrap().len(), "dra-.sock".len() + 11);
    assert!(PluginInfo::data_socket(&folder(80), Some(UID)).is_err());
}
