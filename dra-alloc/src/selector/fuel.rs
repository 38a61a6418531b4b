//! Budget of one evaluation, and the cost of values.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cel::ExecutionError;
use cel::common::types::{CelBytes, CelList, CelMap, CelOptional, CelString};
use cel::common::value::Val;

use super::opaque::opaque;

/// Cost limit of one evaluation: the limit of Kubernetes (`CELSelectorExpressionMaxCost`), in units of about the same
/// size.
const BUDGET: u64 = 1_000_000;

/// Number of bytes of text that can be read or copied for one unit of the budget.
const BYTES_PER_UNIT: usize = 16;

/// Remaining budget, as a value that metered functions get as their last argument.
///
/// A charge that would reach zero fails and sets the budget to zero, and so do all later charges.
#[derive(Clone, Debug)]
pub(super) struct Fuel(Arc<AtomicU64>);

impl Fuel {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(BUDGET + 1)))
    }

    /// Subtracts `units` from the remaining budget; an error if the budget is exhausted.
    pub(super) fn spend(&self, units: u64) -> Result<(), ExecutionError> {
        let rest = self.0.load(Ordering::Relaxed).saturating_sub(units);
        self.0.store(rest, Ordering::Relaxed);
        if rest == 0 { Err(exhausted()) } else { Ok(()) }
    }

    /// Charges the budget for reading or building a text of `bytes` bytes.
    pub(super) fn spend_bytes(&self, bytes: usize) -> Result<(), ExecutionError> {
        self.spend(cost_of_bytes(bytes))
    }

    /// Charges the budget for reading or copying a value. Computing the charge stops when it exceeds the remaining
    /// budget.
    pub(super) fn spend_value(&self, value: &dyn Val) -> Result<(), ExecutionError> {
        self.spend(cost(value, self.0.load(Ordering::Relaxed)))
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

fn exhausted() -> ExecutionError {
    ExecutionError::function_error("@fuel", "actual cost limit exceeded")
}

fn cost_of_bytes(bytes: usize) -> u64 {
    u64::try_from(bytes / BYTES_PER_UNIT).unwrap_or(u64::MAX).saturating_add(1)
}

/// Returns the cost of reading a value in units of the budget: one for each scalar, more for a long text. Stops a
/// little over `most`.
fn cost(value: &dyn Val, most: u64) -> u64 {
    let mut sum = 1_u64;
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        sum = cost_of_bytes(text.inner().len());
    } else if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>() {
        sum = cost_of_bytes(bytes.inner().len());
    } else if let Some(list) = value.downcast_ref::<CelList<'_>>() {
        for element in list.inner() {
            sum = sum.saturating_add(cost(element.as_ref(), most));
            if sum > most {
                break;
            }
        }
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        // A sum does not depend on the order.
        let keys = map.inner().keys().map(|key| cost(key.inner(), most));
        let values = map.inner().values().map(|value| cost(value.as_ref(), most));
        sum = keys.chain(values).fold(1, u64::saturating_add);
    } else if let Some(optional) = value.downcast_ref::<CelOptional<'_>>() {
        sum = optional.option().map_or(1, |value| cost(value, most));
    }
    sum
}

opaque!(Fuel, "@fuel");
