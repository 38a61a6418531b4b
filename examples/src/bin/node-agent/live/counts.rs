//! Metrics of the evaluator.

use dra_live::metrics::{Metrics, Series};
use readiness::ReadinessCounters;

/// Metrics of an evaluator: what happened to gates, with the names of KEP-5233, and how much work it was.
pub(super) struct Counts {
    gate_events: Vec<Series>,
    evaluated: Series,
    stored: Series,
}

impl Counts {
    pub(super) fn new(metrics: &Metrics) -> Self {
        let of_gates = ReadinessCounters::default().metrics();
        Self {
            gate_events: of_gates.map(|(name, _)| metrics.counter(name, "Gate events of all nodes", &[])).into(),
            evaluated: metrics.counter("dra_node_agent_nodes_evaluated_total", "Evaluations of a node", &[]),
            stored: metrics.counter("dra_node_agent_states_stored_total", "States of nodes that were written", &[]),
        }
    }

    /// Notes that a node was evaluated, with its counters before and after.
    pub(super) fn evaluated(&self, before: &ReadinessCounters, after: &ReadinessCounters) {
        self.evaluated.add(&[], 1);
        let counts = before.metrics().into_iter().zip(after.metrics());
        for (series, ((_, old), (_, new))) in self.gate_events.iter().zip(counts) {
            series.add(&[], new.saturating_sub(old));
        }
    }

    /// Notes that the states of some nodes were written.
    pub(super) fn stored(&self, nodes: usize) {
        self.stored.add(&[], nodes.try_into().unwrap_or(u64::MAX));
    }
}
