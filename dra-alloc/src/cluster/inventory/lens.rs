//! Lens: the attributes of devices that somebody reads. Devices that differ in other attributes alone look the same.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::resource::v1::DeviceAttribute;

use super::facts::{Fact, Facts};

/// Attributes that somebody reads, by domain and id; `None` for all attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lens(Option<Box<[AttributeName]>>);

/// Name of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttributeName {
    domain: String,
    id: String,
    qualified: String,
}

/// Attribute under its qualified name and under its short one, which counts for the driver's own domain; and whether the device
/// has any of the domain.
#[derive(Debug)]
pub(crate) struct AttributeRead<A> {
    pub(crate) qualified: Option<A>,
    pub(crate) short: Option<A>,
    pub(crate) has_domain: bool,
}

impl Lens {
    /// Shows all attributes.
    pub(crate) const ALL: Self = Self(None);

    /// Shows some attributes, given by domain and id.
    pub(crate) fn of(names: BTreeSet<(&str, &str)>) -> Self {
        Self(Some(names.into_iter().map(|(domain, id)| AttributeName::new(domain, id)).collect()))
    }

    /// Writes the attributes of a device of a driver, as far as they are shown.
    pub(super) fn write(
        &self,
        attributes: Option<&BTreeMap<String, DeviceAttribute>>,
        driver: &str,
        facts: &mut Facts,
    ) {
        let Self(names) = self;
        let Some(names) = names else { return attributes.write(facts) };
        for name in names {
            let AttributeRead { qualified, short, has_domain } = name.read(attributes, driver);
            qualified.write(facts);
            short.write(facts);
            has_domain.write(facts);
        }
    }
}

impl AttributeName {
    pub(crate) fn new(domain: &str, id: &str) -> Self {
        Self { domain: domain.to_owned(), id: id.to_owned(), qualified: format!("{domain}/{id}") }
    }

    /// Reads the attribute of a device of a driver.
    pub(crate) fn read<'d>(
        &self,
        attributes: Option<&'d BTreeMap<String, DeviceAttribute>>,
        driver: &str,
    ) -> AttributeRead<&'d DeviceAttribute> {
        let Self { domain, id, qualified } = self;
        let Some(all) = attributes else { return AttributeRead { qualified: None, short: None, has_domain: false } };
        let (qualified, short) = (all.get(qualified), all.get(id).filter(|_| domain == driver));
        let is_of_domain = |name: &String| name.split_once('/').map_or(driver, |(domain, _)| domain) == domain;
        let has_domain = qualified.is_some() || short.is_some() || all.keys().any(is_of_domain);
        AttributeRead { qualified, short, has_domain }
    }
}
