//! One pass over one pool: the writes that make the stored slices equal to a plan.
//!
//! # Laws
//! Readers take the slices of the highest generation, and use the pool if their number is `resourceSliceCount`. With
//! fixed names and the strict rule:
//! - *Safety*: whenever a pool is complete, its contents are those of one plan of this driver, and an older plan never
//!   comes back.
//! - *Liveness*: while the plan is stable and calls succeed, the pool gets complete and equal to it.
//! - *Quiet*: then there are no more writes, also after a restart. Where the API server drops fields, a driver that starts
//!   without [`Memory::with_gates_off`] learns so from the answers to a first write of each slice.
//!
//! They hold in every order of writes, delays of the watch, crashes of the driver, lost answers and deletions by others,
//! for one driver at a time. Deletes come first, so that devices that are gone disappear even if the new slices are
//! refused.
//!
//! Source: `syncPool` of `resourceslicecontroller.go`; the strict rule, fixed names and the floor of
//! generations are this crate's own.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::{Gate, GateName, Index, Profile};
use dra_device::internal::{check_contents, name_of};
use dra_device::pool::PoolFinding;
use k8s_openapi::api::resource::v1::{ResourcePool, ResourceSlice, ResourceSliceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::driver::memory::Memory;
use crate::driver::slice_plan::SlicePlan;
use crate::driver::slice_write::SliceWrite;
use crate::driver::split::{NodeChoice, PoolPlan};
use crate::driver::wanted::{Form, Wanted, WantedPool, wanted};

/// Pool of a driver, as its slices name it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "callers write it")]
pub struct PoolScope<'a> {
    /// Name of the driver.
    pub driver: &'a str,
    /// Name of the pool.
    pub pool: &'a str,
    /// Node whose slices they are; `None` if the slices name no node, also for a node's pool that other nodes see.
    pub node_name: Option<&'a str>,
    /// Owner of the slices, whose deletion deletes them.
    pub owner: Option<&'a OwnerReference>,
}

/// Settings of a pass. The defaults are the safe ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "plain data that callers write")]
#[expect(clippy::struct_excessive_bools, reason = "settings that have nothing to do with each other")]
pub struct ReconcileOptions {
    /// A single changed slice keeps the generation, as in upstream's controller: one write instead of one for each slice.
    /// Safe only if the view has every own write and began with a consistent list. By default a pool of several slices
    /// never changes within a generation, which is safe on an old view too.
    pub keeps_generation: bool,
    /// New slices have names that the API server completes, as in upstream's controller: see
    /// [`SlicePlan::generate_name`]. By default the names are fixed: see [`SlicePlan::fixed_name`].
    pub generates_names: bool,
    /// Updates, creates, deletes: the pool is incomplete for a shorter time, and stale slices stay visible meanwhile. By
    /// default the deletes come first.
    pub deletes_last: bool,
    /// Sends everything, and only reports the fields that the API server drops. The server keeps a field that is stored
    /// from before. By default the fields are not sent again, and devices are withheld that readers would make wrong use
    /// of without them; of partitions that share counters, the first one stays.
    pub sends_dropped_fields: bool,
}

/// Writes of one pass, in order, and remarks. A pass stops at the first write that fails; see
/// [`Memory::answered`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SyncPlan {
    /// Writes in the order in which they must be sent. Without any, the stored slices are as wanted, unless
    /// `terminating` has slices to wait for.
    pub writes: Vec<SliceWrite>,
    /// Names of slices of the same driver and pool that are not this driver's to change: readers merge them with the
    /// pool, so that it can't be complete.
    pub clashes: Vec<String>,
    /// Names of slices that are being deleted and hold names that the plan needs. Nothing is written before they are
    /// gone.
    pub terminating: Vec<String>,
    /// Gates without whose fields the stored slices equal the plan.
    pub same_but_dropped: BTreeSet<Gate>,
    /// Names of devices that are not published, since readers would make wrong use of them without the fields that the
    /// API server drops.
    pub withheld: Vec<String>,
}

/// Reason why nothing of a pool is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReconcileError {
    /// The plan contradicts itself. Neither writes nor deletes are made.
    #[error("the pool is not written: {}{}", findings.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join("; "), more(findings.len()))]
    Invalid {
        /// Mistakes in the plan, errors only; the text has the first eight.
        findings: Vec<PoolFinding>,
    },
    /// Each device of the pool names its nodes, and the API server does not store that.
    #[error("the pool is not written: spec.perDeviceNodeSelection: feature gate {gate} is off")]
    GateOff {
        /// Gate that is off.
        gate: GateName,
    },
}

const SHOWN: usize = 8;

