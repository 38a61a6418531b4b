//! A `ResourceClaim`.

use dra_attrs::field::FieldPath;
use k8s_openapi::api::resource::v1::{DeviceClaim, ResourceClaim, ResourceClaimSpec};

use super::findings::Findings;
use super::list::List;
use super::request_names::RequestNames;
use super::{config, constraint, immutable, limits, metadata, request};

/// Checks a claim, against the one in storage if there is one. A stored spec stays as it is and is not looked at again.
pub(super) fn check(new: &ResourceClaim, old: Option<&ResourceClaim>, findings: &mut Findings) {
    metadata::check_name(&new.metadata, findings);
    let at = FieldPath::new("spec");
    if let Some(old) = old {
        metadata::check_update(&new.metadata, &old.metadata, findings);
        return immutable::check(&new.spec, &old.spec, &at, findings);
    }
    if let Some(spec) = &new.spec {
        check_spec(spec, &at, findings);
    }
}

/// Checks the spec of a new claim or template.
pub(super) fn check_spec(spec: &ResourceClaimSpec, at: &FieldPath<'_>, findings: &mut Findings) {
    if let Some(devices) = &spec.devices {
        check_devices(devices, &at.child("devices"), findings);
    }
}

fn check_devices(devices: &DeviceClaim, at: &FieldPath<'_>, findings: &mut Findings) {
    let names = RequestNames::of(devices);
    let constraints = devices.constraints.as_deref().unwrap_or_default();
    List::new(devices.requests.as_ref()).at_most(limits::REQUESTS).each_unique(
        &at.child("requests"),
        findings,
        |request| request.name.as_str(),
        |device_request, at, findings| request::check(device_request, constraints, at, findings),
    );
    List::new(devices.constraints.as_ref()).at_most(limits::CONSTRAINTS).each(
        &at.child("constraints"),
        findings,
        |device_constraint, at, findings| constraint::check(device_constraint, &names, at, findings),
    );
    List::new(devices.config.as_ref()).at_most(limits::CONFIG).each(
        &at.child("config"),
        findings,
        |one, at, findings| {
            names.check_list(one.requests.as_ref(), &at.child("requests"), findings);
            config::check(one.opaque.as_ref(), config::Size::Limited, at, findings);
        },
    );
}
