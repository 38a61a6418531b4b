//! Change of a pod's nomination by a scheduling cycle.

use serde::Serialize;

use crate::pod::parse_node_name;

/// Change of a pod's nomination by a failed scheduling or binding cycle. Named as in the scheduler framework.
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
    /// Leaves `status.nominatedNodeName` unchanged, and sets the nomination in memory to its value.
    #[default]
    Noop,
    /// Sets the nomination in status and memory to this node, or clears it (`None`).
    Override(Option<String>),
}

impl NominatingInfo {
    /// Returns the change that clears the nomination.
    #[must_use]
    pub const fn clear() -> Self {
        Self::Override(None)
    }

    /// Returns the change that sets the nomination to a node. The empty name clears the nomination.
    #[must_use]
    pub fn nominate(node: &str) -> Self {
        Self::Override(parse_node_name(Some(node)))
    }

    /// Returns the nominated node after the change, given the node in `status.nominatedNodeName` before it.
    #[must_use]
    pub fn target<'a>(&'a self, status: Option<&'a str>) -> Option<&'a str> {
        match self {
            Self::Noop => status,
            Self::Override(node) => node.as_deref(),
        }
    }
}

/// Serialises mode and node as in the scheduler framework: `[0, ""]` leaves, `[1, node]` sets, `[1, ""]` clears the
/// nomination.
impl Serialize for NominatingInfo {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Noop => (0, ""),
            Self::Override(node) => (1, node.as_deref().unwrap_or_default()),
        }
        .serialize(serializer)
    }
}
