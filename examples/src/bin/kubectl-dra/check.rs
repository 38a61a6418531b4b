//! The question `check`: what an API server would say about manifests that are created.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::validate::{Accepted, ApiServer, Write};
use dra_alloc::{DroppedField, Gate, GateSet};
use dra_attrs::{Component, FieldError, FieldErrors, Profile};
use examples::manifest::{Manifests, name_of};
use examples::output::say;
use k8s_openapi::Metadata;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Kinds of objects that are checked.
const CHECKED: [&str; 5] =
    ["DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"];

/// Answers about objects, one line each.
struct Answers {
    profile: Profile,
    gates: GateSet,
    lines: Vec<String>,
    checked: usize,
    refused: usize,
}

/// Returns a line for each error, each field that would be dropped and each warning, and the number of objects; true if there
/// is no error. What can't be read is said. Where a gate is the reason, it is named.
pub(crate) fn check(files: &[String], profile: Profile, gates: GateSet) -> (String, bool) {
    let mut manifests = Manifests::default();
    for file in files {
        manifests.read_argument(file);
    }
    manifests.problems.iter().chain(&manifests.notes).for_each(say);
    manifests.ignored_lines("kubectl dra check", &CHECKED).iter().for_each(say);
    let mut answers = Answers { profile, gates, lines: Vec::new(), checked: 0, refused: 0 };
    answers.add(&manifests.classes, ApiServer::validate_class);
    let is_whole = |claim: &&ResourceClaim| !manifests.partly_read.contains(&name_of(&claim.metadata));
    answers.add(manifests.claims.iter().filter(is_whole), ApiServer::validate_claim);
    answers.add(&manifests.claim_templates, ApiServer::validate_claim_template);
    answers.add(&manifests.slices, ApiServer::validate_slice);
    answers.add(&manifests.taint_rules, ApiServer::validate_taint_rule);
    let Answers { lines, checked, refused, .. } = answers;
    let lines: String = lines.into_iter().map(|line| line + "\n").collect();
    (format!("{lines}objects: {checked}; refused: {refused}\n"), refused == 0 && manifests.problems.is_empty())
}

impl Answers {
    fn add<'o, T: Metadata<Ty = ObjectMeta> + 'o>(
        &mut self,
        objects: impl IntoIterator<Item = &'o T>,
        validate: impl Fn(ApiServer, Write<'_, T>) -> Result<Accepted<T>, FieldErrors>,
    ) {
        for object in objects {
            self.checked = self.checked.saturating_add(1);
            let line = |text: &str| format!("{} {}: {text}", T::KIND, name_of(object.metadata()));
            let validated =
                |gates| validate(ApiServer::new(Component::new(self.profile, gates)), Write::create(object));
            match validated(self.gates) {
                Ok(accepted) => {
                    let dropped = |lost: &DroppedField| {
                        line(&format!("{} would be dropped: feature gate {} is off", lost.field, lost.gate))
                    };
                    self.lines.extend(accepted.dropped.iter().map(dropped));
                    self.lines.extend(accepted.warnings.iter().map(|warning| line(&format!("warning: {warning}"))));
                }
                Err(errors) => {
                    let gates = self.gates_behind(&errors, validated);
                    let reason = |error: &FieldError| match gates.get(error.field.as_str()) {
                        Some(gate) => line(&format!("{error} (feature gate {gate} is off)")),
                        None => line(&error.to_string()),
                    };
                    let lines: Vec<String> = errors.iter().map(reason).collect();
                    self.lines.extend(lines);
                    self.refused = self.refused.saturating_add(1);
                }
            }
        }
    }

    /// Returns the fields with which nothing would be wrong if one gate were on, each with that gate. The object is validated
    /// once if no gate matters, and once more for each gate that is off if one does.
    fn gates_behind<'e, T>(
        &self,
        errors: &'e FieldErrors,
        validated: impl Fn(GateSet) -> Result<T, FieldErrors>,
    ) -> BTreeMap<&'e str, &'static str> {
        let off: Vec<Gate> = Gate::ALL.iter().copied().filter(|gate| !self.gates.has(*gate)).collect();
        let mended = |gates: GateSet| -> BTreeSet<&'e str> {
            let left = validated(gates).err().unwrap_or_default();
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
