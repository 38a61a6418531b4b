//! Parts of the program `node-agent`: reads nodes with readiness gates from manifests, and simulates a timeline.

pub mod nodes;
pub mod player;
pub mod print;
pub mod timeline;
