//! The start of a binding cycle: does it have work to do, and is the node announced (KEP-5278, The scheduler puts
//! `NominatedNodeName`)?

use serde::Serialize;

use crate::command::NoPatch;
use crate::gates::{Gate, Gates};
use crate::patch::Patch;

/// What a plugin's `PreBindPreFlight` says about one pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PreFlight {
    /// It will work in `PreBind`.
    Success,
    /// It has nothing to do: its `PreBind` is not run.
    Skip,
    /// It failed.
    Error {
        /// The plugin.
        plugin: String,
        /// What it says.
        error: String,
    },
    /// A status that no pre-flight may have, which is an error.
    Unsupported {
        /// The plugin.
        plugin: String,
        /// The status.
        status: String,
    },
}

impl PreFlight {
    /// What a plugin says, by the name of its status; `error` is the text that belongs to `Error`.
    ///
    /// ```
    /// use nnn::binding::start::PreFlight;
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

/// Why pre-flights end the binding cycle. The texts are kube-scheduler's, and stand in the pod's condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PreFlightError {
    /// A plugin failed.
    #[error("running PreBindPreFlight {plugin:?}: {error}")]
    Failed {
        /// The plugin.
        plugin: String,
        /// What it says.
        error: String,
    },
    /// A plugin said what it must not say.
    #[error(
        "PreBindPreFlight {plugin} returned {status:?}, which is unsupported. \
         It is supposed to return Success, Skip, or Error status"
    )]
    Unsupported {
        /// The plugin.
        plugin: String,
        /// The status.
        status: String,
    },
}

/// Whether the plugins have something to do in `PreBind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[expect(clippy::exhaustive_enums, reason = "they have or they have not")]
pub enum PreBindWork {
    /// At least one has.
    Some,
    /// None has, or there is none.
    None,
}

/// Whether a `Permit` plugin said that the pod has to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[expect(clippy::exhaustive_enums, reason = "it waits or it does not")]
pub enum PermitWait {
    /// None did.
    #[default]
    None,
    /// At least one did.
    Waiting,
}

/// What the pre-flights of all plugins, in their order, say together.
///
/// # Errors
/// The first plugin that failed or said what it must not say. Nothing has been written then.
///
/// ```
/// use nnn::binding::start::{PreBindWork, PreFlight, aggregate};
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

/// What the start of a binding cycle looks at.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct BindingStart<'a> {
    /// The scheduler's gates.
    pub gates: Gates,
    /// What the plugins' pre-flights say. Not asked if the gate is off.
    pub pre_flights: &'a [PreFlight],
    /// Whether the pod waits on permit.
    pub permit: PermitWait,
    /// The pod's nomination, as last written or observed.
    pub nnn: Option<&'a str>,
    /// The node that was chosen.
    pub host: &'a str,
}

impl<'a> BindingStart<'a> {
    /// The start of a binding cycle with the default gates, for a pod that was not nominated and does not wait.
    #[must_use]
    pub fn new(pre_flights: &'a [PreFlight], host: &'a str) -> Self {
        Self { gates: Gates::default(), pre_flights, permit: PermitWait::None, nnn: None, host }
    }

    /// Whether the node is written into the status before anything waits or works. The cycle goes on even if the write
    /// fails. An old nomination to another node is left to the API server if nothing is written.
    ///
    /// # Errors
    /// The cycle fails in pre-flight.
    ///
    /// ```
    /// use nnn::binding::start::{BindingStart, PreFlight};
    /// use nnn::command::NoPatch;
    /// use nnn::patch::Patch;
    /// let start = |pre_flight| BindingStart::new(&[pre_flight], "node-1").decide();
    /// assert_eq!(start(PreFlight::Success), Ok(Patch::Needed));
    /// assert_eq!(start(PreFlight::Skip), Ok(Patch::None(NoPatch::NothingToWaitFor)));
    /// ```
    pub fn decide(&self) -> Result<Patch, PreFlightError> {
        if !self.gates.has(Gate::Expectation) {
            return Ok(Patch::None(NoPatch::GateOff));
        }
        let work = aggregate(self.pre_flights)?;
        Ok(match (work, self.permit) {
            (PreBindWork::None, PermitWait::None) => Patch::None(NoPatch::NothingToWaitFor),
            _ if self.nnn == Some(self.host) => Patch::None(NoPatch::AlreadySet),
            _ => Patch::Needed,
        })
    }
}
