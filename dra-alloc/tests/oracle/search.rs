//! Depth-first search over devices in the order of the pools; the first solution is returned.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use dra_alloc::Gate;
use dra_alloc::taint::taint_by_rule;
use dra_attrs::{ListTypes, Profile, lookup_by_name};
use dra_device::internal::untolerated;
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute, DeviceConstraint, ResourceSlice};

use super::capacity::{self, Amounts, Fractions};
use super::constraints::{self, Constraint};
use super::pools::{self, Pool, Status};
use super::requests::{self, AllDevices, Ask, ClaimPlan, MAX_DEVICES, Wanted};
use super::{Answer, Case, DeviceId, Failure, counters, expressions, fatal, result};

/// Feature that a node declares if its kubelet supports skipped node operations.
const NODE_FEATURE: &str = "DRAOptionalNodeOperations";
/// The same by the text of the KEP.
const KEP_NODE_FEATURE: &str = "DraOptionalNodePreparation";

/// Device that the case's node could use.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    pub id: DeviceId,
    pub pool: usize,
    pub slice: &'a ResourceSlice,
    pub device: &'a Device,
}

/// Device that was chosen for a request.
#[derive(Clone, Debug)]
pub struct Chosen {
    pub claim: usize,
    pub request: usize,
    pub ask: usize,
    pub candidate: usize,
    /// Amounts consumed of a shareable device; `None` for other devices.
    pub consumed: Option<Amounts>,
}

/// Alternative that was chosen for a request.
#[derive(Clone, Copy, Debug)]
pub struct Pick {
    pub claim: usize,
    pub request: usize,
    pub ask: usize,
}

/// Decisions made so far.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    pub devices: Vec<Chosen>,
    pub picks: Vec<Pick>,
}

/// Position of the search.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    claim: usize,
    request: usize,
    /// Alternative that is being tried, if any.
    ask: Option<usize>,
    /// Number of devices that the request has.
    number: i64,
    /// First candidate to try.
    start: usize,
}

enum Found {
    Solution(Decisions),
    Nothing,
    /// The claim would get too many devices.
    TooMany,
}

/// Result of trying one candidate.
enum Attempt {
    Taken(Decisions),
    Refused,
}

pub struct Search<'a> {
    pub case: &'a Case,
    pub pools: Vec<Pool<'a>>,
    pub candidates: Vec<Candidate<'a>>,
    pub claims: Vec<ClaimPlan<'a>>,
    limit: u64,
    steps: Cell<u64>,
    /// All solutions, if these are asked for, not the first one.
    all: Option<RefCell<Vec<Decisions>>>,
    /// Cached results of selectors, by claim, request, alternative and candidate.
    selectable: RefCell<BTreeMap<[usize; 4], bool>>,
}

/// Searches an allocation with a limit of steps.
pub fn allocate(case: &Case, steps: u64) -> Answer {
    allocate_counting(case, steps).0
}

/// Returns the answer with the number of steps that it took.
pub fn allocate_counting(case: &Case, limit: u64) -> (Answer, u64) {
    let steps = Cell::new(0);
    let answer = run(case, limit, &steps).unwrap_or_else(Answer::from);
    (answer, steps.get())
}

fn begin(case: &Case, limit: u64) -> Result<Search<'_>, Failure> {
    let pools = pools::gather(case)?;
    let candidates = candidates(&pools);
    let mut search = Search {
        case,
        pools,
        candidates,
        claims: Vec::new(),
        limit,
        steps: Cell::new(0),
        all: None,
        selectable: RefCell::default(),
    };
    search.claims = requests::read(case, &search)?;
    Ok(search)
}

/// Returns all solutions in the order of the search, but for those that kube-scheduler would fail with; `None` if a branch ends
/// in an error, or if there are too many steps.
pub fn solutions(case: &Case, limit: u64) -> Option<(Search<'_>, Vec<Decisions>)> {
    let mut search = begin(case, limit).ok()?;
    search.all = Some(RefCell::default());
    search.step(&Decisions::default(), Place::default()).ok()?;
    let mut all = search.all.take()?.into_inner();
    all.retain(|decisions| result::results(&search, decisions).is_ok());
    Some((search, all))
}