fn more(count: usize) -> String {
    count.checked_sub(SHOWN).filter(|rest| *rest > 0).map(|rest| format!(" and {rest} more")).unwrap_or_default()
}

/// Plans the writes that make the stored slices of a pool equal to `desired`; `None` withdraws the pool.
///
/// `stored` are slices as the watch shows them, best through [`Memory::view`]; slices of other drivers, pools and nodes
/// are left alone. `memory` keeps the highest generation that was planned, so that it is never used twice. Taints keep
/// the time at which they were added.
///
/// Cost: linear in slices and devices; devices of slices that are as wanted are compared, not copied.
///
/// # Errors
/// The plan contradicts itself ([`ReconcileError::Invalid`]), or needs a gate that is off ([`ReconcileError::GateOff`]).
///
/// ```
/// use dra_attrs::Profile;
/// use dra_node::driver::{Memory, NodeChoice, PoolScope, PoolSpec, ReconcileOptions, SliceLimits, SliceWrite, reconcile, split_into_slices};
/// use k8s_openapi::api::resource::v1::Device;
///
/// let devices = [Device { name: "gpu-0".to_owned(), ..Device::default() }];
/// let pool = PoolSpec::new("gpu.example.com", "node-1", NodeChoice::Node("node-1")).with_devices(&devices);
/// let plan = split_into_slices(&pool, &SliceLimits::of(Profile::V1_37), None)?;
/// let scope = PoolScope { driver: "gpu.example.com", pool: "node-1", node_name: Some("node-1"), owner: None };
/// let (mut memory, options) = (Memory::default(), ReconcileOptions::default());
///
/// let pass = reconcile(&scope, [], Some(&plan), &mut memory, &options)?;
/// let [SliceWrite::Create { slice, .. }] = pass.writes.as_slice() else { panic!("one slice is created") };
/// assert_eq!(slice.spec.pool.generation, 1);
///
/// let pass = reconcile(&scope, [slice], Some(&plan), &mut memory, &options)?;
/// assert!(pass.writes.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn reconcile<'s>(
    scope: &PoolScope<'_>,
    stored: impl IntoIterator<Item = &'s ResourceSlice>,
    desired: Option<&PoolPlan<'_>>,
    memory: &mut Memory,
    options: &ReconcileOptions,
) -> Result<SyncPlan, ReconcileError> {
    let own = OwnSlices::new(scope, stored);
    memory.raise_floor(own.generation);
    let Some(desired) = desired.filter(|plan| !plan.slices.is_empty()) else {
        let writes = own.live.iter().map(|slice| SliceWrite::delete(slice)).collect();
        return Ok(SyncPlan { writes, clashes: own.clashes, ..SyncPlan::default() });
    };
    let form = Form { gates_off: memory.gates_off(), sends_dropped_fields: options.sends_dropped_fields };
    check_node_choice(desired, &form)?;
    let WantedPool { slices, withheld } = wanted(desired, &form);
    check(&slices)?;
    let matched = Matched::new(own, scope, slices.len());
    let (changed, same_but_dropped) = matched.changed(&slices, form.sent_though_off());
    let clashes = matched.clashes.clone();
    let terminating = matched.blocked_names(scope, options.generates_names);
    let plan = SyncPlan { clashes, terminating, same_but_dropped, withheld, ..SyncPlan::default() };
    if !plan.terminating.is_empty() {
        return Ok(plan);
    }
    let generation = matched.next_generation(desired.generation, changed.len(), options.keeps_generation, memory);
    memory.raise_floor(generation);
    let writer = Writer { scope, slices: &slices, generation, generates_names: options.generates_names };
    Ok(SyncPlan { writes: matched.writes(&writer, &changed, options.deletes_last), ..plan })
}

/// Checks that the nodes of the devices can be said without the fields of gates that are off.
fn check_node_choice(plan: &PoolPlan<'_>, form: &Form<'_>) -> Result<(), ReconcileError> {
    let gate = Gate::PartitionableDevices;
    if form.left_out().contains(&gate) && plan.node == NodeChoice::PerDevice {
        return Err(ReconcileError::GateOff { gate: GateName::new(gate, Profile::V1_37) });
    }
    Ok(())
}

fn check(slices: &[Wanted<'_>]) -> Result<(), ReconcileError> {
    let contents = slices.iter().map(|slice| (slice.devices().collect(), slice.counter_sets().collect()));
    let mut findings = check_contents(contents);
    findings.retain(|finding| finding.mistake.is_error());
    if findings.is_empty() { Ok(()) } else { Err(ReconcileError::Invalid { findings }) }
}

/// Stored slices of a pool, by what this driver may do with them.
struct OwnSlices<'s> {
    /// Slices that the driver may change, by name.
    live: Vec<&'s ResourceSlice>,
    /// Slices that are being deleted.
    terminating: Vec<&'s ResourceSlice>,
    /// Names of slices of the pool that are not the driver's to change.
    clashes: Vec<String>,
    /// Highest generation of the driver's slices; 0 if there is none.
    generation: i64,
}

