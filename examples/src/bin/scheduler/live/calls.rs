//! Calls to the API server, made by tasks beside the decisions: a number at a time, and those about one object in their order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::{ApiResponse, BindingCall, BindingRequest, ClaimWrite};
use dra_live::claim_calls::carry_out;
use dra_live::pod_calls;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::{Client, Error};
use nnn::memory::PodMemory;
use nnn::{Command, NominatingInfo, PodKey, ScheduledCondition};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, watch};

use super::key_of;

/// Call to make.
#[derive(Debug)]
pub(super) enum Call {
    /// Call of a binding.
    Binding(Box<BindingCall>),
    /// Write that takes a claim back.
    Claim(ClaimWrite),
    /// Write of a pod's nomination or condition. `since` is the time since which the condition has its status; `None` is now.
    Status { pod: PodKey, command: Command, since: Option<Timestamp> },
}

/// Answer to a call.
#[derive(Debug)]
pub(super) enum Answer {
    Binding(Box<BindingCall>, ApiResponse),
    Claim(ApiResponse),
    /// To the write of this pod's status.
    Pod(PodKey, Result<Box<Pod>, Error>),
}

/// Who has asked for a call.
#[derive(Clone, Debug)]
pub(super) enum Asker {
    /// Binding of the pod with this UID.
    Binding(String),
    /// End of an attempt, by its number.
    Ending(u64),
}

/// Object that a call is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Claim(ClaimKey),
    Pod {
        namespace: String,
        name: String,
    },
    /// None that has a name.
    Other,
}

type Answered = (Asker, Subject, Answer);

/// Calls that are under way, and those that wait for one about the same object.
pub(super) struct Calls {
    client: Client,
    places: Arc<Semaphore>,
    sender: UnboundedSender<Answered>,
    receiver: UnboundedReceiver<Answered>,
    /// Calls that wait, by the object of which one is under way.
    waiting: BTreeMap<Subject, VecDeque<(Asker, Call)>>,
    held: watch::Receiver<()>,
}

/// Right to make calls. Those that are under way end with it.
#[derive(Debug)]
pub(super) struct Held {
    _held: watch::Sender<()>,
}

impl Calls {
    /// Begins with no call, for as long as the second value lives.
    pub(super) fn new(client: Client, at_a_time: usize) -> (Self, Held) {
        let (sender, receiver) = unbounded_channel();
        let (held, is_held) = watch::channel(());
        let places = Arc::new(Semaphore::new(at_a_time));
        (Self { client, places, sender, receiver, waiting: BTreeMap::new(), held: is_held }, Held { _held: held })
    }

    /// Makes a call, after those about the same object.
    pub(super) fn make(&mut self, asker: Asker, call: Call) {
        let subject = call.subject();
        if let Some(before) = self.waiting.get_mut(&subject) {
            return before.push_back((asker, call));
        }
        self.waiting.insert(subject.clone(), VecDeque::new());
        self.start(asker, subject, call);
    }

    fn start(&self, asker: Asker, subject: Subject, call: Call) {
        let (client, places, sender) = (self.client.clone(), Arc::clone(&self.places), self.sender.clone());
        let mut held = self.held.clone();
        tokio::spawn(async move {
            let made = async {
                // Nobody closes the semaphore.
                let _place = places.acquire().await;
                call.make(&client).await
            };
            tokio::select! {
                // Nobody reads the answers of a program that ends.
                answer = made => drop(sender.send((asker, subject, answer))),
                _ = held.changed() => {}
            }
        });
    }

    /// Waits for an answer.
    pub(super) async fn next(&mut self) -> Option<(Asker, Answer)> {
        let answered = self.receiver.recv().await?;
        Some(self.take(answered))
    }

    /// Returns an answer that has come already.
    pub(super) fn next_waiting(&mut self) -> Option<(Asker, Answer)> {
        let answered = self.receiver.try_recv().ok()?;
        Some(self.take(answered))
    }

    fn take(&mut self, (asker, subject, answer): Answered) -> (Asker, Answer) {
        match self.waiting.get_mut(&subject).and_then(VecDeque::pop_front) {
            Some((next, call)) => self.start(next, subject, call),
            None => drop(self.waiting.remove(&subject)),
        }
        (asker, answer)
    }
}

impl Call {
    /// Clears the nomination of a pod.
    pub(super) fn clear(pod: PodKey) -> Self {
        Self::Status { command: Command::ClearNnn { pod: pod.clone() }, pod, since: None }
    }

