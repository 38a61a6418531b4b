//! Sets of feature gates, written as Kubernetes components take them: `A=true,B=false`.

mod kubernetes;
mod metrics;

use std::fmt;
use std::marker::PhantomData;

use crate::Profile;
use crate::internal::Sealed;

pub use metrics::GateMetricsError;

/// A feature gate of one crate: an enum, each variant of which has a name, a default and a position in the set. Only the
/// crates of this family have gates.
///
/// ```
/// use dra_attrs::{DraGate, FeatureGate, GateSet, Profile};
///
/// let gates = GateSet::<DraGate>::parse("DRAListTypeAttributes=true", Profile::V1_37)?;
/// assert!(gates.has(DraGate::ListTypeAttributes) && gates.has(DraGate::DeviceTaints));
/// assert!(!DraGate::ListTypeAttributes.is_default(Profile::V1_37));
/// # Ok::<(), dra_attrs::GateError>(())
/// ```
pub trait FeatureGate: Sealed + Copy + Eq + fmt::Debug + 'static {
    /// Every feature gate, in the order of the enum.
    const ALL: &'static [Self];

    /// Returns the name of the gate in `--feature-gates`. A KEP and the release may spell it differently.
    fn name(self, profile: Profile) -> &'static str;

    /// Returns true if the release of a profile has the gate on by default.
    fn is_default(self, profile: Profile) -> bool;

    /// Returns the index of the gate in a [`GateSet`]: unique, below 32.
    fn position(self) -> u32;

    /// Returns the other gates that must be on so that this gate has an effect.
    fn requires(self) -> &'static [Self] {
        &[]
    }
}

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
    /// A part of the list is not `NAME=true` or `NAME=false`.
    #[error("feature gate {part:?} is not NAME=true or NAME=false")]
    NotAssigned {
        /// Part of the list that is not an assignment.
        part: String,
    },
}

/// A set of feature gates that are on. [`GateSet::of`] is the default of a release.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GateSet<G> {
    bits: u32,
    gates: PhantomData<fn() -> G>,
}

impl<G> GateSet<G> {
    /// The set with every gate off.
    pub const NONE: Self = Self { bits: 0, gates: PhantomData };
}

impl<G: FeatureGate> GateSet<G> {
    /// Returns the set with every gate on.
    #[must_use]
    pub fn all() -> Self {
        G::ALL.iter().copied().collect()
    }

    /// Returns the gates that the release of a profile has on by default. The KEPs have those of Kubernetes 1.37.
    ///
    /// ```
    /// use dra_attrs::{DraGate, GateSet, Profile};
    /// assert!(GateSet::of(Profile::V1_36).has(DraGate::DeviceTaints));
    /// assert!(!GateSet::of(Profile::V1_35).has(DraGate::DeviceTaints));
    /// ```
    #[must_use]
    pub fn of(profile: Profile) -> Self {
        G::ALL.iter().fold(Self::NONE, |gates, gate| gates.with_value(*gate, gate.is_default(profile)))
    }

    /// Parses a list of changes to the defaults, as `--feature-gates` takes it: `A=true,B=false`. Empty parts are
    /// skipped, and the last value of a gate counts. A gate that Kubernetes has and `G` does not is accepted, so that the
    /// list of a real component can be used, and has no effect; see [`GateSet::without_effect`].
    ///
    /// # Errors
    /// A part that is no assignment, or a name that neither `profile` nor Kubernetes has.
    pub fn parse(list: &str, profile: Profile) -> Result<Self, GateError> {
        parts(list).try_fold(Self::of(profile), |gates, part| {
            let (name, is_on) = assignment(part)?;
            Ok(Self::find(name, profile)?.map_or(gates, |gate| gates.with_value(gate, is_on)))
        })
    }

