//! Requests of claims in the allocator's own form, read once and used for any number of nodes.
//!
//! A request asks for devices itself (`exactly`), or lists subrequests of which the first possible one is taken
//! (`firstAvailable`). Both forms become a list of [`Alternative`]s.
//!
//! Checks run in the order of kube-scheduler: request by request, then the claim's size, then its constraints. Since
//! `allocationMode: All` can fail on a node before a later request is reached, a failure is kept with its position and
//! raised when the search on a node gets there.
//!
//! Source: `validateDeviceRequest` of kube-scheduler's allocator, 1.37.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use dra_attrs::internal::release::KnownConstraints;
use dra_attrs::{Gate, GateSet, Index, Profile};
use dra_selector::Selector;
use dra_selector::internal::Searched;
use k8s_openapi::api::resource::v1::{
    CapacityRequirements, DeviceClaim, DeviceConstraint, DeviceDerivedAttribute, DeviceRequest, DeviceSelector,
    DeviceSubRequest, DeviceToleration, ExactDeviceRequest, ResourceClaim,
};
use smallvec::SmallVec;

use super::allocate_error::{AllocateError, RequestError};
use super::ix::{
    AlternativeIx, Alternatives, ByAlternative, ByClaim, ByColumn, ByConstraint, ByRequest, ClaimIx, ColumnIx,
    ConstraintIx, IxRange,
};
use super::known_results::KnownResults;
use crate::cluster::capacity::Amount;
use crate::cluster::classes::{Class, Classes};
use crate::cluster::expression::{Compiled, Compiler, Expression, Owner, Selectors};

/// Requests and constraints of all claims, as the search reads them.
#[derive(Debug, Default)]
pub(crate) struct Plan<'p> {
    pub(crate) claims: ByClaim<Claim<'p>>,
    /// Alternatives (an exact request, or each subrequest of a list) of all requests of all claims.
    pub(crate) alternatives: ByAlternative<Alternative<'p>>,
    /// Columns: the attributes and derived-attribute expressions that constraints compare.
    pub(crate) columns: ByColumn<Column<'p>>,
    /// The first alternatives that differ in what they ask of one device.
    unlike: Vec<AlternativeIx>,
    /// True if the search can't come to an error on plain devices; see `too_few`.
    pub(super) harmless: OnceLock<bool>,
}

/// Largest number of alternatives with which another one is compared.
const MOST_UNLIKE: usize = 32;

/// One claim with its requests and constraints.
#[derive(Debug)]
pub(crate) struct Claim<'p> {
    pub(crate) object: &'p ResourceClaim,
    pub(crate) requests: ByRequest<Request<'p>>,
    pub(crate) constraints: ByConstraint<Constraint<'p>>,
    /// Error of the first invalid request. The requests before it are valid.
    pub(crate) request_error: Option<Box<AllocateError>>,
    pub(crate) constraint_error: Option<Box<AllocateError>>,
}

/// One request of a claim.
#[derive(Clone, Debug)]
pub(crate) struct Request<'p> {
    pub(crate) name: &'p str,
    /// Positions of the request's alternatives in [`Plan::alternatives`].
    pub(crate) alternatives: IxRange<Alternatives>,
    /// True for a `firstAvailable` list of subrequests.
    pub(crate) is_list: bool,
}

/// One alternative of a request: the exact request itself, or one of its subrequests.
#[derive(Debug)]
pub(crate) struct Alternative<'p> {
    /// Position of the claim in the plan.
    pub(crate) claim: ClaimIx,
    /// Name, as `request` or `request/subrequest`.
    pub(crate) name: Cow<'p, str>,
    pub(crate) request: &'p str,
    pub(crate) subrequest: Option<&'p str>,
    pub(crate) class: &'p Class,
    /// First alternative that asks the same of a device: class, selectors and capacity. What was found for that one holds
    /// here, too.
    pub(crate) like: AlternativeIx,
    /// Nearest earlier request of the claim that asks the same of a device, with the same tolerations. Requests with
    /// alternatives, with admin access and for all devices have none, and are none.
    pub(crate) same: Option<AlternativeIx>,
    asked: Asked<'p>,
    /// Selectors of the request itself, which apply in addition to those of the class.
    own_selectors: Selectors<'p>,
    /// Compiled selectors, once a device was looked at; `None` inside if one of them does not compile.
    compiled: OnceLock<Option<CompiledSelectors>>,
    /// Results of its selectors.
    pub(super) results: KnownResults,
    pub(crate) mode: Mode,
    pub(crate) admin_access: bool,
    pub(crate) tolerations: Option<&'p [DeviceToleration]>,
    pub(crate) capacity: BTreeMap<&'p str, Amount<'p>>,
    /// Constraints that apply to the alternative: position in the claim, and column.
    pub(crate) constraints: Vec<(ConstraintIx, ColumnIx)>,
}

