//! A `DeviceClass`.

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceClassSpec};

use super::equality::same;
use super::findings::Findings;
use super::list::List;
use super::{config, limits, metadata, names, selector};

/// Checks a class, against the one in storage if there is one.
pub(super) fn check(new: &DeviceClass, old: Option<&DeviceClass>, findings: &mut Findings) {
    metadata::check_name(&new.metadata, findings);
    if let Some(old) = old {
        metadata::check_update(&new.metadata, &old.metadata, findings);
    }
    let at = FieldPath::new("spec");
    let empty = DeviceClassSpec::default();
    let new = new.spec.as_ref().unwrap_or(&empty);
    let old = old.map(|old| old.spec.as_ref().unwrap_or(&empty));
    check_selectors(new, old, &at.child("selectors"), findings);
    check_config(new, old, &at.child("config"), findings);
    check_extended_resource(new.extended_resource_name.as_ref(), &at.child("extendedResourceName"), findings);
}

fn check_selectors(spec: &DeviceClassSpec, old: Option<&DeviceClassSpec>, at: &FieldPath<'_>, findings: &mut Findings) {
    let unchanged = old.is_some_and(|old| same(&spec.selectors, &old.selectors));
    let stored = if unchanged { selector::Stored::Yes } else { selector::Stored::No };
    selector::check_list(spec.selectors.as_ref(), stored, at, findings);
}

fn check_config(spec: &DeviceClassSpec, old: Option<&DeviceClassSpec>, at: &FieldPath<'_>, findings: &mut Findings) {
    let unchanged = old.is_some_and(|old| same(&spec.config, &old.config));
    let size = if unchanged { config::Size::Stored } else { config::Size::Limited };
    List::new(spec.config.as_ref()).at_most(limits::CONFIG).each(at, findings, |one, at, findings| {
        config::check(one.opaque.as_ref(), size, at, findings);
    });
}

fn check_extended_resource(name: Option<&String>, at: &FieldPath<'_>, findings: &mut Findings) {
    if let Some(name) = name.filter(|name| !names::is_extended_resource(name)) {
        findings.push(FieldError::invalid(at, name, "must be a valid extended resource name"));
    }
}
