//! Tests of kubelet's handling of claims (KEP-5945).

mod checkpoint;
mod container;
mod invariants;
mod prepare;
mod tables;
mod unprepare;
mod world;
