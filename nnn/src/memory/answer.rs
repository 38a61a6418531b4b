//! Words between a memory of pods and its caller: answers of the API server, and what a change has changed.

/// Answer of the API server to a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a write is stored, refused, or nobody knows")]
pub enum BindingAnswer {
    /// The binding is stored.
    Stored,
    /// The binding was refused. While an earlier answer is lost this says nothing: that binding may be the reason.
    Refused,
    /// No answer, or one that does not tell if the binding is stored: a timeout, a broken connection, a failure of the server.
    Lost,
}

/// Answer of the API server to a write of `status.nominatedNodeName`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a write is stored, refused, or nobody knows")]
pub enum NominationAnswer<'a> {
    /// The nomination is stored.
    Stored {
        /// `metadata.resourceVersion` of the pod in the answer.
        version: &'a str,
    },
    /// The nomination was refused.
    Refused,
    /// Nobody knows if the nomination is stored. Write it once more.
    Lost,
}

/// Change that an object has made in the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PodChange {
    /// The pod was not known, or another one of its name was.
    Added,
    /// The pod is known in a later version now.
    Changed,
    /// The pod was known in this version.
    Same,
    /// The object is older than the known one, and counts for nothing.
    Older,
    /// The pod is bound to another node than this scheduler has assumed: another one has bound it.
    BoundElsewhere {
        /// Node that was assumed.
        assumed: String,
    },
}

/// Reason that a pod can't be assumed on a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AssumeError {
    /// No pod with the UID is known.
    #[error("no pod with UID {uid:?} is known")]
    Unknown {
        /// The UID.
        uid: String,
    },
    /// The pod has a node, or one is on its way.
    #[error("the pod is placed on {node:?} already")]
    Placed {
        /// Its node.
        node: String,
    },
    /// The pod is being deleted, or has ended.
    #[error("the pod is being deleted, or has ended")]
    Gone,
}
