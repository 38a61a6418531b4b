//! The question `check`: what an API server would say about manifests that are created.

use dra_alloc::validate::{Accepted, ApiServer, Write};
use dra_alloc::{DraGate, GateSet};
use dra_attrs::{FieldErrors, Profile};
use examples::manifest::{Manifests, name_of};
use examples::output::say;
use k8s_openapi::Metadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// Kinds of objects that are checked.
const CHECKED: [&str; 5] =
    ["DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"];

/// Answers about objects, one line each.
#[derive(Default)]
struct Answers {
    lines: Vec<String>,
    checked: usize,
    refused: usize,
}

/// Returns a line for each error, each field that would be dropped and each warning, and the number of objects; true if there
/// is no error. What can't be read is said.
pub(crate) fn check(files: &[String], profile: Profile, gates: GateSet<DraGate>) -> (String, bool) {
    let mut manifests = Manifests::default();
    for file in files {
        manifests.read_argument(file);
    }
    manifests.problems.iter().chain(&manifests.notes).for_each(say);
    manifests.ignored_lines("kubectl dra check", &CHECKED).iter().for_each(say);
    let server = ApiServer::new(profile, gates);
    let mut answers = Answers::default();
    answers.add(&manifests.classes, |write| server.validate_class(write));
    answers.add(&manifests.claims, |write| server.validate_claim(write));
    answers.add(&manifests.claim_templates, |write| server.validate_claim_template(write));
    answers.add(&manifests.slices, |write| server.validate_slice(write));
    answers.add(&manifests.taint_rules, |write| server.validate_taint_rule(write));
    let Answers { lines, checked, refused } = answers;
    let lines: String = lines.into_iter().map(|line| line + "\n").collect();
    (format!("{lines}objects: {checked}; refused: {refused}\n"), refused == 0 && manifests.problems.is_empty())
}

impl Answers {
    fn add<T: Metadata<Ty = ObjectMeta>>(
        &mut self,
        objects: &[T],
        validate: impl Fn(Write<'_, T>) -> Result<Accepted<T>, FieldErrors>,
    ) {
        for object in objects {
            self.checked = self.checked.saturating_add(1);
            let line = |text: &str| format!("{} {}: {text}", T::KIND, name_of(object.metadata()));
            match validate(Write::create(object)) {
                Ok(accepted) => {
                    self.lines.extend(accepted.dropped.iter().map(|field| line(&format!("{field} would be dropped"))));
                    self.lines.extend(accepted.warnings.iter().map(|warning| line(&format!("warning: {warning}"))));
                }
                Err(errors) => {
                    self.refused = self.refused.saturating_add(1);
                    self.lines.extend(errors.as_slice().iter().map(|error| line(&error.to_string())));
                }
            }
        }
    }
}
