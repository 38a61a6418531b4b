//! Table of the devices of one node, with facts that do not change during the search.
//!
//! A fact is computed on first use and kept for the rest of the call. Rows are devices in search order; columns are the
//! alternatives and constraints of the plan.

use std::cell::{Cell, OnceCell};

use dra_attrs::internal::release::{AllocatorVariant, CountersOfAll, FurtherShare, Rules, SkipGateOff};
use dra_attrs::{Gate, GateSet, Index, ListTypes, Quantity, ValueSet, lookup_by_name};
use dra_device::DeviceId;
use dra_device::internal::name_of;
use dra_device::internal::untolerated;
use dra_selector::SelectorInput;
use dra_selector::internal::{Bound, Searched};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute, DeviceTaint, ResourceSlice};
use smallvec::SmallVec;

use super::allocate_error::AllocateError;
use super::budget::Meter;
use super::candidates::{Candidate, Candidates, may_admit};
use super::capacity_check::{CapacityCheck, CapacityMiss};
use super::context::Context;
use super::counters::CounterSets;
use super::elisions::Elision;
use super::grid::Grid;
use super::ix::{AlternativeIx, Alternatives, ByAlternative, ColumnIx, Columns, DeviceIx, PoolIx, next};
use super::like_pools::LikePools;
use super::request::{Alternative, Claim, Column, Derived, Mode, Plan};
use crate::cluster::capacity::{Amount, Rounding};
use crate::cluster::inventory::pool::{InvalidCounter, Pool};
use crate::cluster::inventory::pool_capacities::{BadCapacity, Capacities};
use crate::cluster::inventory::pool_counters::Consumed;
use crate::cluster::inventory::pool_selections::KeptSelections;
use crate::cluster::inventory::view::SliceError;
use crate::cluster::scope::Scope;
use crate::cluster::state::DeviceUsage;

/// Result of checking a device for an alternative: binding conditions, selectors, and nodes where it is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Admitted,
    /// The device has binding conditions, but the gate `DRADeviceBindingConditions` is off.
    BindingConditionsOff,
    /// The selector at this position of [`Alternative::selectors`] is false. Tables of selections are small this way.
    Selector(u32),
    /// The device is restricted to other nodes.
    OtherNode,
}

/// Attributes computed by derived-attribute expressions. The table borrows their values.
pub(crate) type DerivedValues = Grid<Columns, Device, DeviceAttribute>;

/// Devices of each `allocationMode: All` alternative; empty if there is no such alternative.
pub(crate) type DevicesOfAll = ByAlternative<Vec<DeviceIx>>;

/// Devices of a node with cached facts about them.
pub(crate) struct Table<'s> {
    pub(crate) context: &'s Context<'s>,
    /// Counter of the work, of which evaluations of selectors are a part.
    pub(crate) meter: &'s Meter<'s>,
    pub(crate) plan: &'s Plan<'s>,
    pub(crate) rules: &'static Rules,
    reads_taints: bool,
    reads_taint_rules: bool,
    pub(crate) variant: &'static AllocatorVariant,
    pub(crate) candidates: &'s Candidates<'s>,
    pub(super) node: &'s Node,
    derived: &'s DerivedValues,
    counters: Grid<(), Pool, CounterSets<'s>>,
    /// For alternatives and pools: true if the selectors may admit devices of the pool's driver.
    admitting: Grid<Alternatives, Pool, bool>,
    selection: Grid<Alternatives, Device, Selection>,
    /// Answers of selectors that were asked for last: by an alternative, in a pool.
    pub(super) kept_selections: Cell<Option<(AlternativeIx, PoolIx, Option<&'s KeptSelections>)>>,
    fits: Grid<Alternatives, Device, CapacityCheck<'s>>,
    values: Grid<Columns, Device, ValueSet<'s>>,
    /// Pools that are looked at once, compared when looking ahead.
    /// Asked for by [`like_pools`](super::compare_pools::like_pools).
    pub(super) like_pools: OnceCell<LikePools>,
    skips_allowed: bool,
    lists: ListTypes,
    rounding: Rounding,
}

