//! Requirements of labels that leave as many shapes as possible, whatever their order.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dra_attrs::Index;

use super::answer::{Choice, Superposed, Survivor, Way};
use super::label_values::{LabelValues, common, is_within};
use crate::autoscaler::NodeTemplate;

/// Largest number of requirements that are compared.
const MOST_REQUIREMENTS: usize = 200;

impl Superposed {
    /// Decides on requirements, those of a [`Choice`] or others: the shapes and ways stay that serve the pods under them.
    ///
    /// ```
    /// # use dra_alloc::superposition::Superposed;
    /// # fn first(mut node: Superposed) -> Superposed {
    /// if let Some(choice) = node.together.first() {
    ///     let labels = choice.labels.clone();
    ///     node.choose(&labels);
    /// }
    /// # node
    /// # }
    /// ```
    pub fn choose(&mut self, labels: &LabelValues) {
        self.survivors.retain_mut(|survivor| {
            let Some(offered) = survivor.offered_under(labels) else { return false };
            survivor.ways.retain(|way| way.admits(&offered));
            survivor.offered = offered;
            !survivor.ways.is_empty()
        });
        self.compare();
    }

    /// Takes a shape out: nobody launches it. What only it would use is free for other nodes. Returns false if it was out.
    pub fn release(&mut self, shape: Index<NodeTemplate>) -> bool {
        let before = self.survivors.len();
        self.survivors.retain(|survivor| survivor.shape != shape);
        self.compare();
        self.survivors.len() < before
    }

    /// Finds the requirements under which survivors serve the pods together.
    pub(super) fn compare(&mut self) {
        let compared = |labels| Compared::new(labels, &self.survivors);
        let all: Vec<Compared> = requirements(&self.survivors).into_iter().filter_map(compared).collect();
        let is_best = |one: &&Compared| !all.iter().any(|other| other.beats(one));
        let mut best: Vec<Choice> = all.iter().filter(is_best).map(|one| one.choice.clone()).collect();
        best.sort_by_cached_key(|choice| (Reverse(choice.shapes.len()), choice.price, choice.labels.clone()));
        self.together = best;
    }
}

/// Choice with the label values that each survivor has left under it; `None` for one that does not serve the pods.
struct Compared {
    choice: Choice,
    offered: Vec<Option<LabelValues>>,
}

impl Compared {
    /// Returns `None` if no survivor serves the pods under the labels.
    fn new(labels: LabelValues, survivors: &[Survivor]) -> Option<Self> {
        let offered: Vec<Option<LabelValues>> =
            survivors.iter().map(|survivor| survivor.serves_under(&labels)).collect();
        let left =
            survivors.iter().zip(&offered).filter(|(_, offered)| offered.is_some()).map(|(survivor, _)| survivor);
        let (shapes, prices): (Vec<_>, Vec<u64>) = left.map(|survivor| (survivor.shape, survivor.price)).unzip();
        let price = prices.into_iter().min()?;
        Some(Self { choice: Choice { labels, shapes, price }, offered })
    }

    /// Returns true if it leaves all shapes of another one, and each of them all its nodes.
    fn is_as_good(&self, other: &Self) -> bool {
        self.offered.iter().zip(&other.offered).all(|(own, others)| match (own, others) {
            (_, None) => true,
            (Some(own), Some(others)) => is_within(others, own),
            (None, Some(_)) => false,
        })
    }

    /// Returns true if it is better than another one. Of two that are as good as each other the one with fewer labels is better.
    fn beats(&self, other: &Self) -> bool {
        let rank = |one: &Self| (one.choice.labels.len(), one.choice.labels.clone());
        self.is_as_good(other) && (!other.is_as_good(self) || rank(self) < rank(other))
    }
}

impl Survivor {
    /// Returns the label values that the node may still get under requirements; `None` if there are none.
    fn offered_under(&self, labels: &LabelValues) -> Option<LabelValues> {
        // A label that the node does not have is not one of the values that are wanted.
        let has_all = labels.keys().all(|key| self.offered.contains_key(key));
        has_all.then(|| common(&self.offered, labels)).flatten()
    }

    /// Returns the same if the pods are served then.
    fn serves_under(&self, labels: &LabelValues) -> Option<LabelValues> {
        self.offered_under(labels).filter(|offered| self.ways.iter().any(|way| way.admits(offered)))
    }
}

impl Way {
    /// Returns true if the way serves the pods whichever of these values the node gets.
    fn admits(&self, offered: &LabelValues) -> bool {
        is_within(offered, &self.labels)
    }
}

/// Returns the requirements of ways, and those of several ways at once: those of single ways first, in the order of the shapes.
fn requirements(survivors: &[Survivor]) -> BTreeSet<LabelValues> {
    let single = survivors.iter().flat_map(|survivor| &survivor.ways).map(|way| &way.labels);
    let single: BTreeSet<&LabelValues> = single.take(MOST_REQUIREMENTS).collect();
    let mut all: BTreeSet<LabelValues> = single.iter().map(|labels| (*labels).clone()).collect();
    for labels in single {
        let both: Vec<LabelValues> = all.iter().filter_map(|known| common(known, labels)).collect();
        all.extend(both.into_iter().take(MOST_REQUIREMENTS.saturating_sub(all.len())));
    }
    all
}
