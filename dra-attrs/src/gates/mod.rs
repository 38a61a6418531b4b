//! Sets of feature gates, written as Kubernetes components take them: `A=true,B=false`.
//!
//! Tests: `tests/it/gates.rs`.

mod kubernetes;
mod metrics;

use std::fmt;

use crate::gate::Gate;
use crate::profile::Profile;
use crate::release::GateStage;

pub use metrics::GateMetricsError;

/// Error of a list of feature gates, such as `A=true,B=false`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// The list has a name that is no feature gate, neither of the profile nor elsewhere in Kubernetes.
    #[error("no feature gate {name:?} in profile {profile}; the nearest is {nearest}")]
    Unknown {
        /// The unknown name.
        name: String,
        /// Profile whose names of gates are expected.
        profile: Profile,
        /// Name of an existing gate that is most similar to the unknown name; a gate of the set before another one.
        nearest: &'static str,
    },
    /// The release of the profile does not have the gate; another one does.
    #[error("profile {profile} has no feature gate {gate}")]
    NotInRelease {
        /// Name of the gate.
        gate: &'static str,
        /// Profile whose gates are expected.
        profile: Profile,
    },
    /// The gate is locked in the release of the profile, and the list has the other value.
    #[error("feature gate {gate} is locked to true in profile {profile}")]
    Locked {
        /// Name of the gate.
        gate: &'static str,
        /// Profile that has it locked.
        profile: Profile,
    },
    /// A part of the list is not `NAME=true` or `NAME=false`.
    #[error("feature gate {part:?} is not NAME=true or NAME=false")]
    NotAssigned {
        /// Part of the list that is not an assignment.
        part: String,
    },
}

/// A set of feature gates that are on. [`GateSet::of`] is the default of a release.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GateSet {
    bits: u32,
}

impl GateSet {
    /// The set with every gate off.
    pub const NONE: Self = Self { bits: 0 };

    /// Returns the set with every gate on.
    #[must_use]
    pub fn all() -> Self {
        Gate::ALL.iter().copied().collect()
    }

    /// Returns the gates that the release of a profile has on by default. The KEPs have those of Kubernetes 1.37.
    ///
    /// ```
    /// use dra_attrs::{Gate, GateSet, Profile};
    /// assert!(GateSet::of(Profile::V1_36).has(Gate::DeviceTaints));
    /// assert!(!GateSet::of(Profile::V1_35).has(Gate::DeviceTaints));
    /// ```
    #[must_use]
    pub fn of(profile: Profile) -> Self {
        Gate::ALL.iter().fold(Self::NONE, |gates, gate| gates.with_value(*gate, gate.is_default(profile)))
    }

    /// Parses a list of changes to the defaults, as `--feature-gates` takes it: `A=true,B=false`. Empty parts are
    /// skipped, and the last value of a gate counts. A gate that Kubernetes has and [`Gate`] does not is accepted, so that the
    /// list of a real component can be used, and has no effect; see [`GateSet::find`].
    ///
    /// # Errors
    /// A part that is no assignment, a name that neither `profile` nor Kubernetes has, a gate that the release does not
    /// have, or one that is locked there.
    pub fn parse(list: &str, profile: Profile) -> Result<Self, GateError> {
        parts(list).try_fold(Self::of(profile), |gates, part| {
            let (name, is_on) = assignment(part)?;
            let Some(gate) = Self::find(name, profile)? else { return Ok(gates) };
            if !is_on && gate.stage(profile) == GateStage::Locked {
                return Err(GateError::Locked { gate: gate.name(profile), profile });
            }
            Ok(gates.with_value(gate, is_on))
        })
    }

    /// Returns the gate of a name; `None` for a gate that Kubernetes has and [`Gate`] does not.
    ///
    /// # Errors
    /// A name that neither `profile` nor Kubernetes has ([`GateError::Unknown`]).
    pub fn find(name: &str, profile: Profile) -> Result<Option<Gate>, GateError> {
        let named = |profile| Gate::ALL.iter().copied().find(|gate: &Gate| gate.name(profile) == name);
        if let Some(gate) = named(profile) {
            let absent = GateError::NotInRelease { gate: gate.name(profile), profile };
            return gate.stage(profile).exists().then_some(Some(gate)).ok_or(absent);
        }
        // The name that a gate of the set has in another profile is a mistake.
        let other = Profile::ALL.into_iter().find_map(named).map(|gate| gate.name(profile));
        if other.is_none() && kubernetes::names().any(|known| known == name) {
            return Ok(None);
        }
        let known = Gate::ALL.iter().map(|gate| gate.name(profile)).chain(kubernetes::names());
        let nearest = other.or_else(|| nearest_name(name, known)).unwrap_or_default();
        Err(GateError::Unknown { name: name.to_owned(), profile, nearest })
    }