impl<'s> Table<'s> {
    pub(crate) fn new(
        context: &'s Context<'s>,
        plan: &'s Plan<'s>,
        node: &'s Node,
        candidates: &'s Candidates<'s>,
        derived: &'s DerivedValues,
        meter: &'s Meter<'s>,
    ) -> Self {
        let (pools, devices, alternatives) =
            (PoolIx::from(candidates.pool_count()), candidates.end(), plan.alternatives.end());
        let rules = context.profile.rules();
        let one = Index::from(1);
        let has = |feature| context.gates.has(feature);
        Self {
            counters: Grid::new(one, pools),
            admitting: Grid::new(alternatives, pools),
            selection: Grid::new(alternatives, devices),
            kept_selections: Cell::new(None),
            fits: Grid::new(alternatives, devices),
            values: Grid::new(plan.columns.end(), devices),
            like_pools: OnceCell::new(),
            skips_allowed: skips_allowed(context.gates, rules, node),
            lists: if has(Gate::ListTypeAttributes) { rules.allocator.lists_on } else { rules.allocator.lists_off },
            rounding: if has(Gate::FractionalCapacityRange) { Rounding::Fractional } else { Rounding::Whole },
            context,
            meter,
            plan,
            variant: rules.allocator.variant(context.gates),
            rules,
            reads_taints: has(Gate::DeviceTaints),
            reads_taint_rules: has(Gate::DeviceTaints) && has(rules.taint_rules),
            candidates,
            node,
            derived,
        }
    }

    pub(crate) const fn lists(&self) -> ListTypes {
        self.lists
    }

    pub(crate) fn has(&self, feature: Gate) -> bool {
        self.context.gates.has(feature)
    }