fn run(case: &Case, limit: u64, steps: &Cell<u64>) -> Result<Answer, Failure> {
    let search = begin(case, limit)?;
    let found = search.step(&Decisions::default(), Place::default());
    steps.set(search.steps.get());
    match found? {
        Found::Solution(decisions) => result::results(&search, &decisions).map(Answer::Allocated),
        Found::Nothing | Found::TooMany if search.pools.iter().any(is_invalid) => {
            Err(Failure::OnNode("invalid resource pools were encountered".to_owned()))
        }
        Found::Nothing | Found::TooMany => Ok(Answer::Unsatisfied),
    }
}

const fn is_invalid(pool: &Pool<'_>) -> bool {
    matches!(pool.status, Status::Invalid(_))
}

/// Returns all devices for the node, in the order of pools, slices and devices.
fn candidates<'a>(pools: &[Pool<'a>]) -> Vec<Candidate<'a>> {
    let mut all = Vec::new();
    for (index, pool) in pools.iter().enumerate() {
        for slice in &pool.slices {
            all.extend(pools::devices(slice).iter().map(|device| Candidate {
                id: DeviceId::new(pool.driver, pool.name, &device.name),
                pool: index,
                slice,
                device,
            }));
        }
    }
    all
}

impl AllDevices for Search<'_> {
    fn all(&self, ask: &Ask<'_>) -> Result<Vec<usize>, Failure> {
        let mut all = Vec::new();
        for (index, pool) in self.pools.iter().enumerate() {
            let refuse = |state: &str| {
                let reason = format!("request {}: asks for all devices, but {}", ask.request, pool.name);
                Err(Failure::OnNode(format!("{reason} is currently {state}")))
            };
            match pool.status {
                Status::Ready => {}
                Status::Incomplete => return refuse("being updated"),
                Status::Invalid(_) => return refuse("invalid"),
            }
            for (number, candidate) in self.candidates.iter().enumerate().filter(|(_, c)| c.pool == index) {
                if self.selected(ask, candidate)? && self.amounts(ask, candidate, &[])?.is_some() {
                    all.push(number);
                }
            }
        }
        Ok(all)
    }
}

impl<'a> Search<'a> {
    pub fn has(&self, feature: Gate) -> bool {
        self.case.has(feature)
    }

