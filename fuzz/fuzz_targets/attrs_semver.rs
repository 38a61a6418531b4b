//! Versions, one per line: printing gives the text back, and the order of any two is consistent. A line is also read as the minor
//! version of a server.
#![no_main]

use dra_attrs::{Profile, Version};
use k8s_openapi::apimachinery::pkg::version::Info;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut versions = Vec::new();
    for line in text.lines().take(8) {
        let server = |minor: String| Profile::of_server(&Info { major: "1".to_owned(), minor, ..Info::default() });
        assert_eq!(
            server(format!("{line}+")).ok(),
            server(line.to_owned()).ok(),
            "additions of a provider are ignored"
        );
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
