//! The binding of one pod.
//!
//! Source: `bindingCycle` of kube-scheduler, `PreBind` and `Unreserve` of the plugin `dynamicresources`, KEP-5278.

use dra_device::claims::ClaimKey;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use nnn::binding::BindingStart;
use nnn::memory::{AssumeError, BindingAnswer, NominationAnswer, PodStage, PodUsage};
use nnn::{Command, PodKey};

use super::call::{BindingCall, BindingRequest};
use super::cycle::{BoundClaims, ClaimsStep, Extent};
use super::memory::BindingMemory;
use super::repetition::{again_at, answered_until, settled_from};
use super::rival::rival;
use super::step::{BindingStep, BindingWait, UnboundError};
use super::taking_back::{TakingBack, TakingBackStep};
use crate::pods::cycle::PodCycle;
use crate::pods::pre_bind::BindStep;
use crate::pods::write::ApiResponse;

/// Binding of one pod to its node: everything that is written for it, in its order, from the assumption on.
///
/// 1. The nomination, if claims are written before the binding and the pod is not nominated to the node already
///    ([`BindingStart`], [`PodCycle::pre_flight`]). A nomination that fails stops nothing.
/// 2. The claims one after the other ([`PreBind`](super::super::PreBind)), and the wait for binding conditions. Of bindings that share a claim one
///    writes it at a time.
/// 3. The binding itself, unless a device turns out to be given away by another scheduler as well: then the allocations are
///    given back ([`PodCycle::give_way`]).
/// 4. Where the pod is not bound in the end: the calls that take the reservations back ([`PodCycle::unreserve`]), then the
///    clearing of the nomination. After five answers that are lost this is left to the scheduler, which writes what
///    [`PodMemory::in_doubt`](nnn::memory::PodMemory::in_doubt) says once more. If the removal of a reservation has lost an answer,
///    the binding ends a minute later, once the claim was read if no answer has come: a removal has no version, and one that comes
///    late would take the pod from a claim that it has got again.
///
/// Many bindings can be open at once, on one thread that decides while others make the calls. Each has at most one call out.
/// Its answer may come late, twice or never: a call without an answer counts as lost after a minute, and an answer to any other
/// call than the open one changes no step. Of a binding whose answer was lost the pod is read, and the same binding is sent once
/// more; it is given up only if it was refused and can't be stored any more, a minute later.
///
/// Nothing here survives a restart, and nothing has to: memories are built anew from the server, where a pod that is bound is
/// never tried again and a claim that is allocated keeps its devices. A binding that is dropped gives back what it has in flight
/// ([`ClaimTracker::calls_in_doubt`](super::super::ClaimTracker::calls_in_doubt) has the rest), but the pod stays assumed.
///
/// ```
/// use dra_alloc::Profile;
/// use dra_alloc::pods::{ApiResponse, Binding, BindingMemory, BindingRequest, BindingStep, ClaimTracker, PodOptions};
/// use k8s_openapi::api::core::v1::Pod;
/// use k8s_openapi::jiff::Timestamp;
/// use nnn::PodKey;
/// use nnn::memory::{PodMemory, PodStage, PodUsage};
/// use serde_json::{from_value, json};
///
/// let pod: Pod = from_value(json!({"metadata": {"namespace": "default", "name": "web", "uid": "u-1"}}))?;
/// let (mut pods, options) = (PodMemory::default(), PodOptions::new(Profile::V1_37));
/// let mut claims = ClaimTracker::new(options.scheduler());
/// let (key, usage, now) = (PodKey::new("default", "web", "u-1"), PodUsage::wanted_by(&pod)?, Timestamp::UNIX_EPOCH);
/// pods.observe(pod)?;
/// let mut memory = BindingMemory { pods: &mut pods, claims: &mut claims };
/// // A pod without claims: there is nothing to wait for, so that it is not nominated before.
/// let mut binding = Binding::begin(&key, "node-1", usage, None, &mut memory)?;
/// let BindingStep::Call(call) = binding.next(&mut memory, now) else { return Err("no call".into()) };
/// assert_eq!(call.request, BindingRequest::Bind { node: "node-1".to_owned() });
/// binding.answer(&call, ApiResponse::Done, &mut memory, now);
/// assert_eq!(binding.next(&mut memory, now), BindingStep::Bound);
/// assert_eq!(pods.stage("u-1"), Some(PodStage::Bound { node: "node-1" }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "the pod is assumed on its node until its binding has ended"]
pub struct Binding {
    pod: PodKey,
    node: String,
    claims: Option<BoundClaims>,
    stage: Stage,
    open: Option<Open>,
    cancelled: Option<String>,
    doubt: Doubt,
}

