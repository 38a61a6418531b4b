//! Memory of one pool between passes: own writes that the watch has not shown, generations, and what the API server
//! does not take.
//!
//! Source: `mutation_cache.go` of client-go with the tombstones of Kubernetes 1.37; the floor of generations is this
//! crate's own.

use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::{DroppedField, Gate};
use dra_device::internal::list_fields;
use k8s_openapi::api::resource::v1::ResourceSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use k8s_openapi::jiff::Timestamp;

use crate::driver::dropped::dropped;
use crate::driver::due::CONFIRMATION_DELAY;
use crate::driver::slice_write::SliceWrite;

const LISTS: Gate = Gate::ListTypeAttributes;

/// Memory of one pool. It may be lost: a driver that restarts begins with an empty one.
///
/// ```
/// use dra_attrs::{Gate, Profile};
/// use dra_node::driver::{Memory, SliceLimits};
/// // Nothing is stored after the kubelet deleted the slices: seconds since 1970 are a floor above all earlier ones.
/// let limits = SliceLimits::of(Profile::V1_34);
/// let memory = Memory::default().with_generation_floor(1_795_000_000).with_gates_off(limits.gates_off());
/// assert!(memory.gates_off().contains(&Gate::DeviceTaints));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Memory {
    floor: i64,
    gates_off: BTreeSet<Gate>,
    /// Own writes by UID, as answered.
    written: BTreeMap<String, Written>,
    /// UIDs of slices that are gone, with the time at which that was learnt.
    gone: BTreeMap<String, Timestamp>,
}

#[derive(Clone, Debug)]
struct Written {
    slice: ResourceSlice,
    at: Timestamp,
}

/// Answer of the API server to one write.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum WriteResponse<'a> {
    /// The slice as it was stored by a create or an update.
    Stored(&'a ResourceSlice),
    /// The slice was deleted, or marked as deleted.
    Deleted,
    /// The write failed, or its answer was lost.
    Failed(WriteFailure),
}

/// Failure of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteFailure {
    /// 409: the slice is not the one that the write was planned for.
    Conflict,
    /// 409: a slice of the name exists already.
    AlreadyExists,
    /// 404: the slice is gone.
    NotFound,
    /// 403: the driver may not do it.
    Forbidden,
    /// 422: the slice is invalid.
    Invalid,
    /// 422: the slice has list attributes, and `DRAListTypeAttributes` is off.
    ListsRefused,
    /// Everything else: the write may have happened or not.
    Unknown,
}

impl WriteFailure {
    /// Reads the failure from the body of the API server's answer to `write`. Texts are not read, since each release words
    /// them anew: lists are refused if every field that the server complains about is an attribute that was sent with a
    /// list.
    ///
    /// ```
    /// use dra_node::driver::{SliceWrite, WriteFailure};
    /// use dra_attrs::Index;
    /// use k8s_openapi::api::resource::v1::ResourceSlice;
    /// use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
    /// let write = SliceWrite::Create { index: Index::FIRST, slice: ResourceSlice::default() };
    /// let status = Status { reason: Some("AlreadyExists".to_owned()), ..Status::default() };
    /// assert_eq!(WriteFailure::from_status(&status, &write), WriteFailure::AlreadyExists);
    /// ```
    #[must_use]
    pub fn from_status(status: &Status, write: &SliceWrite) -> Self {
        let causes = status.details.iter().filter_map(|details| details.causes.as_ref()).flatten();
        let fields = causes.map(|cause| cause.field.as_deref().unwrap_or_default());
        Self::from_reason(status.reason.as_deref().unwrap_or_default(), fields, write)
    }

