//! What the API server accepts.

mod claim_rows;
mod class_rows;
mod gates;
mod properties;
mod ratchet;
mod skip;
mod slice_rows;
mod status_rows;
mod world;
