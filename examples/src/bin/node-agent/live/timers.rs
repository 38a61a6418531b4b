//! Times at which nodes are evaluated again.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;

/// Nodes with a timer. Each has one.
#[derive(Debug, Default)]
pub(super) struct Timers {
    by_node: BTreeMap<String, Timestamp>,
    by_time: BTreeSet<(Timestamp, String)>,
}

impl Timers {
    /// Sets the timer of a node that has none, or a later one.
    pub(super) fn set(&mut self, node: &str, at: Timestamp) {
        if self.by_node.get(node).is_none_or(|known| at < *known) {
            self.clear(node);
            self.by_node.insert(node.to_owned(), at);
            self.by_time.insert((at, node.to_owned()));
        }
    }

    /// Clears the timer of a node.
    pub(super) fn clear(&mut self, node: &str) {
        if let Some((node, at)) = self.by_node.remove_entry(node) {
            self.by_time.remove(&(at, node));
        }
    }

    /// Takes the nodes whose timers have ended.
    pub(super) fn take_ended(&mut self, now: Timestamp) -> BTreeSet<String> {
        let mut ended = BTreeSet::new();
        while self.by_time.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, node)) = self.by_time.pop_first() else { break };
            self.by_node.remove(&node);
            ended.insert(node);
        }
        ended
    }
}
