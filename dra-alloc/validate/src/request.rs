//! Validation of a request of a claim: `exactly`, or the subrequests of `firstAvailable`.

use dra_attrs::internal::release::BothKinds;
use dra_attrs::{BadValue, FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{
    CapacityRequirements, DeviceConstraint, DeviceDerivedAttribute, DeviceRequest, DeviceSelector, DeviceSubRequest,
    DeviceToleration, ExactDeviceRequest,
};

use super::context::ValidationContext;
use super::list::List;
use super::{derived, limits, names, quantity, selector, taint};

const MODES: [&str; 2] = ["All", "ExactCount"];
const ONE_OF: &str = "exactly one of `exactly` or `firstAvailable` is required";

/// Fields that an exact request and a subrequest have in common.
struct Wanted<'a> {
    /// Name of the request in constraints: `request` or `request/subrequest`.
    reference: String,
    class: &'a str,
    check_class: fn(&str, &FieldPath<'_>, &mut ValidationContext),
    selectors: Option<&'a Vec<DeviceSelector>>,
    derived: Option<&'a Vec<DeviceDerivedAttribute>>,
    mode: Option<&'a str>,
    count: Option<i64>,
    capacity: Option<&'a CapacityRequirements>,
    tolerations: Option<&'a Vec<DeviceToleration>>,
}

/// Checks a request with its subrequests. `constraints` are those of the claim.
pub(super) fn check(
    request: &DeviceRequest,
    constraints: &[DeviceConstraint],
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    names::label(&request.name, &at.child("name"), context);
    let alternatives = request.first_available.as_ref().filter(|alternatives| !alternatives.is_empty());
    let is_both = request.exactly.is_some() && alternatives.is_some();
    match (&request.exactly, alternatives) {
        (None, None) => context.push(FieldError::required(at, ONE_OF)),
        (Some(_), Some(_)) => {
            let detail = format!("{ONE_OF}, but multiple fields are set");
            context.push(FieldError::invalid(at, BadValue::literal("null"), detail));
        }
        _ => {}
    }
    match context.rules.validation.both_kinds {
        BothKinds::Refused if is_both => return,
        BothKinds::Refused | BothKinds::Validated => {}
    }
    if let Some(exactly) = &request.exactly {
        check_exactly(&request.name, exactly, constraints, &at.child("exactly"), context);
    }
    List::new(alternatives).at_most(limits::SUBREQUESTS).keyed_by("name").each_unique(
        &at.child("firstAvailable"),
        context,
        |sub| sub.name.as_str(),
        |sub, at, context| check_alternative(&request.name, sub, constraints, at, context),
    );
}

fn check_exactly(
    name: &str,
    exactly: &ExactDeviceRequest,
    constraints: &[DeviceConstraint],
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let wanted = Wanted {
        reference: name.to_owned(),
        class: &exactly.device_class_name,
        check_class: names::subdomain,
        selectors: exactly.selectors.as_ref(),
        derived: exactly.derived_attributes.as_ref(),
        mode: exactly.allocation_mode.as_deref(),
        count: exactly.count,
        capacity: exactly.capacity.as_ref(),
        tolerations: exactly.tolerations.as_ref(),
    };
    check_wanted(&wanted, constraints, at, context);
}

fn check_alternative(
    name: &str,
    sub: &DeviceSubRequest,
    constraints: &[DeviceConstraint],
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    names::label(&sub.name, &at.child("name"), context);
    let wanted = Wanted {
        reference: format!("{name}/{}", sub.name),
        class: &sub.device_class_name,
        check_class: names::declared_subdomain,
        selectors: sub.selectors.as_ref(),
        derived: sub.derived_attributes.as_ref(),
        mode: sub.allocation_mode.as_deref(),
        count: sub.count,
        capacity: sub.capacity.as_ref(),
        tolerations: sub.tolerations.as_ref(),
    };
    check_wanted(&wanted, constraints, at, context);
}

fn check_wanted(
    wanted: &Wanted<'_>,
    constraints: &[DeviceConstraint],
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let class = at.child("deviceClassName");
    if wanted.class.is_empty() {
        context.push(FieldError::required(&class, ""));
    } else {
        (wanted.check_class)(wanted.class, &class, context);
    }
    selector::check_list(wanted.selectors, selector::Stored::No, &at.child("selectors"), context);
    let derived_path = at.child("derivedAttributes");
    derived::check(wanted.derived, &wanted.reference, constraints, &derived_path, context);
    check_count(wanted, at, context);
    check_amounts(wanted.capacity, &at.child("capacity").child("requests"), context);
    taint::check_tolerations(wanted.tolerations, at, context);
}

/// Checks that the requested capacities are valid quantities.
fn check_amounts(capacity: Option<&CapacityRequirements>, at: &FieldPath<'_>, context: &mut ValidationContext) {
    for (name, amount) in capacity.and_then(|capacity| capacity.requests.as_ref()).into_iter().flatten() {
        quantity::read(amount, &at.key(name), context);
    }
}

/// Checks allocation mode and count. The default is one device.
fn check_count(wanted: &Wanted<'_>, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let at_count = at.child("count");
    match (wanted.mode, wanted.count) {
        (Some("All"), Some(count)) if count != 0 => {
            let detail = "must not be specified when allocationMode is 'All'";
            context.push(FieldError::invalid(&at_count, count, detail));
        }
        (None | Some("ExactCount"), Some(count)) if count <= 0 => {
            context.push(FieldError::invalid(&at_count, count, "must be greater than zero"));
        }
        (None | Some("All" | "ExactCount"), _) => {}
        (Some(other), _) => context.push(FieldError::not_supported(&at.child("allocationMode"), other, &MODES)),
    }
}
