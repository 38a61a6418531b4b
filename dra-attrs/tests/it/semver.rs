//! Versions, compared by precedence.

use std::cmp::Ordering;

use dra_attrs::Version;

#[test]
fn versions_are_ordered_by_precedence() {
    let version = |text: &str| text.parse::<Version>().unwrap();
    let ascending = ["0.9.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-2", "1.0.0", "1.2.0", "1.10.0", "2.0.0"];
    let mut sorted = ascending.map(version).to_vec();
    sorted.sort();
    // Numbers come before letters in a pre-release.
    let sorted: Vec<String> = sorted.into_iter().map(|version| version.to_string()).collect();
    assert_eq!(sorted, ["0.9.0", "1.0.0-2", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0", "1.2.0", "1.10.0", "2.0.0"]);
    let (one, other) = (version("1.2.3+a"), version("1.2.3+b"));
    assert!(one == other && one.partial_cmp(&other) == Some(Ordering::Equal) && one != version("1.2.4"));
    assert_eq!((one.to_string().as_str(), other.to_string().as_str()), ("1.2.3+a", "1.2.3+b"));
    assert_eq!((one.major(), one.minor(), one.patch()), (1, 2, 3));
    assert!(version("1.2.4") > one && one < version("1.3.0"));
}
