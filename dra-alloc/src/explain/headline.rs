//! Headlines: the first reason in few words, without details that differ between nodes.

use super::render::is_updated;
use super::{Cause, DeviceRejection, Explanation, Reason, RequestName};

impl Explanation {
    /// Returns the first reason in few words, without details that differ between nodes.
    #[must_use]
    pub fn headline(&self) -> Option<String> {
        self.reasons.first().map(Reason::headline)
    }
}

impl Reason {
    fn headline(&self) -> String {
        match &self.cause {
            Cause::Node { failure } => failure.to_string(),
            Cause::AllocatedElsewhere { .. } => "claim allocated for other nodes".to_owned(),
            Cause::Stopped { .. } => "stopped by the budget".to_owned(),
            Cause::NoDevices => "no devices".to_owned(),
            Cause::Pool { .. } => "invalid resource pool".to_owned(),
            Cause::IncompletePool { slices, announced, .. } if is_updated(*slices, *announced) => {
                "resource pool being updated".to_owned()
            }
            Cause::IncompletePool { .. } => "resource pool with a wrong number of slices".to_owned(),
            Cause::Request { class, of_class: 0, .. } => format!("no device of class {class}"),
            Cause::Request { class, usable: 0, .. } => self.request_headline(class) + self.held_twice(),
            Cause::Request { class, wanted, usable, of_class, .. } => {
                let wanted = wanted.map_or_else(|| "all".to_owned(), |wanted| wanted.to_string());
                let kept = if self.are_held() { "free" } else { "usable" };
                let twice = self.held_twice();
                format!("too few: {usable} of {of_class} {kept}, {wanted} wanted of class {class}{twice}")
            }
            Cause::NoAlternative { at } => {
                let each: Vec<String> = self.because.iter().map(Self::alternative_headline).collect();
                format!("no alternative for request {} ({})", at.request, each.join("; "))
            }
            Cause::Together { constraints, bottlenecks, .. } => match (constraints.first(), bottlenecks.first()) {
                (Some(constraint), _) => format!("{} mismatch", short_name(&constraint.attribute)),
                (None, Some(bottleneck)) => format!("not enough {} for all requests", bottleneck.on_any_node()),
                (None, None) => "not enough devices for all requests".to_owned(),
            },
            Cause::TooManyDevices { limit, .. } => format!("more than {limit} devices"),
            Cause::Devices { .. } | Cause::Offer { .. } | Cause::Wants { .. } | Cause::AtMost { .. } => {
                self.cause.to_string()
            }
        }
    }

    /// Returns the headline of one alternative of a request, with its name.
    fn alternative_headline(&self) -> String {
        match self.of_alternative() {
            (name, headline) if name.is_empty() => headline,
            (name, headline) => format!("{name}: {headline}"),
        }
    }

    /// Returns the name of the alternative that the reason is about, empty for none, and its headline.
    pub(crate) fn of_alternative(&self) -> (String, String) {
        let name = match &self.cause {
            Cause::Request { at: RequestName { subrequest: Some(name), .. }, .. } => name.clone(),
            _ => String::new(),
        };
        (name, self.headline())
    }

    /// Returns true if nothing but other claims keeps devices from the request.
    fn are_held(&self) -> bool {
        self.rejections().all(|rejection| rejection.is_some_and(is_held))
    }

    /// Returns the words about devices that several claims hold, empty if there are none. They have no number, so that nodes
    /// with different numbers are one group.
    fn held_twice(&self) -> &'static str {
        let is_it = |rejection: Option<&DeviceRejection>| matches!(rejection, Some(DeviceRejection::HeldTwice { .. }));
        if self.rejections().any(is_it) { ", some held by 2 claims or more" } else { "" }
    }

    /// Returns the rejection of each reason behind this one; `None` for a reason that is not about devices.
    fn rejections(&self) -> impl Iterator<Item = Option<&DeviceRejection>> {
        self.because.iter().map(|reason| match &reason.cause {
            Cause::Devices { rejection, .. } => Some(rejection),
            _ => None,
        })
    }

    /// Returns the most frequent reason why devices of the class are rejected, in few words.
    fn request_headline(&self, class: &str) -> String {
        let first = self.rejections().flatten().next();
        match first {
            None => format!("too few devices of class {class}"),
            Some(DeviceRejection::Held | DeviceRejection::HeldTwice { .. }) => {
                format!("no free device of class {class}")
            }
            Some(DeviceRejection::Tainted { taint }) => format!("taint {taint} on devices of class {class}"),
            Some(DeviceRejection::Class { .. } | DeviceRejection::Selector { .. }) => {
                format!("no device of class {class} that the selectors admit")
            }
            Some(DeviceRejection::Error { .. }) => format!("devices of class {class} that can't be judged"),
            Some(DeviceRejection::GateOff { gate }) => format!("feature gate {gate} off"),
            Some(
                DeviceRejection::NoCapacity { capacity }
                | DeviceRejection::CapacityPolicy { capacity, .. }
                | DeviceRejection::CapacityTooSmall { capacity, .. }
                | DeviceRejection::CapacityUsedUp { capacity, .. },
            ) => format!("not enough {capacity} on devices of class {class}"),
            Some(DeviceRejection::CounterUsedUp { .. }) => format!("counters used up for devices of class {class}"),
            Some(DeviceRejection::Groups) => format!("no compatible device of class {class}"),
            Some(DeviceRejection::Constraint { attribute, .. }) => format!("{} mismatch", short_name(attribute)),
            Some(DeviceRejection::NodeDoesNotDeclare { feature }) => format!("feature {feature} not declared"),
            Some(DeviceRejection::OtherNode) => format!("no device of class {class} for the node"),
        }
    }
}

const fn is_held(rejection: &DeviceRejection) -> bool {
    matches!(rejection, DeviceRejection::Held | DeviceRejection::HeldTwice { .. })
}

fn short_name(attribute: &str) -> &str {
    attribute.rsplit_once('/').map_or(attribute, |(_, id)| id)
}
