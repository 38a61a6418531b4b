//! The device classes of a cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::resource::v1::{DeviceClass, DeviceClassConfiguration};

use crate::expression::{Owner, Selectors};

/// The classes of a cluster by name.
pub(crate) type Classes<'a> = BTreeMap<&'a str, Class<'a>>;

/// A class.
#[derive(Clone, Debug)]
pub(crate) struct Class<'a> {
    pub(crate) name: &'a str,
    pub(crate) selectors: Selectors<'a>,
    pub(crate) config: &'a [DeviceClassConfiguration],
}

impl<'a> Class<'a> {
    pub(crate) fn of(class: &'a DeviceClass) -> Self {
        let (name, spec) = (class.metadata.name.as_deref().unwrap_or_default(), class.spec.as_ref());
        let selectors = spec.and_then(|spec| spec.selectors.as_deref()).unwrap_or_default();
        let config = spec.and_then(|spec| spec.config.as_deref()).unwrap_or_default();
        Self { name, selectors: Selectors::new(Owner::Class(name), selectors), config }
    }
}
