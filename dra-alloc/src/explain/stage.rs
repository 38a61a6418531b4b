//! Stages at which a device is refused to a request.

use super::DeviceRejection;

/// Question to which a rejection is the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Is the device for the node?
    Node,
    /// Do the selectors admit it?
    Selectors,
    /// Is it free?
    Held,
    /// Is enough left beside the claims that share it, its counters or its groups?
    UsedUp,
    /// Any other question. The end of other claims does not change its answer.
    Device,
}

impl Stage {
    pub(super) const fn of(rejection: &DeviceRejection) -> Self {
        match rejection {
            DeviceRejection::OtherNode => Self::Node,
            DeviceRejection::Class { .. } | DeviceRejection::Selector { .. } => Self::Selectors,
            DeviceRejection::Held | DeviceRejection::HeldTwice { .. } => Self::Held,
            DeviceRejection::CapacityUsedUp { .. }
            | DeviceRejection::CounterUsedUp { .. }
            | DeviceRejection::Groups => Self::UsedUp,
            DeviceRejection::GateOff { .. }
            | DeviceRejection::NodeDoesNotDeclare { .. }
            | DeviceRejection::NoCapacity { .. }
            | DeviceRejection::CapacityPolicy { .. }
            | DeviceRejection::CapacityTooSmall { .. }
            | DeviceRejection::Tainted { .. }
            | DeviceRejection::Error { .. }
            | DeviceRejection::Constraint { .. } => Self::Device,
        }
    }
}
