//! Score of a solution: its value, and what is proved about it.

use std::fmt;

use dra_device::DeviceId;

/// Score of the devices that claims get on a node.
///
/// It is shown as a sentence: `node-1/gpu-3 rather than node-1/gpu-0: opened by counter set 0 instead of 1`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Score {
    /// Value: a number for each level of the objective. Less is better, and the first level counts most.
    pub value: Vec<u64>,
    /// Proof about the value.
    pub proof: Proof,
    /// Value of the first solution, which kube-scheduler takes.
    pub first_fit: Vec<u64>,
    /// Names of the units that have to give back what their claims hold, in their order; see
    /// [`Term::Displaced`](super::Term::Displaced).
    pub displaced: Vec<String>,
    /// Number of nodes of the search for the best solution.
    pub steps: u64,
    /// Reason why these devices are better than those of the first solution; `None` if none are better.
    pub reason: Option<ChoiceReason>,
}

/// Proof about the value of a solution.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Proof {
    /// No solution has a smaller value.
    Least,
    /// The search was stopped. This is the best solution that it found.
    Best {
        /// Value below which there is no solution.
        bound: Vec<u64>,
    },
    /// There is no objective: this is the first solution.
    FirstFit,
}

/// Reason why a solution is better than the first one: the first term that decides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChoiceReason {
    /// Devices of the solution that the first one does not have, in their order.
    pub devices: Vec<DeviceId>,
    /// Devices of the first solution that this one does not have, in their order.
    pub instead_of: Vec<DeviceId>,
    /// Term in words, as the objective is shown.
    pub term: String,
    /// Value of the term.
    pub value: u64,
    /// Value of the term for the first solution.
    pub first_fit: u64,
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => reason.fmt(f),
            None => write!(f, "the first devices that fit"),
        }
    }
}

impl fmt::Display for ChoiceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_names(f, &self.devices)?;
        f.write_str(" rather than ")?;
        write_names(f, &self.instead_of)?;
        write!(f, ": {} {} instead of {}", self.term, self.value, self.first_fit)
    }
}

/// Writes devices by pool and name.
fn write_names(f: &mut fmt::Formatter<'_>, devices: &[DeviceId]) -> fmt::Result {
    if devices.is_empty() {
        return f.write_str("the same");
    }
    for (number, device) in devices.iter().enumerate() {
        let comma = if number > 0 { ", " } else { "" };
        write!(f, "{comma}{}/{}", device.pool, device.device)?;
    }
    Ok(())
}