    /// Reads the failure from the reason of a status and the fields of its causes: from the `Status` of any client, such as
    /// `kube::core::Status`.
    ///
    /// ```
    /// use dra_node::driver::{SliceWrite, WriteFailure};
    /// use dra_attrs::Index;
    /// use k8s_openapi::api::resource::v1::ResourceSlice;
    /// let write = SliceWrite::Create { index: Index::FIRST, slice: ResourceSlice::default() };
    /// assert_eq!(WriteFailure::from_reason("Invalid", ["spec.pool.name"], &write), WriteFailure::Invalid);
    /// assert_eq!(WriteFailure::from_reason("ServiceUnavailable", [], &write), WriteFailure::Unknown);
    /// ```
    ///
    /// # Complexity
    /// Linear in the fields times the attributes that were sent with a list.
    #[must_use]
    pub fn from_reason<'f>(reason: &str, fields: impl IntoIterator<Item = &'f str>, write: &SliceWrite) -> Self {
        match reason {
            "Conflict" => Self::Conflict,
            "AlreadyExists" => Self::AlreadyExists,
            "NotFound" => Self::NotFound,
            "Forbidden" => Self::Forbidden,
            "Invalid" if is_about_lists(fields, write) => Self::ListsRefused,
            "Invalid" => Self::Invalid,
            _ => Self::Unknown,
        }
    }
}

/// Returns true if a server complains about nothing but attributes that were sent with a list.
fn is_about_lists<'f>(fields: impl IntoIterator<Item = &'f str>, write: &SliceWrite) -> bool {
    let mut fields = fields.into_iter().peekable();
    let sent = write.slice().map(list_fields).unwrap_or_default();
    let is_sent = |field: &str| sent.iter().any(|list| field.strip_prefix(list.as_str()).is_some_and(is_within));
    fields.peek().is_some() && fields.all(is_sent)
}

/// Returns true if the rest of a path is empty, or names a field of the attribute.
fn is_within(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('.')
}

/// Continuation of a pass after one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextStep {
    /// Send the next write of the plan.
    Continue,
    /// Drop the rest of the plan, and plan again from a new view at once.
    PlanAgain,
    /// Drop the rest of the plan, and plan again after a delay; count a failure.
    BackOff,
}

/// Result of [`Memory::answered`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answered {
    /// Continuation of the pass.
    pub next: NextStep,
    /// Fields that the API server dropped, of gates that were not known to be off.
    pub dropped: Vec<DroppedField>,
}

impl Memory {
    /// Sets the generation that the next one must exceed. After a restart, the stored slices have the highest one; when
    /// nothing is stored, seconds since 1970 are a good start.
    #[must_use]
    pub fn with_generation_floor(mut self, floor: i64) -> Self {
        self.raise_floor(floor);
        self
    }

    /// Adds gates that are known to be off in the API server. Their fields are not sent, unless
    /// [`ReconcileOptions::sends_dropped_fields`](crate::driver::ReconcileOptions::sends_dropped_fields) asks for that, and never a list: the first value stands for it.
    #[must_use]
    pub fn with_gates_off(mut self, gates: impl IntoIterator<Item = Gate>) -> Self {
        self.gates_off.extend(gates);
        self
    }

    /// Returns the gates that are known to be off: told by the caller, or since the API server dropped their fields or
    /// refused lists.
    #[must_use]
    pub const fn gates_off(&self) -> &BTreeSet<Gate> {
        &self.gates_off
    }

    /// Returns the highest generation that was ever written or seen.
    #[must_use]
    pub const fn generation_floor(&self) -> i64 {
        self.floor
    }

    /// Forgets which gates are off, so that the next pass sends everything. A caller does so when the version of the API
    /// server changes.
    pub fn forget_gates(&mut self) {
        self.gates_off.clear();
    }

    /// Returns the time of the last write that the watch has not shown.
    #[must_use]
    pub fn last_unconfirmed_write_at(&self) -> Option<Timestamp> {
        self.written.values().map(|written| written.at).max()
    }

    pub(super) fn raise_floor(&mut self, generation: i64) {
        self.floor = self.floor.max(generation);
    }

