//! Usability of a node's devices for one request, for explanations.

use std::collections::BTreeMap;

use dra_attrs::{Gate, GateName, Index, MatchError, Quantity, QuantityFormat, ValueSet};
use k8s_openapi::api::resource::v1::Device;
use smallvec::SmallVec;

use super::{Cause, ClaimName, Detail, DeviceList, DeviceRejection, Reason, RequestName, Taint};
use crate::cluster::expression::{Expression, Owner};
use crate::search::allocate_error::AllocateError;
use crate::search::counters::Shortage;
use crate::search::ix::{AlternativeIx, ClaimIx, ColumnIx, DeviceIx, IxRange, PoolIx, next};
use crate::search::request::{Alternative, Claim, Mode};
use crate::search::{
    CapacityCheck, CapacityMiss, Elision, Insufficient, PartialAssignment, Refusal, Rejection, Selection, Table,
};

/// Largest number of devices listed for one reason, and of values listed for one request.
const MOST_LISTED: usize = 32;
const MOST_VALUES: usize = 8;

/// Usable and rejected devices of a node, for one request or subrequest.
pub(super) struct RequestView {
    pub(super) usable: Vec<DeviceIx>,
    rejected: BTreeMap<DeviceRejection, RejectedDevices>,
    of_class: usize,
    /// Number of devices that an `allocationMode: All` request must get.
    eligible: usize,
}

/// Devices that are rejected for one reason, as ranges in search order.
#[derive(Default)]
struct RejectedDevices {
    count: usize,
    ranges: SmallVec<[IxRange<Device>; 1]>,
}

impl RequestView {
    /// Examines every device for one request or subrequest, as if nothing else were requested. Ends early if that is too
    /// much work.
    pub(super) fn new(table: &Table<'_>, alternative: AlternativeIx) -> Self {
        let mut view = Self { usable: Vec::new(), rejected: BTreeMap::new(), of_class: 0, eligible: 0 };
        let mut assignment = PartialAssignment::new(table);
        for (pool, devices) in table.candidates.order() {
            let alike = devices.into_iter().next().filter(|_| are_alike(table, alternative, pool));
            if table.meter.work(1).is_err() {
                return view;
            }
            let unfit_all = alike.map(|first| or_error(unfit(table, alternative, first)));
            if let Some(Some(rejection)) = unfit_all {
                view.reject(rejection, devices);
                continue;
            }
            for device in devices {
                if table.meter.work(1).is_err() {
                    return view;
                }
                let unfit = if alike.is_some() { None } else { or_error(unfit(table, alternative, device)) };
                view.eligible += usize::from(unfit.is_none());
                let unusable = || or_error(unusable(table, &mut assignment, alternative, device));
                if let Some(rejection) = unfit.or_else(unusable) {
                    view.reject(rejection, IxRange::new(device, next(device)));
                } else {
                    view.of_class += 1;
                    view.usable.push(device);
                }
            }
        }
        view
    }

    fn reject(&mut self, rejection: DeviceRejection, devices: IxRange<Device>) {
        if !matches!(rejection, DeviceRejection::Class { .. }) {
            self.of_class += devices.len();
        }
        self.rejected.entry(rejection).or_default().add(devices);
    }

    /// Returns true if the node has enough usable devices for the request or subrequest.
    pub(super) fn is_enough(&self, asked: &Alternative<'_>) -> bool {
        match asked.mode {
            Mode::Exactly(count) => u64::try_from(self.usable.len()).is_ok_and(|usable| usable >= count),
            Mode::All => !self.usable.is_empty() && self.usable.len() == self.eligible,
        }
    }

    /// Returns the number of devices that the request or subrequest takes if enough are usable.
    pub(super) fn taken_by(&self, asked: &Alternative<'_>) -> usize {
        match asked.mode {
            Mode::Exactly(count) => usize::try_from(count).unwrap_or(usize::MAX),
            Mode::All => self.usable.len(),
        }
    }

