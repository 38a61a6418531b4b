//! Readiness of a node: complete pools, compared with those of its template.

use std::collections::BTreeMap;

use dra_device::pool::{LatestGeneration, group_by_pool};
use k8s_openapi::api::resource::v1::ResourceSlice;

/// Complete pools of a node, and of the template that it was made from, by driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolReadiness {
    /// Number of complete pools of the node, for each driver that has one.
    pub complete: BTreeMap<String, usize>,
    /// Number of complete pools of the template, for each driver that has one.
    pub wanted: BTreeMap<String, usize>,
}

impl PoolReadiness {
    /// Returns true if no driver of the template has fewer complete pools on the node. Names of pools don't matter, and more
    /// pools or drivers do no harm. A template without a complete pool wants nothing.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.wanted.iter().all(|(driver, wanted)| self.complete.get(driver).is_some_and(|complete| complete >= wanted))
    }

    /// Counts the complete pools of a node and of its template. A pool is complete if the slices of its newest generation are
    /// as many as the first of them says.
    ///
    /// # Complexity
    /// n log n in slices.
    pub fn of_node<'a>(
        slices_of_node: impl IntoIterator<Item = &'a ResourceSlice>,
        slices_of_template: impl IntoIterator<Item = &'a ResourceSlice>,
    ) -> Self {
        Self { complete: complete_pools(slices_of_node), wanted: complete_pools(slices_of_template) }
    }
}

fn complete_pools<'a>(slices: impl IntoIterator<Item = &'a ResourceSlice>) -> BTreeMap<String, usize> {
    let mut slices: Vec<&ResourceSlice> = slices.into_iter().collect();
    let newest = group_by_pool(&mut slices).filter_map(LatestGeneration::from_slices);
    let mut complete = BTreeMap::new();
    for pool in newest.filter(|pool| pool.is_complete()) {
        *complete.entry(pool.driver().to_owned()).or_default() += 1;
    }
    complete
}
