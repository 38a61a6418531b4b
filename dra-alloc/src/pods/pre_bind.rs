//! `PreBind`: the writes that make a pod's allocations and reservations visible, and the wait for its devices.
//!
//! Source: `PreBind`, `bindClaim`, `isPodReadyForBinding` of the plugin.

use std::sync::Arc;

use dra_attrs::internal::release::BindingTexts;
use dra_attrs::{Gate, Index, Profile};
use dra_device::claims::ClaimKey;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::PodExtendedResourceClaimStatus;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::binding_conditions::{BindingFailure, BindingReport, BindingState, has_binding_conditions};
use super::consumer::{Consumer, is_reserved};
use super::cycle::{CycleClaim, PodCycle};
use super::identity::PodIdentity;
use super::lookup::{ClaimLookup, allocation_of, uid_of};
use super::reserve::{add_finalizer, has_finalizer, with_allocation};
use super::special_claim;
use super::status_code::StatusCode;
use super::tracker::ClaimTracker;
use super::write::{ATTEMPTS, ApiResponse, ClaimWrite};
use crate::cluster::state::ClaimId;

/// Number of times that a pod's status is written before an unavailable API server is an error.
const STATUS_ATTEMPTS: u32 = 4;

/// Time between two looks at binding conditions: five seconds.
const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(5);

/// Reason why a pod can't be bound. Displayed in kube-scheduler's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The claim is being deleted, or another claim has its name.
    #[error("claim {claim} got deleted in the meantime")]
    Deleted {
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// Somebody else has allocated the claim, or has given it other devices than it had when the cycle began.
    #[error("claim {claim} got allocated elsewhere in the meantime")]
    AllocatedElsewhere {
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// The claim was allocated when the cycle began, and is not any more.
    #[error("claim {claim} got deallocated elsewhere in the meantime")]
    Deallocated {
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// The API server has refused a call.
    #[error("{call}: {answer}")]
    Refused {
        /// The call that was refused, in kube-scheduler's words.
        call: String,
        /// Namespace and name of the claim.
        claim: ClaimKey,
        /// Text of the API server.
        answer: String,
    },
    /// The API server has refused to write the claim for extended resources into the pod's status.
    #[error("update pod {pod} ExtendedResourceClaimStatus: {answer}")]
    PodStatus {
        /// Namespace and name of the pod.
        pod: String,
        /// Text of the API server.
        answer: String,
    },
    /// The cache does not have the claim any more.
    #[error("could not find resource claim \"{claim}\"")]
    NotFound {
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// A device can't be made ready.
    #[error("{0}")]
    Binding(Box<BindingFailure>),
    /// The devices of a claim were not ready in time.
    #[error("device binding timeout{}", named(claim, *profile))]
    Timeout {
        /// Name of the claim.
        claim: String,
        /// Release of the scheduler, of which the text is.
        profile: Profile,
    },
}

/// Returns the claim as the text of a release names it.
fn named(claim: &str, profile: Profile) -> String {
    match profile.rules().plugin.binding_texts {
        BindingTexts::Claim => String::new(),
        BindingTexts::Device => format!(": claim={claim}"),
    }
}

impl BindError {
    /// Returns the status of the extension point.
    #[must_use]
    pub const fn code(&self) -> StatusCode {
        StatusCode::Error
    }
}

/// Purpose of a call to the API server in a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BindAction {
    /// Creates the claim for the pod's extended resources.
    Create,
    /// Reads a claim anew after a conflict.
    Refresh,
    /// Adds the finalizer of allocated claims.
    AddFinalizer,
    /// Writes the allocation and adds the consumer.
    AddAllocation,
    /// Adds the consumer to an allocated claim.
    AddReservation,
    /// Writes the claim for extended resources into the pod's status.
    UpdatePodStatus,
}

impl BindAction {
    /// Returns kube-scheduler's words for the action on a claim.
    fn on(self, claim: &ClaimKey) -> String {
        match self {
            Self::Create => format!("create claim for extended resources {}/", claim.namespace),
            Self::UpdatePodStatus => format!("update pod status with claim {claim}"),
            Self::Refresh => format!("get updated claim {claim} after conflict"),
            Self::AddFinalizer => format!("add finalizer to claim {claim}"),
            Self::AddAllocation => format!("add allocation and reservation to claim {claim}"),
            Self::AddReservation => format!("add reservation to claim {claim}"),
        }
    }
}

/// Next step of a binding.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BindStep {
    /// A call to make, whose answer [`PreBind::answer`] takes.
    Write(ClaimWrite),
    /// Devices are not ready yet. [`PreBind::next`] is called again when a claim of the pod changes, or at this time.
    Wait {
        /// Name of the claim that is waited for.
        claim: String,
        /// Time of the next look: in five seconds, or at the end of the wait.
        until: Timestamp,
    },
    /// Everything is written and ready: the pod can be bound.
    Done,
    /// The pod can't be bound. [`PodCycle::unreserve`] takes the reservations back.
    Failed(BindError),
}

/// Progress of a pod's binding (`PreBind`): for each claim that is not reserved for the pod yet, the finalizer, then
/// allocation and reservation in one write; then the wait for binding conditions. The claim for the pod's extended resources
/// is created before, and written into the pod's status afterwards.
///
/// [`PreBind::next`] returns what to do, and does so again until [`PreBind::answer`] was called for a write. After a conflict, and
/// where nobody knows if a write was stored, the claim is read and decided about anew, and the fifth write in vain is an error; kube-scheduler
/// waits 10 ms before each repetition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreBind {
    stage: Stage,
    /// Number of calls for the current claim that a conflict or a missing answer made in vain.
    attempts: u32,
    /// Begin of the wait for binding conditions.
    waiting_since: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq)]
