//! Names: the first line is a name, the second a driver. A valid name is printed as it was, and can be looked up. The text
//! is also read as the metrics of a component, and the name as a list of gates.
#![no_main]

use std::collections::BTreeMap;

use dra_alloc::GateSet;
use dra_attrs::internal::QualifiedName;
use dra_attrs::{FullyQualifiedName, Profile, lookup_by_name};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut lines = text.lines();
    let (name, driver) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let bare = BTreeMap::from([(name.rsplit('/').next().unwrap_or_default().to_owned(), "bare")]);
    let _ = lookup_by_name(&bare, name, driver);
    let _ = GateSet::from_metrics(text, Profile::V1_37);
    let _ = GateSet::parse(name, Profile::V1_37);

    let Ok(qualified) = QualifiedName::parse(name) else {
        return assert!(FullyQualifiedName::parse(name).is_err());
    };
    assert_eq!(qualified.to_string(), name);
    assert_eq!(lookup_by_name(&bare, name, qualified.domain().unwrap_or(driver)), Some(&"bare"));

    let Ok(full) = FullyQualifiedName::parse(name) else { return assert_eq!(qualified.domain(), None) };
    assert_eq!((full.to_string().as_str(), Some(full.domain()), full.id()), (name, qualified.domain(), qualified.id()));
    assert_eq!(lookup_by_name(&bare, name, driver).is_some(), driver == full.domain());
    let both = BTreeMap::from([(name.to_owned(), "explicit"), (full.id().to_owned(), "bare")]);
    assert_eq!(lookup_by_name(&both, name, full.domain()), Some(&"explicit"));
});