/// Number of devices that an alternative asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Exactly(u64),
    All,
}

/// Constraint of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Constraint<'p> {
    pub(crate) kind: ConstraintKind,
    pub(crate) attribute: &'p str,
    requests: Option<&'p [String]>,
}

/// Type of a constraint: equal attribute values (`matchAttribute`) or different ones (`distinctAttribute`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConstraintKind {
    Match,
    Distinct,
}

/// Attribute or derived-attribute expression whose values a constraint compares.
#[derive(Debug)]
pub(crate) struct Column<'p> {
    pub(crate) attribute: &'p str,
    pub(crate) derived: Option<Derived<'p>>,
}

/// Expression of a derived attribute.
#[derive(Debug)]
pub(crate) struct Derived<'p> {
    pub(crate) text: &'p str,
    pub(crate) compiled: Compiled,
}

impl<'p> Constraint<'p> {
    fn read(constraint: &'p DeviceConstraint, known: KnownConstraints) -> Option<Self> {
        let matched = constraint.match_attribute.as_deref().map(|attribute| (ConstraintKind::Match, attribute));
        let distinct = constraint.distinct_attribute.as_deref().map(|attribute| (ConstraintKind::Distinct, attribute));
        let (kind, attribute) = match known {
            KnownConstraints::Match => matched,
            KnownConstraints::MatchAndDistinct => matched.or(distinct),
        }?;
        Some(Self { kind, attribute, requests: constraint.requests.as_deref() })
    }

    fn applies_to(&self, request: &str, alternative: &str) -> bool {
        let names = self.requests.unwrap_or_default();
        names.is_empty() || names.iter().any(|name| name == request || name == alternative)
    }
}

impl<'p> Claim<'p> {
    /// Returns the claim's `namespace/name`.
    pub(crate) fn name(&self) -> String {
        claim_name(self.object)
    }

    /// Returns the `devices` part of the claim's spec.
    pub(crate) fn devices(&self) -> Option<&'p DeviceClaim> {
        devices(self.object)
    }
}

impl Alternative<'_> {
    /// Returns true if the constraint applies to the alternative.
    pub(crate) fn is_bound_by(&self, constraint: ConstraintIx) -> bool {
        self.constraints.iter().any(|(index, _)| *index == constraint)
    }
}

impl Column<'_> {
    fn is(&self, attribute: &str, expression: Option<&str>) -> bool {
        self.attribute == attribute && self.derived.as_ref().map(|derived| derived.text) == expression
    }
}

