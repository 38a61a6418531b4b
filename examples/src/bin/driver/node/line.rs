//! Lines of a driver that serves: what has just happened, in words or as an object.

use std::fmt;

use dra_live::grpc::Happening;
use examples::output::{LineForm, OutputError, put_line};
use serde::Serialize;

/// Event in both forms.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    #[serde(flatten)]
    event: Event,
    #[serde(skip)]
    happening: &'a Happening,
}

/// Event as an object.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
enum Event {
    Serves { driver: String, socket: String },
    Prepared { claim: String, devices: Vec<String> },
    Unprepared { claim: String },
    Failed { claim: String, method: &'static str, reason: String },
    Other,
}

impl<'a> Line<'a> {
    /// Prints an event.
    ///
    /// # Errors
    /// The output is closed.
    pub(super) fn put(form: LineForm, happening: &'a Happening) -> Result<(), OutputError> {
        put_line(form, &Self { event: Event::of(happening), happening })
    }
}

impl Event {
    fn of(happening: &Happening) -> Self {
        match happening.clone() {
            Happening::Serves { driver, socket } => Self::Serves { driver, socket },
            Happening::Prepared { claim, devices } => Self::Prepared {
                claim: claim.key.to_string(),
                devices: devices.into_iter().flat_map(|device| device.cdi_ids).collect(),
            },
            Happening::Unprepared { claim } => Self::Unprepared { claim: claim.key.to_string() },
            Happening::Failed { claim, method, reason } => {
                Self::Failed { claim: claim.key.to_string(), method, reason }
            }
            _ => Self::Other,
        }
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.happening.fmt(formatter)
    }
}
