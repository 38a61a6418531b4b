//! What becomes of the devices of a node when a request asks for them.

use std::collections::BTreeMap;

use dra_attrs::matching::{ValueSet, Violation};
use dra_attrs::quantity::{Quantity, QuantityFormat};

use super::{Cause, Detail, DeviceRejection, Reason, RequestName};
use crate::counters::Shortage;
use crate::error::AllocateError;
use crate::expression::{Expression, Owner};
use crate::features::Feature;
use crate::request::{Alternative, Claim, Mode};
use crate::search::{Attempt, Fit, Misfit, Refusal, Rejection, Selection, Short, Table};
use crate::selector::SelectorInput;

/// Devices that are named for one reason, and values that are listed for one request.
const MOST_LISTED: usize = 32;
const MOST_VALUES: usize = 8;

/// The devices of a node as one alternative of a request sees them.
pub(super) struct View {
    pub(super) usable: Vec<usize>,
    rejected: BTreeMap<DeviceRejection, Vec<usize>>,
    of_class: usize,
    /// Devices that a request for all would want.
    eligible: usize,
}

impl View {
    /// Looks at every device for one alternative, as if it were the first to be served.
    pub(super) fn new(table: &Table<'_>, alternative: usize) -> Self {
        let mut view = Self { usable: Vec::new(), rejected: BTreeMap::new(), of_class: 0, eligible: 0 };
        let mut attempt = Attempt::new(table);
        for device in 0..table.candidates.all() {
            let unfit = or_error(unfit(table, alternative, device));
            view.eligible += usize::from(unfit.is_none());
            let rejection = unfit.or_else(|| or_error(unusable(table, &mut attempt, alternative, device)));
            if !matches!(rejection, Some(DeviceRejection::Class { .. })) {
                view.of_class += 1;
            }
            match rejection {
                Some(rejection) => view.rejected.entry(rejection).or_default().push(device),
                None => view.usable.push(device),
            }
        }
        view
    }

    /// Whether the alternative finds the devices that it wants.
    pub(super) fn is_enough(&self, asked: &Alternative<'_>) -> bool {
        match asked.mode {
            Mode::Exactly(count) => u64::try_from(self.usable.len()).is_ok_and(|usable| usable >= count),
            Mode::All => !self.usable.is_empty() && self.usable.len() == self.eligible,
        }
    }

    /// How many devices the alternative takes if it finds enough.
    pub(super) fn taken_by(&self, asked: &Alternative<'_>) -> usize {
        match asked.mode {
            Mode::Exactly(count) => usize::try_from(count).unwrap_or(usize::MAX),
            Mode::All => self.usable.len(),
        }
    }

    /// What the alternative takes from others.
    pub(super) fn wants(&self, table: &Table<'_>, alternative: usize) -> Reason {
        let asked = table.alternative(alternative);
        Reason::leaf(Cause::Wants {
            at: request_name(table, asked),
            class: class_name(asked),
            wanted: wanted(asked),
            usable: self.usable.len(),
        })
    }

    /// The request with its devices: most frequent reason first. Devices of other classes only matter if there are no
    /// others.
    pub(super) fn reason(&self, table: &Table<'_>, alternative: usize, detail: Detail) -> Reason {
        let asked = table.alternative(alternative);
        let cause = Cause::Request {
            at: request_name(table, asked),
            class: class_name(asked),
            wanted: wanted(asked),
            usable: self.usable.len(),
            of_class: self.of_class,
        };
        let matters =
            |rejection: &DeviceRejection| self.of_class == 0 || !matches!(rejection, DeviceRejection::Class { .. });
        let mut groups: Vec<_> = self.rejected.iter().filter(|(rejection, _)| matters(rejection)).collect();
        groups.sort_by_key(|(_, devices)| std::cmp::Reverse(devices.len()));
        let because = groups.into_iter().map(|(rejection, devices)| {
            let listed = if detail == Detail::Full { MOST_LISTED } else { 0 };
            let named = devices.iter().take(listed).map(|device| table.id(*device)).collect();
            Reason::leaf(Cause::Devices { count: devices.len(), devices: named, rejection: rejection.clone() })
        });
        Reason { cause, because: because.collect() }
    }
}

