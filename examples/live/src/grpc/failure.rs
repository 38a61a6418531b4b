//! Texts of calls that have failed, in the form of Go's gRPC.

use std::error::Error;

use crate::causes::{causes, with_causes};
use crate::say::one_line;
use tonic::{Code, Status, TimeoutExpired, transport};

/// Text of a call that has no whole answer in time.
pub(super) const DEADLINE_EXCEEDED: &str = "rpc error: code = DeadlineExceeded desc = context deadline exceeded";

/// Returns the text of a failure in the form of Go's gRPC, on one line.
pub(super) fn failure(status: &Status) -> String {
    if status.code() == Code::Cancelled && is_expired(status) {
        return DEADLINE_EXCEEDED.to_owned();
    }
    let lost = status.source().filter(|source| source.is::<transport::Error>());
    let (code, message) = match (status.code(), lost) {
        (Code::Cancelled, _) => ("Canceled".to_owned(), status.message().to_owned()),
        // As Go's client says of a connection that has ended, or over which something else is spoken.
        (Code::Unknown, Some(error)) => (format!("{:?}", Code::Unavailable), with_causes(error)),
        (code, _) => (format!("{code:?}"), status.message().to_owned()),
    };
    format!("rpc error: code = {code} desc = {}", one_line(&message))
}

/// Returns true if the caller's own deadline expired.
fn is_expired(status: &Status) -> bool {
    causes(status).any(<dyn Error>::is::<TimeoutExpired>)
}
