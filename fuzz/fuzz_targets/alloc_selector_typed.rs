//! Selectors: typed expressions have the values and errors of a second, naive evaluator.
#![no_main]

#[path = "../../dra-alloc/selector/tests/naive/mod.rs"]
mod naive;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| naive::compare(bytes.get(..400).unwrap_or(bytes)));