enum Stage {
    /// The claim at this position is next.
    Claim(Index<CycleClaim>),
    /// A call is due, or its answer.
    Open(Call),
    Waiting,
    Done,
    Failed(BindError),
}

/// A call to the API server, of which the write is made anew each time that it is asked for.
#[derive(Clone, Debug, PartialEq)]
struct Call {
    index: Index<CycleClaim>,
    action: BindAction,
    /// The claim as it was read or written last.
    claim: Arc<ResourceClaim>,
    /// Time of the decision.
    now: Timestamp,
}

impl Call {
    fn write(&self, cycle: &PodCycle) -> ClaimWrite {
        let requests = || cycle.chosen_requests.clone().unwrap_or_default();
        let mut claim = match self.action {
            BindAction::Refresh => {
                let ClaimKey { namespace, name } = ClaimKey::from_metadata(&self.claim.metadata);
                return ClaimWrite::Get { namespace, name };
            }
            BindAction::Create => {
                return ClaimWrite::Create { claim: Box::new(special_claim::to_create(&self.claim, &requests())) };
            }
            BindAction::UpdatePodStatus => {
                let (namespace, name) = (cycle.pod.namespace.clone(), cycle.pod.name.clone());
                let extended_resource_claim = Box::new(PodExtendedResourceClaimStatus {
                    request_mappings: requests().mappings,
                    resource_claim_name: self.claim.metadata.name.clone().unwrap_or_default(),
                });
                return ClaimWrite::PatchPodStatus { namespace, name, extended_resource_claim };
            }
            _ => Box::new(ResourceClaim::clone(&self.claim)),
        };
        if self.action == BindAction::AddFinalizer {
            add_finalizer(&mut claim);
            return ClaimWrite::Update { claim };
        }
        let wanted = self.index.of(&cycle.claims);
        let status = claim.status.get_or_insert_default();
        if self.action == BindAction::AddAllocation {
            let timestamp = cycle.options.has(Gate::DeviceBindingConditions).then_some(Time(self.now));
            status.allocation = wanted.and_then(|wanted| wanted.chosen.clone());
            if let Some(allocation) = &mut status.allocation {
                allocation.allocation_timestamp = allocation.allocation_timestamp.take().or(timestamp);
            }
        }
        status.reserved_for.get_or_insert_default().extend(wanted.map(|wanted| wanted.consumer.reference()));
        ClaimWrite::UpdateStatus { claim }
    }
}

