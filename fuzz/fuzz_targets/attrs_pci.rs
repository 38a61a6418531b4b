//! PCI: the first line is an address, the rest a link's target. Addresses survive printing, roots are one component.
#![no_main]

use dra_attrs::PciAddress;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (address, target) = text.split_once('\n').unwrap_or((text, text));
    let strict = PciAddress::parse(address);
    if let Ok(parsed) = &strict {
        assert_eq!(parsed.to_string(), address);
    }
    let extended = PciAddress::parse_extended(address);
    if let Ok(parsed) = &extended {
        assert_eq!(PciAddress::parse_extended(&parsed.to_string()), extended);
        assert!(strict.is_err() || strict == extended);
    }
    if let Ok(parsed) = strict.or(extended) {
        let text = serde_json::to_value(parsed).unwrap();
        assert_eq!(serde_json::from_value::<PciAddress>(text).unwrap(), parsed);
        let root = parsed.pcie_root(target.trim_end());
        assert!(root.is_err() || root.is_ok_and(|root| root.starts_with("pci") && !root.contains('/')));
        let below = format!("../../../devices/pci0000:00/{parsed}");
        assert_eq!(parsed.pcie_root(&below).as_deref(), Ok("pci0000:00"));
    }
});
