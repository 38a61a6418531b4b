//! Superposition: one node that does not exist yet and that may become one of several instance types, in one of several zones.
//!
//! | question | answer |
//! |---|---|
//! | Which of these instance types would serve these pods, and where? | [`ScaleSimulator::superposed`](crate::autoscaler::ScaleSimulator::superposed) |
//! | Which requirements of the node leave most of them? | [`Superposed::together`] |
//! | What of the cluster is taken as long as nobody has decided? | [`Superposed`], given to the next question |
//! | Which type has been launched, or is out? | [`Superposed::choose`], [`Superposed::release`] |
//!
//! Each shape is judged alone, with its own narrowing of labels, and the least narrowing first: a device that only nodes of zone a
//! see is used if nothing serves without it. So the answer does not depend on the order of the shapes. For example, a claim for
//! one device finds one in zone a and one in zone b. The first shape is offered in both zones, the second one in b alone: with zone b
//! both shapes are left, and with zone a the first one.
//!
//! Attributes that nobody knows before the node exists make an answer neither yes nor no: [`LostShapeError::Unknown`] says what
//! must be true.
//!
//! Source: Karpenter's design of DRA support, whose answer depends on the order of instance types.
//!
//! Tests: `tests/superposition`.

mod answer;
mod beside;
mod corners;
mod label_values;
mod node_shape;
mod one_shape;
mod scopes;
mod superposed;
mod together;
mod unknown;

pub use answer::{Choice, LostShape, LostShapeError, PlacedPod, Superposed, Survivor, UnknownCondition, Way};
pub use node_shape::{NodeShape, ShapeError};
