//! Cluster with one scheduler, whose nominations (KEP-5278) are played over a timeline of events.
//!
//! The program `nominate` prints what a [`Player`] tells. A timeline comes from outside, so that a fuzz target plays any.

mod metrics;
mod player;
mod timeline;

pub use player::{PlayError, Player, Writers};
pub use timeline::{Entry, Event, read_timeline};