impl Default for Stage {
    fn default() -> Self {
        Self::Claim(Index::FIRST)
    }
}

impl PreBind {
    /// Returns the number of calls for the current claim that a conflict or a missing answer made in vain so far.
    #[must_use]
    pub const fn conflicts(&self) -> u32 {
        self.attempts
    }

    /// Returns the next step of the binding.
    pub fn next(&mut self, cycle: &mut PodCycle, tracker: &mut ClaimTracker, now: Timestamp) -> BindStep {
        loop {
            if let Some(step) = self.advance(cycle, tracker, now) {
                return step;
            }
        }
    }

    /// Goes on by one claim. Returns the next step of the binding; `None` if there is more to decide.
    pub(super) fn advance(
        &mut self,
        cycle: &mut PodCycle,
        tracker: &mut ClaimTracker,
        now: Timestamp,
    ) -> Option<BindStep> {
        match &self.stage {
            Stage::Open(call) => {
                if call.action == BindAction::AddAllocation {
                    tracker.begin_write(&call.claim);
                }
                return Some(BindStep::Write(call.write(cycle)));
            }
            Stage::Done => return Some(BindStep::Done),
            Stage::Failed(error) => return Some(BindStep::Failed(error.clone())),
            Stage::Waiting => match self.look(cycle, tracker, now) {
                Ok(None) => self.stage = Stage::Done,
                Ok(Some(wait)) => return Some(wait),
                Err(error) => self.stage = Stage::Failed(error),
            },
            Stage::Claim(index) => {
                let index = *index;
                self.stage = match index.of(&cycle.claims) {
                    None if waits(cycle) => Stage::Waiting,
                    None => Stage::Done,
                    Some(claim) if needs_nothing(&cycle.pod, claim) => Stage::Claim(after(index)),
                    Some(claim) if special_claim::is_in_memory(&claim.claim) => {
                        let (action, claim) = (BindAction::Create, Arc::clone(&claim.claim));
                        Stage::Open(Call { index, action, claim, now })
                    }
                    Some(claim) => {
                        let object = Arc::clone(&claim.claim);
                        self.attempts = 0;
                        Self::decide(index, object, cycle, tracker, now)
                    }
                };
            }
        }
        None
    }

    /// Returns the position of the claim that is decided about next, or that a call is open for.
    fn position(&self, cycle: &PodCycle) -> Option<Index<CycleClaim>> {
        match &self.stage {
            Stage::Open(call) => Some(call.index),
            Stage::Claim(from) => {
                let mut ahead = cycle.indexed().skip(usize::from(*from));
                ahead.find(|(_, claim)| !needs_nothing(&cycle.pod, claim)).map(|(index, _)| index)
            }
            Stage::Waiting | Stage::Done | Stage::Failed(_) => None,
        }
    }

    /// Returns the claim at the API server that is decided about next, or that a call is open for.
    pub(super) fn claim_ahead(&self, cycle: &PodCycle) -> Option<ClaimKey> {
        let claim = self.position(cycle)?.of(&cycle.claims)?;
        (!special_claim::is_in_memory(&claim.claim)).then(|| claim.key())
    }

    /// Takes the claim that is decided about next as the tracker has it: others may have written it since the cycle began. One that
    /// somebody has reserved for the pod stays as it is, and so does one that has other devices than the cycle knows: the conflict will
    /// tell with which.
    pub(super) fn refresh(&self, cycle: &mut PodCycle, tracker: &ClaimTracker) {
        if !matches!(self.stage, Stage::Claim(_)) {
            return;
        }
        let Some(index) = self.position(cycle) else { return };
        let PodCycle { pod, claims, .. } = cycle;
        let Some(claim) = claims.get_mut(usize::from(index)) else { return };
        let key = claim.key();
        let newest = tracker.claim(&key.namespace, &key.name);
        let is_usable = |newest: &&Arc<ResourceClaim>| {
            uid_of(newest) == uid_of(&claim.claim) && !is_reserved(pod, newest) && !is_moved(claim, newest)
        };
        if let Some(newest) = newest.filter(is_usable) {
            claim.claim = Arc::clone(newest);
        }
    }

