//! Validation of a `DeviceClass`.

use dra_attrs::internal::release::{ExtendedNameErrors, StoredPart};
use dra_attrs::{FieldError, FieldPath, NameFormat};
use dra_device::internal::{TaintTimes, same_or_empty};
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceClassSpec};

use super::context::ValidationContext;
use super::list::List;
use super::{config, limits, metadata, selector};

/// Checks a create of a class, or an update of the stored class `old`.
pub(super) fn check(new: &DeviceClass, old: Option<&DeviceClass>, context: &mut ValidationContext) {
    metadata::check_class_name(&new.metadata, context);
    if let Some(old) = old {
        metadata::check_update(&new.metadata, &old.metadata, context);
    }
    let at = FieldPath::new("spec");
    let empty = DeviceClassSpec::default();
    let new = new.spec.as_ref().unwrap_or(&empty);
    let old = old.map(|old| old.spec.as_ref().unwrap_or(&empty));
    check_selectors(new, old, &at.child("selectors"), context);
    check_config(new, old, &at.child("config"), context);
    check_extended_resource(new.extended_resource_name.as_ref(), &at.child("extendedResourceName"), context);
}

fn check_selectors(
    spec: &DeviceClassSpec,
    old: Option<&DeviceClassSpec>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let unchanged =
        old.is_some_and(|old| same_or_empty(spec.selectors.as_ref(), old.selectors.as_ref(), TaintTimes::Exact));
    let stored = match context.rules.validation.stored_selectors {
        StoredPart::Trusted if unchanged => selector::Stored::Yes,
        StoredPart::Trusted | StoredPart::Validated => selector::Stored::No,
    };
    selector::check_list(spec.selectors.as_ref(), stored, at, context);
}

fn check_config(
    spec: &DeviceClassSpec,
    old: Option<&DeviceClassSpec>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let unchanged = old.is_some_and(|old| same_or_empty(spec.config.as_ref(), old.config.as_ref(), TaintTimes::Exact));
    let size = if unchanged { config::Size::Stored } else { config::Size::Limited };
    List::new(spec.config.as_ref()).at_most(limits::CONFIG).each(at, context, |one, at, context| {
        config::check(one.opaque.as_ref(), size, at, context);
    });
}

fn check_extended_resource(name: Option<&String>, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let Some(name) = name else { return };
    let errors = NameFormat::ExtendedResource.check(name, at);
    match context.rules.validation.extended_name {
        ExtendedNameErrors::ByRule => context.extend(errors),
        ExtendedNameErrors::One if errors.is_empty() => {}
        ExtendedNameErrors::One => {
            context.push(FieldError::invalid(at, name, "must be a valid extended resource name"));
        }
    }
}
