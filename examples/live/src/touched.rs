//! Parts of a cluster that a change touches: a pod, a claim, nodes.

use std::collections::BTreeSet;

use dra_alloc::claims::ClaimKey;

/// Namespace and name of a pod.
pub type Place = (String, String);

/// Part of a cluster that a change is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Touched {
    /// Nothing that anybody decides by: a list is being read, or a node is alive.
    Nothing,
    /// All pods were listed anew.
    Pods,
    /// The pod was added, changed or deleted.
    Pod(Place),
    /// The claim was added, changed or deleted; with the nodes that see devices which it has got or given back.
    Claim(ClaimKey, Nodes),
    /// Verdicts on these nodes may be others now.
    Nodes(Nodes),
}

/// Nodes of a cluster, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "some, or all")]
pub enum Nodes {
    /// Some, or none.
    These(BTreeSet<String>),
    /// All nodes, also those that come.
    All,
}

impl Default for Nodes {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl From<String> for Nodes {
    fn from(node: String) -> Self {
        Self::These([node].into())
    }
}

impl Nodes {
    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::These(nodes) if nodes.is_empty())
    }

    /// Returns the nodes of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::These(mut nodes), Self::These(more)) => {
                nodes.extend(more);
                Self::These(nodes)
            }
            _ => Self::All,
        }
    }
}
