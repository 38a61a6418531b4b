//! What callers may rely on beside values.

use dra_attrs::matching::{DistinctState, MatchState, ValueSet};
use dra_attrs::numa::{NumaError, NumaTopology};
use dra_attrs::quantity::Quantity;

const fn send_sync<T: Send + Sync>() {}

#[test]
fn public_types_cross_threads() {
    send_sync::<NumaTopology>();
    send_sync::<ValueSet<'_>>();
    send_sync::<MatchState<'_>>();
    send_sync::<DistinctState<'_>>();
    send_sync::<Quantity>();
    send_sync::<NumaError>();
}