impl<'p> Plan<'p> {
    /// Reads claims up to the first invalid one.
    pub(crate) fn new(claims: &[&'p ResourceClaim], classes: &'p Classes, gates: GateSet, profile: Profile) -> Self {
        let known = profile.rules().allocator.variant(gates).constraints;
        let requests =
            claims.iter().filter_map(|claim| devices(claim)).flat_map(|devices| &devices.requests).map(Vec::len);
        let mut plan = Self {
            claims: ByClaim::new(Vec::with_capacity(claims.len())),
            alternatives: ByAlternative::new(Vec::with_capacity(requests.sum())),
            ..Self::default()
        };
        for claim in claims {
            plan.add_claim(claim, classes, gates, known);
            let last = plan.claims.last();
            if last.is_some_and(|claim| claim.request_error.is_some() || claim.constraint_error.is_some()) {
                break;
            }
        }
        plan
    }

    fn add_claim(&mut self, object: &'p ResourceClaim, classes: &'p Classes, gates: GateSet, known: KnownConstraints) {
        let (constraints, constraint_error) = constraints(object, known);
        let listed = devices(object).and_then(|devices| devices.requests.as_deref()).unwrap_or_default();
        let requests = ByRequest::new(Vec::with_capacity(listed.len()));
        let mut claim = Claim { object, requests, constraints, request_error: None, constraint_error };
        for request in listed {
            if let Err((request, source)) = self.add_request(request, &mut claim, classes, gates) {
                let error = AllocateError::Request { claim: claim.name(), request, source };
                claim.request_error = Some(Box::new(error));
                break;
            }
        }
        self.claims.push(claim);
    }

    /// Adds a request and its alternatives to the plan. An error names the request or subrequest.
    fn add_request(
        &mut self,
        request: &'p DeviceRequest,
        claim: &mut Claim<'p>,
        classes: &'p Classes,
        gates: GateSet,
    ) -> Result<(), (String, RequestError)> {
        let asked = asked_for(request);
        let is_list = request.first_available.as_ref().is_some_and(|list| !list.is_empty());
        if is_list && !gates.has(Gate::PrioritizedList) {
            return Err((request.name.clone(), RequestError::PrioritizedListOff));
        }
        if !gates.has(Gate::ConsumableCapacity)
            && let Some(asked) = asked.clone().find(|asked| asked.capacity().is_some())
        {
            return Err((asked.full_name(request).into_owned(), RequestError::ConsumableCapacityOff));
        }
        let first = self.alternatives.end();
        claim.requests.push(Request { name: &request.name, alternatives: IxRange::new(first, first), is_list });
        for asked in asked {
            let added = self.add_alternative(request, asked, claim, classes, gates);
            added.map_err(|error| (asked.full_name(request).into_owned(), error))?;
            if let Some(request) = claim.requests.last_mut() {
                request.alternatives.end = self.alternatives.end();
            }
        }
        Ok(())
    }

    fn add_alternative(
        &mut self,
        request: &'p DeviceRequest,
        asked: Asked<'p>,
        claim: &Claim<'p>,
        classes: &'p Classes,
        gates: GateSet,
    ) -> Result<(), RequestError> {
        if !asked.derived().is_empty() && !gates.has(Gate::DerivedAttributes) {
            return Err(RequestError::DerivedAttributesOff);
        }
        let own = asked.selectors();
        if let Some(index) = own.iter().position(|selector| selector.cel.is_none()) {
            return Err(RequestError::SelectorEmpty { index: Index::from(index) });
        }
        if asked.admin_access().is_some() && !gates.has(Gate::AdminAccess) {
            return Err(RequestError::AdminAccessOff);
        }
        if asked.class().is_empty() {
            return Err(RequestError::NoClass);
        }
        let not_found = || RequestError::ClassNotFound { class: asked.class().to_owned() };
        let class = classes.named(asked.class()).ok_or_else(not_found)?;
        let name = asked.full_name(request);
        let (mode, capacity) = (asked.mode()?, asked.amounts()?);
        let constraints = self.constraints_on(claim, request, &name, asked);
        let like = self.like(class, asked);
        let mut added = Alternative {
            claim: self.claims.end(),
            name,
            request: &request.name,
            subrequest: asked.subrequest(),
            class,
            like,
            same: None,
            asked,
            own_selectors: Selectors::new(Owner::Claim, own),
            compiled: OnceLock::new(),
            results: KnownResults::default(),
            mode,
            admin_access: asked.admin_access() == Some(true),
            tolerations: asked.tolerations(),
            capacity,
            constraints,
        };
        added.same = self.same(&added);
        self.alternatives.push(added);
        Ok(())
    }

    /// Returns the nearest earlier request that asks the same as one that is to be added.
    fn same(&self, added: &Alternative<'p>) -> Option<AlternativeIx> {
        let is_plain = |it: &Alternative<'_>| it.subrequest.is_none() && !it.admin_access && it.mode != Mode::All;
        let is_same = |other: &Alternative<'_>| {
            is_plain(other) && other.like == added.like && other.tolerations == added.tolerations
        };
        let mut earlier = self.alternatives.enumerate().rev().take_while(|(_, other)| other.claim == added.claim);
        if !is_plain(added) {
            return None;
        }
        earlier.find(|(_, other)| is_same(other)).map(|(at, _)| at)
    }

    /// Returns true if a request asks the same as an earlier one of its claim.
    pub(crate) fn has_same_requests(&self) -> bool {
        self.alternatives.iter().any(|asked| asked.same.is_some())
    }

    /// Returns the first alternative that asks the same of a device; the one to be added if there is none.
    fn like(&mut self, class: &'p Class, asked: Asked<'p>) -> AlternativeIx {
        let is_like = |other: &&AlternativeIx| {
            let other = &self.alternatives[**other];
            std::ptr::eq(other.class, class)
                && other.asked.selectors() == asked.selectors()
                && other.asked.capacity() == asked.capacity()
        };
        let itself = self.alternatives.end();
        let like = self.unlike.iter().find(is_like).copied().unwrap_or(itself);
        if like == itself && self.unlike.len() < MOST_UNLIKE {
            self.unlike.push(itself);
        }
        like
    }

