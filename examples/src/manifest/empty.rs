//! Fields with an empty value that a kind does not have.
//!
//! A known field may go as well when it is empty: that an object was read and written again does not tell the two apart. So
//! such a field gets a value for a try. A known field refuses it or keeps it; an unknown one loses it.

use std::collections::BTreeMap;
use std::mem::replace;

use serde_json::Value;

use super::MOST_UNKNOWN_FIELDS;
use super::kind::{Kind, may_grow};
use super::tree::Step;

/// Returns those of the empty fields that a kind does not have, of at most ten names.
///
/// # Complexity
/// The object is read once for each field of the kind that is empty in it: items of lists have fields in common.
pub(super) fn unknown_empty_fields<T: Kind>(given: &Value, empty: Vec<Vec<Step>>) -> Vec<Vec<Step>> {
    let empty: Vec<Vec<Step>> = empty.into_iter().filter(|path| !may_grow::<T>(path)).collect();
    if empty.is_empty() {
        return Vec::new();
    }
    let (mut tried, mut unknown, mut names) = (given.clone(), Vec::new(), 0_usize);
    let mut known: BTreeMap<Vec<String>, bool> = BTreeMap::new();
    for path in empty {
        let name = keys(&path);
        let is_known = match known.get(&name) {
            Some(is_known) => *is_known,
            None if names >= MOST_UNKNOWN_FIELDS => break,
            None => is_known::<T>(&mut tried, &path),
        };
        if known.insert(name, is_known).is_none() && !is_known {
            names = names.saturating_add(1);
        }
        if !is_known {
            unknown.push(path);
        }
    }
    unknown
}

fn keys(path: &[Step]) -> Vec<String> {
    let keys = path.iter().filter_map(|step| if let Step::Key(key) = step { Some(key.clone()) } else { None });
    keys.collect()
}

fn is_known<T: Kind>(json: &mut Value, path: &[Step]) -> bool {
    let Some(field) = at(json, path) else { return true };
    let empty = replace(field, 1.into());
    let is_kept = match T::read(json.clone()).ok().and_then(|object| object.to_json()) {
        Some(mut read) => at(&mut read, path).is_some(),
        None => true,
    };
    if let Some(field) = at(json, path) {
        *field = empty;
    }
    is_kept
}

fn at<'v>(json: &'v mut Value, path: &[Step]) -> Option<&'v mut Value> {
    path.iter().try_fold(json, |json, step| match step {
        Step::Key(key) => json.get_mut(key),
        Step::Index(index) => json.get_mut(index),
    })
}