/// Call that is out.
#[derive(Clone, Debug)]
struct Open {
    call: BindingCall,
    until: Timestamp,
}

impl Open {
    /// Returns true if the watch has shown the pod bound before the answer has come.
    fn is_answered_by(&self, memory: &BindingMemory<'_>) -> bool {
        let is_about_binding = matches!(self.call.request, BindingRequest::Bind { .. } | BindingRequest::ReadPod);
        is_about_binding && matches!(memory.pods.stage(&self.call.pod.uid), Some(PodStage::Bound { .. }))
    }
}

/// Knowledge about the binding at the API server.
#[derive(Clone, Debug, Default)]
struct Doubt {
    /// Time of the last answer that was lost.
    since: Option<Timestamp>,
    /// Text of a refusal: the pod is read to know its reason.
    refusal: Option<String>,
    /// Number of calls in vain.
    in_vain: u32,
}

#[derive(Clone, Debug)]
enum Stage {
    /// The nomination comes first.
    Nominate,
    Claims,
    Bind,
    /// The pod is read from this time on, to know if it is bound.
    Look(Timestamp),
    TakeBack(Box<TakingBack>),
    Bound,
    GaveUp(Box<TakingBack>),
}

impl Binding {
    /// Begins the binding of a pod: assumes it on the node, of which it takes `usage` from now on. `cycle` has the pod's claims,
    /// reserved on this node ([`PodCycle::reserve`], or a place of [`GangSearch`](super::super::GangSearch)); a pod without claims has none.
    ///
    /// # Errors
    /// The pod can't be assumed: it is not known, has a node already, or is going. What the cycle has in flight is given back.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods.
    pub fn begin(
        pod: &PodKey,
        node: &str,
        usage: PodUsage,
        cycle: Option<PodCycle>,
        memory: &mut BindingMemory<'_>,
    ) -> Result<Self, AssumeError> {
        let mut claims = cycle.map(BoundClaims::new);
        if let Err(error) = memory.pods.assume(&pod.uid, node, usage) {
            claims.as_mut().map(|claims| claims.take_back(memory, Extent::Memory));
            return Err(error);
        }
        Ok(Self {
            pod: pod.clone(),
            node: node.to_owned(),
            claims,
            stage: Stage::Nominate,
            open: None,
            cancelled: None,
            doubt: Doubt::default(),
        })
    }

    /// Returns the pod.
    #[must_use]
    pub const fn pod(&self) -> &PodKey {
        &self.pod
    }

    /// Returns the node that the pod is going to be bound to.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Returns the attempt that has chosen the devices; `None` for a pod without claims.
    #[must_use]
    pub fn cycle(&self) -> Option<&PodCycle> {
        self.claims.as_ref().map(|claims| &claims.cycle)
    }

    /// Cancels the binding, because others preempt the pod, say: it gives up once the answer to its open call has come. Returns
    /// false, and changes nothing, if the pod may be bound already or the binding has ended.
    pub fn cancel(&mut self, reason: &str) -> bool {
        let is_early = match self.stage {
            Stage::Nominate | Stage::Claims => true,
            Stage::Bind => self.open.is_none() && self.doubt.since.is_none(),
            Stage::Look(_) | Stage::TakeBack(_) | Stage::Bound | Stage::GaveUp(_) => false,
        };
        if is_early {
            self.cancelled = Some(reason.to_owned());
        }
        is_early
    }

    /// Returns the next step. Call it with memories that know all changes so far: the last look at them comes before the binding.
    ///
    /// # Complexity
    /// Linear in the devices of the pod's claims.
    pub fn next(&mut self, memory: &mut BindingMemory<'_>, now: Timestamp) -> BindingStep {
        loop {
            self.open.take_if(|open| open.is_answered_by(memory));
            if let Some(open) = &self.open {
                if now < open.until {
                    return BindingStep::Wait { reason: BindingWait::Answer, until: open.until };
                }
                self.take(ApiResponse::Lost("no answer within a minute".to_owned()), memory, now);
            }
            self.look_around(memory);
            if let Some(step) = self.advance(memory, now) {
                return step;
            }
        }
    }

