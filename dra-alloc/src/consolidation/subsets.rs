//! Subsets of units in the order of what they cost.
//!
//! A subset of a sorted list has two children: its last item replaced by the next one, and the next one added. Each subset has one
//! parent, which costs no more, so that a queue yields all of them, the cheapest first.

use std::collections::BTreeSet;

/// Items of a list, by their positions, and what they cost together. Subsets are compared by cost, waves and number of items, and
/// then by the position of their stream, the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subset {
    pub(super) cost: u64,
    pub(super) waves: usize,
    pub(super) len: usize,
    /// Position of the list that `base` is from.
    pub(super) stream: usize,
    /// Positions in that list.
    pub(super) base: Vec<usize>,
    /// Positions in the list of all items: further units, whose places those of the base need.
    pub(super) chain: Vec<usize>,
}

impl Subset {
    /// Returns the children by the base or, if there is a chain, by the chain.
    pub(super) fn children(&self, items: usize) -> Vec<Self> {
        let list = if self.chain.is_empty() { &self.base } else { &self.chain };
        let Some(next) = list.last().map(|last| last + 1).filter(|next| *next < items) else { return Vec::new() };
        let with = |list: Vec<usize>| {
            let mut child = self.clone();
            *(if self.chain.is_empty() { &mut child.base } else { &mut child.chain }) = list;
            child
        };
        let replaced = list.iter().take(list.len() - 1).copied().chain([next]).collect();
        let added = list.iter().copied().chain([next]).collect();
        vec![with(replaced), with(added)]
    }

    /// Returns the subset with the first of all items as its chain.
    pub(super) fn chained(&self) -> Self {
        Self { chain: vec![0], ..self.clone() }
    }
}

/// Subsets to come, the cheapest first.
pub(super) type Queue = BTreeSet<Subset>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_subsets_come_once_and_in_order() {
        let costs = [1_u64, 1, 2, 5, 9];
        let priced = |subset: Subset| {
            let cost = subset.base.iter().map(|item| costs[*item]).sum();
            Subset { cost, len: subset.base.len(), ..subset }
        };
        let mut queue = Queue::from([priced(Subset { base: vec![0], ..Subset::default() })]);
        let mut seen = Vec::new();
        while let Some(subset) = queue.pop_first() {
            queue.extend(subset.children(costs.len()).into_iter().map(priced));
            seen.push(subset);
        }
        assert_eq!(seen.len(), 31);
        assert!(seen.windows(2).all(|pair| pair[0].cost <= pair[1].cost));
        let distinct: BTreeSet<&Vec<usize>> = seen.iter().map(|subset| &subset.base).collect();
        assert_eq!(distinct.len(), 31);
    }
}
