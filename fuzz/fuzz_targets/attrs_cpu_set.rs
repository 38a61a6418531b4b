//! Id lists: printing keeps the set, and the printed text is canonical.
#![no_main]

use dra_attrs::numa::CpuSet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(set) = text.parse::<CpuSet>() else { return };
    let printed = set.to_string();
    let again: CpuSet = printed.parse().expect("what is printed can be read");
    assert_eq!(again, set);
    assert_eq!(again.to_string(), printed);
    assert_eq!(set.iter().collect::<CpuSet>(), set);
    assert!(set.iter().is_sorted_by(|a, b| a < b));
    assert_eq!(set.is_empty(), set.iter().next().is_none());
    assert!(set.iter().last().is_none_or(|last| last < 65_536 && set.contains(last) && !set.contains(last + 1)));
});
