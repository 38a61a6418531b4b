//! Calls that a binding makes, as values.

use std::sync::Arc;

use nnn::{Command, PodKey};

use crate::pods::write::ClaimWrite;

/// Call of a pod's binding to the API server. It owns its data, so that another thread can make it. Give it back with the answer
/// ([`Binding::answer`](super::Binding::answer)), whenever that comes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BindingCall {
    /// Pod whose binding asks for the call.
    pub pod: PodKey,
    /// Call to make.
    pub request: BindingRequest,
    ticket: Ticket,
}

/// Request of a pod's binding to the API server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BindingRequest {
    /// Writes the nomination of the pod or clears it, by the PATCH of [`Command::patch`].
    Status(Command),
    /// Writes or reads a claim of the pod, or writes the pod's claim for extended resources into its status.
    Claim(ClaimWrite),
    /// Creates the pod's binding to a node, with the pod's UID as precondition: a POST to its subresource `binding`.
    Bind {
        /// Name of the node.
        node: String,
    },
    /// Reads the pod. The server must not answer from a cache: no `resourceVersion` is sent.
    ReadPod,
}

/// Identity of a call: answers to other calls of the pod change nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Ticket(Arc<()>);

/// Two calls are equal if they ask for the same, whenever they are made.
impl PartialEq for BindingCall {
    fn eq(&self, other: &Self) -> bool {
        (&self.pod, &self.request) == (&other.pod, &other.request)
    }
}

impl BindingCall {
    pub(super) fn new(pod: &PodKey, request: BindingRequest) -> Self {
        Self { pod: pod.clone(), request, ticket: Ticket::default() }
    }

    /// Returns true if an answer to another call is an answer to this one.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ticket.0, &other.ticket.0)
    }
}
