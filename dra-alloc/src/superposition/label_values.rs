//! Values that labels of a node may have.

use std::collections::{BTreeMap, BTreeSet};

/// Values that labels of a node may have, by the key of the label. Labels that are not named may have any.
pub(super) type LabelValues = BTreeMap<String, BTreeSet<String>>;

/// Returns the values that both allow; `None` if they leave no value of a label.
pub(super) fn common(one: &LabelValues, other: &LabelValues) -> Option<LabelValues> {
    let mut common = one.clone();
    for (key, values) in other {
        match common.get_mut(key) {
            Some(known) => known.retain(|value| values.contains(value)),
            None => drop(common.insert(key.clone(), values.clone())),
        }
    }
    common.values().all(|values| !values.is_empty()).then_some(common)
}

/// Returns true if all that the first one allows is allowed by the second one.
pub(super) fn is_within(one: &LabelValues, other: &LabelValues) -> bool {
    other.iter().all(|(key, values)| one.get(key).is_some_and(|own| own.is_subset(values)))
}
