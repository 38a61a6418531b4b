//! The question `check`: what an API server would say about manifests that are created.

mod reason;

use super::Validation;
use std::collections::BTreeSet;

use dra_alloc::validate::{Accepted, ApiServer, Write, read};
use dra_alloc::{DroppedField, GateSet};
use dra_attrs::{Component, FieldErrors, Profile};
use examples::lint::lint;
use examples::manifest::{LostCause, Manifests, Problem, lost_fields, name_of};
use examples::objects::KubeObject;
use examples::output::say;
use k8s_openapi::Metadata;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use reason::{Found, Reasons};
use serde_json::Value;

/// Kinds of objects that are checked.
const CHECKED: [&str; 5] =
    ["DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"];

/// Statements of an API server about manifests.
pub(crate) struct Answer {
    /// A line for each error, each field that would be dropped and each warning.
    pub(crate) lines: String,
    /// The objects in version `v1`, without the fields that the release does not know.
    pub(crate) as_v1: Vec<Value>,
    /// True if everything is read, and nothing refused.
    pub(crate) is_valid: bool,
}

/// Answers about objects, one line each.
struct Answers<'m> {
    manifests: &'m Manifests,
    profile: Profile,
    gates: GateSet,
    lines: Vec<String>,
    as_v1: Vec<Value>,
    checked: usize,
    /// Kinds and names of what is refused.
    refused: BTreeSet<String>,
}

/// Returns a line for each error, each field that would be dropped and each warning, and the number of objects. Problems of
/// the files are said. Where a gate or the release is the reason, it is named.
pub(crate) fn check(files: &[String], server: Component, validation: Validation, with_lint: bool) -> Answer {
    let (profile, gates) = (server.profile(), server.gates());
    let mut manifests = Manifests::of_release(profile).keeping_written();
    for file in files {
        manifests.read_argument(file);
    }
    let is_answered = |note: &&Problem| note.is_of_other_release && CHECKED.iter().any(|kind| is_of(note, kind));
    let is_strict = validation == Validation::Strict;
    let notes = manifests.notes.iter().filter(|note| !(is_answered(note) || is_strict && note.is_unknown_field));
    manifests.problems.iter().chain(notes).for_each(say);
    manifests.ignored_lines("kubectl dra check", &CHECKED).iter().for_each(say);
    let manifests = &manifests;
    let mut answers = Answers {
        manifests,
        profile,
        gates,
        lines: Vec::new(),
        as_v1: Vec::new(),
        checked: 0,
        refused: BTreeSet::new(),
    };
    answers.add(&manifests.classes, ApiServer::validate_class);
    let is_whole = |claim: &&ResourceClaim| !manifests.partly_read.contains(&name_of(&claim.metadata));
    answers.add(manifests.claims.iter().filter(is_whole), ApiServer::validate_claim);
    answers.add(&manifests.claim_templates, ApiServer::validate_claim_template);
    answers.add(&manifests.slices, ApiServer::validate_slice);
    answers.add(&manifests.taint_rules, ApiServer::validate_taint_rule);
    let Answers { mut lines, as_v1, checked, mut refused, .. } = answers;
    if is_strict {
        for (object, line) in strict_refusals(manifests) {
            refused.insert(object);
            lines.push(line);
        }
    }
    // Objects of other kinds are decoded all the same.
    let others =
        refused.iter().filter(|object| !CHECKED.contains(&object.split(' ').next().unwrap_or_default())).count();
    let (checked, refused) = (checked.saturating_add(others), refused.len());
    if with_lint {
        lines.extend(lint(manifests, profile).iter().map(ToString::to_string));
    }
    let lines: String = lines.into_iter().map(|line| line + "\n").collect();
    let unread = manifests.problems.len();
    let unread = if unread > 0 { format!("; can't be read: {unread}") } else { String::new() };
    let lines = format!("{lines}objects: {checked}; refused: {refused}{unread}\n");
    Answer { lines, as_v1, is_valid: refused == 0 && manifests.problems.is_empty() }
}

/// Returns a line for each field and object that `kubectl apply` refuses, with the object: it asks for strict validation.
fn strict_refusals(manifests: &Manifests) -> Vec<(String, String)> {
    let unknown = manifests.notes.iter().filter(|note| note.is_unknown_field).map(|note| {
        let field = if note.field.is_empty() { &note.reason } else { &note.field };
        let line = format!(
            "{}: strict decoding error: unknown field {field}: kubectl apply refuses it; a client without strict validation \
             would lose it",
            note.object
        );
        (note.object.clone(), line)
    });
    let unversioned = manifests.unversioned.iter().map(|problem| {
        let line = format!("{}: {}: {}: kubectl apply refuses it", problem.object, problem.field, problem.reason);
        (problem.object.clone(), line)
    });
    unknown.chain(unversioned).collect()
}

fn is_of(note: &Problem, kind: &str) -> bool {
    note.object.split(' ').next() == Some(kind)
}

impl Answers<'_> {
    fn add<'o, T: KubeObject + Metadata<Ty = ObjectMeta> + 'o>(
        &mut self,
        objects: impl IntoIterator<Item = &'o T>,
        validate: impl Fn(ApiServer, Write<'_, T>) -> Result<Accepted<T>, FieldErrors>,
    ) {
        for object in objects {
            self.checked = self.checked.saturating_add(1);
            let name = name_of(object.metadata());
            let written = self.manifests.written(T::KIND, &name);
            let line = |text: &str| format!("{} {name}: {text}", T::KIND);
            let lost = written.map(|written| lost_fields(written, self.profile)).unwrap_or_default();
            let lost = lost.iter().filter(|lost| lost.cause != LostCause::Nowhere);
            self.lines.extend(lost.map(|lost| line(&lost.told())));
            let validated = |profile, gates, object: &T| {
                validate(ApiServer::new(Component::new(profile, gates)), Write::create(object))
            };
            let in_release = |profile, gates| {
                let found = read(written?.clone(), profile).ok()?;
                let unknown = found.unknown.into_iter().map(|unknown| unknown.field);
                let there = validated(profile, gates, &T::from_json(found.object).ok()?);
                Some(match there {
                    Ok(accepted) => {
                        let dropped = accepted.dropped.into_iter().map(|lost| lost.field).chain(unknown).collect();
                        Found { errors: FieldErrors::new(), dropped }
                    }
                    Err(errors) => Found { errors, dropped: unknown.collect() },
                })
            };
            let with_gates = |gates| validated(self.profile, gates, object).err().unwrap_or_default();
            let reasons = Reasons::new(self.profile, self.gates, &with_gates, &in_release);
            match validated(self.profile, self.gates, object) {
                Ok(accepted) => {
                    let dropped = |lost: &DroppedField| line(&reasons.of_dropped(lost));
                    self.lines.extend(accepted.dropped.iter().map(dropped));
                    self.lines.extend(accepted.warnings.iter().map(|warning| line(&format!("warning: {warning}"))));
                }
                Err(errors) => {
                    self.lines.extend(reasons.of_refused(&errors).iter().map(|text| line(text)));
                    self.refused.insert(format!("{} {name}", T::KIND));
                }
            }
            let as_v1 = written.and_then(|written| read(written.clone(), self.profile).ok());
            self.as_v1.extend(as_v1.map(|found| found.object));
        }
    }
}
