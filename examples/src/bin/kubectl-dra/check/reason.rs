//! Reasons of a refusal, or of a field that is dropped: a gate that is off, or a release.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::{DroppedField, Gate, GateSet};
use dra_attrs::GateStage;
use dra_attrs::{DropCause, ErrorType, FieldError, FieldErrors, Profile};
use examples::manifest::{span, title};

/// Errors of an object with other gates of the same release.
type WithGates<'a> = &'a dyn Fn(GateSet) -> FieldErrors;

/// Answer to an object as it is written, in a release with gates; `None` if the release can't read it.
type InRelease<'a> = &'a dyn Fn(Profile, GateSet) -> Option<Found>;

/// Answer of another release.
pub(super) struct Found {
    pub(super) errors: FieldErrors,
    /// Paths of fields that are not stored.
    pub(super) dropped: Vec<String>,
}

/// Reasons of the answer about one object.
pub(super) struct Reasons<'a> {
    profile: Profile,
    gates: GateSet,
    with_gates: WithGates<'a>,
    in_release: InRelease<'a>,
}

/// Answers about an object in another release, with that release's gates and with all of them.
struct Elsewhere {
    release: Profile,
    by_default: Option<Found>,
    with_all_gates: Option<Found>,
    /// Answers with one more gate on each; asked for when they are needed.
    by_gate: OnceCell<Vec<(Gate, Option<Found>)>>,
}

impl<'a> Reasons<'a> {
    pub(super) const fn new(
        profile: Profile,
        gates: GateSet,
        with_gates: WithGates<'a>,
        in_release: InRelease<'a>,
    ) -> Self {
        Self { profile, gates, with_gates, in_release }
    }

    /// Returns what is said of a field that would be dropped.
    pub(super) fn of_dropped(&self, lost: &DroppedField) -> String {
        let (field, gate) = (&lost.field, lost.gate);
        match lost.cause {
            DropCause::Unknown => format!("{field} would be dropped: {} does not know the field", title(self.profile)),
            DropCause::GateOff => {
                let later = Profile::RELEASES.into_iter().filter(|release| *release > self.profile);
                let on: Vec<Profile> = later.filter(|release| gate.gate.is_default(*release)).collect();
                let on = span(&on).filter(|_| self.is_of_release());
                let on = on.map(|span| format!(" (on by default {span})")).unwrap_or_default();
                format!("{field} would be dropped: feature gate {gate} is off{on}")
            }
        }
    }

