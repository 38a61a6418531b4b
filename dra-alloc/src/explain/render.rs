//! Display of explanations, on one line or as a tree.

use std::fmt;

use super::names::{MOST_LISTED, Named, Scope, listed};
use super::{Bottleneck, Cause, ConstraintName, DeviceRejection, Explanation, Reason, RequestName, Suggestion};

/// Largest number of characters of a CEL expression that are printed.
const MOST_CHARACTERS: usize = 100;

/// Returns a number with its noun in singular or plural: `1 device`, `2 devices`.
fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Returns true if slices of a pool are missing, which are to come; otherwise the announced number is wrong.
pub(super) fn is_updated(slices: usize, announced: i64) -> bool {
    usize::try_from(announced).is_ok_and(|announced| announced > slices)
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { failure } => failure.fmt(f),
            Self::AllocatedElsewhere { claim } => write!(f, "claim {claim} is allocated already, for other nodes"),
            Self::Stopped { stopped } => write!(f, "stopped before there was an answer: {stopped}"),
            Self::NoDevices => f.write_str("no device can be used on this node: no complete pool has any for it"),
            Self::Pool { pool, problem } => write!(f, "pool {pool} is invalid: {problem}"),
            Self::IncompletePool { pool, slices, announced } if is_updated(*slices, *announced) => {
                write!(f, "pool {pool} is being updated: {slices} of {announced} slices are there")
            }
            Self::IncompletePool { pool, slices, announced } => {
                write!(f, "pool {pool} has {}, but announces {announced}", counted(*slices, "slice"))
            }
            Self::Request { at, class, wanted, usable, of_class } => {
                write!(f, "{at}: ")?;
                let devices = format!("{} of class {class}", counted(*of_class, "device"));
                match (of_class, usable, wanted) {
                    (0, ..) => write!(f, "no device is of class {class}"),
                    (_, _, None) => write!(f, "all {devices} are wanted, {usable} can be used"),
                    (_, 0, _) => write!(f, "none of {devices} can be used"),
                    (_, _, Some(wanted)) => write!(f, "{usable} of {devices} can be used, {wanted} are wanted"),
                }
            }
            Self::Devices { count, rejection, .. } => write!(f, "{}", Rejected { count: *count, rejection }),
            Self::NoAlternative { at } => write!(f, "{at}: no alternative is possible"),
            Self::Together { requests, constraints, bottlenecks } => {
                write_together(f, requests, constraints, bottlenecks)
            }
            Self::Wants { at, class, wanted: Some(wanted), usable } => {
                Named(at).fmt(f)?;
                write!(f, " wants {wanted} of {} of class {class}", counted(*usable, "device"))
            }
            Self::Wants { at, class, wanted: None, usable } => {
                Named(at).fmt(f)?;
                write!(f, " wants all {} of class {class}", counted(*usable, "device"))
            }
            Self::Offer { at, attribute, values, left_out, usable, lists_off } => {
                Named(at).fmt(f)?;
                f.write_str(" offers ")?;
                let more = if *left_out == 0 { String::new() } else { format!(" and {left_out} more") };
                match values.as_slice() {
                    [] => write!(f, "no value of {attribute}")?,
                    values => write!(f, "{}{more} on {}", values.join(", "), counted(*usable, "device"))?,
                }
                match lists_off {
                    0 => Ok(()),
                    devices => {
                        let devices = counted(*devices, "device");
                        write!(f, " (a list on {devices}, and list-typed attributes are disabled)")
                    }
                }
            }
            Self::AtMost { claim, limit } => write!(f, "claim {claim} may have {limit} devices at the most"),
            Self::TooManyDevices { claim, limit } => {
                write!(f, "claim {claim}: the alternatives that are possible have more than {limit} devices together")
            }
        }
    }
}

fn write_together(
    f: &mut fmt::Formatter<'_>,
    requests: &[RequestName],
    constraints: &[ConstraintName],
    bottlenecks: &[Bottleneck],
) -> fmt::Result {
    let scope = Scope::from_claims(requests.iter().map(|at| &at.claim));
    if let (Scope::OneClaim, Some(first)) = (scope, requests.first()) {
        write!(f, "claim {}, ", first.claim)?;
    }
    let noun = if requests.len() == 1 { "request" } else { "requests" };
    write!(f, "{noun} {}: ", scope.listed(requests.iter().map(Named)))?;
    match (constraints, bottlenecks) {
        ([], []) => f.write_str("not enough devices for all of them together"),
        ([], bottlenecks) => write!(f, "not enough {} for all of them together", scope.listed(bottlenecks)),
        (constraints, []) => write!(f, "no devices satisfy {}", scope.listed(constraints)),
        (constraints, bottlenecks) => {
            write!(f, "no devices satisfy {} with enough {}", scope.listed(constraints), scope.listed(bottlenecks))
        }
    }
}

/// Displays a number of devices with the reason why they are rejected.
struct Rejected<'a> {
    count: usize,
    rejection: &'a DeviceRejection,
}

