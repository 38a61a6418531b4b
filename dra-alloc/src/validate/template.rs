//! A `ResourceClaimTemplate`.

use dra_attrs::field::FieldPath;
use k8s_openapi::api::resource::v1::{ResourceClaimSpec, ResourceClaimTemplate};

use super::findings::Findings;
use super::{claim, immutable, metadata};

/// Checks a template, against the one in storage if there is one. A stored spec stays as it is.
pub(super) fn check(new: &ResourceClaimTemplate, old: Option<&ResourceClaimTemplate>, findings: &mut Findings) {
    let at = FieldPath::new("spec");
    if let Some(old) = old {
        metadata::check_update(&new.metadata, &old.metadata, findings);
        return immutable::check(&new.spec, &old.spec, &at, findings);
    }
    metadata::check_name(&new.metadata, findings);
    if let Some(spec) = claim_spec(new) {
        claim::check_spec(spec, &at.child("spec"), findings);
    }
}

/// The spec of the claims that are made of a template.
pub(super) fn claim_spec(template: &ResourceClaimTemplate) -> Option<&ResourceClaimSpec> {
    template.spec.as_ref().and_then(|spec| spec.spec.as_ref())
}
