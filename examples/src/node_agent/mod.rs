//! Nodes with readiness gates: read from manifests, played through a timeline.

pub mod nodes;
pub mod player;
pub mod print;
pub mod timeline;
