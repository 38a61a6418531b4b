//! Lines of a controller: what has just happened, in words or as an object.

use std::fmt;

use serde::Serialize;

/// Event that is worth a line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
pub(super) enum Line {
    /// The controller has its lease, and begins.
    Answers { server: String },
    /// A status is stored, with `listed` of the `pools` in it; `seen` has the newest resource version of each kind from which it was computed.
    Answered { request: String, pools: i32, listed: usize, seen: String },
    /// Another copy of the controller has answered.
    AnsweredByOther { request: String },
    /// The request was deleted before it was answered.
    Gone { request: String },
    /// The request was kept long enough.
    Expired { request: String },
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answers { server } => write!(formatter, "answers requests of {server}"),
            Self::Answered { request, pools, listed, seen } if i64::try_from(*listed) == Ok(i64::from(*pools)) => {
                write!(formatter, "{request}: answered, {pools} pools, at {seen}")
            }
            Self::Answered { request, pools, listed, seen } => {
                write!(formatter, "{request}: answered, {listed} of {pools} pools, at {seen}")
            }
            Self::AnsweredByOther { request } => write!(formatter, "{request}: answered by another copy"),
            Self::Gone { request } => write!(formatter, "{request}: gone"),
            Self::Expired { request } => write!(formatter, "{request}: expired, deleted"),
        }
    }
}