    #[inline]
    pub(crate) fn candidate(&self, device: DeviceIx) -> Candidate<'s> {
        self.candidates.known(device)
    }

    pub(crate) fn alternative(&self, alternative: AlternativeIx) -> &'s Alternative<'s> {
        &self.plan.alternatives[alternative]
    }

    pub(crate) fn id(&self, device: DeviceIx) -> DeviceId {
        let Candidate { slice, device, .. } = self.candidate(device);
        DeviceId::new(&slice.spec.driver, &slice.spec.pool.name, &device.name)
    }

    /// Returns the alternative in whose place facts about devices are kept: the first that asks the same of a device.
    pub(super) fn like(&self, alternative: AlternativeIx) -> AlternativeIx {
        if self.context.elisions.has(Elision::LikeRequests) { self.alternative(alternative).like } else { alternative }
    }

    /// Returns the number of devices that an alternative needs. `all` has the devices of each `allocationMode: All`
    /// alternative.
    pub(crate) fn wanted(&self, all: &DevicesOfAll, alternative: AlternativeIx) -> usize {
        match self.alternative(alternative).mode {
            Mode::All => all.at(alternative).map_or(0, Vec::len),
            Mode::Exactly(count) => usize::try_from(count).unwrap_or(usize::MAX),
        }
    }

    pub(crate) fn node_name(&self) -> &str {
        self.node.metadata.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn claim_name(&self, asked: &Alternative<'_>) -> String {
        self.plan.claims.at(asked.claim).map(Claim::name).unwrap_or_default()
    }

    /// Returns true if the node may skip operations of drivers.
    pub(super) const fn skips_allowed(&self) -> bool {
        self.skips_allowed
    }

    /// Returns the devices from a position on, without those of pools whose driver the alternative's selectors reject.
    pub(crate) fn devices_from(
        &self,
        alternative: AlternativeIx,
        first: DeviceIx,
    ) -> impl Iterator<Item = DeviceIx> + use<'_, 's> {
        // With one alternative, pools that it rejects have no devices here.
        let is_shared = self.plan.alternatives.len() > 1 && self.context.elisions.has(Elision::PoolsByRequest);
        let (mut here, mut admitted_to) = (first, if is_shared { first } else { DeviceIx::from(usize::MAX) });
        std::iter::from_fn(move || {
            while self.candidates.reach(here) {
                if here < admitted_to {
                    let device = here;
                    here = next(device);
                    return Some(device);
                }
                let (pool, devices) = self.candidates.pool_at(here)?;
                if self.may_admit(alternative, pool) {
                    admitted_to = devices.end;
                } else {
                    here = devices.end;
                }
            }
            None
        })
    }

    /// Returns false if an alternative's selectors reject the driver of a pool.
    pub(super) fn may_admit(&self, alternative: AlternativeIx, pool: PoolIx) -> bool {
        let ask = || {
            let may = may_admit(self.alternative(alternative), self.candidates.pool(pool), self.context.selectors);
            Ok::<_, std::convert::Infallible>(may)
        };
        self.admitting.get_or_try(self.like(alternative), pool, ask).is_ok_and(|may| *may)
    }

    /// Returns the use of a device by claims allocated before this call; `None` if the device is free.
    pub(crate) fn in_use(&self, device: DeviceIx) -> Option<&'s DeviceUsage> {
        let candidate = self.candidate(device);
        if !candidate.is_used || candidate.shares.is_some() {
            return candidate.shares;
        }
        self.candidates.pool_use(candidate.pool)?.device(&candidate.device.name)
    }

    /// Returns true if a claim allocated before this call holds the device exclusively.
    pub(crate) fn is_held(&self, device: DeviceIx) -> bool {
        self.candidate(device).is_held
    }

    /// Returns the amount of a capacity that shares allocated before this call consume.
    pub(crate) fn consumed(&self, device: DeviceIx, capacity: &str) -> Quantity {
        self.in_use(device).map_or(Quantity::ZERO, |in_use| in_use.consumed(capacity))
    }

    /// Returns true if several allocations may share the device.
    pub(crate) fn is_shareable(&self, device: DeviceIx) -> bool {
        self.has(Gate::ConsumableCapacity) && self.candidate(device).device.allow_multiple_allocations == Some(true)
    }

    /// Returns true if a request that got the device tries it again for its next share.
    pub(crate) fn is_tried_again(&self, device: DeviceIx) -> bool {
        match self.rules.allocator.further_share {
            FurtherShare::SameDevice => self.is_shareable(device),
            FurtherShare::OtherDevice => false,
        }
    }

    /// Returns true if kube-scheduler crashes when a request for all devices comes to the device, unless it is shared.
    pub(crate) fn crashes(&self, device: DeviceIx) -> bool {
        match self.rules.allocator.counters_of_all {
            CountersOfAll::Counted => false,
            CountersOfAll::Crash => self.has(Gate::PartitionableDevices) && self.candidate(device).consumes_counters(),
        }
    }

    /// Returns true if the device does not skip node operations, or if the node and the feature gates allow that it
    /// does.
    pub(crate) fn may_skip(&self, device: DeviceIx) -> bool {
        self.skips_allowed || !skips_operations(self.candidate(device).slice)
    }

    /// Returns the first taint of a device that the alternative does not tolerate.
    pub(crate) fn taint(&self, alternative: AlternativeIx, device: DeviceIx) -> Option<&'s DeviceTaint> {
        let tolerations = self.alternative(alternative).tolerations.unwrap_or_default();
        untolerated(self.taints(device), tolerations, self.rules.allocator.other_effects)
    }

    /// Returns the taints of a device, then those that rules give it; none while [`Gate::DeviceTaints`] is off.
    pub(crate) fn taints(&self, device: DeviceIx) -> impl Iterator<Item = &'s DeviceTaint> {
        let Candidate { slice, device, .. } = self.candidate(device);
        let inventory = self.context.inventory;
        let own = device.taints.as_deref().filter(|_| self.reads_taints).unwrap_or_default();
        let by_rule =
            self.reads_taint_rules.then(|| inventory.taints_by_rule(&slice.spec.driver, &slice.spec.pool.name, device));
        own.iter().chain(by_rule.into_iter().flatten())
    }

    /// Returns true if a device is in reach of the node. One whose node selector is invalid is not.
    pub(crate) fn is_in_reach(&self, device: DeviceIx) -> bool {
        let Candidate { slice, device, .. } = self.candidate(device);
        slice.spec.per_device_node_selection != Some(true)
            || Scope::from_device(device).matches(self.node).unwrap_or(false)
    }

    /// Checks a device for an alternative: its binding conditions, the selectors of class and request, and the nodes
    /// where it is available.
    pub(crate) fn selection(&self, alternative: AlternativeIx, device: DeviceIx) -> Result<Selection, AllocateError> {
        self.selection.get_or_try(self.like(alternative), device, || self.select(alternative, device)).copied()
    }

    pub(crate) fn is_selectable(&self, alternative: AlternativeIx, device: DeviceIx) -> Result<bool, AllocateError> {
        Ok(self.selection(alternative, device)? == Selection::Admitted)
    }

    /// Returns true if the device has enough capacity for the alternative without any computation: the device is unused
    /// and not shareable, its capacities are simple numbers, and the request names none.
    pub(crate) fn has_room_for_one(&self, alternative: AlternativeIx, device: DeviceIx) -> bool {
        self.alternative(alternative).capacity.is_empty()
            && !self.is_shareable(device)
            && self.in_use(device).is_none()
            && self.candidate(device).facts().has_plain_capacities()
    }

    /// Returns the capacities of a device, sorted by name.
    pub(crate) fn capacities(&self, device: DeviceIx) -> Result<Capacities<'s>, AllocateError> {
        let candidate = self.candidate(device);
        let Candidate { pool, slice, device, .. } = candidate;
        let known = self.candidates.pool(pool).capacities(candidate.number(), device);
        known.map_err(|BadCapacity { name, invalid }| AllocateError::SliceQuantity {
            slice: name_of(slice).to_owned(),
            field: format!("spec.devices[{}].capacity[{name}].{}", device.name, invalid.field),
            source: invalid.error.clone(),
        })
    }

    /// Returns the amounts that an alternative consumes of a device's capacities, or the reason why the capacities do
    /// not suffice.
    pub(crate) fn fit(
        &self,
        alternative: AlternativeIx,
        device: DeviceIx,
    ) -> Result<&CapacityCheck<'s>, AllocateError> {
        self.fits.get_or_try(self.like(alternative), device, || self.compute_fit(alternative, device))
    }

    fn compute_fit(&self, alternative: AlternativeIx, device: DeviceIx) -> Result<CapacityCheck<'s>, AllocateError> {
        let (asked, capacities) = (self.alternative(alternative), self.capacities(device)?);
        let is_there = |name: &&&str| capacities.iter().any(|capacity| capacity.name == **name);
        if let Some(missing) = asked.capacity.keys().find(|name| !is_there(name)) {
            return Ok(CapacityCheck::Never(CapacityMiss::Missing(missing)));
        }
        self.meter.add(capacities.len().saturating_sub(1));
        // Computes all amounts before comparing any, so that an error does not depend on the order of the names.
        let mut amounts: SmallVec<[Amount<'s>; 1]> = SmallVec::with_capacity(capacities.len());
        for capacity in capacities.iter() {
            let amount = capacity.consumed(asked.capacity.get(capacity.name).copied(), self.rounding);
            amounts.push(amount.map_err(|error| AllocateError::Capacity {
                claim: self.claim_name(asked),
                request: asked.name.to_string(),
                device: Box::new(self.id(device)),
                capacity: capacity.name.to_owned(),
                source: Box::new(error),
            })?);
        }
        let misfit = capacities.iter().zip(&amounts).find_map(|(capacity, amount)| {
            let (name, wanted, value) = (capacity.name, amount.quantity, capacity.value());
            if !capacity.permits(wanted, self.rounding) {
                return Some(CapacityMiss::Policy { name, wanted });
            }
            (wanted > value).then_some(CapacityMiss::TooSmall { name, value, wanted })
        });
        Ok(misfit.map_or(CapacityCheck::Takes(amounts), CapacityCheck::Never))
    }

    /// Returns the values of a device for the attribute or expression that a constraint compares.
    pub(crate) fn values(&self, column: ColumnIx, device: DeviceIx) -> Result<&ValueSet<'s>, AllocateError> {
        self.values.get_or_try(column, device, || {
            let attribute = self.attribute(column, device)?;
            Ok(ValueSet::from_attribute(attribute, self.lists))
        })
    }

    fn attribute(&self, column: ColumnIx, device: DeviceIx) -> Result<Option<&'s DeviceAttribute>, AllocateError> {
        let (Column { attribute, derived }, candidate) = (&self.plan.columns[column], self.candidate(device));
        let Some(expression) = derived else {
            let attributes = candidate.device.attributes.as_ref();
            return Ok(attributes.and_then(|all| lookup_by_name(all, attribute, &candidate.slice.spec.driver)));
        };
        self.derived.get_or_try(column, device, || self.derive(attribute, expression, device)).map(Some)
    }

    fn derive(&self, name: &str, expression: &Derived<'_>, device: DeviceIx) -> Result<DeviceAttribute, AllocateError> {
        let (attribute, candidate) = (|| name.to_owned(), self.candidate(device));
        let compile = || self.context.selectors.cache.compile_derived(expression.text);
        let compiled = expression.compiled.get_or_init(compile).as_ref();
        let compiled = compiled
            .map_err(|error| AllocateError::DerivedCompile { attribute: attribute(), source: error.clone() })?;
        let input = SelectorInput::new(&candidate.slice.spec.driver, candidate.device);
        self.meter.begin_look();
        let (result, parts) =
            Searched(compiled).derive_within(input, Bound { parts: self.meter.parts_left(), stop: self.meter.stop() });
        self.meter.evaluated(result, parts).map_err(|source| {
            let device = Box::new(self.id(device));
            AllocateError::DerivedEvaluation { attribute: attribute(), device, source }
        })
    }

    /// Returns the counters of a pool, minus the amounts that devices in use consume.
    pub(crate) fn counters(&self, pool: PoolIx) -> Result<&CounterSets<'s>, AllocateError> {
        let in_use = self.candidates.pool_use(pool);
        let read = || CounterSets::new(self.candidates.pool(pool), in_use);
        Ok(self.counters.get_or_try(Index::FIRST, pool, read)?)
    }

    /// Returns the device's consumption of its pool's counters.
    pub(crate) fn consumption(&self, device: DeviceIx) -> Result<&'s [Consumed], AllocateError> {
        let candidate = self.candidate(device);
        let counters = self.counters(candidate.pool)?;
        Ok(counters.consumption(candidate.slice, candidate.device, candidate.number())?)
    }
}

