//! Links from objects to the objects that they name, which are found in both directions.

use std::collections::{BTreeMap, BTreeSet};

/// Links from keys of type `F` to keys of type `T`.
#[derive(Clone, Debug)]
pub(super) struct Links<F, T> {
    targets: BTreeMap<F, BTreeSet<T>>,
    sources: BTreeMap<T, BTreeSet<F>>,
}

impl<F, T> Default for Links<F, T> {
    fn default() -> Self {
        Self { targets: BTreeMap::new(), sources: BTreeMap::new() }
    }
}

impl<F: Ord + Clone, T: Ord + Clone> Links<F, T> {
    /// Replaces the links of an object.
    pub(super) fn set(&mut self, from: &F, targets: impl IntoIterator<Item = T>) {
        for target in self.targets.remove(from).into_iter().flatten() {
            if let Some(sources) = self.sources.get_mut(&target) {
                sources.remove(from);
                if sources.is_empty() {
                    self.sources.remove(&target);
                }
            }
        }
        let targets: BTreeSet<T> = targets.into_iter().collect();
        for target in &targets {
            self.sources.entry(target.clone()).or_default().insert(from.clone());
        }
        if !targets.is_empty() {
            self.targets.insert(from.clone(), targets);
        }
    }

    /// Returns the objects that link to a target, in their order.
    pub(super) fn to(&self, target: &T) -> impl Iterator<Item = &F> {
        self.sources.get(target).into_iter().flatten()
    }
}