    /// Returns the reason ([`Cause::Wants`]) with the number of devices for which the request competes with other
    /// requests.
    pub(super) fn wants(&self, table: &Table<'_>, alternative: AlternativeIx) -> Reason {
        let asked = table.alternative(alternative);
        Reason::leaf(Cause::Wants {
            at: request_name(table, asked),
            class: class_name(asked),
            wanted: wanted(asked),
            usable: self.usable.len(),
        })
    }

    /// Returns the reason ([`Cause::Request`]) that too few devices are usable, with the rejected devices, the most
    /// frequent cause first. Devices of other classes are listed only if the class has no device.
    pub(super) fn reason(&self, table: &Table<'_>, alternative: AlternativeIx, detail: Detail) -> Reason {
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
        groups.sort_by_key(|(_, rejected)| std::cmp::Reverse(rejected.count));
        let because = groups.into_iter().map(|(rejection, rejected)| {
            let listed = if detail == Detail::Full { MOST_LISTED } else { 0 };
            let devices = rejected.listed(table, listed);
            Reason::leaf(Cause::Devices { count: rejected.count, devices, rejection: rejection.clone() })
        });
        Reason { cause, because: because.collect() }
    }
}

impl RejectedDevices {
    fn add(&mut self, devices: IxRange<Device>) {
        self.count += devices.len();
        match self.ranges.last_mut() {
            Some(last) if last.end == devices.start => last.end = devices.end,
            _ => self.ranges.push(devices),
        }
    }

    /// Returns the first devices, at most `most`.
    fn listed(&self, table: &Table<'_>, most: usize) -> DeviceList {
        let (mut list, mut left) = (DeviceList::default(), most);
        for range in &self.ranges {
            let mut rest = *range;
            while left > 0
                && !rest.is_empty()
                && let Some((pool, devices)) = table.candidates.pool_at(rest.start)
            {
                let here = IxRange::new(rest.start, rest.end.min(devices.end));
                let (start, len) = (usize::from(here.start) - usize::from(devices.start), here.len().min(left));
                list.add(table.candidates.pool(pool).devices(), start, len);
                (rest.start, left) = (here.end, left - len);
            }
        }
        list
    }
}

fn class_name(asked: &Alternative<'_>) -> String {
    asked.class.name().to_owned()
}

const fn wanted(asked: &Alternative<'_>) -> Option<u64> {
    match asked.mode {
        Mode::Exactly(count) => Some(count),
        Mode::All => None,
    }
}

/// Returns the name of a claim. A plan of an explanation has all claims of the call, so that positions are the caller's.
pub(super) fn claim_name(table: &Table<'_>, claim: ClaimIx) -> ClaimName {
    ClaimName { index: claim, name: table.plan.claims.at(claim).map(Claim::name).unwrap_or_default() }
}

fn request_name(table: &Table<'_>, asked: &Alternative<'_>) -> RequestName {
    RequestName {
        claim: claim_name(table, asked.claim),
        request: asked.request.to_owned(),
        subrequest: asked.subrequest.map(str::to_owned),
    }
}

/// Converts an evaluation error into a rejection of the device, since the search may never have reached it.
fn or_error(rejection: Result<Option<DeviceRejection>, AllocateError>) -> Option<DeviceRejection> {
    rejection.unwrap_or_else(|error| Some(DeviceRejection::Error { error: error.to_string() }))
}

/// Returns true if an alternative leaves out all devices of a pool or none, for one and the same reason: nothing is asked of
/// their capacities, the selectors read their driver alone, and they are plain, without binding conditions that would be off.
fn are_alike(table: &Table<'_>, alternative: AlternativeIx, pool: PoolIx) -> bool {
    let (asked, pool) = (table.alternative(alternative), table.candidates.pool(pool));
    table.context.elisions.has(Elision::LikeDevices)
        && asked.capacity.is_empty()
        && asked.reads_driver_alone(table.context.selectors)
        && pool.is_plain()
        && (table.has(Gate::DeviceBindingConditions) || !pool.has_binding_conditions())
}

