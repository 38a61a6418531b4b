//! Steps of a binding, and the reason that it ends without success.

use dra_device::DeviceId;
use dra_device::claims::ClaimKey;
use jiff::Timestamp;

use super::call::BindingCall;
use crate::cluster::state::ClaimId;
use crate::pods::pre_bind::BindError;

/// Next step of a pod's binding.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a call that is not made leaves the binding waiting for its answer"]
#[non_exhaustive]
pub enum BindingStep {
    /// A call to make. It is returned once; its answer goes to [`Binding::answer`](super::Binding::answer).
    Call(BindingCall),
    /// There is nothing to do now. [`Binding::next`](super::Binding::next) is called again at this time, and before it after each
    /// answer to a binding and each change of a claim or of the pod.
    Wait {
        /// Event that ends the wait.
        reason: BindingWait,
        /// Time of the next look.
        until: Timestamp,
    },
    /// The pod is bound. The binding has ended.
    Bound,
    /// The pod is not bound, and everything is taken back. The binding has ended.
    GaveUp {
        /// Reason of the end.
        reason: UnboundError,
        /// Errors of calls that take something back, as texts.
        problems: Vec<String>,
    },
}

/// Event that ends the wait of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BindingWait {
    /// The answer to the binding's own call comes. At the end of the time the call counts as one without an answer.
    Answer,
    /// Another binding has written this claim.
    Turn(ClaimKey),
    /// The driver reports that the devices of this claim are ready.
    Devices(ClaimKey),
    /// The time comes at which a call is made again, or at which one whose answer was lost can't be carried out any more.
    Repetition,
}

/// Reason that a pod is not bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnboundError {
    /// A claim can't be written, or its devices do not become ready.
    #[error(transparent)]
    Claims(#[from] BindError),
    /// Another claim holds a device that the pod's claims have got as well: another scheduler has given it away.
    #[error("{device} is held by {holder} as well, which another scheduler has allocated")]
    Rival {
        /// The device.
        device: DeviceId,
        /// The other claim.
        holder: ClaimId,
    },
    /// The API server has refused the binding.
    #[error("binding refused: {answer}")]
    Refused {
        /// Text of the API server.
        answer: String,
    },
    /// Somebody else has bound the pod.
    #[error("the pod is bound to {node:?} already")]
    BoundAlready {
        /// Node of the pod.
        node: String,
    },
    /// The pod is deleted, being deleted, or has ended; or memory has taken its assumed node back.
    #[error("the pod is gone, or not assumed on the node any more")]
    Gone,
    /// The scheduler has cancelled the binding.
    #[error("{reason}")]
    Cancelled {
        /// Reason of the scheduler.
        reason: String,
    },
}
