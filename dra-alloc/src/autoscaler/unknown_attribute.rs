//! Attributes that nobody knows before the node exists, and the claims that depend on them.

use dra_attrs::{Profile, lookup_by_name};
use dra_device::pool::slice_devices;
use dra_selector::SelectorCache;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{DeviceClaim, DeviceConstraint, DeviceRequest, ResourceClaim};

use super::node_template::NodeTemplate;
use super::placing::PlacementError;
use super::release::claims_of;
use crate::cluster::classes::{Class, Classes};
use crate::pods::ClaimLookup;

/// A template, and what is needed to find the attributes that claims read.
#[derive(Clone, Copy)]
pub(crate) struct UnknownAttributes<'t> {
    pub(crate) template: &'t NodeTemplate,
    pub(crate) classes: &'t Classes,
    pub(crate) selectors: &'t SelectorCache,
    pub(crate) profile: Profile,
}

impl UnknownAttributes<'_> {
    /// Checks that no pending claim of a pod depends on an unknown attribute.
    pub(crate) fn check(self, pod: &Pod, claims: &impl ClaimLookup) -> Result<(), PlacementError> {
        if self.template.unknown_attributes().is_empty() {
            return Ok(());
        }
        for named in claims_of(pod) {
            let Some(claim) = claims.claim(&named.claim.namespace, &named.claim.name) else { continue };
            if let Some(attribute) = pending_devices(claim).and_then(|devices| self.read_by(devices)) {
                return Err(PlacementError::UnknownInClaim { claim: named.claim, attribute: attribute.to_owned() });
            }
        }
        for resource in resources_of(pod) {
            let class = self.classes.of_extended_resource(resource).and_then(|class| class.metadata.name.as_deref());
            let mut texts = class.into_iter().flat_map(|class| selectors_of(class, self.classes));
            if let Some(attribute) = texts.find_map(|text| self.read_in((text, false))) {
                let (resource, attribute) = (resource.to_owned(), attribute.to_owned());
                return Err(PlacementError::UnknownInClass { resource, attribute });
            }
        }
        Ok(())
    }

    /// Returns the first unknown attribute on which a claim may depend.
    fn read_by(&self, devices: &DeviceClaim) -> Option<&str> {
        let mut requests = devices.requests.iter().flatten();
        let mut constraints = devices.constraints.iter().flatten();
        requests
            .find_map(|request| expressions(request, self.classes).into_iter().find_map(|text| self.read_in(text)))
            .or_else(|| constraints.find_map(|constraint| self.compared_by(constraint)))
    }

    /// Returns the first unknown attribute that an expression may read: any, if that is not known before its evaluation.
    fn read_in(&self, (text, is_derived): (&str, bool)) -> Option<&str> {
        let compiled = if is_derived {
            self.selectors.compile_derived(text)
        } else {
            self.selectors.compile_in(text, self.profile)
        };
        let compiled = compiled.ok()?;
        let read = compiled.attributes_read();
        let is_read = |attribute: &&String| {
            read.is_none_or(|read| {
                read.iter().any(|(domain, id)| attribute.split_once('/') == Some((domain.as_str(), id.as_str())))
            })
        };
        self.template.unknown_attributes().iter().find(is_read).map(String::as_str)
    }

    /// Returns the unknown attribute that a constraint compares, unless the template has placeholders for it.
    fn compared_by(&self, constraint: &DeviceConstraint) -> Option<&str> {
        let compared = constraint.match_attribute.as_ref().or(constraint.distinct_attribute.as_ref())?;
        let attribute = self.template.unknown_attributes().get(compared)?;
        let has_placeholder = self.template.slices().iter().any(|slice| {
            let attributes = slice_devices(slice).iter().filter_map(|device| device.attributes.as_ref());
            { attributes }.any(|attributes| lookup_by_name(attributes, attribute, &slice.spec.driver).is_some())
        });
        (!has_placeholder).then_some(attribute)
    }
}

/// Returns the devices that a claim asks for, unless it is allocated.
fn pending_devices(claim: &ResourceClaim) -> Option<&DeviceClaim> {
    let is_allocated = claim.status.as_ref().is_some_and(|status| status.allocation.is_some());
    claim.spec.as_ref().filter(|_| !is_allocated)?.devices.as_ref()
}

/// Returns the expressions of a request, with those of its classes; the flag is true for derived attributes.
fn expressions<'e>(request: &'e DeviceRequest, classes: &'e Classes) -> Vec<(&'e str, bool)> {
    let exactly = request.exactly.iter().map(|exactly| {
        (&exactly.device_class_name, exactly.selectors.as_deref(), exactly.derived_attributes.as_deref())
    });
    let listed = request.first_available.iter().flatten().map(|alternative| {
        (&alternative.device_class_name, alternative.selectors.as_deref(), alternative.derived_attributes.as_deref())
    });
    let mut found = Vec::new();
    for (class, own, derived) in exactly.chain(listed) {
        found.extend(selectors_of(class, classes).map(|text| (text, false)));
        let own = own.unwrap_or_default().iter().filter_map(|selector| selector.cel.as_ref());
        found.extend(own.map(|cel| (cel.expression.as_str(), false)));
        found.extend(derived.unwrap_or_default().iter().map(|derived| (derived.expression.as_str(), true)));
    }
    found
}

/// Returns the selectors of a class.
fn selectors_of<'e>(class: &str, classes: &'e Classes) -> impl Iterator<Item = &'e str> {
    classes.named(class).into_iter().flat_map(Class::selectors).filter_map(|selector| selector.text)
}

/// Returns the names of the resources that containers of a pod request.
fn resources_of(pod: &Pod) -> impl Iterator<Item = &str> {
    let spec = pod.spec.iter();
    let containers = spec.flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
    let requests = containers.filter_map(|container| container.resources.as_ref()?.requests.as_ref());
    requests.flat_map(|requests| requests.keys().map(String::as_str))
}
