//! Calls between kubelet and driver: a driver's side, which [`serve`] is, and the kubelet's.

pub mod api;
mod calls;
mod client;
mod connection;
mod failure;
mod health_service;
mod plugin_service;
mod registrar;
mod registry;
mod rewritten;
mod serve;
mod sockets;

pub use calls::{ClaimLookup, DriverCalls, Happening, KubeletCalls, Tell};
pub use client::{prepare, unprepare};
pub use registrar::RegistrationState;
pub use registry::registered;
pub use rewritten::Rewritten;
pub use serve::{ServeError, serve};
pub use sockets::{Sockets, listen};
