//! Benchmarks, one file per crate, in `benches/`.
