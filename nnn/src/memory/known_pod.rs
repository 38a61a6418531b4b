//! One pod of the memory: the object as it was seen last, and what this scheduler has written since.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::answer::PodChange;
use super::node_pods::Use;
use super::pod_usage::PodUsage;
use super::stage::PodStage;
use crate::pod::{PodError, PodKey, parse_node_name};

/// Binding that this scheduler is making, or has made.
#[derive(Clone, Debug)]
pub(super) struct OwnBinding {
    pub(super) node: String,
    pub(super) usage: PodUsage,
    pub(super) progress: Progress,
}

/// Knowledge about the binding that this scheduler sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing is known to be stored.
    Open,
    /// An answer was lost.
    InDoubt,
    /// The binding is stored, and the watch has not shown it yet.
    Stored,
}

/// Nomination that this scheduler has written, until the watch shows it.
#[derive(Clone, Debug)]
pub(super) struct OwnNomination {
    pub(super) node: Option<String>,
    pub(super) answer: Answer,
}

/// Answer to the write of a nomination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// There is none yet.
    Awaited,
    /// Nobody knows.
    Lost,
    /// It is stored, in this version of the pod if the answer tells it.
    Stored(Option<u64>),
}

/// A pod with all that is known of it.
#[derive(Clone, Debug)]
pub(super) struct KnownPod {
    pub(super) key: PodKey,
    pub(super) pod: Arc<Pod>,
    pub(super) binding: Option<OwnBinding>,
    pub(super) nomination: Option<OwnNomination>,
    /// Entry of the pod in the counts of nodes.
    pub(super) counted: Option<Use>,
}

impl KnownPod {
    pub(super) const fn new(key: PodKey, pod: Arc<Pod>) -> Self {
        Self { key, pod, binding: None, nomination: None, counted: None }
    }

    /// Takes a newer object of the same pod.
    pub(super) fn show(&mut self, pod: Arc<Pod>) -> PodChange {
        if let (Some(known), Some(new)) = (version_of(&self.pod), version_of(&pod)) {
            match new.cmp(&known) {
                std::cmp::Ordering::Less => return PodChange::Older,
                std::cmp::Ordering::Equal => return PodChange::Same,
                std::cmp::Ordering::Greater => {}
            }
        }
        self.pod = pod;
        // Without the version in an answer, the value alone tells that the write is stored.
        let has_shown = |own: &OwnNomination| match own.answer {
            Answer::Awaited => false,
            Answer::Stored(Some(version)) => version_of(&self.pod).is_some_and(|shown| shown >= version),
            Answer::Stored(None) | Answer::Lost => own.node.as_deref() == nomination_of(&self.pod),
        };
        if self.nomination.as_ref().is_some_and(has_shown) {
            self.nomination = None;
        }
        if has_ended(&self.pod) {
            (self.binding, self.nomination) = (None, None);
        }
        let Some(node) = node_of(&self.pod) else { return PodChange::Changed };
        self.nomination = None;
        match self.binding.take() {
            Some(own) if own.node != node => PodChange::BoundElsewhere { assumed: own.node },
            _ => PodChange::Changed,
        }
    }

    pub(super) fn stage(&self) -> PodStage<'_> {
        if has_ended(&self.pod) {
            return PodStage::Ended;
        }
        if let Some(node) = node_of(&self.pod) {
            return PodStage::Bound { node };
        }
        match (&self.binding, self.nominated_to()) {
            (Some(OwnBinding { node, progress: Progress::Open, .. }), _) => PodStage::Assumed { node },
            (Some(OwnBinding { node, progress: Progress::InDoubt, .. }), _) => PodStage::InDoubt { node },
            (Some(OwnBinding { node, progress: Progress::Stored, .. }), _) => PodStage::Bound { node },
            (None, Some(node)) => PodStage::Nominated { node },
            (None, None) => PodStage::Waiting,
        }
    }

    /// Returns the node in the pod's nomination, as written last or seen last.
    pub(super) fn nominated_to(&self) -> Option<&str> {
        self.nomination.as_ref().map_or_else(|| nomination_of(&self.pod), |own| own.node.as_deref())
    }

    /// Returns what the pod takes, or is promised, of which node; `None` if nothing.
    pub(super) fn usage(&self) -> Result<Option<Use>, PodError> {
        let used = match self.stage() {
            PodStage::Waiting | PodStage::Ended => return Ok(None),
            PodStage::Nominated { node } => {
                Use { node: node.to_owned(), is_promised: true, usage: PodUsage::wanted_by(&self.pod)? }
            }
            stage => {
                let node = stage.placed_on().unwrap_or_default().to_owned();
                let own = self.binding.as_ref().map(|own| own.usage.clone());
                Use { node, is_promised: false, usage: own.map_or_else(|| PodUsage::held_by(&self.pod), Ok)? }
            }
        };
        Ok(Some(used))
    }
}

pub(super) fn version_of(pod: &Pod) -> Option<u64> {
    pod.metadata.resource_version.as_deref()?.parse().ok()
}

/// Returns the node that a pod is bound to.
fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
}

fn nomination_of(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.nominated_node_name.as_deref().filter(|node| !node.is_empty())
}

pub(super) fn has_ended(pod: &Pod) -> bool {
    matches!(pod.status.as_ref().and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed"))
}

/// Reads the identity of a pod.
pub(super) fn key_of(pod: &Pod) -> Result<PodKey, PodError> {
    let required = |field, value: &Option<String>| parse_node_name(value.as_deref()).ok_or(PodError::Missing { field });
    Ok(PodKey {
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        name: required("metadata.name", &pod.metadata.name)?,
        uid: required("metadata.uid", &pod.metadata.uid)?,
    })
}