impl<'s> OwnSlices<'s> {
    fn new(scope: &PoolScope<'_>, stored: impl IntoIterator<Item = &'s ResourceSlice>) -> Self {
        let of_pool = |slice: &&ResourceSlice| slice.spec.driver == scope.driver && slice.spec.pool.name == scope.pool;
        let mut slices: Vec<&ResourceSlice> = stored.into_iter().filter(of_pool).collect();
        slices.sort_by_key(|slice| name_of(slice));
        let is_own = |slice: &&ResourceSlice| slice.spec.node_name.as_deref() == scope.node_name;
        let (own, others): (Vec<_>, Vec<_>) = slices.into_iter().partition(is_own);
        let generation = own.iter().map(|slice| slice.spec.pool.generation).max().unwrap_or(0);
        let (terminating, live) = own.into_iter().partition(|slice| slice.metadata.deletion_timestamp.is_some());
        let clashes = others.into_iter().map(|slice| name_of(slice).to_owned()).collect();
        Self { live, terminating, clashes, generation }
    }
}

/// Stored slices, each matched with a position of the plan or obsolete.
struct Matched<'s> {
    by_index: BTreeMap<usize, &'s ResourceSlice>,
    obsolete: Vec<&'s ResourceSlice>,
    terminating: Vec<&'s ResourceSlice>,
    clashes: Vec<String>,
    generation: i64,
    /// Number of slices of the plan.
    count: usize,
}

impl<'s> Matched<'s> {
    fn new(own: OwnSlices<'s>, scope: &PoolScope<'_>, count: usize) -> Self {
        let (mut by_index, mut obsolete) = (BTreeMap::new(), Vec::new());
        for slice in own.live {
            let is_current = slice.spec.pool.generation == own.generation && !has_other_owner(slice, scope.owner);
            let index = SlicePlan::decode_index(name_of(slice), count)
                .map(usize::from)
                .filter(|index| is_current && *index < count);
            match index {
                Some(index) if !by_index.contains_key(&index) => drop(by_index.insert(index, slice)),
                _ => obsolete.push(slice),
            }
        }
        let OwnSlices { terminating, clashes, generation, .. } = own;
        Self { by_index, obsolete, terminating, clashes, generation, count }
    }

