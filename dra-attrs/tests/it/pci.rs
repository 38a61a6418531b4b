//! PCI addresses and roots.

use dra_attrs::{PciAddress, PciAddressError, PcieRootError, StandardAttribute, SysfsMap};

#[test]
fn strict_addresses() {
    // Upstream's pattern takes any two digits for the device and one hexadecimal digit for the function.
    for text in ["0000:00:00.0", "ffff:ff:ff.f", "0000:c1:00.7"] {
        assert_eq!(PciAddress::parse(text).unwrap().to_string(), text);
    }
    let address = PciAddress::parse("0001:c2:03.4").unwrap();
    assert_eq!(address.to_string(), "0001:c2:03.4");
    assert_eq!(PciAddress::parse(""), Err(PciAddressError::Empty));
    let bad =
        ["0000:C1:00.0", "10000:00:04.0", "c1:00.0", "0000:c1:00", "0000:c1:0.0", "0000:c1:00.00", " 0000:c1:00.0"];
    for text in bad.into_iter().chain(["0000:c1:00.g", "0000-c1-00.0", "+000:c1:00.0", "0000:c1:00:0", "ß000:c1:00.0"])
    {
        assert!(matches!(PciAddress::parse(text), Err(PciAddressError::Format { .. })), "{text}");
    }
}

#[test]
fn extended_addresses() {
    for text in ["10000:00:04.0", "ffffffff:ff:1f.7", "0000:00:00.0"] {
        assert_eq!(PciAddress::parse_extended(text).unwrap().to_string(), text);
    }
    let address = PciAddress::parse_extended("000A:0B:0C.1").unwrap();
    assert_eq!(
        (address.to_string().as_str(), serde_json::to_value(address).unwrap()),
        ("000a:0b:0c.1", "000a:0b:0c.1".into())
    );
    for text in ["0000:00:20.0", "0000:00:00.8", "000:00:00.0", "100000000:00:00.0", "00001:00:00.0", ""] {
        assert!(PciAddress::parse_extended(text).is_err(), "{text}");
    }
}

#[test]
fn roots_from_links() {
    let address = PciAddress::parse("0000:41:00.0").unwrap();
    let wide = PciAddress::parse_extended("10000:00:04.0").unwrap();
    let good = [
        (address, "../../../devices/pci0000:40/0000:40:01.1/0000:41:00.0", "pci0000:40"),
        (address, "../../../devices/pci0000:40/./x/../0000:41:00.0/", "pci0000:40"),
        (wide, "../../../devices/pci10000:00/10000:00:04.0/", "pci10000:00"),
    ];
    for (address, target, root) in good {
        assert_eq!(address.pcie_root(target).as_deref(), Ok(root), "{target}");
    }
    let bad = [
        "/sys/devices/pci0000:40/0000:41:00.0",
        "../../../devices/pci0000:40/0000:42:00.0",
        "../../../devices/platform/soc/pci0000:40/0000:41:00.0",
        // Also one that would lead to the device below the link's folder.
        "/../../../devices/pci0000:40/0000:41:00.0",
        "../../../devices/pcifoo/0000:41:00.0",
        "../../../devices/pci0000:4/0000:41:00.0",
        "../../../devices/pci000:40/0000:41:00.0",
        "../../../devices/pci123456789:40/0000:41:00.0",
        "../../../../../devices/pci0000:40/0000:41:00.0",
        "../../../devices",
        "0000:41:00.0",
        "",
    ];
    for target in bad {
        assert!(matches!(address.pcie_root(target), Err(PcieRootError::Link { .. })), "{target}");
    }
}

#[test]
fn root_attribute_through_sysfs() {
    let address = PciAddress::parse("0000:41:00.0").unwrap();
    let machine = SysfsMap::default()
        .with_link("bus/pci/devices/0000:41:00.0", "../../../devices/pci0000:40/0000:40:01.1/0000:41:00.0");
    let root = address.pcie_root_attribute(&machine).unwrap();
    assert_eq!((root.name.as_str(), root.value.string.as_deref()), (StandardAttribute::PCIE_ROOT, Some("pci0000:40")));
    let mut attributes = [(StandardAttribute::PCIE_ROOT.to_owned(), super::string("pci0000:00"))].into();
    root.clone().insert_into(&mut attributes);
    assert_eq!(attributes, [(root.name, root.value)].into());
    let absent = address.pcie_root_attribute(&SysfsMap::default()).unwrap_err();
    assert_eq!(absent.to_string(), "/sys/bus/pci/devices/0000:41:00.0: no such link");
}
