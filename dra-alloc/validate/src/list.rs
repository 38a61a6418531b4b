//! Validation of lists and maps: the number of entries, duplicates, and each entry.
//!
//! The entries of a list or map that is too long are not checked, which bounds the work for one object.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::{BadValue, FieldError, FieldPath};

use super::context::ValidationContext;

/// A list with its largest permitted length.
#[derive(Debug)]
pub(super) struct List<'a, T> {
    items: &'a [T],
    max: usize,
}

impl<'a, T> List<'a, T> {
    pub(super) fn new(items: Option<&'a Vec<T>>) -> Self {
        Self { items: items.map_or(&[], Vec::as_slice), max: usize::MAX }
    }

    pub(super) const fn at_most(self, max: usize) -> Self {
        Self { max, ..self }
    }

    /// Checks the length of the list, then calls `check` for each item.
    pub(super) fn each(
        &self,
        at: &FieldPath<'_>,
        context: &mut ValidationContext,
        mut check: impl FnMut(&'a T, &FieldPath<'_>, &mut ValidationContext),
    ) {
        if self.items.len() > self.max {
            return context.push(FieldError::too_many(at, self.items.len(), self.max));
        }
        for (index, item) in self.items.iter().enumerate() {
            check(item, &at.index(index), context);
        }
    }

    /// Checks the length of the list, calls `check` for each item, then checks that no two items have the same key.
    pub(super) fn each_unique<K: Ord + Clone + Into<BadValue>>(
        &self,
        at: &FieldPath<'_>,
        context: &mut ValidationContext,
        key: impl Fn(&'a T) -> K,
        check: impl FnMut(&'a T, &FieldPath<'_>, &mut ValidationContext),
    ) {
        self.each(at, context, check);
        if self.items.len() > self.max {
            return;
        }
        let mut seen = BTreeSet::new();
        for (index, item) in self.items.iter().enumerate() {
            let key = key(item);
            if !seen.insert(key.clone()) {
                context.push(FieldError::duplicate(&at.index(index), key));
            }
        }
    }
}

/// Checks the keys and values of a map. An error in a key has the path of the map; the path of a value has its key,
/// shortened to `longest_key` bytes.
pub(super) fn each_entry<T>(
    map: &BTreeMap<String, T>,
    longest_key: usize,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
    check_key: impl Fn(&str, &FieldPath<'_>, &mut ValidationContext),
    mut check: impl FnMut(&T, &FieldPath<'_>, &mut ValidationContext),
) {
    for (key, value) in map {
        check_key(key, at, context);
        check(value, &at.key(&shortened(key, longest_key)), context);
    }
}

/// Shortens a text to at most `max` bytes by cutting out its middle.
fn shortened(text: &str, max: usize) -> String {
    const ELLIPSIS: &str = "...";
    if text.len() <= max {
        return text.to_owned();
    }
    let rest = max.saturating_sub(ELLIPSIS.len());
    let start = (0..=rest.div_ceil(2)).rev().find_map(|end| text.get(..end)).unwrap_or_default();
    let end =
        (text.len().saturating_sub(rest / 2)..=text.len()).find_map(|start| text.get(start..)).unwrap_or_default();
    format!("{start}{ELLIPSIS}{end}")
}
