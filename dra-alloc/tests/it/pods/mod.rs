//! Decisions of a scheduler about pods with claims.

mod binding;
mod cycle;
mod entries;
mod explanation;
mod exploration;
mod gang;
mod tracker;
mod world;
