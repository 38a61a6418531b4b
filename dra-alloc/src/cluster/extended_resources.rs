//! Device classes by the extended resource that they serve (KEP-5004).
//!
//! Source: `dynamic-resource-allocation/deviceclass/extendedresourcecache`, with the candidates of a name kept, so that the
//! answer does not depend on the order of events.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dra_device::internal::DEVICE_CLASS_PREFIX;
use k8s_openapi::api::resource::v1::DeviceClass;
use k8s_openapi::jiff::Timestamp;

/// Device classes that name an extended resource, by that name. The first of a name's classes serves it.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtendedResources {
    candidates: BTreeMap<String, BTreeSet<Candidate>>,
}

/// A class that names the resource: the newest comes first, and of one age the one with the lower name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    created: Reverse<Option<Timestamp>>,
    class: String,
}

impl Candidate {
    fn new(class: &DeviceClass) -> Self {
        let created = class.metadata.creation_timestamp.as_ref().map(|created| created.0);
        Self { created: Reverse(created), class: class.metadata.name.clone().unwrap_or_default() }
    }
}

impl ExtendedResources {
    pub(super) fn add(&mut self, class: &DeviceClass) {
        if let Some(resource) = named_by(class) {
            self.candidates.entry(resource.to_owned()).or_default().insert(Candidate::new(class));
        }
    }

    pub(super) fn remove(&mut self, class: &DeviceClass) {
        let Some(resource) = named_by(class) else { return };
        debug_assert!(self.candidates.contains_key(resource), "a class that goes was added");
        let Some(candidates) = self.candidates.get_mut(resource) else { return };
        candidates.remove(&Candidate::new(class));
        if candidates.is_empty() {
            self.candidates.remove(resource);
        }
    }

    /// Returns the name of the class that serves a resource by its explicit name.
    pub(super) fn class_of(&self, resource: &str) -> Option<&str> {
        Some(self.candidates.get(resource)?.first()?.class.as_str())
    }
}

/// Returns the extended resource that a class names.
pub(super) fn named_by(class: &DeviceClass) -> Option<&str> {
    class.spec.as_ref()?.extended_resource_name.as_deref().filter(|name| !name.is_empty())
}

/// Returns the device class for which the implicit name of an extended resource stands.
pub(crate) fn implicit_class(resource: &str) -> Option<&str> {
    resource.strip_prefix(DEVICE_CLASS_PREFIX)
}
