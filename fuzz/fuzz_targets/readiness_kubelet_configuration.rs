//! Configurations of kubelets: registering the gates of one again changes nothing, and what it has is written and read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use readiness::validate::{ValidationOptions, validate_gates};
use readiness::{KubeletConfiguration, RegistrationMode, merge_gates};

fuzz_target!(|text: &[u8]| {
    let Ok(configuration) = serde_json::from_slice::<KubeletConfiguration>(text) else { return };
    let written = serde_json::to_string(&configuration).expect("writable");
    assert_eq!(serde_json::from_str::<KubeletConfiguration>(&written).expect("readable"), configuration);
    let gates = &configuration.node_readiness_gates;
    let _ = validate_gates(gates, &ValidationOptions::default());
    for mode in [RegistrationMode::CreateOnly, RegistrationMode::Sync] {
        let registered = merge_gates(None, gates, mode);
        assert_eq!(merge_gates(Some(&registered), gates, mode), registered);
    }
});