fn class_name(asked: &Alternative<'_>) -> String {
    asked.class.name.to_owned()
}

const fn wanted(asked: &Alternative<'_>) -> Option<u64> {
    match asked.mode {
        Mode::Exactly(count) => Some(count),
        Mode::All => None,
    }
}

fn request_name(table: &Table<'_>, asked: &Alternative<'_>) -> RequestName {
    RequestName { claim: table.claim_name(asked), request: asked.name.to_string() }
}

/// The search may never have come to a device on which the request can't be evaluated.
fn or_error(rejection: Result<Option<DeviceRejection>, AllocateError>) -> Option<DeviceRejection> {
    rejection.unwrap_or_else(|error| Some(DeviceRejection::Error { error: error.to_string() }))
}

/// Why a device is none of those that a request for all devices would want, whoever uses it.
fn unfit(table: &Table<'_>, alternative: usize, device: usize) -> Result<Option<DeviceRejection>, AllocateError> {
    let asked = table.alternative(alternative);
    match table.selection(alternative, device)? {
        Selection::Admitted => {}
        Selection::BindingConditionsOff => {
            let refused = false_selector(table, alternative, device);
            return Ok(refused.or_else(|| Some(gate_off(table, Feature::BindingConditions))));
        }
        Selection::OtherNode => return Ok(Some(DeviceRejection::OtherNode)),
        Selection::Selector(position) => return Ok(asked.selectors().nth(position).map(selector_false)),
    }
    if !table.has(Feature::ConsumableCapacity) {
        return Ok(None);
    }
    match table.fit(alternative, device)? {
        Fit::Never(misfit) => Ok(Some(misfit_of(*misfit))),
        Fit::Takes(_) => Ok(None),
    }
}

/// The selector that is false for a device. The search looks at gates first, but a device that the selectors do not mean
/// needs none.
fn false_selector(table: &Table<'_>, alternative: usize, device: usize) -> Option<DeviceRejection> {
    let candidate = table.candidate(device);
    let input = SelectorInput { driver: &candidate.slice.spec.driver, device: candidate.device };
    let is_false = |selector: &Expression<'_>| {
        let compiled = selector.compile(table.allocator.selectors).and_then(Result::ok);
        compiled.is_some_and(|compiled| matches!(compiled.matches(input), Ok(false)))
    };
    table.alternative(alternative).selectors().find(is_false).map(selector_false)
}

/// Why a device that would fit can't be the first one for an alternative.
fn unusable<'s>(
    table: &Table<'s>,
    attempt: &mut Attempt<'_, 's>,
    alternative: usize,
    device: usize,
) -> Result<Option<DeviceRejection>, AllocateError> {
    if attempt.is_taken(alternative, device) {
        return Ok(Some(DeviceRejection::Held));
    }
    if let Some(short) = attempt.short_capacity(alternative, device)? {
        return Ok(Some(short_of(short)));
    }
    match attempt.place(alternative, device) {
        Ok(placed) => attempt.take_back(placed).map(|()| None),
        Err(Refusal::Failed(error)) => Err(error),
        Err(Refusal::Rejected(rejected)) => Ok(Some(refused(table, alternative, device, rejected))),
    }
}

fn selector_false(selector: Expression<'_>) -> DeviceRejection {
    let (expression, index) = (selector.text.unwrap_or_default().to_owned(), selector.index);
    match selector.owner {
        Owner::Class(_) => DeviceRejection::Class { selector: index, expression },
        Owner::Claim => DeviceRejection::Selector { selector: index, expression },
    }
}

/// A gate of a feature that is off. Of several, the one that is known to be: that of another feature which is off too.
fn gate_off(table: &Table<'_>, feature: Feature) -> DeviceRejection {
    let (features, profile) = (table.allocator.features, table.allocator.profile);
    let gates = feature.gates(profile);
    let is_off = |gate: &&&str| {
        let others = Feature::all().filter(|other| *other != feature && !features.has(*other));
        others.into_iter().any(|other| other.gates(profile) == [**gate])
    };
    DeviceRejection::GateOff { gate: gates.iter().find(is_off).or_else(|| gates.first()).copied().unwrap_or_default() }
}

