//! Properties of one device, its slice and its allocation. Imports only `config`.

pub(crate) mod allocated;
pub mod capacity;
pub(crate) mod device_id;
pub(crate) mod extended_resource;
pub(crate) mod node;
pub(crate) mod slice;
pub mod taint;
