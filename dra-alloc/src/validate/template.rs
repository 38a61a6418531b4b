//! A `ResourceClaimTemplate`.

use dra_attrs::field::FieldPath;
use k8s_openapi::api::resource::v1::ResourceClaimTemplate;

use super::admin_access::{self, NamespaceAccess};
use super::findings::Findings;
use super::{claim, immutable, metadata};

/// Checks a template, against the one in storage if there is one. A stored spec stays as it is.
pub(super) fn check(
    new: &ResourceClaimTemplate,
    old: Option<&ResourceClaimTemplate>,
    namespace: NamespaceAccess,
    findings: &mut Findings,
) {
    let at = FieldPath::new("spec");
    if let Some(old) = old {
        metadata::check_update(&new.metadata, &old.metadata, findings);
        return immutable::check(&new.spec, &old.spec, &at, findings);
    }
    metadata::check_name(&new.metadata, findings);
    let at = at.child("spec");
    if let Some(spec) = new.spec.as_ref().and_then(|spec| spec.spec.as_ref()) {
        admin_access::check_requests(spec, namespace, &at, findings);
        claim::check_spec(spec, &at, findings);
    }
}
