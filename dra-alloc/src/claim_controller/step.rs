//! Steps of the work on a key.

use super::call::ControllerCall;
use super::error::SyncError;

/// Next step of the work on a key.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SyncStep {
    /// Make this call, and return its answer with [`super::ControllerSync::answer`].
    Call(ControllerCall),
    /// Nothing is left to do.
    Done,
    /// The work has ended with an error.
    Failed(SyncError),
}