    /// Takes the answer to the call that [`PreBind::next`] has returned. Without an open call it does nothing.
    ///
    /// Each claim that an answer shows goes into `tracker`. After an answer that leaves open if a write was stored, the claim is
    /// read: if it has the chosen allocation and is reserved for the pod, the write was stored.
    pub fn answer(&mut self, cycle: &mut PodCycle, tracker: &mut ClaimTracker, answer: ApiResponse, now: Timestamp) {
        if !matches!(self.stage, Stage::Open(_)) {
            return;
        }
        let Stage::Open(call) = std::mem::take(&mut self.stage) else { return };
        self.stage = match answer {
            ApiResponse::Object(_) | ApiResponse::Pod(_) | ApiResponse::Done
                if call.action == BindAction::UpdatePodStatus =>
            {
                complete(call.index, call.claim, cycle)
            }
            ApiResponse::Object(claim) => self.shown(call, Arc::from(claim), cycle, tracker, now),
            ApiResponse::Done if call.action == BindAction::Refresh => gone(&call, cycle, tracker),
            ApiResponse::Done | ApiResponse::Pod(_) => {
                self.open(call, "the answer has no claim".to_owned(), cycle, tracker)
            }
            ApiResponse::Conflict(text) if call.action == BindAction::UpdatePodStatus => {
                refused(&call, text, cycle, tracker)
            }
            ApiResponse::Conflict(text) | ApiResponse::Lost(text) | ApiResponse::Unavailable(text) => {
                self.open(call, text, cycle, tracker)
            }
            ApiResponse::Failed(text) => {
                if call.action == BindAction::AddAllocation {
                    tracker.refuse_write(uid_of(&call.claim));
                }
                refused(&call, text, cycle, tracker)
            }
        };
    }

    /// Goes on after an answer with the claim.
    fn shown(
        &mut self,
        call: Call,
        claim: Arc<ResourceClaim>,
        cycle: &mut PodCycle,
        tracker: &mut ClaimTracker,
        now: Timestamp,
    ) -> Stage {
        if call.action == BindAction::Create {
            self.attempts = 0;
            created(call.index, &claim, cycle, tracker);
            return Self::decide(call.index, claim, cycle, tracker, now);
        }
        // An allocation that can't be counted holds nothing, here as in the watch.
        let _ = tracker.assume(Arc::clone(&claim));
        let writes = matches!(call.action, BindAction::AddAllocation | BindAction::AddReservation);
        if !writes || uid_of(&claim) != uid_of(&call.claim) {
            return Self::decide(call.index, claim, cycle, tracker, now);
        }
        if allocation_of(&claim).is_some() && is_reserved(&cycle.pod, &claim) {
            return written(call.index, claim, cycle, tracker, now);
        }
        self.open(call, "the answer does not show what was written".to_owned(), cycle, tracker)
    }

    /// Goes on after an answer that leaves open if the call was carried out: the claim is read, up to a number of times.
    fn open(&mut self, call: Call, answer: String, cycle: &mut PodCycle, tracker: &mut ClaimTracker) -> Stage {
        let (most, next) = match call.action {
            BindAction::Create => (0, BindAction::Create),
            BindAction::UpdatePodStatus => (STATUS_ATTEMPTS, BindAction::UpdatePodStatus),
            _ => (ATTEMPTS, BindAction::Refresh),
        };
        if call.action == BindAction::AddAllocation {
            tracker.lose_write(uid_of(&call.claim));
        }
        if self.attempts + 1 >= most {
            return refused(&call, answer, cycle, tracker);
        }
        self.attempts += 1;
        Stage::Open(Call { action: next, ..call })
    }