fn short_of(short: Short<'_>) -> DeviceRejection {
    match short {
        Short::Never(misfit) => misfit_of(misfit),
        Short::Now { name, left, wanted } => DeviceRejection::CapacityUsedUp {
            capacity: name.to_owned(),
            left: left.to_string(),
            wanted: wanted.to_string(),
        },
    }
}

fn misfit_of(misfit: Misfit<'_>) -> DeviceRejection {
    match misfit {
        Misfit::Missing(name) => DeviceRejection::NoCapacity { capacity: name.to_owned() },
        Misfit::Policy { name, wanted } => {
            DeviceRejection::CapacityPolicy { capacity: name.to_owned(), wanted: wanted.to_string() }
        }
        Misfit::TooSmall { name, value, wanted } => DeviceRejection::CapacityTooSmall {
            capacity: name.to_owned(),
            value: value.to_string(),
            wanted: wanted.to_string(),
        },
    }
}

/// The counter that keeps a device from being used: one that it consumes itself, or one of its pool.
fn counter_used_up(table: &Table<'_>, device: usize) -> Option<DeviceRejection> {
    let counters = table.counters(table.candidate(device).pool).ok()?;
    let (set, counter, left, wanted) = counters.shortage(table.consumption(device).ok()?)?;
    let text = |nanos| Quantity::from_nanos(nanos, QuantityFormat::BinarySi).to_string();
    let counter = format!("{set}/{counter}");
    Some(DeviceRejection::CounterUsedUp { counter, left: text(left), wanted: text(wanted) })
}

fn refused(table: &Table<'_>, alternative: usize, device: usize, rejection: Rejection) -> DeviceRejection {
    match rejection {
        Rejection::SkipsOperations => match table.decisions.skip_needs {
            Some(feature) if table.has(Feature::OptionalNodeOperations) => {
                DeviceRejection::NodeDoesNotDeclare { feature }
            }
            _ => gate_off(table, Feature::OptionalNodeOperations),
        },
        Rejection::CountersOff => gate_off(table, Feature::PartitionableDevices),
        Rejection::GroupsOff => gate_off(table, Feature::CompatibilityGroups),
        Rejection::Shortage(Shortage::Groups) => DeviceRejection::Groups,
        Rejection::Shortage(Shortage::Counters) | Rejection::NoCapacity => {
            counter_used_up(table, device).unwrap_or(DeviceRejection::Groups)
        }
        Rejection::Tainted => {
            let taint = table.taint(alternative, device);
            DeviceRejection::Tainted { taint: taint.map(super::suggest::taint_text).unwrap_or_default() }
        }
        Rejection::Constraint { index, violation } => {
            let claim: Option<&Claim<'_>> = table.plan.claims.get(table.alternative(alternative).claim);
            let constraint = claim.and_then(|claim| claim.constraints.get(index));
            let attribute = constraint.map(|constraint| constraint.attribute.to_owned()).unwrap_or_default();
            DeviceRejection::Constraint { attribute, violation: violation.to_string() }
        }
    }
}

/// What an alternative offers to a constraint: the values of the devices that it could use.
pub(super) fn offer(table: &Table<'_>, alternative: usize, column: usize, attribute: &str, usable: &[usize]) -> Reason {
    let sets = || usable.iter().filter_map(|device| table.values(column, *device).ok());
    let lists_off = sets().filter(|set| set.violation() == Some(Violation::ListTypesOff)).count();
    let mut values: Vec<_> = sets().flat_map(ValueSet::values).copied().collect();
    values.sort_unstable();
    values.dedup();
    let listed = values.iter().take(MOST_VALUES).map(ToString::to_string).collect();
    Reason::leaf(Cause::Offer {
        at: request_name(table, table.alternative(alternative)),
        attribute: attribute.to_owned(),
        values: listed,
        left_out: values.len().saturating_sub(MOST_VALUES),
        usable: usable.len(),
        lists_off,
    })
}