    /// Returns the slices that the watch shows, with the own writes that it has not shown yet and without slices that
    /// are known to be gone.
    pub fn view<'a>(&'a self, watched: impl IntoIterator<Item = &'a ResourceSlice>) -> Vec<&'a ResourceSlice> {
        let mut shown = BTreeSet::new();
        let mut view = Vec::new();
        for slice in watched {
            let uid = uid_of(slice);
            shown.insert(uid);
            let own = self.written.get(uid).map(|written| &written.slice);
            if !self.gone.contains_key(uid) {
                view.push(own.filter(|own| version_of(own) > version_of(slice)).unwrap_or(slice));
            }
        }
        let missing = self.written.iter().filter(|(uid, _)| !shown.contains(uid.as_str()));
        view.extend(missing.map(|(_, written)| &written.slice));
        view
    }

    /// Takes the answer to a write of a plan, sent at `now`.
    pub fn answered(&mut self, write: &SliceWrite, answer: WriteResponse<'_>, now: Timestamp) -> Answered {
        let mut fields = Vec::new();
        let next = match (answer, write) {
            (WriteResponse::Stored(stored), _) => {
                fields = self.stored(write, stored, now);
                fields.retain(|field| !self.gates_off.contains(&field.gate.gate));
                self.gates_off.extend(fields.iter().map(|field| field.gate.gate));
                if fields.iter().any(DroppedField::is_unsafe) { NextStep::PlanAgain } else { NextStep::Continue }
            }
            (
                WriteResponse::Deleted | WriteResponse::Failed(WriteFailure::NotFound),
                SliceWrite::Delete { uid, .. },
            ) => {
                self.written.remove(uid);
                self.gone.insert(uid.clone(), now);
                NextStep::Continue
            }
            (
                WriteResponse::Failed(WriteFailure::Conflict | WriteFailure::NotFound | WriteFailure::AlreadyExists),
                _,
            ) => NextStep::PlanAgain,
            (WriteResponse::Failed(WriteFailure::ListsRefused), _) if !self.gates_off.contains(&LISTS) => {
                self.gates_off.insert(LISTS);
                NextStep::PlanAgain
            }
            (WriteResponse::Deleted | WriteResponse::Failed(_), _) => NextStep::BackOff,
        };
        Answered { next, dropped: fields }
    }

    fn stored(&mut self, write: &SliceWrite, stored: &ResourceSlice, now: Timestamp) -> Vec<DroppedField> {
        self.raise_floor(stored.spec.pool.generation);
        let uid = uid_of(stored);
        // The answer may come after the watch has shown that the slice is gone.
        if !uid.is_empty() && !self.gone.contains_key(uid) {
            self.written.insert(uid.to_owned(), Written { slice: stored.clone(), at: now });
        }
        write.slice().map(|sent| dropped(sent, stored)).unwrap_or_default()
    }

    /// Takes a slice that the watch shows, added or changed. Returns false if it shows no more than an own write: the event
    /// is not a foreign one.
    pub fn shown(&mut self, slice: &ResourceSlice) -> bool {
        self.raise_floor(slice.spec.pool.generation);
        let uid = uid_of(slice);
        let Some(written) = self.written.get(uid) else { return true };
        let (shown, own) = (version_of(slice), version_of(&written.slice));
        if shown >= own {
            self.written.remove(uid);
        }
        shown > own
    }

    /// Takes a slice that the watch shows to be deleted. Returns true if this driver had not deleted it.
    pub fn deleted(&mut self, slice: &ResourceSlice, now: Timestamp) -> bool {
        let uid = uid_of(slice);
        self.written.remove(uid);
        self.gone.insert(uid.to_owned(), now).is_none()
    }

    /// Forgets writes that the watch has not shown in time: somebody may have deleted them
    /// unseen.
    pub fn expire(&mut self, now: Timestamp) {
        let is_recent = |at: Timestamp| now.duration_since(at) < CONFIRMATION_DELAY;
        self.written.retain(|_, written| is_recent(written.at));
        self.gone.retain(|_, at| is_recent(*at));
    }
}

fn uid_of(slice: &ResourceSlice) -> &str {
    slice.metadata.uid.as_deref().unwrap_or_default()
}

/// Returns the resource version as a number. Kubernetes guarantees since 1.35 that versions of one type can be compared.
fn version_of(slice: &ResourceSlice) -> Option<u64> {
    slice.metadata.resource_version.as_deref()?.parse().ok()
}
