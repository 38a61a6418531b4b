//! Validation of a `ResourceClaim`.

use dra_attrs::FieldPath;
use dra_attrs::internal::release::SpecUpdate;
use k8s_openapi::api::resource::v1::{DeviceClaim, ResourceClaim, ResourceClaimSpec};

use super::context::ValidationContext;
use super::list::List;
use super::request_names::RequestNames;
use super::{config, constraint, immutable, limits, metadata, request};

/// Checks a create of a claim, or an update of the stored claim `old`. The spec of a stored claim is immutable, and
/// validated again in older releases alone.
pub(super) fn check(new: &ResourceClaim, old: Option<&ResourceClaim>, context: &mut ValidationContext) {
    metadata::check_name(&new.metadata, context);
    let at = FieldPath::new("spec");
    if let Some(old) = old {
        metadata::check_update(&new.metadata, &old.metadata, context);
        immutable::check_spec(new.spec.as_ref(), old.spec.as_ref(), &at, context);
        match context.rules.validation.claim_update {
            SpecUpdate::Compared => return,
            SpecUpdate::ValidatedAndCompared => {}
        }
    }
    if let Some(spec) = &new.spec {
        check_spec(spec, &at, context);
    }
}

/// Checks the spec of a new claim or template.
pub(super) fn check_spec(spec: &ResourceClaimSpec, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if let Some(devices) = &spec.devices {
        check_devices(devices, &at.child("devices"), context);
    }
}

fn check_devices(devices: &DeviceClaim, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let names = RequestNames::from_claim(devices);
    let constraints = devices.constraints.as_deref().unwrap_or_default();
    List::new(devices.requests.as_ref()).at_most(limits::REQUESTS).keyed_by("name").each_unique(
        &at.child("requests"),
        context,
        |request| request.name.as_str(),
        |device_request, at, context| request::check(device_request, constraints, at, context),
    );
    List::new(devices.constraints.as_ref()).at_most(limits::CONSTRAINTS).each(
        &at.child("constraints"),
        context,
        |device_constraint, at, context| constraint::check(device_constraint, &names, at, context),
    );
    List::new(devices.config.as_ref()).at_most(limits::CONFIG).each(
        &at.child("config"),
        context,
        |one, at, context| {
            names.check_list(one.requests.as_ref(), &at.child("requests"), context);
            config::check(one.opaque.as_ref(), config::Size::Limited, at, context);
        },
    );
}
