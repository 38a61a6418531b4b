//! Start of a binding cycle: the decision to announce the chosen node (KEP-5278, The scheduler puts
//! `NominatedNodeName`).

use dra_attrs::GateSet;
use serde::Serialize;

use crate::command::NoPatchReason;
use crate::gates::NominationGate;
use crate::patch::PatchDecision;

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
        /// Message of the plugin.
        error: String,
    },
    /// The plugin returned a status that a pre-flight must not return, which is an error.
    Unsupported {
        /// Name of the plugin.
        plugin: String,
        /// Name of the status.
        status: String,
    },
}

impl PreFlight {
    /// Converts the name of a framework status. `error` is the message that belongs to `Error`.
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

/// Error of a pre-flight that ends the binding cycle. The texts are kube-scheduler's and end up in the pod's condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PreFlightError {
    /// A pre-flight failed.
    #[error("running PreBindPreFlight {plugin:?}: {error}")]
    Failed {
        /// Name of the plugin.
        plugin: String,
        /// Message of the plugin.
        error: String,
    },
    /// A plugin returned a status that a pre-flight must not return.
    #[error(
        "PreBindPreFlight {plugin} returned {status:?}, which is unsupported. \
         It is supposed to return Success, Skip, or Error status"
    )]
    Unsupported {
        /// Name of the plugin.
        plugin: String,
        /// Name of the status.
        status: String,
    },
}

/// Amount of work that the plugins have in `PreBind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[expect(clippy::exhaustive_enums, reason = "they have or they have not")]
pub enum PreBindWork {
    /// At least one plugin has work.
    Some,
    /// No plugin has work.
    None,
}

/// Combined result of the `Permit` plugins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[expect(clippy::exhaustive_enums, reason = "it waits or it does not")]
pub enum PermitWait {
    /// No plugin asked to wait.
    #[default]
    None,
    /// At least one plugin asked to wait.
    Waiting,
}

/// Combines the pre-flights of all plugins, given in their order.
///
/// # Errors
/// The first plugin that failed or returned an unsupported status. Nothing has been written then.
///
/// ```
/// use nnn::PreFlight;
/// use nnn::binding::{PreBindWork, aggregate};
/// assert_eq!(aggregate(&[PreFlight::Skip, PreFlight::Success]), Ok(PreBindWork::Some));
/// assert_eq!(aggregate(&[]), Ok(PreBindWork::None));
/// assert!(aggregate(&[PreFlight::Success, PreFlight::from_status("Mine", "Wait", "")]).is_err());
/// ```
pub fn aggregate(pre_flights: &[PreFlight]) -> Result<PreBindWork, PreFlightError> {
    let mut work = PreBindWork::None;
    for pre_flight in pre_flights.iter().cloned() {
        match pre_flight {
            PreFlight::Success => work = PreBindWork::Some,
            PreFlight::Skip => {}
            PreFlight::Error { plugin, error } => return Err(PreFlightError::Failed { plugin, error }),
            PreFlight::Unsupported { plugin, status } => return Err(PreFlightError::Unsupported { plugin, status }),
        }
    }
    Ok(work)
}

/// Input of a binding cycle.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BindingStart<'a> {
    /// Feature gates of the scheduler.
    pub gates: GateSet<NominationGate>,
    /// Results of `PreBindPreFlight`. Ignored if `NominatedNodeNameForExpectation` is off.
    pub pre_flights: &'a [PreFlight],
    /// Result of the `Permit` plugins.
    pub permit: PermitWait,
    /// Nomination of the pod, as last written or observed.
    pub nnn: Option<&'a str>,
    /// The chosen node.
    pub host: &'a str,
}

impl<'a> BindingStart<'a> {
    /// Builds the input for a pod that has no nomination and does not wait, with the default gates.
    #[must_use]
    pub fn new(pre_flights: &'a [PreFlight], host: &'a str) -> Self {
        Self { gates: GateSet::default(), pre_flights, permit: PermitWait::None, nnn: None, host }
    }

    /// Decides if the node is written into the status before the cycle waits or works.
    ///
    /// The cycle goes on even if the write fails. If nothing is written, an old nomination to another node is left to
    /// the API server.
    ///
    /// # Errors
    /// A pre-flight failed, so that the cycle fails.
    ///
    /// ```
    /// use nnn::binding::BindingStart;
    /// use nnn::{NoPatchReason, PatchDecision, PreFlight};
    /// let start = |pre_flight| BindingStart::new(&[pre_flight], "node-1").decide();
    /// assert_eq!(start(PreFlight::Success), Ok(PatchDecision::Needed));
    /// assert_eq!(start(PreFlight::Skip), Ok(PatchDecision::None(NoPatchReason::NothingToWaitFor)));
    /// ```
    pub fn decide(&self) -> Result<PatchDecision, PreFlightError> {
        if !self.gates.has(NominationGate::Expectation) {
            return Ok(PatchDecision::None(NoPatchReason::GateOff));
        }
        let work = aggregate(self.pre_flights)?;
        Ok(match (work, self.permit) {
            (PreBindWork::None, PermitWait::None) => PatchDecision::None(NoPatchReason::NothingToWaitFor),
            _ if self.nnn == Some(self.host) => PatchDecision::None(NoPatchReason::AlreadySet),
            _ => PatchDecision::Needed,
        })
    }
}