    /// Takes the answer to a call that [`Binding::next`] has returned. An answer to another call than the open one changes no
    /// step; what it shows is remembered.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods and of claims.
    pub fn answer(&mut self, call: &BindingCall, answer: ApiResponse, memory: &mut BindingMemory<'_>, now: Timestamp) {
        if self.open.as_ref().is_some_and(|open| open.call.is(call)) {
            return self.take(answer, memory, now);
        }
        let is_bound_here = call.pod == self.pod && call.request == BindingRequest::Bind { node: self.node.clone() };
        match answer {
            // An object that can't be counted holds nothing, here as in the watch.
            ApiResponse::Object(claim) => drop(memory.claims.assume(*claim)),
            ApiResponse::Pod(pod) => show(*pod, memory),
            ApiResponse::Done if is_bound_here => memory.pods.answer_binding(&self.pod.uid, BindingAnswer::Stored),
            _ => {}
        }
    }

    /// Ends the binding if the pod is bound, gone, or not to be bound any more.
    fn look_around(&mut self, memory: &mut BindingMemory<'_>) {
        let is_written = match self.stage {
            Stage::Nominate | Stage::Claims => false,
            Stage::Bind | Stage::Look(_) => true,
            Stage::TakeBack(_) | Stage::Bound | Stage::GaveUp(_) => return,
        };
        let stage = memory.pods.stage(&self.pod.uid);
        match stage {
            Some(PodStage::Bound { node }) if node == self.node && is_written => self.stage = Stage::Bound,
            Some(PodStage::Bound { node }) => {
                let node = node.to_owned();
                self.give_up(UnboundError::BoundAlready { node }, memory);
            }
            Some(PodStage::InDoubt { node }) if node == self.node => {}
            Some(PodStage::Assumed { node }) if node == self.node && !is_going(&self.pod, memory) => {
                if let Some(reason) = self.cancelled.take() {
                    self.give_up(UnboundError::Cancelled { reason }, memory);
                }
            }
            _ => self.give_up(UnboundError::Gone, memory),
        }
    }

    /// Decides about the stage. Returns the step; `None` if the next stage is to be decided about.
    fn advance(&mut self, memory: &mut BindingMemory<'_>, now: Timestamp) -> Option<BindingStep> {
        match &mut self.stage {
            Stage::Nominate => {
                self.stage = Stage::Claims;
                let nomination = self.nomination(memory)?;
                // An amount that can't be read counts for nothing, here as in the watch.
                let _ = memory.pods.nominate(&self.pod.uid, Some(&self.node));
                Some(self.call(BindingRequest::Status(nomination), now))
            }
            Stage::Claims => self.go_on_with_claims(memory, now),
            Stage::Bind => {
                let cycle = self.claims.as_ref().map(|claims| &claims.cycle);
                let is_first = self.doubt.since.is_none();
                match cycle.filter(|_| is_first).and_then(|cycle| rival(cycle, memory.claims.state())) {
                    Some((device, holder)) => {
                        self.give_up(UnboundError::Rival { device, holder }, memory);
                        None
                    }
                    None => Some(self.call(BindingRequest::Bind { node: self.node.clone() }, now)),
                }
            }
            Stage::Look(from) if now < *from => Some(repetition(*from)),
            Stage::Look(_) => Some(self.call(BindingRequest::ReadPod, now)),
            Stage::TakeBack(back) => match back.next(&self.pod, self.claims.as_mut(), memory, now) {
                TakingBackStep::Call(request) => Some(self.call(request, now)),
                TakingBackStep::NotYet(claim) => Some(turn(claim, now)),
                TakingBackStep::Wait(until) => Some(repetition(until)),
                TakingBackStep::End => {
                    self.stage = Stage::GaveUp(back.clone());
                    None
                }
            },
            Stage::Bound => Some(BindingStep::Bound),
            Stage::GaveUp(back) => Some(BindingStep::GaveUp { reason: back.reason.clone(), problems: back.problems() }),
        }
    }

