//! Traits of the public types that callers may rely on.

use dra_attrs::numa::{NumaError, NumaTopology};
use dra_attrs::{DistinctState, MatchState, Profile, Quantity, ValueSet};

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

#[test]
fn profiles_are_read_by_the_names_that_are_printed() {
    for (profile, name) in [(Profile::Kep, "kep"), (Profile::V1_37, "v1.37")] {
        assert_eq!((profile.to_string().as_str(), name.parse()), (name, Ok(profile)));
    }
    assert_eq!(
        "V1.37".parse::<Profile>().unwrap_err().to_string(),
        "no profile \"V1.37\"; known: kep, v1.34, v1.35, v1.36, v1.37"
    );
}
