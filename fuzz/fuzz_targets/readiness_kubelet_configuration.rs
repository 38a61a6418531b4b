//! Configurations of kubelets: registering the gates of one again changes nothing, and what it has is written and read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use readiness::KubeletConfiguration;
use readiness::validate::{ValidationOptions, validate_gates};

fuzz_target!(|text: &[u8]| {
    let Ok(configuration) = serde_json::from_slice::<KubeletConfiguration>(text) else { return };
    let written = serde_json::to_string(&configuration).expect("writable");
    assert_eq!(serde_json::from_str::<KubeletConfiguration>(&written).expect("readable"), configuration);
    let gates = &configuration.node_readiness_gates;
    let _ = validate_gates(gates, &ValidationOptions::default());
    assert_eq!(configuration.merge_gates(gates), *gates);
});