/// Returns the reason why an `allocationMode: All` request leaves the device out, even if the device is free.
fn unfit(
    table: &Table<'_>,
    alternative: AlternativeIx,
    device: DeviceIx,
) -> Result<Option<DeviceRejection>, AllocateError> {
    let asked = table.alternative(alternative);
    match table.selection(alternative, device)? {
        Selection::Admitted => {}
        Selection::BindingConditionsOff => {
            let refused = false_selector(table, alternative, device);
            return Ok(refused.or_else(|| Some(gate_off(table, Gate::DeviceBindingConditions))));
        }
        Selection::OtherNode => return Ok(Some(DeviceRejection::OtherNode)),
        Selection::Selector(position) => {
            let refusing = usize::try_from(position).ok().and_then(|position| asked.selectors().nth(position));
            return Ok(refusing.map(|it| selector_false(table, device, it)));
        }
    }
    if !table.has(Gate::ConsumableCapacity) {
        return Ok(None);
    }
    match table.fit(alternative, device)? {
        CapacityCheck::Never(misfit) => Ok(Some(misfit_of(*misfit))),
        CapacityCheck::Takes(_) => Ok(None),
    }
}

/// Returns the selector that is false for a device. Unlike the search, checks selectors before gates: a device that no
/// selector admits needs no gate.
fn false_selector(table: &Table<'_>, alternative: AlternativeIx, device: DeviceIx) -> Option<DeviceRejection> {
    let is_false = |selector: &Expression<'_>| {
        let compiled = selector.compile(table.context.selectors).and_then(Result::ok);
        compiled.is_some_and(|compiled| matches!(table.matches(compiled, device), Ok(false)))
    };
    table.alternative(alternative).selectors().find(is_false).map(|it| selector_false(table, device, it))
}

/// Returns the reason why a device admitted by the selectors can't be allocated to an alternative, even if nothing else
/// is requested.
fn unusable<'s>(
    table: &Table<'s>,
    assignment: &mut PartialAssignment<'_, 's>,
    alternative: AlternativeIx,
    device: DeviceIx,
) -> Result<Option<DeviceRejection>, AllocateError> {
    if assignment.is_taken(alternative, device) {
        return Ok(Some(held(table, device)));
    }
    if let Some(short) = assignment.short_capacity(alternative, device)? {
        return Ok(Some(short_of(short)));
    }
    match assignment.place(alternative, device) {
        Ok(placed) => assignment.undo(placed).map(|()| None),
        Err(Refusal::Failed(error)) => Err(error),
        Err(Refusal::Rejected(rejected)) => Ok(Some(refused(table, alternative, device, rejected))),
    }
}

/// Returns the rejection of a device that a claim holds, which tells if another one holds it too.
fn held(table: &Table<'_>, device: DeviceIx) -> DeviceRejection {
    let candidate = table.candidate(device);
    let used = table.context.state.pool(&candidate.slice.spec.driver, &candidate.slice.spec.pool.name);
    let usage = used.and_then(|used| used.device(&candidate.device.name)).filter(|usage| usage.is_held_twice());
    usage.map_or(DeviceRejection::Held, |usage| DeviceRejection::HeldTwice { claims: usage.claim_count() })
}

fn selector_false(table: &Table<'_>, device: DeviceIx, selector: Expression<'_>) -> DeviceRejection {
    let (expression, selector_ix) = (selector.text.unwrap_or_default().to_owned(), Index::from(selector.index));
    let term = false_term(table, device, selector);
    match selector.owner {
        Owner::Class(_) => DeviceRejection::Class { selector: selector_ix, expression, term },
        Owner::Claim => DeviceRejection::Selector { selector: selector_ix, expression, term },
    }
}

/// Returns the first term that is false for a device, of a selector that is false and has several. Terms are evaluated as
/// long as the explanation has work left.
fn false_term(table: &Table<'_>, device: DeviceIx, selector: Expression<'_>) -> Option<String> {
    let (cache, profile) = (table.context.selectors.cache, table.context.profile);
    let terms = selector.compile(table.context.selectors)?.ok()?.terms();
    let is_false = |term: &String| {
        let compiled = cache.compile_in(term, profile);
        compiled.is_ok_and(|compiled| matches!(table.matches(&compiled, device), Ok(false)))
    };
    if terms.len() > 1 { terms.into_iter().find(is_false) } else { None }
}