    /// Decides about a claim as it is now: the next write, or the end.
    fn decide(
        index: Index<CycleClaim>,
        claim: Arc<ResourceClaim>,
        cycle: &mut PodCycle,
        tracker: &mut ClaimTracker,
        now: Timestamp,
    ) -> Stage {
        let Some(wanted) = index.of(&cycle.claims) else { return Stage::Done };
        let is_another = uid_of(&claim) != uid_of(&wanted.claim);
        let (stored, is_reserved) = (allocation_of(&claim), is_reserved(&cycle.pod, &claim));
        let is_chosen = match (&wanted.chosen, stored) {
            (Some(chosen), Some(stored)) if chosen.devices == stored.devices => match wanted.consumer {
                // Another pod of the group may have allocated it.
                Consumer::PodGroup { .. } => cycle.options.accepts_group_allocations(),
                // Nobody else reserves it for this pod with the devices that were chosen here.
                Consumer::Pod { .. } => is_reserved,
            },
            (None, Some(_)) => !is_moved(wanted, &claim),
            (_, None) | (Some(_), _) => false,
        };
        if !is_another && is_chosen && is_reserved {
            return written(index, claim, cycle, tracker, now);
        }
        let error = if is_another || claim.metadata.deletion_timestamp.is_some() {
            Some(BindError::Deleted { claim: wanted.key() })
        } else if stored.is_some() && !is_chosen {
            Some(BindError::AllocatedElsewhere { claim: wanted.key() })
        } else if wanted.chosen.is_none() && stored.is_none() {
            Some(BindError::Deallocated { claim: wanted.key() })
        } else {
            None
        };
        if let Some(error) = error {
            return fail(index, error, cycle, tracker);
        }
        let action = match stored {
            Some(_) => BindAction::AddReservation,
            None if has_finalizer(&claim) => BindAction::AddAllocation,
            None => BindAction::AddFinalizer,
        };
        Stage::Open(Call { index, action, claim, now })
    }

    /// Looks at the binding conditions of all claims. Returns the wait; `None` if all are ready.
    fn look(
        &mut self,
        cycle: &mut PodCycle,
        tracker: &ClaimTracker,
        now: Timestamp,
    ) -> Result<Option<BindStep>, BindError> {
        let options = cycle.options;
        let begin = *self.waiting_since.get_or_insert(now);
        let end = begin.checked_add(options.binding_timeout()).unwrap_or(Timestamp::MAX);
        let created = |claim: &&mut CycleClaim| !special_claim::is_in_memory(&claim.claim);
        for claim in cycle.claims.iter_mut().filter(created) {
            let key = claim.key();
            let Some(current) = tracker.claim(&key.namespace, &key.name) else {
                return Err(BindError::NotFound { claim: key });
            };
            claim.claim = Arc::clone(current);
            let report = BindingReport::of_claim(current, now, options);
            match report.state {
                BindingState::Ready => {}
                BindingState::Failed(failure) => return Err(BindError::Binding(failure)),
                BindingState::Pending if report.timed_out || now >= end => {
                    return Err(BindError::Timeout { claim: key.name, profile: options.profile() });
                }
                BindingState::Pending => {
                    let until = now.checked_add(LOOK_AGAIN).unwrap_or(end).min(end);
                    return Ok(Some(BindStep::Wait { claim: key.name, until }));
                }
            }
        }
        Ok(None)
    }
}

/// Returns true if an allocated claim of a cycle has other devices now than those that the node was judged with: it was allocated anew.
fn is_moved(known: &CycleClaim, now: &ResourceClaim) -> bool {
    let devices = |claim| allocation_of(claim).map(|allocation| &allocation.devices);
    known.chosen.is_none() && devices(now).is_some() && devices(now) != devices(&known.claim)
}

/// Returns true if a claim is reserved for the pod already, or the node provides the pod's extended resources itself.
fn needs_nothing(pod: &PodIdentity, claim: &CycleClaim) -> bool {
    is_reserved(pod, &claim.claim) || claim.is_for_extended_resources && claim.chosen.is_none()
}

