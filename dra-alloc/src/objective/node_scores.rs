//! Scores of nodes from the values of the best solutions on them.

/// Largest score of a node, as in Kubernetes.
const MOST: u64 = 100;

/// Scale of the scores of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "by rank or by value")]
pub enum NodeScale {
    /// By rank among the different values: with `k` values, that of rank `r` from 0 gets `100 · (k − 1 − r) / (k − 1)`. If all
    /// are equal, each gets 100.
    #[default]
    Rank,
    /// By the first level alone, from 100 for the least to 0 for the largest number. If all are equal, each gets 100.
    Linear,
}

/// Returns scores from 0 to 100 for nodes with the values of their best solutions; `None` for a node without a solution stays
/// `None`. Fractions are dropped.
///
/// Apart from them stands the score of alternatives, which kube-scheduler has: [`crate::pods::PodCycle::score`].
///
/// ```
/// use dra_alloc::objective::{NodeScale, node_scores};
/// let values = [Some(vec![0, 9]), Some(vec![0, 3]), None, Some(vec![2, 0])];
/// assert_eq!(node_scores(&values, NodeScale::Rank), [Some(50), Some(100), None, Some(0)]);
/// assert_eq!(node_scores(&values, NodeScale::Linear), [Some(100), Some(100), None, Some(0)]);
/// ```
///
/// # Complexity
/// `n log n` in the number of nodes.
#[must_use]
pub fn node_scores(values: &[Option<Vec<u64>>], scale: NodeScale) -> Vec<Option<u64>> {
    match scale {
        NodeScale::Rank => by_rank(values),
        NodeScale::Linear => by_value(values),
    }
}

fn by_rank(values: &[Option<Vec<u64>>]) -> Vec<Option<u64>> {
    let mut different: Vec<&Vec<u64>> = values.iter().flatten().collect();
    different.sort_unstable();
    different.dedup();
    let last = different.len().saturating_sub(1);
    let score = |value: &Vec<u64>| {
        let behind = last - different.binary_search(&value).unwrap_or(last);
        share(wide(behind), wide(last))
    };
    values.iter().map(|value| value.as_ref().map(score)).collect()
}

fn by_value(values: &[Option<Vec<u64>>]) -> Vec<Option<u64>> {
    let level = |value: &Vec<u64>| value.first().copied().unwrap_or(0);
    let levels = || values.iter().flatten().map(level);
    let (least, most) = (levels().min().unwrap_or(0), levels().max().unwrap_or(0));
    values.iter().map(|value| value.as_ref().map(|value| share(most - level(value), most - least))).collect()
}

/// Returns a part of a whole in hundredths, 100 if there is no whole.
fn share(part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return MOST;
    }
    let hundredths = u128::from(part) * u128::from(MOST) / u128::from(whole);
    u64::try_from(hundredths).unwrap_or(MOST)
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
