//! The two operations of a driver's node plugin.

use serde::Serialize;

/// An operation of a driver's node plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_enums, reason = "the plugin has these two")]
pub enum Operation {
    /// `NodePrepareResources`, before a pod starts.
    Prepare,
    /// `NodeUnprepareResources`, after a pod has ended.
    Unprepare,
}

impl Operation {
    /// Returns the name of the gRPC method.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::Prepare => dra_device::skip::SkipSet::NODE_PREPARE_RESOURCES,
            Self::Unprepare => dra_device::skip::SkipSet::NODE_UNPREPARE_RESOURCES,
        }
    }
}
