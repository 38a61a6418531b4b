//! What a scheduling cycle says about a pod's nomination.

use serde::Serialize;

use crate::pod::node_name;

/// What a failed cycle says about the pod's nomination. To say nothing is [`NominatingInfo::Noop`].
///
/// ```
/// use nnn::nominating::NominatingInfo;
/// assert_eq!(NominatingInfo::to("node-1").target(None), Some("node-1"));
/// assert_eq!(NominatingInfo::clear().target(Some("old")), None);
/// assert_eq!(NominatingInfo::Noop.target(Some("old")), Some("old"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the framework has these two modes")]
pub enum NominatingInfo {
    /// The status stays; memory follows it.
    #[default]
    Noop,
    /// Status and memory become this node, or unset.
    Override(Option<String>),
}

impl NominatingInfo {
    /// Status and memory become unset.
    #[must_use]
    pub const fn clear() -> Self {
        Self::Override(None)
    }

    /// Status and memory become a node. The empty name means unset.
    #[must_use]
    pub fn to(node: &str) -> Self {
        Self::Override(node_name(Some(node)))
    }

    /// What the nomination is afterwards, if the status says `status`.
    #[must_use]
    pub fn target<'a>(&'a self, status: Option<&'a str>) -> Option<&'a str> {
        match self {
            Self::Noop => status,
            Self::Override(node) => node.as_deref(),
        }
    }
}

/// Mode and node, as the framework has them: `[0, ""]` says nothing, `[1, node]` overrides, `[1, ""]` clears.
impl Serialize for NominatingInfo {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Noop => (0, ""),
            Self::Override(node) => (1, node.as_deref().unwrap_or_default()),
        }
        .serialize(serializer)
    }
}