/// Returns a rejection with the name of the gate to turn on: a required gate that is off, or else `gate` itself.
fn gate_off(table: &Table<'_>, gate: Gate) -> DeviceRejection {
    let required_off = gate.requires().iter().find(|required| !table.has(**required));
    DeviceRejection::GateOff { gate: GateName::new(required_off.copied().unwrap_or(gate), table.context.profile) }
}

fn short_of(short: Insufficient<'_>) -> DeviceRejection {
    match short {
        Insufficient::Never(misfit) => misfit_of(misfit),
        Insufficient::Now { name, left, wanted } => {
            DeviceRejection::CapacityUsedUp { capacity: name.to_owned(), left, wanted }
        }
    }
}

fn misfit_of(misfit: CapacityMiss<'_>) -> DeviceRejection {
    match misfit {
        CapacityMiss::Missing(name) => DeviceRejection::NoCapacity { capacity: name.to_owned() },
        CapacityMiss::Policy { name, wanted } => DeviceRejection::CapacityPolicy { capacity: name.to_owned(), wanted },
        CapacityMiss::TooSmall { name, value, wanted } => {
            DeviceRejection::CapacityTooSmall { capacity: name.to_owned(), value, wanted }
        }
    }
}

/// Returns the counter that prevents the use of a device: one that it consumes, or an overcommitted one of its pool.
fn counter_used_up(table: &Table<'_>, device: DeviceIx) -> Option<DeviceRejection> {
    let counters = table.counters(table.candidate(device).pool).ok()?;
    let (set, counter, left, wanted) = counters.shortage(table.consumption(device).ok()?)?;
    let quantity = |nanos| Quantity::from_nanos(nanos, QuantityFormat::BinarySi);
    let (set, counter) = (set.to_owned(), counter.to_owned());
    Some(DeviceRejection::CounterUsedUp { set, counter, left: quantity(left), wanted: quantity(wanted) })
}

fn refused(
    table: &Table<'_>,
    alternative: AlternativeIx,
    device: DeviceIx,
    rejection: Rejection<'_>,
) -> DeviceRejection {
    match rejection {
        Rejection::SkipsOperations if table.has(Gate::OptionalNodeOperations) => {
            DeviceRejection::NodeDoesNotDeclare { feature: table.rules.skip.declared_feature }
        }
        Rejection::SkipsOperations => gate_off(table, Gate::OptionalNodeOperations),
        Rejection::CountersOff => gate_off(table, Gate::PartitionableDevices),
        Rejection::GroupsOff => gate_off(table, Gate::DeviceCompatibilityGroups),
        Rejection::Shortage(Shortage::Groups) => DeviceRejection::Groups,
        Rejection::Shortage(Shortage::Counters) | Rejection::NoCapacity => {
            counter_used_up(table, device).unwrap_or(DeviceRejection::Groups)
        }
        Rejection::Tainted(taint) => DeviceRejection::Tainted { taint: Taint::from(taint) },
        Rejection::Constraint { index, violation } => {
            let claim: Option<&Claim<'_>> = table.plan.claims.at(table.alternative(alternative).claim);
            let constraint = claim.and_then(|claim| claim.constraints.at(index));
            let attribute = constraint.map(|constraint| constraint.attribute.to_owned()).unwrap_or_default();
            DeviceRejection::Constraint { attribute, violation }
        }
    }
}

/// Returns the attribute values among which a constraint must choose for an alternative: those of its usable devices.
pub(super) fn offer(
    table: &Table<'_>,
    alternative: AlternativeIx,
    column: ColumnIx,
    attribute: &str,
    usable: &[DeviceIx],
) -> Reason {
    let sets = || usable.iter().filter_map(|device| table.values(column, *device).ok());
    let lists_off = sets().filter(|set| set.violation() == Some(MatchError::ListTypesOff)).count();
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
