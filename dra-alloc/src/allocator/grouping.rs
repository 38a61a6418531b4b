//! Groups of nodes in one state.

use std::collections::BTreeSet;

use dra_attrs::{Component, Index};
use hashbrown::HashTable;
use k8s_openapi::api::core::v1::Node;

use crate::cluster::inventory::shape::KnownLens;
use crate::cluster::node_state::NodeState;
use crate::cluster::trie::hash;

/// Nodes by their states, for claims that read the same attributes.
#[derive(Clone, Debug)]
pub(super) struct Grouping {
    pub(super) lens: KnownLens,
    pub(super) scheduler: Component,
    /// Group of each node.
    of_node: Vec<usize>,
    /// Groups by number. One without nodes is used again.
    groups: Vec<Group>,
    unused: Vec<usize>,
    /// Numbers of the groups with a state.
    by_state: HashTable<usize>,
}

/// Nodes in one state.
#[derive(Clone, Debug, Default)]
struct Group {
    /// The state; `None` for a node that is like no other.
    state: Option<NodeState>,
    nodes: BTreeSet<Index<Node>>,
}

impl Grouping {
    /// Groups the nodes of a list by their states through a lens, for the gates of a scheduler.
    pub(super) fn new(
        lens: KnownLens,
        scheduler: Component,
        states: impl ExactSizeIterator<Item = Option<NodeState>>,
    ) -> Self {
        let (groups, unused, by_state) = (Vec::new(), Vec::new(), HashTable::new());
        let of_node = vec![0; states.len()];
        let mut made = Self { lens, scheduler, of_node, groups, unused, by_state };
        states.enumerate().for_each(|(position, state)| made.enter(position, state));
        made
    }

    /// Follows a change of a node.
    pub(super) fn set(&mut self, position: usize, state: Option<NodeState>) {
        self.leave(position);
        self.enter(position, state);
    }

    /// Returns the number of the group of a node.
    pub(super) fn of(&self, node: Index<Node>) -> Option<usize> {
        self.of_node.get(usize::from(node)).copied()
    }

    /// Returns the number of groups, used or not.
    pub(super) const fn len(&self) -> usize {
        self.groups.len()
    }

    /// Returns the nodes of the groups, each with its number.
    pub(super) fn groups(&self) -> impl Iterator<Item = (usize, &BTreeSet<Index<Node>>)> {
        self.groups.iter().map(|group| &group.nodes).enumerate().filter(|(_, nodes)| !nodes.is_empty())
    }

    fn leave(&mut self, position: usize) {
        debug_assert!(position < self.of_node.len(), "the node is one of the list");
        let Some(number) = self.of_node.get(position).copied() else { return };
        let Some(group) = self.groups.get_mut(number) else { return };
        let was_there = group.nodes.remove(&Index::from(position));
        debug_assert!(was_there, "a node is in the group that it names");
        if !group.nodes.is_empty() {
            return;
        }
        if let Some(state) = group.state.take() {
            let entry = self.by_state.find_entry(hash(&state), |other| *other == number);
            debug_assert!(entry.is_ok(), "a group with a state is found by it");
            if let Ok(entry) = entry {
                entry.remove();
            }
        }
        self.unused.push(number);
    }

    fn enter(&mut self, position: usize, state: Option<NodeState>) {
        let number = match &state {
            None => None,
            Some(state) => {
                let is_it =
                    |number: &usize| self.groups.get(*number).is_some_and(|it| it.state.as_ref() == Some(state));
                self.by_state.find(hash(state), is_it).copied()
            }
        };
        let number = number.unwrap_or_else(|| self.begin(state));
        if let Some(group) = self.groups.get_mut(number) {
            group.nodes.insert(Index::from(position));
        }
        debug_assert!(position < self.of_node.len() && number < self.groups.len(), "the node and its group exist");
        if let Some(of_node) = self.of_node.get_mut(position) {
            *of_node = number;
        }
    }

    /// Begins a group, in the place of one that is no longer used.
    fn begin(&mut self, state: Option<NodeState>) -> usize {
        let number = self.unused.pop().unwrap_or_else(|| {
            self.groups.push(Group::default());
            self.groups.len() - 1
        });
        if let Some(state) = &state {
            let key = hash(state);
            let groups = &self.groups;
            let hash_of = |number: &usize| groups.get(*number).and_then(|group| group.state.as_ref()).map_or(0, hash);
            self.by_state.insert_unique(key, number, hash_of);
        }
        if let Some(group) = self.groups.get_mut(number) {
            group.state = state;
        }
        number
    }
}
