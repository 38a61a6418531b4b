//! Checkpoints: a readable checkpoint is written and read back as the same.
#![no_main]

use dra_alloc::kubelet::ClaimCache;
use dra_attrs::Profile;
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|data: &[u8]| {
    let _ = ClaimCache::from_checkpoint(data);
    // The checksum is made to fit, so that the data itself is parsed.
    let data = String::from_utf8_lossy(data);
    let file = json!({"Data": data, "Checksum": crc32fast::hash(data.as_bytes())}).to_string();
    let Ok(cache) = ClaimCache::from_checkpoint(file.as_bytes()) else { return };
    let written = cache.to_checkpoint(Profile::V1_37);
    let again = ClaimCache::from_checkpoint(written.as_bytes()).expect("what was written can be read");
    assert_eq!(again.to_checkpoint(Profile::V1_37), written);
});