impl fmt::Display for Rejected<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, one) = (self.count, self.count == 1);
        let (is, has, needs) = if one { ("is", "has", "needs") } else { ("are", "have", "need") };
        let fails = if one { "fails" } else { "fail" };
        match self.rejection {
            DeviceRejection::Class { selector, expression, term } => {
                let text = shortened(term.as_ref().unwrap_or(expression));
                write!(f, "{count} {fails} selector {selector} of the class ({text})")
            }
            DeviceRejection::Selector { selector, expression, term } => {
                let text = shortened(term.as_ref().unwrap_or(expression));
                write!(f, "{count} {fails} selector {selector} of the request ({text})")
            }
            DeviceRejection::OtherNode => write!(f, "{count} {is} for other nodes"),
            DeviceRejection::Held => write!(f, "{count} {is} held by other claims"),
            DeviceRejection::HeldTwice { claims } if one => write!(f, "1 is held by {claims} claims"),
            DeviceRejection::HeldTwice { claims } => write!(f, "{count} are held by {claims} claims each"),
            DeviceRejection::GateOff { gate } => write!(f, "{count} {needs} the feature gate {gate}, which is off"),
            DeviceRejection::NodeDoesNotDeclare { feature } => {
                write!(f, "{count} {needs} a node that declares the feature {feature}")
            }
            DeviceRejection::NoCapacity { capacity } => write!(f, "{count} {has} no capacity {capacity}"),
            DeviceRejection::CapacityPolicy { capacity, wanted } => {
                write!(f, "{count} {has} a request policy for {capacity} that does not permit {wanted}")
            }
            DeviceRejection::CapacityTooSmall { capacity, value, wanted } => {
                write!(f, "{count} {has} {value} {capacity}, {wanted} wanted")
            }
            DeviceRejection::CapacityUsedUp { capacity, left, wanted } => {
                write!(f, "{count} {has} {left} {capacity} left, {wanted} wanted")
            }
            DeviceRejection::CounterUsedUp { set, counter, left, wanted } => {
                write!(f, "{count} {needs} {wanted} of counter {set}/{counter}, {left} left")
            }
            DeviceRejection::Groups => write!(f, "{count} {is} not compatible with a device in use"),
            DeviceRejection::Tainted { taint } => write!(f, "{count} {has} the taint {taint}"),
            DeviceRejection::Error { error } => write!(f, "{count} can't be judged: {error}"),
            DeviceRejection::Constraint { attribute, violation } => {
                write!(f, "{count} can't meet the constraint on {attribute}: {violation}")
            }
        }
    }
}

/// Returns a CEL expression on one line, cut to 100 characters.
fn shortened(expression: &str) -> String {
    let words: Vec<&str> = expression.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MOST_CHARACTERS) {
        None => line,
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
    }
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gates { gates } => {
                let names: Vec<String> = gates.iter().map(ToString::to_string).collect();
                write!(f, "with the feature {} {} on", if names.len() == 1 { "gate" } else { "gates" }, listed(&names))
            }
            Self::Tolerate { at, taint } => {
                f.write_str("if request ")?;
                Named(at).fmt(f)?;
                write!(f, " tolerated {taint}")
            }
            Self::Fewer { at, count } => {
                f.write_str("if request ")?;
                Named(at).fmt(f)?;
                write!(f, " asked for {}", counted(*count, "device"))
            }
            Self::WithoutConstraint { at } => {
                f.write_str("without ")?;
                at.fmt(f)
            }
            Self::Release => f.write_str("once other claims give back what they hold"),
        }
    }
}

impl Reason {
    fn write_line(&self, scope: Scope, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&scope.text(&self.cause))?;
        let separator = if matches!(self.cause, Cause::NoAlternative { .. }) { "; " } else { ", " };
        for (index, reason) in self.because.iter().enumerate() {
            f.write_str(if index == 0 { ": " } else { separator })?;
            reason.write_line(scope, f)?;
        }
        Ok(())
    }

    /// Appends the lines of the reason and of the reasons behind it, indented by `depth`.
    fn lines(&self, scope: Scope, depth: usize, out: &mut Vec<String>) {
        let devices = match &self.cause {
            Cause::Devices { devices, count, .. } if !devices.is_empty() => {
                let names: Vec<String> = devices.iter().map(|device| device.to_string()).collect();
                let more = count.saturating_sub(names.len());
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                format!(": {}{more}", names.join(", "))
            }
            _ => String::new(),
        };
        out.push(format!("{}{}{devices}", "  ".repeat(depth), scope.text(&self.cause)));
        if let Cause::Together { bottlenecks, .. } = &self.cause
            && bottlenecks.len() > MOST_LISTED
        {
            let indent = "  ".repeat(depth + 1);
            out.extend(bottlenecks.iter().map(|bottleneck| format!("{indent}not enough {}", scope.text(bottleneck))));
        }
        for reason in &self.because {
            reason.lines(scope, depth + 1, out);
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scope = self.scope();
        for (index, reason) in self.reasons.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "; " })?;
            reason.write_line(scope, f)?;
        }
        for (index, suggestion) in self.suggestions.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "; possible " } else { " or " }, scope.text(suggestion))?;
        }
        Ok(())
    }
}

impl Explanation {
    /// Returns all reasons, one per line, each indented below the failure that it explains, then the suggestions.
    #[must_use]
    pub fn tree(&self) -> String {
        let (scope, mut lines) = (self.scope(), Vec::new());
        for reason in &self.reasons {
            reason.lines(scope, 0, &mut lines);
        }
        lines.extend(self.suggestions.iter().map(|suggestion| format!("possible {}", scope.text(suggestion))));
        lines.push(String::new());
        lines.join("\n")
    }
}