    /// Writes nominations once more whose answer was lost, of pods without a binding that would do it.
    pub(super) fn in_doubt(pods: &PodMemory, is_open: impl Fn(&PodKey) -> bool) -> VecDeque<Self> {
        let left = pods.in_doubt().filter(|pod| !is_open(pod));
        let write = |pod: &PodKey| match pods.nomination(&pod.uid).map(str::to_owned) {
            Some(node) => {
                let command = Command::PatchNnn { pod: pod.clone(), node };
                Self::Status { pod: pod.clone(), command, since: None }
            }
            None => Self::clear(pod.clone()),
        };
        left.map(write).collect()
    }

    /// Writes why a pod has no node, and changes its nomination; `None` if the pod says so already.
    pub(super) fn write_reason(pod: &Pod, reason: &str, message: &str, nnn: NominatingInfo) -> Option<Self> {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let known = { conditions }.find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
        let texts = known.map(|known| [known.reason.as_deref(), known.message.as_deref()]);
        if texts == Some([Some(reason), Some(message)]) {
            return None;
        }
        let since = known.and_then(|known| Some(known.last_transition_time.as_ref()?.0));
        let (pod, condition) = (key_of(pod), ScheduledCondition::failed(reason, message));
        let command = Command::PatchConditionAndNnn { pod: pod.clone(), condition, nnn };
        Some(Self::Status { pod, command, since })
    }

    fn subject(&self) -> Subject {
        let of_pod = |pod: &PodKey| Subject::Pod { namespace: pod.namespace.clone(), name: pod.name.clone() };
        match self {
            Self::Claim(write) => claim_of(write).map_or(Subject::Other, Subject::Claim),
            Self::Binding(call) => written_claim(call).map_or_else(|| of_pod(&call.pod), Subject::Claim),
            Self::Status { pod, .. } => of_pod(pod),
        }
    }

    async fn make(self, client: &Client) -> Answer {
        match self {
            Self::Binding(call) => {
                let answer = pod_calls::carry_out(client, &call).await;
                Answer::Binding(call, answer)
            }
            Self::Claim(write) => Answer::Claim(carry_out(client, &write).await),
            Self::Status { pod, command, since } => {
                let answer = pod_calls::write_status(client, &pod, &command, since).await;
                Answer::Pod(pod, answer.map(Box::new))
            }
        }
    }
}

/// Returns the claim that a call of a binding is about.
pub(super) fn written_claim(call: &BindingCall) -> Option<ClaimKey> {
    match &call.request {
        BindingRequest::Claim(write) => claim_of(write),
        _ => None,
    }
}

/// Returns the claim that a write is about; `None` if it has no name yet, or the write is about a pod.
pub(super) fn claim_of(write: &ClaimWrite) -> Option<ClaimKey> {
    match write {
        ClaimWrite::Update { claim } | ClaimWrite::UpdateStatus { claim } => {
            Some(ClaimKey::from_metadata(&claim.metadata))
        }
        ClaimWrite::PatchReservation { namespace, name, .. }
        | ClaimWrite::Delete { namespace, name, .. }
        | ClaimWrite::Get { namespace, name } => Some(ClaimKey::new(namespace, name)),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use nnn::memory::NominationAnswer;
    use serde_json::{from_value, json};

    use super::*;

    /// Memory with the pods `a` and `b`, whose nominations were lost.
    fn memory(nominations: [Option<&str>; 2]) -> PodMemory {
        let mut pods = PodMemory::default();
        for (name, node) in ["a", "b"].into_iter().zip(nominations) {
            let status = json!({"nominatedNodeName": "before"});
            let pod = json!({"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": "1"}, "status": status});
            pods.observe(from_value::<Pod>(pod).unwrap()).unwrap();
            pods.nominate(name, node).unwrap();
            pods.answer_nomination(name, NominationAnswer::Lost).unwrap();
        }
        pods
    }

    fn commands(calls: VecDeque<Call>) -> Vec<Command> {
        let command = |call| match call {
            Call::Status { command, .. } => Some(command),
            _ => None,
        };
        calls.into_iter().filter_map(command).collect()
    }

    #[test]
    fn a_nomination_in_doubt_is_written_as_it_was() {
        let (a, b) = (PodKey::new("ns", "a", "a"), PodKey::new("ns", "b", "b"));
        let cleared = Command::ClearNnn { pod: a.clone() };
        let written = Command::PatchNnn { pod: b.clone(), node: "n".to_owned() };
        let pods = memory([None, Some("n")]);
        assert_eq!(commands(Call::in_doubt(&pods, |_| false)), [cleared, written.clone()]);
        assert_eq!(commands(Call::in_doubt(&pods, |pod| *pod == a)), [written], "a binding settles its own");
        assert_eq!(commands(Call::in_doubt(&memory([Some("before"), Some("n")]), |pod| *pod == b)).len(), 1);
    }
}