    /// Returns what is said of each error.
    pub(super) fn of_refused(&self, errors: &FieldErrors) -> Vec<String> {
        let gates = self.gates_behind(errors);
        let elsewhere = self.elsewhere();
        let text = |error: &FieldError| {
            if error.r#type == ErrorType::ServerStops {
                return self.of_stop(error, &elsewhere);
            }
            let reason = match gates.get(error.field.as_str()) {
                Some(gate) => Some(format!("feature gate {gate} is off")),
                None => self.accepted_in(error, &elsewhere),
            };
            reason.map_or_else(|| error.to_string(), |reason| format!("{error} ({reason})"))
        };
        errors.iter().map(text).collect()
    }

    fn of_stop(&self, error: &FieldError, elsewhere: &[Elsewhere]) -> String {
        let is_mended = |other: &&Elsewhere| {
            other.release > self.profile && other.with_all_gates.as_ref().is_some_and(|found| !has_stop(&found.errors))
        };
        let mended = elsewhere.iter().find(is_mended);
        let mended = mended.map(|other| format!(", mended in {}", title(other.release))).unwrap_or_default();
        let (field, server) = (&error.field, title(self.profile));
        format!(
            "{field}: the API server of {server} stops on this value: it cuts the connection and stores nothing; that is a bug \
             of Kubernetes{mended}"
        )
    }

    fn is_of_release(&self) -> bool {
        Profile::RELEASES.contains(&self.profile)
    }

    fn elsewhere(&self) -> Vec<Elsewhere> {
        let others = Profile::RELEASES.into_iter().filter(|release| *release != self.profile && self.is_of_release());
        let ask = |release| Elsewhere {
            release,
            by_default: (self.in_release)(release, self.gates_in(release)),
            with_all_gates: (self.in_release)(release, all_gates(release)),
            by_gate: OnceCell::new(),
        };
        others.map(ask).collect()
    }

    /// Returns the releases that accept a field, in words: later ones, or else earlier ones.
    fn accepted_in(&self, error: &FieldError, elsewhere: &[Elsewhere]) -> Option<String> {
        let with_all_gates = |other: &&Elsewhere| accepts_in(other.with_all_gates.as_ref(), error);
        // Who refuses something else says nothing of fields that it drops: with all gates none is.
        let by_default = |other: &&Elsewhere| {
            let is_refused = other.by_default.as_ref().is_some_and(|found| !found.errors.is_empty());
            accepts_in(other.by_default.as_ref(), error) && (!is_refused || with_all_gates(other))
        };
        let releases = nearest(elsewhere.iter().filter(by_default).map(|other| other.release), self.profile);
        if let Some(span) = span(&releases) {
            return Some(format!("accepted {span}"));
        }
        let with_gates: Vec<&Elsewhere> = elsewhere.iter().filter(with_all_gates).collect();
        let releases = nearest(with_gates.iter().map(|other| other.release), self.profile);
        let nearest = with_gates.into_iter().find(|other| releases.first() == Some(&other.release))?;
        let accepting = |(_, found): &&(Gate, Option<Found>)| accepts_in(found.as_ref(), error);
        let gate = self.by_gate(nearest).iter().find(accepting).map(|(gate, _)| gate.name(nearest.release));
        let gates = gate.map_or_else(|| "feature gates".to_owned(), |gate| format!("feature gate {gate}"));
        Some(format!("accepted {} with {gates}, off by default", span(&releases)?))
    }

    /// Returns the answers of another release with one more gate on each.
    fn by_gate<'e>(&self, other: &'e Elsewhere) -> &'e [(Gate, Option<Found>)] {
        let (release, gates) = (other.release, self.gates_in(other.release));
        let off = Gate::ALL.into_iter().filter(|gate| gate.stage(release).exists() && !gates.has(*gate));
        other.by_gate.get_or_init(|| off.map(|gate| (gate, (self.in_release)(release, gates.with(gate)))).collect())
    }

    /// Returns the default gates of another release, with what differs from the defaults here.
    fn gates_in(&self, release: Profile) -> GateSet {
        let differs = |gate: &Gate| self.gates.is_on(*gate) != gate.is_default(self.profile);
        let known = Gate::ALL.into_iter().filter(|gate| gate.stage(self.profile).exists());
        let set = known.filter(differs).filter(|gate| can_be_set(*gate, release));
        GateSet::of(release).with_values(set.map(|gate| (gate, self.gates.is_on(gate))))
    }

    /// Returns the fields with which nothing would be wrong if one gate were on, each with that gate. The object is validated
    /// once if no gate matters, and once more for each gate that is off if one does.
    fn gates_behind<'e>(&self, errors: &'e FieldErrors) -> BTreeMap<&'e str, &'static str> {
        let is_off = |gate: &Gate| gate.stage(self.profile).exists() && !self.gates.has(*gate);
        let off: Vec<Gate> = Gate::ALL.into_iter().filter(is_off).collect();
        let mended = |gates: GateSet| -> BTreeSet<&'e str> {
            let left = (self.with_gates)(gates);
            if has_stop(&left) {
                return BTreeSet::new();
            }
            let still: BTreeSet<&str> = left.iter().map(|error| error.field.as_str()).collect();
            errors.iter().map(|error| error.field.as_str()).filter(|field| !still.contains(field)).collect()
        };
        if mended(off.iter().fold(self.gates, |gates, gate| gates.with(*gate))).is_empty() {
            return BTreeMap::new();
        }
        let by_gate = off.into_iter().flat_map(|gate| {
            mended(self.gates.with(gate)).into_iter().map(move |field| (field, gate.name(self.profile)))
        });
        by_gate.collect()
    }
}

/// Returns true if the server stops, so that nothing is known of other errors.
fn has_stop(errors: &FieldErrors) -> bool {
    errors.iter().any(|error| error.r#type == ErrorType::ServerStops)
}

fn can_be_set(gate: Gate, release: Profile) -> bool {
    !matches!(gate.stage(release), GateStage::Absent | GateStage::Locked)
}

fn all_gates(release: Profile) -> GateSet {
    let known = Gate::ALL.into_iter().filter(|gate| gate.stage(release).exists());
    GateSet::of(release).with_values(known.map(|gate| (gate, true)))
}

/// Returns the later ones of some releases, or else the earlier ones.
fn nearest(releases: impl Iterator<Item = Profile>, profile: Profile) -> Vec<Profile> {
    let (later, earlier): (Vec<_>, Vec<_>) = releases.partition(|release| *release > profile);
    if later.is_empty() { earlier } else { later }
}

fn accepts_in(found: Option<&Found>, error: &FieldError) -> bool {
    found.is_some_and(|found| accepts(found, error))
}

/// Returns true if a release stores a field that another refuses, and has no error near to it: releases name different fields
/// for one mistake.
fn accepts(found: &Found, error: &FieldError) -> bool {
    let around = error.field.rfind(['.', '[']).and_then(|end| error.field.get(..end)).unwrap_or_default();
    let is_near = |other: &FieldError| other.field.starts_with(around) || error.field.starts_with(&other.field);
    let is_dropped =
        found.dropped.iter().any(|field| error.field.starts_with(field) || field.starts_with(&error.field));
    !is_dropped && !has_stop(&found.errors) && !found.errors.iter().any(is_near)
}