    /// Returns the constraints that apply to an alternative, each with its column.
    fn constraints_on(
        &mut self,
        claim: &Claim<'p>,
        request: &DeviceRequest,
        name: &str,
        asked: Asked<'p>,
    ) -> Vec<(ConstraintIx, ColumnIx)> {
        let mut applying = Vec::new();
        for (index, constraint) in claim.constraints.enumerate() {
            if constraint.applies_to(&request.name, name) {
                // If a name is defined several times, the last definition counts.
                let derived = asked.derived().iter().rev().find(|derived| derived.name == constraint.attribute);
                let expression = derived.map(|derived| derived.expression.as_str());
                applying.push((index, self.column(constraint.attribute, expression)));
            }
        }
        applying
    }

    fn column(&mut self, attribute: &'p str, expression: Option<&'p str>) -> ColumnIx {
        if let Some((known, _)) = self.columns.enumerate().find(|(_, column)| column.is(attribute, expression)) {
            return known;
        }
        let derived = expression.map(|text| Derived { text, compiled: Compiled::new() });
        self.columns.push(Column { attribute, derived })
    }
}

impl Alternative<'_> {
    /// Returns the selectors of the class, then those of the request.
    pub(crate) fn selectors(&self) -> impl Iterator<Item = Expression<'_>> {
        self.class.selectors().chain(self.own_selectors.iter())
    }

    /// Returns the selectors compiled; `None` if one of them has no expression or does not compile.
    pub(crate) fn compiled(&self, by: Compiler<'_>) -> Option<&[Arc<Selector>]> {
        self.compiled_by(by).map(|compiled| &*compiled.list)
    }

    fn compiled_by(&self, by: Compiler<'_>) -> Option<&CompiledSelectors> {
        let compile = |selector: Expression<'_>| selector.compile(by)?.ok().cloned();
        let reads_driver =
            |compiled: &Arc<Selector>| Searched(compiled).is_direct() && compiled.depends_only_on_driver();
        let compile_all = || {
            let list: SmallVec<[_; 2]> = self.selectors().map(compile).collect::<Option<_>>()?;
            Some(CompiledSelectors { read_driver_alone: list.iter().all(reads_driver), list })
        };
        self.compiled.get_or_init(compile_all).as_ref()
    }

    /// Returns true if the selectors read nothing of a device but its driver, and so have the same value, which is no
    /// error, for all sound devices of a driver.
    pub(crate) fn reads_driver_alone(&self, by: Compiler<'_>) -> bool {
        self.compiled_by(by).is_some_and(|compiled| compiled.read_driver_alone)
    }
}

/// All selectors of an alternative.
#[derive(Debug)]
struct CompiledSelectors {
    list: SmallVec<[Arc<Selector>; 2]>,
    /// True if they read nothing of a device but its driver.
    read_driver_alone: bool,
}

/// Common view of a request and a subrequest, which have different API types.
#[derive(Clone, Copy, Debug)]
enum Asked<'p> {
    Nothing,
    Exactly(&'p ExactDeviceRequest),
    Subrequest(&'p DeviceSubRequest),
}

/// Returns the subrequests of a request, or the request itself if it has none.
fn asked_for(request: &DeviceRequest) -> impl Iterator<Item = Asked<'_>> + Clone {
    let list = request.first_available.as_deref().unwrap_or_default();
    let itself = list.is_empty().then(|| request.exactly.as_ref().map_or(Asked::Nothing, Asked::Exactly));
    list.iter().map(Asked::Subrequest).chain(itself)
}

impl<'p> Asked<'p> {
    /// Reads a field that requests and subrequests both have, with the accessor for the type at hand.
    fn field<T>(
        self,
        exactly: impl FnOnce(&'p ExactDeviceRequest) -> T,
        subrequest: impl FnOnce(&'p DeviceSubRequest) -> T,
    ) -> Option<T> {
        match self {
            Self::Nothing => None,
            Self::Exactly(request) => Some(exactly(request)),
            Self::Subrequest(request) => Some(subrequest(request)),
        }
    }

    fn class(self) -> &'p str {
        self.field(|request| request.device_class_name.as_str(), |request| &request.device_class_name)
            .unwrap_or_default()
    }

    fn selectors(self) -> &'p [DeviceSelector] {
        let selectors = self.field(|request| request.selectors.as_deref(), |request| request.selectors.as_deref());
        selectors.flatten().unwrap_or_default()
    }

