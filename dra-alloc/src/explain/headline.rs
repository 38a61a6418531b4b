//! Headlines: the first reason in few words, without details that differ between nodes.

use dra_attrs::MatchError;

use super::render::is_updated;
use super::stage::Stage;
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
        self.rejections().all(|rejection| rejection.map(Stage::of) == Some(Stage::Held))
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

    /// Returns the reason why no device of the class is usable, in few words. It is about the devices that came farthest:
    /// those of the node that the selectors admit, if there are any.
    fn request_headline(&self, class: &str) -> String {
        let mut rejections: Vec<&DeviceRejection> = self.rejections().flatten().collect();
        let mut about = format!("of class {class}");
        for (stage, words) in STAGES {
            let (early, rest): (Vec<_>, Vec<_>) =
                rejections.iter().copied().partition(|rejection| Stage::of(rejection) == stage);
            if !early.is_empty() && !rest.is_empty() {
                about.push_str(words);
                rejections = rest;
            }
        }
        let mut kinds: Vec<Words> = rejections.iter().map(|rejection| Words::new(rejection, &about)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        match kinds.as_slice() {
            [] => format!("too few devices {about}"),
            [one] => one.alone.clone(),
            // In an order that is the same on all nodes, so that they are one group.
            several => {
                let each: Vec<&str> = several.iter().map(|kind| kind.part.as_str()).collect();
                format!("no usable device {about}: {}", each.join(", "))
            }
        }
    }
}

/// Stages at which a device can be left out before it is asked if it is free, with the words for the devices that pass.
const STAGES: [(Stage, &str); 2] = [(Stage::Node, " for the node"), (Stage::Selectors, " that the selectors admit")];

/// Words for one kind of rejection.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Words {
    /// Words in a list of kinds.
    part: String,
    /// Words where all devices are rejected so.
    alone: String,
}

impl Words {
    /// Finds the words, where `about` says which devices it is about.
    fn new(rejection: &DeviceRejection, about: &str) -> Self {
        let (part, alone) = match rejection {
            DeviceRejection::OtherNode => ("not for the node".to_owned(), format!("no device {about} for the node")),
            DeviceRejection::Class { .. } | DeviceRejection::Selector { .. } => {
                ("not admitted".to_owned(), format!("no device {about} that the selectors admit"))
            }
            DeviceRejection::Held | DeviceRejection::HeldTwice { .. } => {
                ("held".to_owned(), format!("no free device {about}"))
            }
            DeviceRejection::Groups => ("not compatible".to_owned(), format!("no compatible device {about}")),
            DeviceRejection::Error { .. } => {
                ("can't be judged".to_owned(), format!("devices {about} that can't be judged"))
            }
            DeviceRejection::CounterUsedUp { .. } => {
                ("counters used up".to_owned(), format!("counters used up for devices {about}"))
            }
            DeviceRejection::Tainted { taint } => {
                (format!("taint {taint}"), format!("taint {taint} on devices {about}"))
            }
            DeviceRejection::NodeDoesNotDeclare { feature } => {
                let lacks = format!("feature {feature} not declared by the node");
                (lacks.clone(), format!("{lacks} for devices {about}"))
            }
            DeviceRejection::NoCapacity { capacity }
            | DeviceRejection::CapacityPolicy { capacity, .. }
            | DeviceRejection::CapacityTooSmall { capacity, .. }
            | DeviceRejection::CapacityUsedUp { capacity, .. } => {
                let short = format!("not enough {capacity}");
                (short.clone(), format!("{short} on devices {about}"))
            }
            DeviceRejection::Constraint { attribute, violation: MatchError::Missing } => {
                // The whole name: its domain may be the mistake.
                (format!("without attribute {attribute}"), format!("no device {about} with attribute {attribute}"))
            }
            DeviceRejection::Constraint { attribute, .. } => {
                let mismatch = format!("{} mismatch", short_name(attribute));
                (mismatch.clone(), mismatch)
            }
            DeviceRejection::GateOff { gate } => {
                let off = format!("feature gate {gate} off");
                (off.clone(), off)
            }
        };
        Self { part, alone }
    }
}

fn short_name(attribute: &str) -> &str {
    attribute.rsplit_once('/').map_or(attribute, |(_, id)| id)
}
