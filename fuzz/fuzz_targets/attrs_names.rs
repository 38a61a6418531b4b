//! Names: a first line with a name, a second one with a driver. What parses is printed as it was, and is looked up.
#![no_main]

use std::collections::BTreeMap;

use dra_attrs::name::{FullyQualifiedName, QualifiedName, lookup};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut lines = text.lines();
    let (name, driver) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let bare = BTreeMap::from([(name.rsplit('/').next().unwrap_or_default().to_owned(), "bare")]);
    let _ = lookup(&bare, name, driver);

    let Ok(qualified) = QualifiedName::parse(name) else {
        return assert!(FullyQualifiedName::parse(name).is_err());
    };
    assert_eq!(qualified.to_string(), name);
    assert_eq!(lookup(&bare, name, qualified.domain_or(driver)), Some(&"bare"));

    let Ok(full) = FullyQualifiedName::parse(name) else { return assert_eq!(qualified.domain(), None) };
    assert_eq!((full.to_string().as_str(), Some(full.domain()), full.id()), (name, qualified.domain(), qualified.id()));
    assert_eq!(lookup(&bare, name, driver).is_some(), driver == full.domain());
    let both = BTreeMap::from([(name.to_owned(), "explicit"), (full.id().to_owned(), "bare")]);
    assert_eq!(lookup(&both, name, full.domain()), Some(&"explicit"));
});