    pub fn ask(&self, claim: usize, request: usize, ask: usize) -> &Ask<'a> {
        &self.claims[claim].requests[request].asks[ask]
    }

    /// Makes all decisions from a position on.
    fn step(&self, decisions: &Decisions, place: Place) -> Result<Found, Failure> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > self.limit {
            return Err(Failure::Stopped);
        }
        let Some(claim) = self.claims.get(place.claim) else {
            let Some(all) = &self.all else { return Ok(Found::Solution(decisions.clone())) };
            all.borrow_mut().push(decisions.clone());
            return Ok(Found::Nothing);
        };
        let Some(request) = claim.requests.get(place.request) else {
            let next = self.step(decisions, Place { claim: place.claim + 1, ..Place::default() })?;
            // The limit is the claim's own: for earlier claims, it is an ordinary failure.
            return Ok(if matches!(next, Found::TooMany) { Found::Nothing } else { next });
        };
        let Some(number) = place.ask.or(if request.is_list { None } else { Some(0) }) else {
            return self.try_alternatives(decisions, place, request.asks.len());
        };
        let ask = &request.asks[number];
        if matches!(&ask.wanted, Wanted::All(all) if all.is_empty()) {
            return Ok(Found::Nothing);
        }
        if place.number >= ask.wanted.number() {
            let mut decisions = decisions.clone();
            decisions.picks.push(Pick { claim: place.claim, request: place.request, ask: number });
            let next = Place { claim: place.claim, request: place.request + 1, ..Place::default() };
            return self.step(&decisions, next);
        }
        let has = decisions.devices.iter().filter(|chosen| chosen.claim == place.claim).count();
        let missing = ask.wanted.number().saturating_sub(place.number);
        if i64::try_from(has).unwrap_or(i64::MAX).saturating_add(missing) > MAX_DEVICES {
            return Ok(Found::TooMany);
        }
        match &ask.wanted {
            Wanted::All(all) => {
                let next = all[usize::try_from(place.number).unwrap_or_default()];
                match self.try_device(decisions, place, number, next)? {
                    Attempt::Refused => Ok(Found::Nothing),
                    Attempt::Taken(more) => self.step(&more, Place { number: place.number + 1, ..place }),
                }
            }
            Wanted::Count(_) => self.try_candidates(decisions, place, number),
        }
    }

    fn try_alternatives(&self, decisions: &Decisions, place: Place, count: usize) -> Result<Found, Failure> {
        let mut all_too_many = true;
        for ask in 0..count {
            match self.step(decisions, Place { ask: Some(ask), ..place })? {
                Found::Solution(found) => return Ok(Found::Solution(found)),
                Found::Nothing => all_too_many = false,
                Found::TooMany => {}
            }
        }
        Ok(if all_too_many { Found::TooMany } else { Found::Nothing })
    }

    /// Tries one candidate after the other for the next device of a request. The devices of one request are chosen in
    /// ascending order.
    fn try_candidates(&self, decisions: &Decisions, place: Place, number: usize) -> Result<Found, Failure> {
        let ask = self.ask(place.claim, place.request, number);
        for (index, candidate) in self.candidates.iter().enumerate().skip(place.start) {
            if self.is_taken(decisions, place.claim, ask, candidate)
                || !self.is_selectable(place, number, index)?
                || self.amounts(ask, candidate, &self.in_use(decisions, candidate))?.is_none()
            {
                continue;
            }
            let Attempt::Taken(more) = self.try_device(decisions, place, number, index)? else { continue };
            match self.step(&more, Place { number: place.number + 1, start: index + 1, ..place })? {
                Found::Nothing => {}
                end => return Ok(end),
            }
        }
        Ok(Found::Nothing)
    }

    fn is_selectable(&self, place: Place, number: usize, candidate: usize) -> Result<bool, Failure> {
        let key = [place.claim, place.request, number, candidate];
        if let Some(known) = self.selectable.borrow().get(&key) {
            return Ok(*known);
        }
        let ask = self.ask(place.claim, place.request, number);
        let answer = self.selected(ask, &self.candidates[candidate])?;
        self.selectable.borrow_mut().insert(key, answer);
        Ok(answer)
    }

    /// Returns true if class, request and node selection admit a device, independently of allocations.
    fn selected(&self, ask: &Ask<'_>, candidate: &Candidate<'_>) -> Result<bool, Failure> {
        let Candidate { slice, device, id, .. } = candidate;
        if !self.has(Gate::DeviceBindingConditions) && device.binding_conditions.as_ref().is_some_and(|c| !c.is_empty())
        {
            return Ok(false);
        }
        if !expressions::all_hold(ask.class_selectors, &id.driver, device)?
            || !expressions::all_hold(ask.selectors, &id.driver, device)?
        {
            return Ok(false);
        }
        if slice.spec.per_device_node_selection == Some(true) {
            return pools::device_matches_node(self.case, device).map_err(Failure::Fatal);
        }
        Ok(true)
    }

    /// Returns true if the device can be given to several requests.
    pub fn is_sharable(&self, candidate: &Candidate<'_>) -> bool {
        self.has(Gate::ConsumableCapacity) && candidate.device.allow_multiple_allocations == Some(true)
    }

    /// Returns true if a device is taken. Admin access only considers devices of its own claim.
    fn is_taken(&self, decisions: &Decisions, claim: usize, ask: &Ask<'_>, candidate: &Candidate<'_>) -> bool {
        let chosen = decisions.devices.iter().filter(|chosen| chosen.consumed.is_none());
        let mut chosen = chosen.filter(|chosen| self.candidates[chosen.candidate].id == candidate.id);
        if ask.admin {
            return chosen.any(|chosen| chosen.claim == claim);
        }
        self.case.allocated.devices.contains(&candidate.id) || chosen.next().is_some()
    }

    fn fractions(&self) -> Fractions {
        if self.case.gates.has(Gate::FractionalCapacityRange) { Fractions::Allowed } else { Fractions::RoundedUp }
    }

    /// Returns the amounts that the shares of a device consume: existing ones, and those of this attempt.
    fn in_use<'d>(&'d self, decisions: &'d Decisions, candidate: &Candidate<'_>) -> Vec<&'d Amounts> {
        let same = decisions.devices.iter().filter(|chosen| self.candidates[chosen.candidate].id == candidate.id);
        let shares = same.filter_map(|chosen| chosen.consumed.as_ref());
        self.case.allocated.capacity.get(&candidate.id).into_iter().chain(shares).collect()
    }

    /// Returns the amounts that the request would take of a device; `None` if the device can't provide them.
    fn amounts(
        &self,
        ask: &Ask<'_>,
        candidate: &Candidate<'_>,
        in_use: &[&Amounts],
    ) -> Result<Option<Amounts>, Failure> {
        if !self.has(Gate::ConsumableCapacity) {
            return Ok(Some(Amounts::new()));
        }
        let failed = |reason| Failure::Fatal(format!("checking capacity for device {}: {reason}", candidate.id));
        let resolved = capacity::resolve(candidate.device, ask.capacity, self.fractions()).map_err(failed)?;
        let Some(amounts) = resolved else { return Ok(None) };
        let fits = capacity::fits(candidate.device, &amounts, in_use, self.fractions()).map_err(failed)?;
        Ok(fits.then_some(amounts))
    }

    /// Adds a device to the decisions if all checks pass.
    fn try_device(&self, decisions: &Decisions, place: Place, number: usize, index: usize) -> Result<Attempt, Failure> {
        let ask = self.ask(place.claim, place.request, number);
        let candidate = &self.candidates[index];
        if self.is_taken(decisions, place.claim, ask, candidate)
            || self.skips_what_the_node_needs(candidate)
            || !self.counters_allow(decisions, candidate)?
            || self.is_tainted(ask, candidate)
        {
            return Ok(Attempt::Refused);
        }
        let mut more = decisions.clone();
        more.devices.push(Chosen {
            claim: place.claim,
            request: place.request,
            ask: number,
            candidate: index,
            consumed: None,
        });
        if !self.constraints_hold(&more, place.claim)? {
            return match ask.wanted {
                Wanted::All(_) => fatal(format!("cannot add device {}: a claim constraint", candidate.id)),
                Wanted::Count(_) => Ok(Attempt::Refused),
            };
        }
        let Some(amounts) = self.amounts(ask, candidate, &self.in_use(decisions, candidate))? else {
            return Ok(Attempt::Refused);
        };
        if self.is_sharable(candidate) {
            more.devices.last_mut().unwrap().consumed = Some(amounts);
        }
        Ok(Attempt::Taken(more))
    }

    /// Returns true if the device is ignored because its driver skips node operations and the node does not support that.
    /// With the gate off 1.37 ignores it anywhere, and the KEP refuses the claim: see `result::results`.
    fn skips_what_the_node_needs(&self, candidate: &Candidate<'_>) -> bool {
        let declared = self.case.node.status.as_ref().and_then(|status| status.declared_features.as_ref());
        let wanted = if self.case.profile == Profile::V1_37 { NODE_FEATURE } else { KEP_NODE_FEATURE };
        let node_can = declared.is_some_and(|names| names.iter().any(|name| name == wanted));
        let is_on = self.has(Gate::OptionalNodeOperations);
        let is_ignored = if is_on { !node_can } else { self.case.profile == Profile::V1_37 };
        is_ignored && result::skips_operations(candidate.slice)
    }

    fn is_tainted(&self, ask: &Ask<'_>, candidate: &Candidate<'_>) -> bool {
        let DeviceId { driver, pool, device } = &candidate.id;
        let rules = if self.has(Gate::DeviceTaintRules) { self.case.taint_rules.as_slice() } else { &[] };
        let by_rules = rules.iter().filter_map(|rule| taint_by_rule(rule, driver, pool, device));
        let taints = candidate.device.taints.iter().flatten().chain(by_rules);
        let tolerations = ask.tolerations.map(Vec::as_slice).unwrap_or_default();
        self.has(Gate::DeviceTaints)
            && untolerated(taints, tolerations, self.case.profile.rules().allocator.other_effects).is_some()
    }

    /// Returns true if counters and compatibility groups admit a device. A device is counted with its first share.
    fn counters_allow(&self, decisions: &Decisions, candidate: &Candidate<'_>) -> Result<bool, Failure> {
        if counters::consumptions(candidate.device).is_empty() {
            return Ok(true);
        }
        if !self.has(Gate::PartitionableDevices) {
            return Ok(false);
        }
        if self.is_paid(&decisions.devices, candidate) {
            return Ok(true);
        }
        let pool = &self.pools[candidate.pool];
        let allocated = self.allocated_devices(pool);
        let chosen = decisions.devices.iter().enumerate().filter(|(index, chosen)| {
            let other = &self.candidates[chosen.candidate];
            other.pool == candidate.pool && !self.is_paid(&decisions.devices[..*index], other)
        });
        let mut consumers = allocated.clone();
        consumers.extend(chosen.map(|(_, chosen)| self.candidates[chosen.candidate].device));
        let compatible = if self.has(Gate::DeviceCompatibilityGroups) {
            counters::compatible(candidate.device, &consumers)
        } else {
            !counters::touches_groups(candidate.device, &allocated)
        };
        consumers.push(candidate.device);
        Ok(compatible && counters::suffice(pool, &consumers)?)
    }

    /// Returns true if a device already has a share, with which its counters were counted.
    fn is_paid(&self, before: &[Chosen], candidate: &Candidate<'_>) -> bool {
        let chosen = || before.iter().any(|chosen| self.candidates[chosen.candidate].id == candidate.id);
        self.is_sharable(candidate) && (self.case.allocated.is_shared(&candidate.id) || chosen())
    }

    /// Returns the devices of the pool that were allocated before, for this node or another.
    fn allocated_devices(&self, pool: &Pool<'a>) -> Vec<&'a Device> {
        let all = pool.slices.iter().chain(&pool.elsewhere).flat_map(|slice| pools::devices(slice));
        let id = |device: &Device| DeviceId::new(pool.driver, pool.name, &device.name);
        all.filter(|device| self.case.allocated.is_allocated(&id(device))).collect()
    }

    /// Returns true if all constraints of a claim hold for the devices chosen for it. Only the last device is new;
    /// constraints that don't apply to it are not evaluated.
    fn constraints_hold(&self, decisions: &Decisions, claim: usize) -> Result<bool, Failure> {
        let devices: Vec<_> = decisions.devices.iter().filter(|chosen| chosen.claim == claim).collect();
        for constraint in self.claims[claim].constraints {
            let Some(kind) = Constraint::of(constraint) else { continue };
            if devices.last().is_some_and(|new| !self.applies(constraint, new)) {
                continue;
            }
            let concerned = devices.iter().filter(|chosen| self.applies(constraint, chosen));
            let values: Result<Vec<_>, _> = concerned.map(|chosen| self.value(chosen, kind.attribute())).collect();
            if !constraints::holds(&kind, &values?, self.list_types()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn applies(&self, constraint: &DeviceConstraint, chosen: &Chosen) -> bool {
        let ask = self.ask(chosen.claim, chosen.request, chosen.ask);
        constraints::applies(constraint, ask.request, ask.alternative)
    }

    fn list_types(&self) -> ListTypes {
        if self.has(Gate::ListTypeAttributes) {
            ListTypes::Enabled
        } else {
            self.case.profile.rules().allocator.lists_off
        }
    }

    /// Returns an attribute of a device; a derived attribute of the request is preferred.
    fn value(&self, chosen: &Chosen, name: &str) -> Result<Option<DeviceAttribute>, Failure> {
        let candidate = &self.candidates[chosen.candidate];
        let driver = &candidate.id.driver;
        if let Some(expression) = self.ask(chosen.claim, chosen.request, chosen.ask).derived.get(name) {
            return expressions::derive(expression, driver, candidate.device).map(Some);
        }
        let attributes = candidate.device.attributes.as_ref();
        Ok(attributes.and_then(|attributes| lookup_by_name(attributes, name, driver)).cloned())
    }
}