    /// Returns the command that nominates the pod, if there is something to wait for and the pod is not nominated to the node.
    fn nomination(&self, memory: &BindingMemory<'_>) -> Option<Command> {
        let cycle = &self.claims.as_ref()?.cycle;
        let pre_flights = [cycle.pre_flight()];
        let mut start = BindingStart::new(cycle.options.scheduler(), &pre_flights, &self.node);
        start.nnn = memory.pods.nomination(&self.pod.uid);
        let (pod, node) = (self.pod.clone(), self.node.clone());
        (start.no_patch_reason() == Ok(None)).then_some(Command::PatchNnn { pod, node })
    }

    fn go_on_with_claims(&mut self, memory: &mut BindingMemory<'_>, now: Timestamp) -> Option<BindingStep> {
        let Some(claims) = &mut self.claims else {
            self.stage = Stage::Bind;
            return None;
        };
        match claims.next(memory.claims, now) {
            ClaimsStep::NotYet(claim) => Some(turn(claim, now)),
            ClaimsStep::Step(BindStep::Write(write)) => Some(self.call(BindingRequest::Claim(write), now)),
            ClaimsStep::Step(BindStep::Wait { claim, until }) => {
                let claim = ClaimKey::new(&self.pod.namespace, &claim);
                Some(BindingStep::Wait { reason: BindingWait::Devices(claim), until })
            }
            ClaimsStep::Step(BindStep::Done) => {
                self.stage = Stage::Bind;
                None
            }
            ClaimsStep::Step(BindStep::Failed(error)) => {
                self.give_up(error.into(), memory);
                None
            }
        }
    }

    fn call(&mut self, request: BindingRequest, now: Timestamp) -> BindingStep {
        let call = BindingCall::new(&self.pod, request);
        self.open = Some(Open { call: call.clone(), until: answered_until(now) });
        BindingStep::Call(call)
    }

    /// Takes the answer to the open call.
    fn take(&mut self, answer: ApiResponse, memory: &mut BindingMemory<'_>, now: Timestamp) {
        let Some(open) = self.open.take() else { return };
        match open.call.request {
            BindingRequest::Status(_) => self.take_nominated(answer, memory),
            BindingRequest::Claim(_) => match (&mut self.stage, &mut self.claims) {
                (Stage::TakeBack(back), claims) => back.answer_claim(claims.as_mut(), memory, answer, now),
                (_, Some(claims)) => claims.answer(memory.claims, answer, now),
                (_, None) => {}
            },
            BindingRequest::Bind { .. } => self.take_bound(answer, memory, now),
            BindingRequest::ReadPod => self.take_read(answer, memory, now),
        }
    }

    fn take_nominated(&mut self, answer: ApiResponse, memory: &mut BindingMemory<'_>) {
        let version = match &answer {
            ApiResponse::Pod(pod) => pod.metadata.resource_version.clone().unwrap_or_default(),
            _ => String::new(),
        };
        let (stored, text) = match &answer {
            ApiResponse::Object(_) | ApiResponse::Pod(_) | ApiResponse::Done => {
                (NominationAnswer::Stored { version: &version }, "")
            }
            ApiResponse::Lost(text) | ApiResponse::Unavailable(text) => (NominationAnswer::Lost, text.as_str()),
            ApiResponse::Conflict(text) | ApiResponse::Failed(text) => (NominationAnswer::Refused, text.as_str()),
        };
        // An amount that can't be read counts for nothing, here as in the watch.
        let _ = memory.pods.answer_nomination(&self.pod.uid, stored);
        if let Stage::TakeBack(back) = &mut self.stage {
            back.answer_clearing(&stored, text.to_owned());
        }
        if let ApiResponse::Pod(pod) = answer {
            show(*pod, memory);
        }
    }

