//! Validation of lists and maps: the number of entries, duplicates, and each entry.
//!
//! The entries of a list or map that is too long are not checked, but in the oldest release.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::internal::release::{BadKeyPath, DuplicatePath, LongList};
use dra_attrs::{BadValue, FieldError, FieldPath};

use super::context::ValidationContext;

/// A list with its largest permitted length.
#[derive(Debug)]
pub(super) struct List<'a, T> {
    items: &'a [T],
    max: usize,
    key: Option<&'static str>,
}

impl<'a, T> List<'a, T> {
    pub(super) fn new(items: Option<&'a Vec<T>>) -> Self {
        Self { items: items.map_or(&[], Vec::as_slice), max: usize::MAX, key: None }
    }

    pub(super) const fn at_most(self, max: usize) -> Self {
        Self { max, ..self }
    }

    /// Names the field of an item that is its key. Items of other lists are keys themselves.
    pub(super) const fn keyed_by(self, key: &'static str) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Returns true if the items are not checked, since there are too many of them.
    const fn is_skipped(&self, context: &ValidationContext) -> bool {
        match context.rules.validation.long_list {
            LongList::Counted => self.items.len() > self.max,
            LongList::Checked => false,
        }
    }

    /// Checks the length of the list, then calls `check` for each item.
    pub(super) fn each(
        &self,
        at: &FieldPath<'_>,
        context: &mut ValidationContext,
        mut check: impl FnMut(&'a T, &FieldPath<'_>, &mut ValidationContext),
    ) {
        if self.items.len() > self.max {
            context.push(FieldError::too_many(at, self.items.len(), self.max));
        }
        if self.is_skipped(context) {
            return;
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
        if self.is_skipped(context) {
            return;
        }
        let mut seen = BTreeSet::new();
        for (index, item) in self.items.iter().enumerate() {
            let key = key(item);
            if !seen.insert(key.clone()) {
                let at = at.index(index);
                let error = match (context.rules.validation.duplicate, self.key) {
                    (DuplicatePath::Key, Some(field)) => FieldError::duplicate(&at.child(field), key),
                    (DuplicatePath::Key, None) | (DuplicatePath::Item, _) => FieldError::duplicate(&at, key),
                };
                context.push(error);
            }
        }
    }
}

/// Checks the keys and values of a map. An error in a key has the path of the map, or of its entry in older releases; the
/// path of a value has its key, shortened to `longest_key` bytes.
pub(super) fn each_entry<T>(
    map: &BTreeMap<String, T>,
    longest_key: usize,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
    check_key: impl Fn(&str, &FieldPath<'_>, &mut ValidationContext),
    mut check: impl FnMut(&T, &FieldPath<'_>, &mut ValidationContext),
) {
    for (key, value) in map {
        let short = shortened(key, longest_key);
        let at_entry = at.key(&short);
        match context.rules.validation.bad_key {
            BadKeyPath::Map => check_key(key, at, context),
            BadKeyPath::Entry => check_key(key, &at_entry, context),
        }
        check(value, &at_entry, context);
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
