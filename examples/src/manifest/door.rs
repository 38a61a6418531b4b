//! The door of a release: other forms of an object are converted, and what the release does not know goes, with a word.

use dra_alloc::validate::{Read, read};
use dra_attrs::{FieldErrors, GateName, GateSet, Profile};
use serde_json::Value;

use super::kind::Kind;
use super::problem::Fault;
use super::tree::Tree;

const GROUP: &str = "resource.k8s.io";

/// A field that an object loses when it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// Path of the field.
    pub field: String,
    /// Reason, with the releases that know the field.
    pub reason: String,
    /// Cause of the loss.
    pub cause: LostCause,
}

/// Cause for which an object loses a field when it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a field is lost in one of these ways")]
pub enum LostCause {
    /// The version to which the object is converted has no such field.
    Conversion,
    /// The release does not know the field, and another one does.
    Release,
    /// No release knows the field.
    Nowhere,
}

impl Lost {
    /// Returns a sentence about the field and an API server.
    #[must_use]
    pub fn told(&self) -> String {
        match self.cause {
            LostCause::Conversion => format!("{} is {}", self.field, self.reason),
            LostCause::Release | LostCause::Nowhere => format!("{} would be {}", self.field, self.reason),
        }
    }
}

/// An object behind the door.
pub(super) struct Entered {
    /// The object in version `v1`, without kind and version.
    pub(super) json: Value,
    /// The object as it was written, if it is one of the group.
    pub(super) written: Option<Value>,
    /// Form from which it was converted.
    pub(super) converted: Option<String>,
    /// Fields that it has lost.
    pub(super) lost: Vec<Lost>,
}