    fn take_bound(&mut self, answer: ApiResponse, memory: &mut BindingMemory<'_>, now: Timestamp) {
        match answer {
            ApiResponse::Object(_) | ApiResponse::Pod(_) | ApiResponse::Done => {
                memory.pods.answer_binding(&self.pod.uid, BindingAnswer::Stored);
                self.stage = Stage::Bound;
            }
            ApiResponse::Lost(_) | ApiResponse::Unavailable(_) => {
                memory.pods.answer_binding(&self.pod.uid, BindingAnswer::Lost);
                self.doubt.since = Some(now);
                self.doubt.refusal = None;
                self.look_again(now);
            }
            ApiResponse::Failed(answer) if self.doubt.since.is_none() => self.refused(answer, memory),
            // Another call may have bound the pod: reading it tells.
            ApiResponse::Conflict(text) | ApiResponse::Failed(text) => {
                self.doubt.refusal = Some(text);
                self.stage = Stage::Look(now);
            }
        }
    }

    /// Takes the pod as it is stored: bound here, elsewhere, or not.
    fn take_read(&mut self, answer: ApiResponse, memory: &mut BindingMemory<'_>, now: Timestamp) {
        let pod = match answer {
            ApiResponse::Pod(pod) => pod,
            ApiResponse::Done => {
                memory.pods.observe_deleted(&self.pod);
                return;
            }
            ApiResponse::Failed(_) | ApiResponse::Conflict(_) if self.doubt.since.is_none() => {
                let refusal = self.doubt.refusal.take().unwrap_or_default();
                return self.refused(refusal, memory);
            }
            _ => return self.look_again(now),
        };
        let is_bound =
            pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_ref().is_some_and(|node| !node.is_empty()));
        if is_bound || pod.metadata.uid.as_deref() != Some(&self.pod.uid) {
            // The look at memory ends the binding.
            return show(*pod, memory);
        }
        match (self.doubt.refusal.take(), self.doubt.since) {
            (Some(answer), None) => {
                show(*pod, memory);
                self.refused(answer, memory);
            }
            (Some(answer), Some(lost)) if now >= settled_from(lost) => {
                // Counted as it was when the watch showed it.
                let _ = memory.pods.settle(*pod);
                self.give_up(UnboundError::Refused { answer }, memory);
            }
            (Some(answer), Some(lost)) => {
                self.doubt.refusal = Some(answer);
                self.stage = Stage::Look(settled_from(lost));
            }
            (None, _) => self.stage = Stage::Bind,
        }
    }

    fn look_again(&mut self, now: Timestamp) {
        self.doubt.in_vain = self.doubt.in_vain.saturating_add(1);
        self.stage = Stage::Look(again_at(now, self.doubt.in_vain));
    }

    fn refused(&mut self, answer: String, memory: &mut BindingMemory<'_>) {
        memory.pods.answer_binding(&self.pod.uid, BindingAnswer::Refused);
        self.give_up(UnboundError::Refused { answer }, memory);
    }

    /// Begins to take back what is reserved and written.
    fn give_up(&mut self, reason: UnboundError, memory: &mut BindingMemory<'_>) {
        // What is counted is counted anew without the assumption.
        let _ = memory.pods.forget_assumed(&self.pod.uid);
        let extent = match &reason {
            UnboundError::BoundAlready { node } if *node == self.node => Extent::Memory,
            UnboundError::Rival { .. } => Extent::Allocations,
            _ => Extent::Reservations,
        };
        let calls = self.claims.as_mut().map(|claims| claims.take_back(memory, extent));
        self.stage = Stage::TakeBack(Box::new(TakingBack::new(reason, calls.unwrap_or_default())));
    }
}

/// Returns true if a pod is known to be deleted soon: it is not bound any more.
fn is_going(pod: &PodKey, memory: &BindingMemory<'_>) -> bool {
    let known = memory.pods.pod(&pod.namespace, &pod.name);
    known.is_some_and(|known| known.metadata.deletion_timestamp.is_some())
}

/// Remembers a pod that an answer shows.
fn show(pod: Pod, memory: &mut BindingMemory<'_>) {
    // One that can't be read counts for nothing, here as in the watch.
    let _ = memory.pods.observe_answer(pod);
}

const fn repetition(until: Timestamp) -> BindingStep {
    BindingStep::Wait { reason: BindingWait::Repetition, until }
}

fn turn(claim: ClaimKey, now: Timestamp) -> BindingStep {
    BindingStep::Wait { reason: BindingWait::Turn(claim), until: answered_until(now) }
}