    /// Returns the names in a list of changes that Kubernetes has and `G` does not, each once, in their order.
    ///
    /// # Errors
    /// As for [`GateSet::parse`].
    pub fn without_effect(list: &str, profile: Profile) -> Result<Vec<&str>, GateError> {
        let mut names = Vec::new();
        for part in parts(list) {
            let (name, _) = assignment(part)?;
            if Self::find(name, profile)?.is_none() && !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Returns the gate of a name; `None` for a gate that Kubernetes has and `G` does not.
    ///
    /// # Errors
    /// A name that neither `profile` nor Kubernetes has ([`GateError::Unknown`]).
    pub fn find(name: &str, profile: Profile) -> Result<Option<G>, GateError> {
        let named = |profile| G::ALL.iter().copied().find(|gate: &G| gate.name(profile) == name);
        if let Some(gate) = named(profile) {
            return Ok(Some(gate));
        }
        // The name that a gate of the set has in another profile is a mistake.
        let other = Profile::ALL.into_iter().find_map(named).map(|gate| gate.name(profile));
        if other.is_none() && kubernetes::names().any(|known| known == name) {
            return Ok(None);
        }
        let known = G::ALL.iter().map(|gate| gate.name(profile)).chain(kubernetes::names());
        let nearest = other.or_else(|| nearest_name(name, known)).unwrap_or_default();
        Err(GateError::Unknown { name: name.to_owned(), profile, nearest })
    }

    /// Builds a set by calling `is_on` with the name of each gate in `profile`. A gate for which it returns `None`
    /// keeps its default.
    #[must_use]
    pub fn from_names(profile: Profile, is_on: impl Fn(&str) -> Option<bool>) -> Self {
        let is_on = |gate: &G| is_on(gate.name(profile)).unwrap_or_else(|| gate.is_default(profile));
        G::ALL.iter().fold(Self::NONE, |gates, gate| gates.with_value(*gate, is_on(gate)))
    }

    /// Returns true if the gate and all gates that it requires are on.
    #[must_use]
    #[inline]
    pub fn has(self, gate: G) -> bool {
        let mask = gate.requires().iter().fold(bit(gate), |mask, required| mask | bit(*required));
        self.bits & mask == mask
    }

    /// Returns true if the gate itself is on, whether or not the gates that it requires are.
    #[must_use]
    pub fn is_on(self, gate: G) -> bool {
        self.bits & bit(gate) != 0
    }

    /// Returns the set with one gate on, together with the gates that it requires.
    #[must_use]
    pub fn with(self, gate: G) -> Self {
        gate.requires().iter().fold(self.with_value(gate, true), |gates, required| gates.with_value(*required, true))
    }

    /// Returns the set with one gate off.
    #[must_use]
    pub fn without(self, gate: G) -> Self {
        self.with_value(gate, false)
    }

    /// Returns the set with each gate on or off as its value says, and no other gate changed.
    #[must_use]
    pub fn with_values(self, values: impl IntoIterator<Item = (G, bool)>) -> Self {
        values.into_iter().fold(self, |gates, (gate, is_on)| gates.with_value(gate, is_on))
    }

    fn with_value(self, gate: G, is_on: bool) -> Self {
        let bits = if is_on { self.bits | bit(gate) } else { self.bits & !bit(gate) };
        Self { bits, ..self }
    }

    /// Returns the gates that are on, in the order of the enum.
    pub fn iter(self) -> impl Iterator<Item = G> {
        G::ALL.iter().copied().filter(move |gate| self.has(*gate))
    }
}

#[inline]
fn bit<G: FeatureGate>(gate: G) -> u32 {
    1_u32.checked_shl(gate.position()).unwrap_or(0)
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

impl<G> Clone for GateSet<G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<G> Copy for GateSet<G> {}

impl<G: FeatureGate> Default for GateSet<G> {
    fn default() -> Self {
        Self::of(Profile::V1_37)
    }
}

impl<G: FeatureGate> FromIterator<G> for GateSet<G> {
    fn from_iter<I: IntoIterator<Item = G>>(gates: I) -> Self {
        gates.into_iter().fold(Self::NONE, Self::with)
    }
}

impl<G: FeatureGate> fmt::Debug for GateSet<G> {
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
