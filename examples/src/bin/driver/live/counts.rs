//! Metrics of the driver. No KEP names metrics of a driver: these are its own.

use examples::live::metrics::{Metrics, Series};

/// Metrics of a driver. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Counts {
    claims: Series,
    writes: Series,
}

impl Counts {
    pub(super) fn new(metrics: &Metrics) -> Self {
        let labels = &["method_name", "is_error"];
        Self {
            claims: metrics.counter("dra_driver_claims_total", "Claims in calls of the kubelet", labels),
            writes: metrics.counter("dra_driver_slice_writes_total", "Writes of slices", &["is_error"]),
        }
    }

    /// Counts a claim of a call.
    pub(crate) fn claim(&self, method: &'static str, is_error: bool) {
        self.claims.add(&[method, text(is_error)], 1);
    }

    /// Counts a write of a slice.
    pub(super) fn write(&self, is_error: bool) {
        self.writes.add(&[text(is_error)], 1);
    }
}

const fn text(is_error: bool) -> &'static str {
    if is_error { "true" } else { "false" }
}
