//! Tests of kubelet's handling of claims (KEP-5945).

mod checkpoint;
mod components;
mod container;
mod invariants;
mod prepare;
mod rollback;
mod tables;
mod unprepare;
mod world;
