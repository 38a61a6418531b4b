//! Constraints: a pop undoes a push, and a failing push changes nothing, after any history.
#![no_main]

use dra_attrs::{DistinctState, ListTypes, MatchState, ValueSet};
use k8s_openapi::api::resource::v1::DeviceAttribute;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<(Option<u8>, Option<Vec<u8>>, Option<bool>, Option<Vec<bool>>)>, Vec<Option<u8>>)| {
    // Few different values, so that devices have some in common.
    let small = |value: u8| i64::from(value % 8);
    let devices = input.0.into_iter().map(|(int, ints, bool, bools)| {
        let (int, ints) = (int.map(small), ints.map(|list| list.into_iter().map(small).collect()));
        DeviceAttribute { int, ints, bool, bools, ..DeviceAttribute::default() }
    });
    let devices: Vec<_> = devices.collect();
    for lists in [ListTypes::Enabled, ListTypes::Disabled, ListTypes::Refused] {
        let (mut state, mut distinct) = (MatchState::new(), DistinctState::new());
        for step in &input.1 {
            let set = ValueSet::from_attribute(step.and_then(|index| devices.get(usize::from(index % 32))), lists);
            let before = (state.common().to_vec(), state.len(), format!("{distinct:?}"));
            let pushed = (state.push(&set), distinct.push(&set));
            let _ = (pushed.0.map(|()| state.pop()), pushed.1.map(|()| distinct.pop()));
            assert_eq!((state.common().to_vec(), state.len(), format!("{distinct:?}")), before);
            // A step without a device pops one permanently.
            let _ = step.is_none().then(|| (state.pop(), distinct.pop()));
            assert!(step.is_none() || (state.push(&set), distinct.push(&set)) == pushed);
            assert!(pushed.0.is_err() || state.common().iter().all(|value| set.values().contains(value)));
        }
    }
});
