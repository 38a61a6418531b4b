//! Start of a binding cycle: decides to write the chosen node into `status.nominatedNodeName` or not (KEP-5278, The
//! scheduler puts `NominatedNodeName`).

use dra_attrs::{Component, Gate};

use crate::commands::NoPatchReason;

/// Result of a plugin's `PreBindPreFlight` for one pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PreFlight {
    /// The plugin has work to do in `PreBind`.
    Success,
    /// The plugin has nothing to do: its `PreBind` is skipped.
    Skip,
    /// The pre-flight failed.
    Error {
        /// Name of the plugin.
        plugin: String,
        /// Error message of the plugin.
        error: String,
    },
    /// The plugin returned a status other than `Success`, `Skip` or `Error`, which kube-scheduler treats as an error.
    Unsupported {
        /// Name of the plugin.
        plugin: String,
        /// Name of the status, such as `Wait`.
        status: String,
    },
}

impl PreFlight {
    /// Builds the result from the status that a plugin's `PreBindPreFlight` returned (`Success`, `Skip`, `Error` or
    /// another name). `error` is the message for the status `Error`.
    ///
    /// ```
    /// use nnn::PreFlight;
    /// assert_eq!(PreFlight::from_status("VolumeBinding", "Skip", ""), PreFlight::Skip);
    /// assert!(matches!(PreFlight::from_status("Mine", "Wait", ""), PreFlight::Unsupported { .. }));
    /// ```
    #[must_use]
    pub fn from_status(plugin: &str, status: &str, error: &str) -> Self {
        match status {
            "Success" => Self::Success,
            "Skip" => Self::Skip,
            "Error" => Self::Error { plugin: plugin.to_owned(), error: error.to_owned() },
            _ => Self::Unsupported { plugin: plugin.to_owned(), status: status.to_owned() },
        }
    }
}

/// Error of a pre-flight that ends the binding cycle. The messages are those of kube-scheduler in the condition
/// `PodScheduled`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PreFlightError {
    /// A pre-flight failed.
    #[error("running PreBindPreFlight {plugin:?}: {error}")]
    Failed {
        /// Name of the plugin.
        plugin: String,
        /// Error message of the plugin.
        error: String,
    },
    /// A plugin's pre-flight returned a status other than `Success`, `Skip` or `Error`.
    #[error(
        "PreBindPreFlight {plugin} returned {status:?}, which is unsupported. \
         It is supposed to return Success, Skip, or Error status"
    )]
    Unsupported {
        /// Name of the plugin.
        plugin: String,
        /// Name of the status, such as `Wait`.
        status: String,
    },
}

/// Returns true if at least one plugin has work to do in `PreBind`, by the pre-flights in the order of the plugins.
///
/// # Errors
/// The first plugin that failed or returned an unsupported status. Nothing has been written then.
fn has_work(pre_flights: &[PreFlight]) -> Result<bool, PreFlightError> {
    let mut has_work = false;
    for pre_flight in pre_flights.iter().cloned() {
        match pre_flight {
            PreFlight::Success => has_work = true,
            PreFlight::Skip => {}
            PreFlight::Error { plugin, error } => return Err(PreFlightError::Failed { plugin, error }),
            PreFlight::Unsupported { plugin, status } => return Err(PreFlightError::Unsupported { plugin, status }),
        }
    }
    Ok(has_work)
}

/// Input of the decision at the start of a binding cycle.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BindingStart<'a> {
    /// Scheduler.
    pub scheduler: Component,
    /// Results of `PreBindPreFlight`. Ignored if `NominatedNodeNameForExpectation` is off.
    pub pre_flights: &'a [PreFlight],
    /// True if at least one `Permit` plugin asked to wait.
    pub waits_on_permit: bool,
    /// Node in `status.nominatedNodeName`, as last written or observed.
    pub nnn: Option<&'a str>,
    /// Node that the scheduling cycle has chosen.
    pub host: &'a str,
}

impl<'a> BindingStart<'a> {
    /// Builds the input for a pod that has no nomination and does not wait on permit.
    #[must_use]
    pub fn new(scheduler: impl Into<Component>, pre_flights: &'a [PreFlight], host: &'a str) -> Self {
        Self { scheduler: scheduler.into(), pre_flights, waits_on_permit: false, nnn: None, host }
    }

    /// Decides to write the chosen node into `status.nominatedNodeName` or not, before the cycle waits or runs
    /// `PreBind`. Returns the reason that nothing is written; `None` if the node is.
    ///
    /// The cycle goes on even if the write fails. If nothing is written, an old nomination to another node is left to
    /// the API server.
    ///
    /// # Errors
    /// A pre-flight failed, so that the cycle fails.
    ///
    /// ```
    /// use nnn::binding::BindingStart;
    /// use dra_attrs::Profile;
    /// use nnn::{NoPatchReason, PreFlight};
    /// let start = |pre_flight| BindingStart::new(Profile::V1_37, &[pre_flight], "node-1").no_patch_reason();
    /// assert_eq!(start(PreFlight::Success), Ok(None));
    /// assert_eq!(start(PreFlight::Skip), Ok(Some(NoPatchReason::NothingToWaitFor)));
    /// ```
    pub fn no_patch_reason(&self) -> Result<Option<NoPatchReason>, PreFlightError> {
        if !self.scheduler.has(Gate::NominatedNodeNameForExpectation) {
            return Ok(Some(NoPatchReason::GateOff));
        }
        let waits = has_work(self.pre_flights)? || self.waits_on_permit;
        Ok(match self.nnn {
            _ if !waits => Some(NoPatchReason::NothingToWaitFor),
            Some(node) if node == self.host => Some(NoPatchReason::AlreadySet),
            _ => None,
        })
    }
}
