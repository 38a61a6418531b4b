//! CEL variable `device`: values that read the device in place.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use cel::ExecutionError;
use cel::common::traits::{Container, Indexer, Iterable, Iterator as ValueIterator, Sizer};
use cel::common::types::{CelBool, CelInt, CelString, MAP_TYPE, Type};
use cel::common::value::{CowVal, Val};
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute};

use super::attribute;
use super::direct::plain;
use super::fuel::Fuel;
use super::functions::equality::is_alike;
use super::functions::quantity::QuantityValue;
use super::types::Part;
use super::{EvaluationError, SelectorInput};
use dra_attrs::Quantity;

static DEVICE: Type = Type::new_unspecified_type("kubernetes.DRADevice");

/// Rejects a device with an invalid attribute or capacity, even if no expression reads it: Kubernetes converts all of
/// them before an evaluation. The first by name is reported.
pub(super) fn check(device: &Device) -> Result<(), EvaluationError> {
    let invalid = |name: &str, reason| EvaluationError::Attribute { name: name.to_owned(), reason };
    for (name, value) in device.attributes.iter().flatten() {
        attribute::check(value).map_err(|reason| invalid(name, reason))?;
    }
    for (name, capacity) in device.capacity.iter().flatten() {
        if plain::units(&capacity.value.0).is_none() {
            Quantity::from_kube(&capacity.value).map_err(|error| invalid(name, error.to_string()))?;
        }
    }
    Ok(())
}

/// Splits a name into domain and id; a name without a domain has the driver's.
pub(super) fn split<'n>(name: &'n str, driver: &'n str) -> (&'n str, &'n str) {
    name.split_once('/').unwrap_or((driver, name))
}

/// Value of the CEL variable `device`.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceValue<'a> {
    input: SelectorInput<'a>,
    fuel: &'a Fuel,
}

impl<'a> DeviceValue<'a> {
    pub(super) const fn new(input: SelectorInput<'a>, fuel: &'a Fuel) -> Self {
        Self { input, fuel }
    }

    const fn domains(self, part: Part) -> DomainsValue<'a> {
        DomainsValue { device: self, part, keys: OnceLock::new() }
    }

    fn attributes(self) -> impl Iterator<Item = (&'a str, &'a DeviceAttribute)> {
        self.input.device.attributes.iter().flatten().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the names of all attributes or all capacities in order, each split into domain and id. Stops when the
    /// budget of the evaluation is exhausted.
    fn names(self, part: Part) -> impl Iterator<Item = (&'a str, &'a str)> {
        let device = self.input.device;
        let attributes = matches!(part, Part::Attributes).then(|| self.attributes().map(|(name, _)| name));
        let capacity =
            matches!(part, Part::Capacity).then(|| device.capacity.iter().flatten().map(|(name, _)| name.as_str()));
        let names = attributes.into_iter().flatten().chain(capacity.into_iter().flatten());
        let paid = names.take_while(move |_| self.fuel.spend(1).is_ok());
        paid.map(move |name| split(name, self.input.driver))
    }

    /// Returns the CEL value of the attribute or capacity that is stored as `name`, if the device has it.
    fn value(self, part: Part, name: &str) -> Option<Result<Box<dyn Val + 'a>, ExecutionError>> {
        match part {
            Part::Attributes => {
                let attribute = self.input.device.attributes.as_ref()?.get(name)?;
                Some(attribute::to_value(attribute))
            }
            Part::Capacity => {
                let capacity = self.input.device.capacity.as_ref()?.get(name)?;
                let value = QuantityValue::read(&capacity.value);
                Some(value.map_err(|error| ExecutionError::function_error("capacity", error)))
            }
        }
    }

    fn field(self, name: &str) -> Option<Result<Box<dyn Val + 'a>, ExecutionError>> {
        Some(match name {
            "driver" => self.fuel.spend_bytes(self.input.driver.len()).map(|()| {
                let driver: Box<dyn Val + 'a> = Box::new(CelString::from(self.input.driver));
                driver
            }),
            "allowMultipleAllocations" => {
                Ok(Box::new(CelBool::from(self.input.device.allow_multiple_allocations.unwrap_or_default())))
            }
            "attributes" => Ok(Box::new(self.domains(Part::Attributes))),
            "capacity" => Ok(Box::new(self.domains(Part::Capacity))),
            _ => return None,
        })
    }
}

/// Value of `device.attributes` or `device.capacity`: a map from domains to maps.
#[derive(Clone, Debug)]
pub(super) struct DomainsValue<'a> {
    device: DeviceValue<'a>,
    part: Part,
    keys: OnceLock<Vec<CelString<'a>>>,
}

/// Value of `device.attributes[domain]` or `device.capacity[domain]`: a map from ids to values, empty for an unknown
/// domain.
#[derive(Clone, Debug)]
pub(super) struct DomainValue<'a> {
    device: DeviceValue<'a>,
    part: Part,
    domain: String,
    keys: OnceLock<Vec<CelString<'a>>>,
}

impl<'a> DomainsValue<'a> {
    /// Returns the domains that the device names, sorted.
    fn keys(&self) -> &[CelString<'a>] {
        self.keys.get_or_init(|| sorted(self.device.names(self.part).map(|(domain, _)| domain)))
    }

    #[expect(clippy::unnecessary_wraps, reason = "as the other values that are indexed by a name")]
    fn find(&self, domain: &str) -> Option<Result<Box<dyn Val + 'a>, ExecutionError>> {
        let domain = domain.to_owned();
        Some(Ok(Box::new(DomainValue { device: self.device, part: self.part, domain, keys: OnceLock::new() })))
    }

    fn has(&self, domain: &str) -> bool {
        self.device.names(self.part).any(|(name, _)| name == domain)
    }
}

