//! Configuration: profile, feature gates, and the points in which a scheduler may avoid races of kube-scheduler.

pub mod behavior;
mod gates;
mod options;

pub use gates::{ControlPlaneComponent, FieldVisibility, NominationGate, VisibleValue};
pub use options::Options;
