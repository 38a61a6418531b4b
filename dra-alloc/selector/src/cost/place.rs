//! Places in a device, whose sizes the API limits.

use super::range::Range;
use crate::device::names::Part;

/// Place in a device that an expression reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Device,
    Driver,
    Sharing,
    /// All attributes or capacities, by domain.
    Domains(Part),
    Domain,
    /// Attributes or capacities of a domain.
    Names(Part),
    Name,
    Value(Part),
}

impl Place {
    /// Returns the place of a field.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        match (self, name) {
            (Self::Device, "driver") => Some(Self::Driver),
            (Self::Device, "allowMultipleAllocations") => Some(Self::Sharing),
            (Self::Device, "attributes") => Some(Self::Domains(Part::Attributes)),
            (Self::Device, "capacity") => Some(Self::Domains(Part::Capacity)),
            (Self::Names(Part::Attributes), _) => Some(Self::Value(Part::Attributes)),
            _ => None,
        }
    }

    /// Returns the place of a map's values.
    pub(super) const fn value(self) -> Option<Self> {
        match self {
            Self::Domains(part) => Some(Self::Names(part)),
            Self::Names(part) => Some(Self::Value(part)),
            _ => None,
        }
    }

    /// Returns the place of a map's keys.
    pub(super) const fn key(self) -> Option<Self> {
        match self {
            Self::Domains(_) => Some(Self::Domain),
            Self::Names(_) => Some(Self::Name),
            _ => None,
        }
    }

    /// Returns the sizes that something at this place can have.
    pub(super) const fn size(self) -> Range {
        let most = match self {
            Self::Device | Self::Value(Part::Capacity) => 0,
            Self::Sharing => 1,
            Self::Driver | Self::Domain => 63,
            Self::Domains(_) | Self::Names(_) | Self::Name => 32,
            Self::Value(Part::Attributes) => 64,
        };
        Range::new(0, most)
    }
}