/// Returns true if the binding has to wait for conditions of devices.
fn waits(cycle: &PodCycle) -> bool {
    cycle.options.has(Gate::DeviceBindingConditions)
        && cycle.claims.iter().any(|claim| has_binding_conditions(&claim.claim))
}

fn after(index: Index<CycleClaim>) -> Index<CycleClaim> {
    Index::from(usize::from(index) + 1)
}

/// Goes on with a claim that has the allocation, and is reserved for the pod.
fn written(
    index: Index<CycleClaim>,
    claim: Arc<ResourceClaim>,
    cycle: &mut PodCycle,
    tracker: &mut ClaimTracker,
    now: Timestamp,
) -> Stage {
    remember(index, &claim, cycle, tracker);
    if index.of(&cycle.claims).is_some_and(CycleClaim::is_for_extended_resources) {
        return Stage::Open(Call { index, action: BindAction::UpdatePodStatus, claim, now });
    }
    complete(index, claim, cycle)
}

/// Takes a written claim into the cycle, and goes on with the next one.
fn complete(index: Index<CycleClaim>, written: Arc<ResourceClaim>, cycle: &mut PodCycle) -> Stage {
    if let Some(claim) = cycle.claim_mut(index) {
        claim.claim = written;
    }
    Stage::Claim(after(index))
}

/// Takes a written claim into the cache. Its allocation is no longer in flight.
fn remember(index: Index<CycleClaim>, written: &Arc<ResourceClaim>, cycle: &mut PodCycle, tracker: &mut ClaimTracker) {
    let Some(claim) = cycle.claim_mut(index) else { return };
    let assumed = tracker.assume(Arc::clone(written));
    let Some(share) = claim.in_flight.take() else { return };
    if assumed == Ok(true) {
        tracker.end_stored(uid_of(written));
    } else {
        tracker.release(uid_of(written), &share);
    }
}

/// Takes the created claim for extended resources into the cycle and the cache. Its allocation is in flight under its own
/// UID from now on, so that the watch may show it at any time and its devices count once.
fn created(index: Index<CycleClaim>, created: &Arc<ResourceClaim>, cycle: &mut PodCycle, tracker: &mut ClaimTracker) {
    let Some(claim) = cycle.claim_mut(index) else { return };
    claim.release(tracker);
    tracker.assume_created(created);
    claim.claim = Arc::clone(created);
    if let Some(chosen) = claim.chosen.clone() {
        let allocated = Arc::new(with_allocation(created, chosen));
        claim.in_flight = tracker.add_in_flight(uid_of(created), &allocated).ok();
    }
}

/// Ends the binding of a claim that is not there any more.
fn gone(call: &Call, cycle: &mut PodCycle, tracker: &mut ClaimTracker) -> Stage {
    tracker.observe_deleted(&ClaimId::from(&*call.claim));
    let claim = ClaimKey::from_metadata(&call.claim.metadata);
    fail(call.index, BindError::Deleted { claim }, cycle, tracker)
}

/// Ends the binding with the API server's refusal of a call.
fn refused(call: &Call, answer: String, cycle: &mut PodCycle, tracker: &mut ClaimTracker) -> Stage {
    let claim = call.index.of(&cycle.claims).map_or_else(|| ClaimKey::new("", ""), CycleClaim::key);
    let error = if call.action == BindAction::UpdatePodStatus {
        let pod = ClaimKey::new(&cycle.pod.namespace, &cycle.pod.name).to_string();
        BindError::PodStatus { pod, answer }
    } else {
        BindError::Refused { call: call.action.on(&claim), claim, answer }
    };
    fail(call.index, error, cycle, tracker)
}

/// Ends the binding with an error. The claim's allocation has one sharer less.
fn fail(index: Index<CycleClaim>, error: BindError, cycle: &mut PodCycle, tracker: &mut ClaimTracker) -> Stage {
    if let Some(claim) = cycle.claim_mut(index) {
        claim.release(tracker);
    }
    Stage::Failed(error)
}
