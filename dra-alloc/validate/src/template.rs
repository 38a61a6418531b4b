//! Validation of a `ResourceClaimTemplate`.

use dra_attrs::FieldPath;
use k8s_openapi::api::resource::v1::{ResourceClaimSpec, ResourceClaimTemplate};

use super::context::ValidationContext;
use super::{claim, immutable, metadata};

/// Checks a create of a template, or an update of the stored template `old`. The spec is immutable, and unlike that of a
/// claim it is validated at every write.
pub(super) fn check(new: &ResourceClaimTemplate, old: Option<&ResourceClaimTemplate>, context: &mut ValidationContext) {
    let at = FieldPath::new("spec");
    metadata::check_name(&new.metadata, context);
    if let Some(old) = old {
        metadata::check_update(&new.metadata, &old.metadata, context);
        immutable::check_spec(new.spec.as_ref(), old.spec.as_ref(), &at, context);
    }
    if let Some(metadata) = new.spec.as_ref().and_then(|spec| spec.metadata.as_ref()) {
        metadata::check_template(metadata, &at.child("metadata"), context);
    }
    if let Some(spec) = claim_spec(new) {
        claim::check_spec(spec, &at.child("spec"), context);
    }
}

/// Returns the spec of the claims that are created from a template.
pub(super) fn claim_spec(template: &ResourceClaimTemplate) -> Option<&ResourceClaimSpec> {
    template.spec.as_ref().and_then(|spec| spec.spec.as_ref())
}