/// Returns true if the slice declares `skipNodeOperations`.
pub(crate) fn skips_operations(slice: &ResourceSlice) -> bool {
    slice.spec.skip_node_operations.as_ref().is_some_and(|operations| !operations.is_empty())
}

/// Returns true if devices with `skipNodeOperations` may be chosen on the node.
fn skips_allowed(gates: GateSet, rules: &Rules, node: &Node) -> bool {
    if gates.has(Gate::OptionalNodeOperations) {
        return declares_skips(rules, node);
    }
    match rules.skip.chosen_while_off {
        SkipGateOff::FailClaim => true,
        SkipGateOff::PassOver => false,
    }
}

/// Returns true if the node declares that operations may be skipped.
pub(super) fn declares_skips(rules: &Rules, node: &Node) -> bool {
    let declared = node.status.as_ref().and_then(|status| status.declared_features.as_deref()).unwrap_or_default();
    declared.iter().any(|feature| feature == rules.skip.declared_feature)
}

impl From<SliceError<'_>> for AllocateError {
    fn from(failed: SliceError<'_>) -> Self {
        let field = match failed.device {
            Some(device) => format!("spec.devices[{}].nodeSelector", device.name),
            None => "spec.nodeSelector".to_owned(),
        };
        Self::NodeSelector { slice: name_of(failed.slice).to_owned(), field, source: failed.error }
    }
}

impl From<InvalidCounter<'_>> for AllocateError {
    fn from(invalid: InvalidCounter<'_>) -> Self {
        Self::SliceQuantity { slice: invalid.slice.to_owned(), field: invalid.field, source: invalid.error }
    }
}
