//! Names of extended resources that devices can provide (KEP-5004).

use dra_attrs::NameFormat;

/// Prefix of an extended resource name that stands for a device class by name.
pub const DEVICE_CLASS_PREFIX: &str = "deviceclass.resource.kubernetes.io/";

/// Returns true for the name of a resource that devices can provide: an extended resource, or the implicit name of a device
/// class.
#[must_use]
pub fn is_extended_resource(resource: &str) -> bool {
    resource.starts_with(DEVICE_CLASS_PREFIX)
        || resource.contains('/') && NameFormat::ExtendedResource.problems(resource).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_extended_resources() {
        for name in ["example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"] {
            assert!(is_extended_resource(name), "{name}");
        }
        for name in ["cpu", "gpu", "kubernetes.io/gpu", "requests.example.com/gpu", "example.com/", "a b/c", "a/b/c"] {
            assert!(!is_extended_resource(name), "{name}");
        }
    }
}
