//! Device metadata: a readable stream is written and read back as the same; paths stay in their directories.
#![no_main]

use dra_alloc::driver::{DeviceMetadata, MetadataFile, MetadataOwner, MetadataVersion};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let known = MetadataVersion::ALL.map(MetadataVersion::api_version);
    if let Ok((_, document)) = DeviceMetadata::from_stream(text, &known) {
        let written = document.to_stream(&MetadataVersion::ALL);
        let (index, again) = DeviceMetadata::from_stream(&written, &known).expect("what was written can be read");
        assert_eq!((usize::from(index), again), (0, document));
    }
    let owner = MetadataOwner {
        driver: "gpu.example.com",
        plugin_dir: "/plugins",
        cdi_dir: "/var/run/cdi",
        namespace: "ns",
        claim: text,
        uid: "u",
        pod_claim_name: None,
    };
    for request in [text, "gpu"] {
        let Ok(file) = owner.file(request) else { continue };
        assert!(!file.host_path.split('/').any(|part| part == ".."));
        assert!(file.host_path.starts_with("/plugins/dra-device-metadata/ns_"));
        assert!(file.cdi_spec().is_ok());
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        assert_eq!(MetadataFile::claim_of_cdi_file(owner.driver, &name(&file.cdi_file)), Some("u"));
    }
});
