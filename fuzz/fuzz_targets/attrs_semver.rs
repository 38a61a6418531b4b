//! Versions, one per line: printing gives the text back, and the order of any two is consistent.
#![no_main]

use dra_attrs::Version;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut versions = Vec::new();
    for line in text.lines().take(8) {
        let Ok(version) = line.parse::<Version>() else { continue };
        assert_eq!(version.to_string(), line);
        versions.push(version);
    }
    for left in &versions {
        for right in &versions {
            assert_eq!(left.cmp(right), right.cmp(left).reverse());
            assert_eq!(left == right, left.cmp(right).is_eq());
        }
    }
});
