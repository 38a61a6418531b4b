//! Values of attributes.

use dra_attrs::VersionError;
use k8s_openapi::api::resource::v1::DeviceAttribute;

/// Value of an attribute. If several of its fields are set, the first in the order of these variants counts, as in
/// Kubernetes.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    Ints(&'a [i64]),
    Bools(&'a [bool]),
    Strings(&'a [String]),
    Versions(&'a [String]),
    Int(i64),
    Bool(bool),
    String(&'a str),
    Version(&'a str),
}

impl<'a> Content<'a> {
    pub(crate) fn of(attribute: &'a DeviceAttribute) -> Option<Self> {
        let ints = attribute.ints.as_deref().map(Self::Ints);
        let list = ints.or_else(|| attribute.bools.as_deref().map(Self::Bools));
        let list = list.or_else(|| attribute.strings.as_deref().map(Self::Strings));
        let list = list.or_else(|| attribute.versions.as_deref().map(Self::Versions));
        let scalar = list.or_else(|| attribute.int.map(Self::Int)).or_else(|| attribute.bool.map(Self::Bool));
        let scalar = scalar.or_else(|| attribute.string.as_deref().map(Self::String));
        scalar.or_else(|| attribute.version.as_deref().map(Self::Version))
    }
}

/// Says why a version of an attribute is invalid.
pub(crate) fn describe(error: &VersionError) -> String {
    format!("parse semantic version: {}", error.reason)
}
