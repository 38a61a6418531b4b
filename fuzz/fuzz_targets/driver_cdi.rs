//! CDI: a readable spec is written and read back as the same; names that are taken lead back to what they were made of.
#![no_main]

use dra_alloc::driver::{CdiKind, CdiSpec};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(spec) = serde_json::from_str::<CdiSpec>(text) {
        let written = serde_json::to_string(&spec).expect("a spec is JSON");
        let again: CdiSpec = serde_json::from_str(&written).expect("what was written can be read");
        assert_eq!(again, spec);
        assert_eq!(again.minimum_version(), spec.minimum_version());
    }
    let mut parts = text.splitn(3, '\n');
    let (vendor, class) = (parts.next().unwrap_or_default(), parts.next().unwrap_or("claim"));
    let Ok(kind) = CdiKind::new(vendor, class) else { return };
    let name = parts.next().unwrap_or("u");
    assert_eq!(kind.claim_of_file(&kind.file_name(name)), Some(name));
    if let Ok(id) = kind.device_id(name) {
        assert_eq!(id.split_once('='), Some((kind.to_string().as_str(), name)));
        assert!(!id.contains(char::is_whitespace));
    }
});