    /// Returns the positions of matched slices that differ from the plan, and the gates whose fields do not count as a
    /// difference.
    fn changed(&self, slices: &[Wanted<'_>], off: &BTreeSet<Gate>) -> (BTreeSet<usize>, BTreeSet<Gate>) {
        let (mut changed, mut dropped) = (BTreeSet::new(), BTreeSet::new());
        for (index, stored) in &self.by_index {
            let Some(wanted) = slices.get(*index) else { continue };
            let has_count = i64::try_from(self.count) == Ok(stored.spec.pool.resource_slice_count);
            if has_count && wanted.is_stored_in(&stored.spec) {
                dropped.extend(&wanted.left_out);
                continue;
            }
            let without = if has_count && !off.is_empty() { wanted.is_stored_without(stored, off) } else { None };
            match without {
                Some(gates) => dropped.extend(gates),
                None => drop(changed.insert(*index)),
            }
        }
        (changed, dropped)
    }

    /// Returns the names of terminating slices that new slices need.
    fn blocked_names(&self, scope: &PoolScope<'_>, generates_names: bool) -> Vec<String> {
        if generates_names || self.terminating.is_empty() {
            return Vec::new();
        }
        let needed: BTreeSet<String> = self.new_indices().map(|index| fixed_name(scope, index, self.count)).collect();
        self.terminating.iter().map(|slice| name_of(slice).to_owned()).filter(|name| needed.contains(name)).collect()
    }

    fn new_indices(&self) -> impl Iterator<Item = usize> {
        (0..self.count).filter(|index| !self.by_index.contains_key(index))
    }

    /// Returns the generation of the pass: the stored one if it may be kept, or else a higher one than was ever used.
    fn next_generation(&self, asked: Option<i64>, changed: usize, keeps: bool, memory: &Memory) -> i64 {
        let next = memory.generation_floor().saturating_add(1);
        if let Some(asked) = asked.filter(|asked| *asked > self.generation) {
            return if memory.generation_floor() > self.generation { asked.max(next) } else { asked };
        }
        let is_complete = self.by_index.len() == self.count;
        let is_safe = || self.is_single() && !self.is_below(memory);
        let may_change = changed == 0 || changed == 1 && (keeps || is_safe());
        if is_complete && may_change { self.generation } else { next }
    }

    /// Returns true if the pool has one slice, and had no other in this generation.
    fn is_single(&self) -> bool {
        let is_alone = |slice: &&ResourceSlice| slice.spec.pool.resource_slice_count == 1;
        let is_current = |slice: &&&ResourceSlice| slice.spec.pool.generation == self.generation;
        self.count == 1 && self.by_index.values().all(is_alone) && !self.obsolete.iter().any(|slice| is_current(&slice))
    }

    fn is_below(&self, memory: &Memory) -> bool {
        self.generation < memory.generation_floor()
    }

    fn writes(&self, writer: &Writer<'_, '_>, changed: &BTreeSet<usize>, deletes_last: bool) -> Vec<SliceWrite> {
        let is_bumped = writer.generation != self.generation;
        let written = self.by_index.iter().filter(|(index, _)| is_bumped || changed.contains(index));
        let updates = written.filter_map(|(index, stored)| writer.update(*index, stored));
        let creates: Vec<SliceWrite> = self.new_indices().filter_map(|index| writer.create(index)).collect();
        // A new slice may need the name of an obsolete one.
        let is_needed = |name: &str| creates.iter().filter_map(SliceWrite::slice).any(|slice| name_of(slice) == name);
        let is_first = |slice: &&ResourceSlice| !deletes_last || is_needed(name_of(slice));
        let (first, last): (Vec<&ResourceSlice>, Vec<&ResourceSlice>) =
            self.obsolete.iter().copied().partition(is_first);
        let last: Vec<SliceWrite> = last.into_iter().map(SliceWrite::delete).collect();
        first.into_iter().map(SliceWrite::delete).chain(updates).chain(creates).chain(last).collect()
    }
}

/// Builder of the slices of one pass.
struct Writer<'w, 'a> {
    scope: &'w PoolScope<'w>,
    slices: &'w [Wanted<'a>],
    generation: i64,
    generates_names: bool,
}

impl Writer<'_, '_> {
    fn pool(&self) -> ResourcePool {
        ResourcePool {
            name: self.scope.pool.to_owned(),
            generation: self.generation,
            resource_slice_count: i64::try_from(self.slices.len()).unwrap_or(i64::MAX),
        }
    }

    fn update(&self, index: usize, stored: &ResourceSlice) -> Option<SliceWrite> {
        let spec = self.slices.get(index)?.to_spec(&stored.spec, self.pool());
        let slice = ResourceSlice { metadata: stored.metadata.clone(), spec };
        Some(SliceWrite::Update { index: Index::from(index), slice })
    }

    fn create(&self, index: usize) -> Option<SliceWrite> {
        let scope = self.scope;
        let owner = scope.owner.map(|owner| owner.name.as_str());
        let (name, generate_name) = if self.generates_names {
            (None, Some(SlicePlan::generate_name(Index::from(index), self.slices.len(), scope.driver, owner)))
        } else {
            (Some(fixed_name(scope, index, self.slices.len())), None)
        };
        let like = ResourceSliceSpec {
            driver: scope.driver.to_owned(),
            node_name: scope.node_name.map(str::to_owned),
            ..ResourceSliceSpec::default()
        };
        let owner_references =
            scope.owner.map(|owner| vec![OwnerReference { controller: Some(true), ..owner.clone() }]);
        let metadata = ObjectMeta { name, generate_name, owner_references, ..ObjectMeta::default() };
        let slice = ResourceSlice { metadata, spec: self.slices.get(index)?.to_spec(&like, self.pool()) };
        Some(SliceWrite::Create { index: Index::from(index), slice })
    }
}

fn fixed_name(scope: &PoolScope<'_>, index: usize, count: usize) -> String {
    let owner = scope.owner.map(|owner| owner.name.as_str());
    SlicePlan::fixed_name(Index::from(index), count, scope.driver, owner, scope.pool)
}

/// Returns true if a slice belongs to another object of the name of the owner: an earlier node, with which the garbage
/// collector deletes the slice.
fn has_other_owner(slice: &ResourceSlice, owner: Option<&OwnerReference>) -> bool {
    let is_other = |stored: &OwnerReference| {
        owner.is_some_and(|own| own.kind == stored.kind && own.name == stored.name && own.uid != stored.uid)
    };
    slice.metadata.owner_references.iter().flatten().any(is_other)
}