    /// Builds a set by calling `is_on` with the name of each gate in `profile`. A gate for which it returns `None`
    /// keeps its default.
    #[must_use]
    pub fn from_names(profile: Profile, is_on: impl Fn(&str) -> Option<bool>) -> Self {
        let is_on = |gate: &Gate| is_on(gate.name(profile)).unwrap_or_else(|| gate.is_default(profile));
        Gate::ALL.iter().fold(Self::NONE, |gates, gate| gates.with_value(*gate, is_on(gate)))
    }

    /// Returns the gates of the set that the release of a profile has.
    pub(crate) fn of_release(self, profile: Profile) -> Self {
        let absent = Gate::ALL.into_iter().filter(|gate| !gate.stage(profile).exists());
        absent.fold(self, |gates, gate| gates.with_value(gate, false))
    }

    /// Returns true if the gate and all gates that it requires are on.
    #[must_use]
    #[inline]
    pub fn has(self, gate: Gate) -> bool {
        let mask = gate.requires().iter().fold(bit(gate), |mask, required| mask | bit(*required));
        self.bits & mask == mask
    }

    /// Returns true if the gate itself is on, whether or not the gates that it requires are.
    #[must_use]
    pub fn is_on(self, gate: Gate) -> bool {
        self.bits & bit(gate) != 0
    }

    /// Returns the set with one gate on, together with the gates that it requires.
    #[must_use]
    pub fn with(self, gate: Gate) -> Self {
        gate.requires().iter().fold(self.with_value(gate, true), |gates, required| gates.with_value(*required, true))
    }

    /// Returns the set with one gate off.
    #[must_use]
    pub fn without(self, gate: Gate) -> Self {
        self.with_value(gate, false)
    }

    /// Returns the set with each gate on or off as its value says, and no other gate changed.
    #[must_use]
    pub fn with_values(self, values: impl IntoIterator<Item = (Gate, bool)>) -> Self {
        values.into_iter().fold(self, |gates, (gate, is_on)| gates.with_value(gate, is_on))
    }

    fn with_value(self, gate: Gate, is_on: bool) -> Self {
        Self { bits: if is_on { self.bits | bit(gate) } else { self.bits & !bit(gate) } }
    }

    /// Returns the gates that are on, in the order of the enum.
    pub fn iter(self) -> impl Iterator<Item = Gate> {
        Gate::ALL.iter().copied().filter(move |gate| self.has(*gate))
    }
}

#[inline]
const fn bit(gate: Gate) -> u32 {
    1 << gate as u32
}

fn parts(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|part| !part.is_empty())
}

fn assignment(part: &str) -> Result<(&str, bool), GateError> {
    let pair = part.split_once('=').and_then(|(name, value)| Some((name.trim(), value.trim().parse().ok()?)));
    pair.ok_or_else(|| GateError::NotAssigned { part: part.to_owned() })
}

/// Returns the name in `known` that is most similar to `name` (smallest edit distance); the first of several equals.
///
/// # Complexity
/// Product of the lengths of both names, for each known one. Only the first 128 characters are compared.
fn nearest_name<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    known.into_iter().min_by_key(|candidate| edits(name, candidate))
}

/// Returns the Levenshtein distance of two names. Case and everything after 128 characters are ignored.
fn edits(from: &str, to: &str) -> usize {
    const COMPARED: usize = 128;
    let chars = |text: &str| -> Vec<char> { text.chars().take(COMPARED).map(|c| c.to_ascii_lowercase()).collect() };
    let (from, to) = (chars(from), chars(to));
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, source) in from.iter().enumerate() {
        let mut diagonal = index;
        let mut left = index + 1;
        for (target, above) in to.iter().zip(row.iter_mut().skip(1)) {
            let substituted = diagonal + usize::from(source != target);
            diagonal = *above;
            left = substituted.min(left + 1).min(*above + 1);
            *above = left;
        }
        if let Some(first) = row.first_mut() {
            *first = index + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

impl FromIterator<Gate> for GateSet {
    fn from_iter<I: IntoIterator<Item = Gate>>(gates: I) -> Self {
        gates.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for GateSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::nearest_name;

    #[test]
    fn an_empty_name_is_as_far_away_as_a_name_is_long() {
        assert_eq!(nearest_name("abc", ["", "ab"]), Some("ab"));
        assert_eq!(nearest_name("DRAAdminAcess", ["DRADeviceTaints", "DRAAdminAccess"]), Some("DRAAdminAccess"));
    }
}
