//! Pods and nodes that an answer leaves out.

use serde::Serialize;

/// Pod that a node does not take, or node that stays, with the reason.
#[derive(Debug, Serialize)]
pub(crate) struct Refused {
    pub(crate) name: String,
    pub(crate) reason: String,
}
