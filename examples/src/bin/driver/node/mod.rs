//! The driver on its node: claims by hand from files, and the kubelet's calls, beside a cluster or beside files.

mod command;
mod hardware;
#[cfg(feature = "grpc")]
mod line;
#[cfg(feature = "live")]
mod live;
#[cfg(not(feature = "live"))]
#[path = "no_live.rs"]
mod live;
#[cfg(not(feature = "grpc"))]
#[path = "no_grpc.rs"]
mod serve;
#[cfg(feature = "grpc")]
mod serve;
#[cfg(feature = "live")]
mod shown_devices;
#[cfg(not(feature = "live"))]
#[path = "no_shown_devices.rs"]
mod shown_devices;

pub(crate) use command::{NodeCommand, NodeCommandError, run};