/// Lets an object in. Objects of other groups pass as they are, but for pods whose claims are named as before 1.31.
pub(super) fn enter<T: Kind>(
    mut json: Value,
    api: Option<(&str, &str)>,
    profile: Profile,
    tree: &Tree,
) -> Result<Entered, Fault> {
    if T::GROUP != GROUP && !has_claim_sources(T::KIND, &json) {
        return Ok(Entered { json, written: None, converted: None, lost: Vec::new() });
    }
    let version = api.map_or("v1", |(_, version)| version);
    let api_version = if T::GROUP.is_empty() { version.to_owned() } else { format!("{}/{version}", T::GROUP) };
    if let Some(fields) = json.as_object_mut() {
        fields.insert("apiVersion".to_owned(), api_version.into());
        fields.insert("kind".to_owned(), T::KIND.into());
    }
    let mut found = read(json.clone(), profile).map_err(|errors| undecodable(&errors, tree))?;
    let lost = losses(&json, &found, profile);
    if let Some(fields) = found.object.as_object_mut() {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    let written = (T::GROUP == GROUP).then_some(json);
    Ok(Entered { json: found.object, written, converted: found.converted, lost })
}

fn has_claim_sources(kind: &str, json: &Value) -> bool {
    let entries = json.pointer("/spec/resourceClaims").and_then(Value::as_array).filter(|_| kind == "Pod");
    entries.is_some_and(|entries| entries.iter().any(|entry| entry.get("source").is_some()))
}

fn undecodable(errors: &FieldErrors, tree: &Tree) -> Fault {
    let Some(first) = errors.iter().next() else { return Fault::new(&[], "can't be decoded") };
    let reason = first.to_string();
    let reason = reason.strip_prefix(&format!("{}: ", first.field)).unwrap_or(&reason);
    let more = match errors.iter().count().saturating_sub(1) {
        0 => String::new(),
        more => format!("; and {more} more fields can't be decoded"),
    };
    match tree.path_of(&first.field) {
        (path, "") => Fault { path, reason: format!("{reason}{more}") },
        _ => Fault::new(&[], format!("{}: {reason}{more}", first.field)),
    }
}

/// Returns the fields that an object loses in a release, each with the releases that know it. Those which the API has
/// dropped in the course of its versions come first.
///
/// ```
/// use dra_attrs::Profile;
/// use examples::manifest::lost_fields;
/// use serde_json::json;
/// let slice = json!({
///     "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
///     "spec": {"driver": "d", "pool": {"name": "p", "generation": 0, "resourceSliceCount": 1}, "skipNodeOperations": ["*"]},
/// });
/// assert!(lost_fields(&slice, Profile::V1_37).is_empty());
/// let lost = lost_fields(&slice, Profile::V1_36);
/// assert_eq!(lost[0].field, "spec.skipNodeOperations");
/// let words = "Kubernetes 1.36 does not know the field; known from 1.37 on (feature gate DRAOptionalNodeOperations, ";
/// assert!(lost[0].reason.contains(words), "{}", lost[0].reason);
/// ```
#[must_use]
pub fn lost_fields(written: &Value, profile: Profile) -> Vec<Lost> {
    read(written.clone(), profile).map(|found| losses(written, &found, profile)).unwrap_or_default()
}

fn losses(written: &Value, found: &Read, profile: Profile) -> Vec<Lost> {
    let dropped = found.dropped.iter().map(|field| Lost {
        field: field.clone(),
        reason: "left out here: only version v1alpha3 has the field".to_owned(),
        cause: LostCause::Conversion,
    });
    let others = if found.unknown.is_empty() { Vec::new() } else { unknown_elsewhere(written) };
    let unknown = found.unknown.iter().map(|unknown| {
        let has_field = |(_, missing): &&(Profile, Vec<String>)| !missing.contains(&unknown.field);
        let known: Vec<Profile> = others.iter().filter(has_field).map(|(release, _)| *release).collect();
        let (cause, reason) = match span(&known) {
            None => (LostCause::Nowhere, "unknown field, ignored".to_owned()),
            Some(span) => {
                let gate = known.first().and_then(|first| gate_text(unknown.gate, *first)).unwrap_or_default();
                (LostCause::Release, format!("dropped: {} does not know the field; known {span}{gate}", title(profile)))
            }
        };
        Lost { field: unknown.field.clone(), reason, cause }
    });
    dropped.chain(unknown).collect()
}

/// Returns the fields of an object that each release does not know.
fn unknown_elsewhere(written: &Value) -> Vec<(Profile, Vec<String>)> {
    let missing = |release| {
        let found = read(written.clone(), release).ok()?;
        Some((release, found.unknown.into_iter().map(|unknown| unknown.field).collect()))
    };
    Profile::RELEASES.into_iter().filter_map(missing).collect()
}

fn gate_text(gate: Option<GateName>, release: Profile) -> Option<String> {
    let gate = gate?.gate;
    let off = if GateSet::of(release).is_on(gate) { "" } else { ", off by default there" };
    Some(format!(" (feature gate {}{off})", gate.name(release)))
}

/// Returns the name of a release in a sentence.
#[must_use]
pub fn title(profile: Profile) -> String {
    match profile.name().strip_prefix('v') {
        Some(number) => format!("Kubernetes {number}"),
        None => "the KEPs' text".to_owned(),
    }
}

/// Returns the releases of a list in words: `from 1.36 on`, `until 1.34`, `in 1.36 only`. `None` for an empty list.
///
/// ```
/// use dra_attrs::Profile;
/// use examples::manifest::span;
/// assert_eq!(span(&[Profile::V1_36, Profile::V1_37]).as_deref(), Some("from 1.36 on"));
/// assert_eq!(span(&[Profile::V1_34, Profile::V1_35]).as_deref(), Some("until 1.35"));
/// assert_eq!(span(&[Profile::V1_36]).as_deref(), Some("in 1.36 only"));
/// ```
#[must_use]
pub fn span(releases: &[Profile]) -> Option<String> {
    let number = |release: &Profile| release.name().trim_start_matches('v').to_owned();
    let (first, last) = (releases.first()?, releases.last()?);
    let [oldest, .., newest] = Profile::RELEASES;
    Some(if *last == newest {
        format!("from {} on", number(first))
    } else if *first == oldest {
        format!("until {}", number(last))
    } else {
        format!("in {} only", releases.iter().map(number).collect::<Vec<_>>().join(", "))
    })
}
