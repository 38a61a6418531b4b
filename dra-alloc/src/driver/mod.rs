//! Decisions of a DRA driver: how it splits its devices into slices, and how it keeps the stored slices so.
//!
//! A driver discovers devices, makes API calls and serves sockets; the functions here decide which. They do no IO: the
//! stored objects, the answers of the API server and the time are arguments.
//!
//! - **Names**: [`slice_name`] and [`generate_name`] of slices, [`decode_index`]; [`registrar_socket`] and
//!   [`data_socket`] of the driver's sockets, [`kubelet_authority`].

mod digest;
mod names;
mod sockets;

pub use names::{decode_index, generate_name, slice_name};
pub use sockets::{PathTooLong, data_socket, kubelet_authority, registrar_socket};
