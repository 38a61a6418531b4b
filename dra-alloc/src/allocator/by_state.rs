//! Answers of an attempt by the states that nodes are in: one search for each state.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::OnceLock;

use dra_attrs::Index;
use k8s_openapi::api::core::v1::Node;
use smallvec::SmallVec;

use super::attempt::Attempt;
use super::grouping::Grouping;
use crate::search::allocate_error::AllocateError;
use crate::search::budget::{Budget, Effort, Meter};
use crate::search::outcome::Fit;

/// Attempt to allocate claims on nodes that were given once: what [`super::Nodes::attempt`] returns. Each state of nodes is searched
/// when it is first asked for, whichever thread asks.
pub struct AttemptByState<'n, N> {
    attempt: Attempt<'n>,
    nodes: &'n [N],
    /// States of the nodes; `None` if each node is asked for itself.
    grouping: Option<&'n Grouping>,
    /// Answers by number of the group.
    answers: Box<[OnceLock<Answer>]>,
}

/// Yes or no for a state, with the effort of its search.
#[derive(Debug)]
struct Answer {
    fit: Fit,
    effort: Effort,
}

/// Answer of an attempt for nodes in one state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StateFit<'n> {
    /// Answer for each of the nodes, as [`Attempt::fits`] gives it.
    pub fit: Result<Fit, AllocateError>,
    nodes: Members<'n>,
}

#[derive(Clone, Debug)]
enum Members<'n> {
    All(&'n BTreeSet<Index<Node>>),
    Some(Vec<Index<Node>>),
}

impl StateFit<'_> {
    /// Returns the positions of the nodes, ascending.
    pub fn nodes(&self) -> impl Iterator<Item = Index<Node>> {
        let (all, some) = match &self.nodes {
            Members::All(all) => (Some(*all), &[][..]),
            Members::Some(some) => (None, &**some),
        };
        all.into_iter().flatten().chain(some).copied()
    }

    /// Returns the number of the nodes.
    #[must_use]
    pub fn number_of_nodes(&self) -> usize {
        match &self.nodes {
            Members::All(all) => all.len(),
            Members::Some(some) => some.len(),
        }
    }
}

impl<'n, N: Borrow<Node>> AttemptByState<'n, N> {
    pub(super) fn new(attempt: Attempt<'n>, nodes: &'n [N], grouping: Option<&'n Grouping>) -> Self {
        let answers = std::iter::repeat_with(OnceLock::new).take(grouping.map_or(0, Grouping::len)).collect();
        Self { attempt, nodes, grouping, answers }
    }

    /// Returns the nodes, in the order of their positions.
    pub(crate) const fn list(&self) -> &'n [N] {
        self.nodes
    }

    /// Returns the node at a position of the list.
    pub(crate) fn node(&self, position: Index<Node>) -> Option<&'n N> {
        self.nodes.get(usize::from(position))
    }

    /// Returns the number of the state of a node; `None` for a node that is asked for itself.
    pub(crate) fn group(&self, node: Index<Node>) -> Option<usize> {
        self.grouping?.of(node)
    }

    /// Returns a number above those of all states.
    pub(crate) const fn group_count(&self) -> usize {
        self.answers.len()
    }

    /// Returns the attempt itself, which builds the results for the node that is taken.
    #[must_use]
    pub const fn attempt(&self) -> &Attempt<'n> {
        &self.attempt
    }

    /// Tells if the claims can be allocated on a node, as [`Attempt::fits`] does. A position that is not in the list has no devices:
    /// [`Fit::No`].
    ///
    /// # Errors
    /// Those of [`Attempt::allocate`].
    ///
    /// # Complexity
    /// Constant for a node in a state that was asked for before, with a budget that is large enough for the search of that state;
    /// otherwise that of [`Attempt::fits`].
    pub fn fits(&self, node: Index<Node>, budget: Budget<'_>) -> Result<Fit, AllocateError> {
        let Some(object) = self.nodes.get(usize::from(node)) else { return Ok(Fit::No) };
        let group = self.group(node).and_then(|group| self.answers.get(group));
        let Some(answer) = group.filter(|_| self.attempt.is_pending()) else {
            return self.attempt.fits(object.borrow(), budget);
        };
        if self.attempt.is_elsewhere(object.borrow())? {
            return Ok(Fit::No);
        }
        let meter = Meter::new(budget);
        if let Some(Answer { fit, effort }) = answer.get()
            && let Ok(true) = meter.spare(*effort)
        {
            return Ok(fit.clone());
        }
        let fit = self.attempt.fits_pending(object.borrow(), &meter)?;
        if matches!(fit, Fit::Yes | Fit::No) {
            answer.get_or_init(|| Answer { fit: fit.clone(), effort: meter.effort() });
        }
        Ok(fit)
    }

    /// Returns an answer for each state, with the nodes that are in it. Each state has the whole budget. Nodes for which the answer
    /// is an error, which names devices, and nodes on which claims that are allocated already can't be used, have answers of their
    /// own. Together the answers have each node once.
    ///
    /// # Complexity
    /// That of [`Attempt::fits`] for each state that was not asked for before. Linear in the number of nodes if a claim is
    /// allocated already.
    pub fn by_state(&self, budget: Budget<'_>) -> impl Iterator<Item = StateFit<'_>> {
        let groups = self.grouping.into_iter().flat_map(Grouping::groups);
        let alone = 0..if self.grouping.is_some() { 0 } else { self.nodes.len() };
        let of_group = move |(_, nodes)| self.of_group(nodes, budget);
        groups.flat_map(of_group).chain(alone.map(move |position| self.of_node(Index::from(position), budget)))
    }

    fn of_group<'s>(&'s self, nodes: &'s BTreeSet<Index<Node>>, budget: Budget<'_>) -> SmallAnswers<'s> {
        let first = nodes.first().filter(|_| self.attempt.is_pending() && !self.attempt.has_allocated());
        match first.map(|first| self.fits(*first, budget)) {
            Some(Ok(fit)) => SmallVec::from_iter([StateFit { fit: Ok(fit), nodes: Members::All(nodes) }]),
            _ => nodes.iter().map(|node| self.of_node(*node, budget)).collect(),
        }
    }

    fn of_node(&self, node: Index<Node>, budget: Budget<'_>) -> StateFit<'_> {
        StateFit { fit: self.fits(node, budget), nodes: Members::Some(vec![node]) }
    }
}

/// Answers for one group.
type SmallAnswers<'n> = SmallVec<[StateFit<'n>; 1]>;

impl<N> fmt::Debug for AttemptByState<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttemptByState").field("attempt", &self.attempt).finish_non_exhaustive()
    }
}
