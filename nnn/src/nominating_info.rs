//! Result of a scheduling cycle for the pod's nomination.

use serde::Serialize;

use crate::pod::parse_node_name;

/// Change of a pod's nomination by a failed cycle; [`NominatingInfo::Noop`] leaves it. Named as in the scheduler
/// framework.
///
/// ```
/// use nnn::NominatingInfo;
/// assert_eq!(NominatingInfo::nominate("node-1").target(None), Some("node-1"));
/// assert_eq!(NominatingInfo::clear().target(Some("old")), None);
/// assert_eq!(NominatingInfo::Noop.target(Some("old")), Some("old"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the framework has these two modes")]
pub enum NominatingInfo {
    /// The status stays as it is, and memory follows it.
    #[default]
    Noop,
    /// Status and memory are set to this node, or cleared.
    Override(Option<String>),
}

impl NominatingInfo {
    /// Clears the nomination in status and memory.
    #[must_use]
    pub const fn clear() -> Self {
        Self::Override(None)
    }

    /// Sets the nomination in status and memory to a node. The empty name clears it.
    #[must_use]
    pub fn nominate(node: &str) -> Self {
        Self::Override(parse_node_name(Some(node)))
    }

    /// Returns the node that is nominated afterwards, if the status names `status` before.
    #[must_use]
    pub fn target<'a>(&'a self, status: Option<&'a str>) -> Option<&'a str> {
        match self {
            Self::Noop => status,
            Self::Override(node) => node.as_deref(),
        }
    }
}

/// Serialises mode and node as the scheduler framework has them: `[0, ""]` leaves, `[1, node]` sets, `[1, ""]` clears
/// the nomination.
impl Serialize for NominatingInfo {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Noop => (0, ""),
            Self::Override(node) => (1, node.as_deref().unwrap_or_default()),
        }
        .serialize(serializer)
    }
}
