//! Feature gates and profiles on a command line.

use std::collections::BTreeMap;

use dra_attrs::profile::Profile;

/// Why a list of feature gates can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// No gate of the profile has the name.
    #[error("--feature-gates: no gate {name:?} in profile {profile}; known: {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The profile.
        profile: Profile,
        /// The gates that there are.
        known: Vec<&'static str>,
    },
    /// A part is not `NAME=true` or `NAME=false`.
    #[error("--feature-gates: {part:?} is not NAME=true or NAME=false")]
    Part {
        /// The part.
        part: String,
    },
}

/// Gates by name: the known ones with their defaults, in the profile's spelling, changed as a list says: `A=true,B=false`.
///
/// # Errors
/// A gate that is not known, or a part that is no gate with a value.
///
/// ```
/// use dra_attrs::profile::Profile;
/// use examples::gates::changed;
/// let gates = changed(Profile::Kep, [("A", false), ("B", true)], "A=true")?;
/// assert_eq!(gates, [("A", true), ("B", true)].into());
/// assert!(changed(Profile::Kep, [("A", false)], "C=true").is_err());
/// # Ok::<(), examples::gates::GateError>(())
/// ```
pub fn changed(
    profile: Profile,
    known: impl IntoIterator<Item = (&'static str, bool)>,
    list: &str,
) -> Result<BTreeMap<&'static str, bool>, GateError> {
    let mut gates: BTreeMap<&str, bool> = known.into_iter().collect();
    for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let value = part.split_once('=').and_then(|(name, value)| Some((name, value.parse().ok()?)));
        let (name, value) = value.ok_or_else(|| GateError::Part { part: part.to_owned() })?;
        let Some(gate) = gates.get_mut(name) else {
            let known = gates.into_keys().collect();
            return Err(GateError::Unknown { name: name.to_owned(), profile, known });
        };
        *gate = value;
    }
    Ok(gates)
}

/// Reads the name of a profile.
///
/// # Errors
/// The names that there are.
pub fn profile(text: &str) -> Result<Profile, String> {
    let known = [Profile::Kep, Profile::V1_37];
    let found = known.into_iter().find(|profile| profile.name() == text);
    found.ok_or_else(|| format!("known: {}", known.map(Profile::name).join(", ")))
}
