//! Qualified names, and look-ups by a constraint's name.

use std::collections::BTreeMap;

use dra_attrs::internal::QualifiedName;
use dra_attrs::{FullyQualifiedName, NameError, StandardAttribute, lookup_by_name};

#[test]
fn standard_names() {
    // req: 6072-NAME-1
    for (name, id) in [
        (StandardAttribute::NUMA_NODE, "numaNode"),
        (StandardAttribute::PCIE_ROOT, "pcieRoot"),
        (StandardAttribute::PCI_BUS_ID, "pciBusID"),
    ] {
        let name = FullyQualifiedName::parse(name).unwrap();
        assert_eq!((name.domain(), name.id()), ("resource.kubernetes.io", id));
        assert_eq!(name.to_string(), format!("resource.kubernetes.io/{id}"));
    }
    assert_eq!(StandardAttribute::NUMA_NODE, "resource.kubernetes.io/numaNode");
}

#[test]
fn valid_names() {
    let long = format!("{}/{}", "d".repeat(63), "i".repeat(32));
    for name in ["a", "_", "numaNode", "A1_b", "dra.net/numaNode", "a-b.c0/x", "0.example/x", long.as_str()] {
        assert_eq!(QualifiedName::parse(name).unwrap().to_string(), name);
    }
    let domain = |name| QualifiedName::parse(name).unwrap().domain().unwrap_or("gpu.example");
    assert_eq!((domain("a"), domain("dra.net/a")), ("gpu.example", "dra.net"));
}

#[test]
fn each_rule_has_its_error() {
    let name = |text: &str| text.to_owned();
    let long_domain = format!("{}/a", "d".repeat(64));
    let long_id = "i".repeat(33);
    let rows = [
        ("", NameError::EmptyId { name: name("") }),
        ("dra.net/", NameError::EmptyId { name: name("dra.net/") }),
        ("/a", NameError::EmptyDomain { name: name("/a") }),
        ("a/b/c", NameError::SeveralSlashes { name: name("a/b/c") }),
        (long_domain.as_str(), NameError::DomainTooLong { name: long_domain.clone(), len: 64 }),
        (long_id.as_str(), NameError::IdTooLong { name: long_id.clone(), len: 33 }),
        ("Dra.net/a", NameError::InvalidDomain { name: name("Dra.net/a") }),
        ("-a/a", NameError::InvalidDomain { name: name("-a/a") }),
        ("a-/a", NameError::InvalidDomain { name: name("a-/a") }),
        ("a..b/a", NameError::InvalidDomain { name: name("a..b/a") }),
        ("1a", NameError::InvalidId { name: name("1a") }),
        ("a-b", NameError::InvalidId { name: name("a-b") }),
        ("ä", NameError::InvalidId { name: name("ä") }),
    ];
    for (text, error) in rows {
        assert_eq!(QualifiedName::parse(text), Err(error));
    }
    assert_eq!(FullyQualifiedName::parse("numaNode"), Err(NameError::MissingDomain { name: name("numaNode") }));
}

#[test]
fn explicit_key_wins_over_the_bare_id_of_the_driver() {
    let both = BTreeMap::from([("gpu.example/numa".to_owned(), 1), ("numa".to_owned(), 2)]);
    let bare = BTreeMap::from([("numa".to_owned(), 2)]);
    assert_eq!(lookup_by_name(&both, "gpu.example/numa", "gpu.example"), Some(&1));
    assert_eq!(lookup_by_name(&bare, "gpu.example/numa", "gpu.example"), Some(&2));
    assert_eq!(lookup_by_name(&bare, "gpu.example/numa", "nic.example"), None);
    // A bare key of a driver is not the standard attribute.
    let numa_node = BTreeMap::from([("numaNode".to_owned(), 3)]);
    assert_eq!(lookup_by_name(&numa_node, StandardAttribute::NUMA_NODE, "gpu.amd.com"), None);
    // A name without a domain only finds the identical key.
    assert_eq!(lookup_by_name(&bare, "numa", "gpu.example"), Some(&2));
}