impl<'a> DomainValue<'a> {
    /// Returns the ids in the domain, sorted.
    fn keys(&self) -> &[CelString<'a>] {
        let in_domain = self.device.names(self.part).filter(|(domain, _)| *domain == self.domain);
        self.keys.get_or_init(|| sorted(in_domain.map(|(_, id)| id)))
    }

    fn find(&self, id: &str) -> Option<Result<Box<dyn Val + 'a>, ExecutionError>> {
        let DeviceValue { input, fuel } = self.device;
        let bare = (self.domain == input.driver && !id.contains('/')).then(|| self.device.value(self.part, id));
        let qualified = || {
            let full = !self.domain.contains('/');
            full.then(|| self.device.value(self.part, &format!("{}/{id}", self.domain))).flatten()
        };
        let value = bare.flatten().or_else(qualified)?;
        Some(value.and_then(|value| fuel.spend_value(value.as_ref()).map(|()| value)))
    }

    fn has(&self, id: &str) -> bool {
        self.device.names(self.part).any(|name| name == (self.domain.as_str(), id))
    }
}

fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<CelString<'a>> {
    names.collect::<BTreeSet<_>>().into_iter().map(CelString::from).collect()
}

impl<'a> DeviceValue<'a> {
    fn find(&self, name: &str) -> Option<Result<Box<dyn Val + 'a>, ExecutionError>> {
        self.field(name)
    }
}

/// Implements indexing by a string for `DeviceValue`, `DomainsValue` and `DomainValue`.
macro_rules! indexed_by_name {
    ($value:ident) => {
        impl Indexer for $value<'_> {
            fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
            where
                Self: 'v,
            {
                let name = name_of(index)?;
                let value = self.find(name).ok_or_else(|| ExecutionError::no_such_key(name))?;
                value.map(|value| CowVal::Owned(value))
            }

            fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
            where
                Self: 'v,
            {
                let name = name_of(index)?;
                let value = self.find(name).ok_or_else(|| ExecutionError::no_such_key(name))?;
                value.map(|value| value as Box<dyn Val + 'v>)
            }
        }
    };
}

/// Implements the map functions that `DomainsValue` and `DomainValue` share.
macro_rules! map_of_names {
    ($value:ident) => {
        impl Val for $value<'_> {
            fn get_type(&self) -> &Type {
                &MAP_TYPE
            }

            fn cel_type() -> &'static Type {
                &MAP_TYPE
            }

            fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
            where
                Self: 'v,
            {
                Some(self)
            }

            fn as_container(&self) -> Option<&dyn Container> {
                Some(self)
            }

            fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
            where
                Self: 'v,
            {
                Some(self)
            }

            fn as_sizer(&self) -> Option<&dyn Sizer> {
                Some(self)
            }

            /// Returns true if `other` is a map with equal keys and values.
            fn equals(&self, other: &dyn Val) -> bool {
                let same_size = other.as_sizer().is_some_and(|other| other.size() == self.size());
                let Some(other) = other.as_indexer().filter(|_| same_size && *other.get_type() == MAP_TYPE) else {
                    return false;
                };
                let same = |key: &CelString<'_>| match (self.get(key), other.get(key)) {
                    (Ok(own), Ok(other)) => is_alike(own.as_ref(), other.as_ref()),
                    _ => false,
                };
                self.keys().iter().all(same)
            }

            fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
            where
                Self: 'v,
            {
                Box::new(self.clone())
            }
        }

        impl Container for $value<'_> {
            fn contains(&self, key: &dyn Val) -> Result<bool, ExecutionError> {
                Ok(name_of(key).is_ok_and(|name| self.has(name)))
            }
        }

        impl Sizer for $value<'_> {
            fn size(&self) -> CelInt {
                CelInt::from(i64::try_from(self.keys().len()).unwrap_or(i64::MAX))
            }
        }

        impl Iterable for $value<'_> {
            fn iter<'b, 'v>(&'b self) -> Box<dyn ValueIterator<'b, 'v> + 'b>
            where
                Self: 'v,
            {
                Box::new(Names(self.keys().iter()))
            }
        }
    };
}

indexed_by_name!(DeviceValue);
indexed_by_name!(DomainsValue);
indexed_by_name!(DomainValue);
map_of_names!(DomainsValue);
map_of_names!(DomainValue);

impl Val for DeviceValue<'_> {
    fn get_type(&self) -> &Type {
        &DEVICE
    }

    fn cel_type() -> &'static Type {
        &DEVICE
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    /// Returns true if `other` is a device: an evaluation has only one, so that it is the same.
    fn equals(&self, other: &dyn Val) -> bool {
        *other.get_type() == DEVICE
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(*self)
    }
}

struct Names<'b, 'a>(std::slice::Iter<'b, CelString<'a>>);

impl<'b, 'v, 'a: 'v> ValueIterator<'b, 'v> for Names<'b, 'a> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        self.0.next().map(|name| {
            let name: &'b (dyn Val + 'v) = name;
            name
        })
    }
}

fn name_of<'k>(key: &'k (dyn Val + '_)) -> Result<&'k str, ExecutionError> {
    let name = key.downcast_ref::<CelString<'_>>().map(CelString::inner);
    name.ok_or_else(|| ExecutionError::UnexpectedType {
        got: key.get_type().name().to_owned(),
        want: "string".to_owned(),
    })
}