    fn derived(self) -> &'p [DeviceDerivedAttribute] {
        let derived = self
            .field(|request| request.derived_attributes.as_deref(), |request| request.derived_attributes.as_deref());
        derived.flatten().unwrap_or_default()
    }

    fn admin_access(self) -> Option<bool> {
        self.field(|request| request.admin_access, |_| None).flatten()
    }

    fn tolerations(self) -> Option<&'p [DeviceToleration]> {
        self.field(|request| request.tolerations.as_deref(), |request| request.tolerations.as_deref()).flatten()
    }

    fn capacity(self) -> Option<&'p CapacityRequirements> {
        self.field(|request| request.capacity.as_ref(), |request| request.capacity.as_ref()).flatten()
    }

    fn subrequest(self) -> Option<&'p str> {
        self.field(|_| None, |subrequest| Some(subrequest.name.as_str())).flatten()
    }

    /// Returns the name: `request`, or `request/subrequest` for a subrequest.
    fn full_name(self, request: &'p DeviceRequest) -> Cow<'p, str> {
        match self.subrequest() {
            None => Cow::Borrowed(&request.name),
            Some(subrequest) => Cow::Owned(format!("{}/{subrequest}", request.name)),
        }
    }

    /// Returns the allocation mode and count, with the API server's defaults for missing fields.
    fn mode(self) -> Result<Mode, RequestError> {
        let mode =
            self.field(|request| request.allocation_mode.as_deref(), |request| request.allocation_mode.as_deref());
        let count = self.field(|request| request.count, |request| request.count).flatten();
        match mode.flatten().unwrap_or("ExactCount") {
            "ExactCount" => Ok(Mode::Exactly(u64::try_from(count.unwrap_or(1)).unwrap_or(0))),
            "All" => Ok(Mode::All),
            mode => Err(RequestError::AllocationMode { mode: mode.to_owned() }),
        }
    }

    fn amounts(self) -> Result<BTreeMap<&'p str, Amount<'p>>, RequestError> {
        let requests = self.capacity().and_then(|capacity| capacity.requests.as_ref()).into_iter().flatten();
        let amounts = requests.map(|(name, amount)| match Amount::read(amount) {
            Ok(amount) => Ok((name.as_str(), amount)),
            Err(source) => Err(RequestError::Quantity { capacity: name.clone(), source }),
        });
        amounts.collect()
    }
}

/// Reads the constraints of a claim up to the first one that the allocator does not know.
fn constraints(
    claim: &ResourceClaim,
    known: KnownConstraints,
) -> (ByConstraint<Constraint<'_>>, Option<Box<AllocateError>>) {
    let listed = devices(claim).and_then(|devices| devices.constraints.as_deref()).unwrap_or_default();
    let constraints: ByConstraint<_> =
        listed.iter().map_while(|constraint| Constraint::read(constraint, known)).collect();
    let index = constraints.end();
    let is_cut = constraints.len() < listed.len();
    let error = || Box::new(AllocateError::EmptyConstraint { claim: claim_name(claim), index });
    (constraints, is_cut.then(error))
}

/// Returns the `devices` part of a claim's spec.
fn devices(claim: &ResourceClaim) -> Option<&DeviceClaim> {
    claim.spec.as_ref()?.devices.as_ref()
}

/// Returns the claim's `namespace/name`.
pub(crate) fn claim_name(claim: &ResourceClaim) -> String {
    let name = claim.metadata.name.as_deref().unwrap_or_default();
    match claim.metadata.namespace.as_deref() {
        Some(namespace) if !namespace.is_empty() => [namespace, "/", name].concat(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use dra_attrs::{GateSet, Profile};
    use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim};
    use serde_json::{Value, from_value, json};

    use super::{MOST_UNLIKE, Plan};
    use crate::cluster::classes::Classes;

    /// A claim of a thousand requests would be compared half a million times.
    #[test]
    fn requests_are_compared_with_the_first_few_kinds() {
        // One more kind than are remembered; then the last that is, and the one that is not.
        let kinds = (0..=MOST_UNLIKE).chain([MOST_UNLIKE - 1, MOST_UNLIKE]);
        let request = |(number, kind): (usize, usize)| {
            let selectors = json!([{"cel": {"expression": format!("device.driver == '{kind}'")}}]);
            json!({"name": format!("r{number}"), "exactly": {"deviceClassName": "any", "selectors": selectors}})
        };
        let requests: Vec<Value> = kinds.enumerate().map(request).collect();
        let claim: ResourceClaim =
            from_value(json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}})).unwrap();
        let class: DeviceClass = from_value(json!({"metadata": {"name": "any"}, "spec": {}})).unwrap();
        let classes = Classes::new([class]);
        let plan = Plan::new(&[&claim], &classes, GateSet::all(), Profile::V1_37);
        let like: Vec<usize> = plan.alternatives.iter().map(|asked| usize::from(asked.like)).collect();
        assert_eq!(like[MOST_UNLIKE..], [MOST_UNLIKE, MOST_UNLIKE - 1, MOST_UNLIKE + 2]);
    }
}
