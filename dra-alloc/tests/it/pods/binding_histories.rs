//! Random histories with many bindings open at once: nothing is given twice, nothing is lost, and in the end each pod that fits is
//! bound.

use super::binding_history::{History, Lateness};
use crate::oracle::random::Random;

/// Number of histories, lower without optimization; `HISTORIES` sets another one.
const HISTORIES: u64 = if cfg!(debug_assertions) { 150 } else { 9_000 };
const STEPS: usize = 200;

/// Plays a history, and returns the number of bindings.
fn play(seed: u64, lateness: Lateness) -> usize {
    let random = &mut Random::new(seed);
    let mut history = History::new(seed, lateness);
    for _ in 0..STEPS {
        history.step(random);
    }
    history.end();
    history.bound
}

fn play_all(lateness: Lateness) {
    let histories = std::env::var("HISTORIES").map_or(HISTORIES, |number| number.parse().unwrap());
    let bound: usize = (0..histories).map(|seed| play(seed, lateness)).sum();
    assert!(bound > 3 * usize::try_from(histories).unwrap(), "{bound} pods are bound");
}

#[test]
fn many_bindings_lose_nothing_and_give_nothing_twice() {
    play_all(Lateness::Unlimited);
}

#[test]
fn many_bindings_on_a_server_that_drops_late_calls_lose_nothing_and_give_nothing_twice() {
    play_all(Lateness::Minute);
}
