//! Traits of the public types that callers may rely on.

use dra_attrs::numa::{NumaError, NumaTopology};
use dra_attrs::{DistinctState, MatchState, Quantity, ValueSet};

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
