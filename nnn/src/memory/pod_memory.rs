//! The memory of pods.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::answer::{AssumeError, BindingAnswer, NominationAnswer, PodChange};
use super::known_pod::{Answer, KnownPod, OwnBinding, OwnNomination, Progress, has_ended, key_of, version_of};
use super::node_pods::PodsByNode;
use super::node_usage::NodeUsage;
use super::pod_index::{PodIndex, claims_of, group_of};
use super::pod_usage::PodUsage;
use super::stage::PodStage;
use crate::pod::{PodError, PodKey};

/// Memory of one scheduler about the pods of a cluster.
///
/// A pod is what the watch shows of it, or what this scheduler has written since: an assumed node, a binding, a nomination.
/// A write counts until the watch shows it, whatever older objects say; a binding is never undone for a UID. Objects
/// come late, twice, and of pods that were created anew under the name of others. See the [module](super) for an example.
#[derive(Clone, Debug, Default)]
pub struct PodMemory {
    /// Pods by namespace and name.
    pods: BTreeMap<String, BTreeMap<String, KnownPod>>,
    /// Namespace and name by UID.
    by_uid: BTreeMap<String, PodKey>,
    by_node: PodsByNode,
    by_claim: PodIndex,
    by_group: PodIndex,
    /// Pods with an answer that was lost.
    in_doubt: BTreeSet<PodKey>,
}

impl PodMemory {
    /// Records a pod that the watch or a list shows. An object that is not newer than the known one changes
    /// nothing, whatever its UID. One with another UID replaces the one of its name.
    ///
    /// # Errors
    /// A pod without name or UID, which is left out; or an amount that is not a quantity: the pod is known then, and takes
    /// nothing of its node.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods, for each claim, resource and port of the pod.
    pub fn observe(&mut self, pod: impl Into<Arc<Pod>>) -> Result<PodChange, PodError> {
        let pod = pod.into();
        let key = key_of(&pod)?;
        let known = self.at(&key.namespace, &key.name).map(|known| (known.key.uid == key.uid, version_of(&known.pod)));
        match known {
            Some((true, _)) => {}
            Some((false, version)) if is_older(version_of(&pod), version) => return Ok(PodChange::Older),
            Some((false, _)) | None => {
                self.forget(&key.namespace, &key.name);
                self.by_uid.insert(key.uid.clone(), key.clone());
                let names = self.pods.entry(key.namespace.clone()).or_default();
                names.insert(key.name.clone(), KnownPod::new(key.clone(), Arc::clone(&pod)));
                self.index(&key, &pod);
                return self.count(&key.uid).map(|()| PodChange::Added);
            }
        }
        let mut before = None;
        let change = self.change(&key.uid, |known| {
            before = Some(Arc::clone(&known.pod));
            known.show(pod)
        });
        if let (Some(before), Some(now)) = (before, self.pod(&key.namespace, &key.name).map(Arc::clone)) {
            self.unindex(&key, &before);
            self.index(&key, &now);
        }
        change.map(|change| change.unwrap_or(PodChange::Same))
    }

    /// Records a pod that an answer shows, ahead of the watch. As [`PodMemory::observe`], but a pod of a name that is not known changes
    /// nothing ([`PodChange::Older`]): the watch has shown since that it is gone, and would not say so again.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use nnn::PodKey;
    /// use nnn::memory::{PodChange, PodMemory};
    /// use serde_json::{from_value, json};
    ///
    /// let pod: Pod = from_value(json!({"metadata": {"namespace": "default", "name": "web", "uid": "u-1"}}))?;
    /// let mut memory = PodMemory::default();
    /// memory.observe(pod.clone())?;
    /// memory.observe_deleted(&PodKey::new("default", "web", "u-1"));
    /// // The answer to a call before the deletion comes late.
    /// assert_eq!(memory.observe_answer(pod)?, PodChange::Older);
    /// assert_eq!(memory.stage("u-1"), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`PodMemory::observe`].
    pub fn observe_answer(&mut self, pod: impl Into<Arc<Pod>>) -> Result<PodChange, PodError> {
        let pod = pod.into();
        let key = key_of(&pod)?;
        if self.at(&key.namespace, &key.name).is_none() { Ok(PodChange::Older) } else { self.observe(pod) }
    }

    /// Records that a pod is deleted. Returns false if the known pod of its name has another UID, or there is none.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods.
    pub fn observe_deleted(&mut self, pod: &PodKey) -> bool {
        let is_it = self.at(&pod.namespace, &pod.name).is_some_and(|known| known.key.uid == pod.uid);
        if is_it {
            self.forget(&pod.namespace, &pod.name);
        }
        is_it
    }

    /// Records a new list of all pods. A pod that is not in it is gone, unless it is known in a version after `version`, the
    /// `resourceVersion` of the list; without a version it is gone in any case. What was assumed or written for the pods of the
    /// list stays.
    ///
    /// # Errors
    /// The first pod that can't be read, as for [`PodMemory::observe`]. All others are recorded.
    ///
    /// # Complexity
    /// That of [`PodMemory::observe`] for each pod of the list.
    pub fn replace<P: Into<Arc<Pod>>>(
        &mut self,
        pods: impl IntoIterator<Item = P>,
        version: Option<&str>,
    ) -> Result<(), PodError> {
        let (mut listed, mut first) = (BTreeSet::new(), Ok(()));
        for pod in pods {
            let pod = pod.into();
            listed.extend(pod.metadata.uid.clone());
            let seen = self.observe(pod).map(drop);
            first = first.and(seen);
        }
        let version: Option<u64> = version.and_then(|version| version.parse().ok());
        let is_later = |known: &KnownPod| is_older(version, version_of(&known.pod)) && version.is_some();
        let gone = self.all().filter(|known| !listed.contains(&known.key.uid) && !is_later(known));
        for key in gone.map(|known| known.key.clone()).collect::<Vec<_>>() {
            self.forget(&key.namespace, &key.name);
        }
        first
    }

    /// Assumes a pod on a node: from now on it takes `usage` of it, before anything is written. Once the watch shows the pod bound,
    /// it takes the amounts in its spec and status: what its claims take of the node has to be in its status by then
    /// (`nodeAllocatableResourceClaimStatuses`, KEP-5517).
    ///
    /// # Errors
    /// The pod is not known, has a node already, or is going.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods.
    pub fn assume(&mut self, uid: &str, node: &str, usage: PodUsage) -> Result<(), AssumeError> {
        let known = self.known(uid).ok_or_else(|| AssumeError::Unknown { uid: uid.to_owned() })?;
        if let Some(node) = known.stage().placed_on() {
            return Err(AssumeError::Placed { node: node.to_owned() });
        }
        if known.pod.metadata.deletion_timestamp.is_some() || has_ended(&known.pod) {
            return Err(AssumeError::Gone);
        }
        let own = OwnBinding { node: node.to_owned(), usage, progress: Progress::Open };
        // What the binding takes is given: nothing is read anew.
        let _ = self.change(uid, |known| known.binding = Some(own));
        Ok(())
    }

    /// Takes the assumption of a pod back whose binding was never sent. Returns false if there is none, or its binding may be
    /// stored.
    ///
    /// # Errors
    /// An amount of the pod is not a quantity: its nomination takes nothing then.
    pub fn forget_assumed(&mut self, uid: &str) -> Result<bool, PodError> {
        let is_open = |own: &OwnBinding| own.progress == Progress::Open;
        if !self.known(uid).is_some_and(|known| known.binding.as_ref().is_some_and(is_open)) {
            return Ok(false);
        }
        self.change(uid, |known| known.binding = None).map(|_| true)
    }

    /// Records the answer to the binding of an assumed pod. Nothing happens if the watch has shown the end of it already.
    ///
    /// A binding that is stored counts until the watch shows it. One whose answer is lost may be stored: the pod stays where it
    /// was assumed, in doubt ([`PodMemory::in_doubt`]), until the binding is answered with `Stored`, the watch shows the pod
    /// bound or deleted, or [`PodMemory::settle`] says that it was not stored.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods.
    pub fn answer_binding(&mut self, uid: &str, answer: BindingAnswer) {
        // What is counted was read before, or is given.
        let _ = self.change(uid, |known| {
            let Some(own) = &mut known.binding else { return };
            match (answer, own.progress) {
                (_, Progress::Stored) | (BindingAnswer::Refused, Progress::InDoubt) => {}
                (BindingAnswer::Stored, _) => {
                    own.progress = Progress::Stored;
                    // The server clears it with the binding, and nobody writes it once more.
                    known.nomination = None;
                }
                (BindingAnswer::Lost, _) => own.progress = Progress::InDoubt,
                (BindingAnswer::Refused, Progress::Open) => known.binding = None,
            }
        });
    }

    /// Records a pod that was read after a binding in doubt can't be stored any more: later than the server works on a request,
    /// a minute by default. If the pod has no node then, the binding was not stored.
    ///
    /// # Errors
    /// As for [`PodMemory::observe`].
    pub fn settle(&mut self, pod: impl Into<Arc<Pod>>) -> Result<PodChange, PodError> {
        let pod = pod.into();
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let change = self.observe_answer(pod)?;
        let is_in_doubt = |own: &OwnBinding| own.progress == Progress::InDoubt;
        if change != PodChange::Older {
            self.change(&uid, |known| drop(known.binding.take_if(|own| is_in_doubt(own))))?;
        }
        Ok(change)
    }

    /// Records that this scheduler writes a nomination; `None` clears it. It counts from now on, whatever older objects say. The
    /// nominations of a pod are written one after the other, each once the one before is answered. A pod that is bound, or has
    /// ended, is not nominated: nothing happens.
    ///
    /// # Errors
    /// An amount of the pod is not a quantity: nothing is promised to it then.
    pub fn nominate(&mut self, uid: &str, node: Option<&str>) -> Result<(), PodError> {
        let node = node.filter(|node| !node.is_empty()).map(str::to_owned);
        let own = OwnNomination { node, answer: Answer::Awaited };
        let change = self.change(uid, |known| {
            if !matches!(known.stage(), PodStage::Bound { .. } | PodStage::Ended) {
                known.nomination = Some(own);
            }
        });
        change.map(drop)
    }

    /// Records the answer to the write of a nomination. A refused one counts no more; one whose answer is lost stays, in doubt.
    ///
    /// # Errors
    /// An amount of the pod is not a quantity: nothing is promised to it then.
    pub fn answer_nomination(&mut self, uid: &str, answer: NominationAnswer<'_>) -> Result<(), PodError> {
        let change = self.change(uid, |known| match (answer, &mut known.nomination) {
            (_, None) => {}
            (NominationAnswer::Refused, nomination) => *nomination = None,
            (NominationAnswer::Lost, Some(own)) => own.answer = Answer::Lost,
            (NominationAnswer::Stored { version }, Some(own)) => {
                let version = version.parse().ok();
                own.answer = Answer::Stored(version);
                if version.is_some_and(|version| version_of(&known.pod).is_some_and(|seen| seen >= version)) {
                    known.nomination = None;
                }
            }
        });
        change.map(drop)
    }

    /// Returns the pods with a write whose answer was lost, by namespace and name. Write it once more: the binding of a pod in
    /// [`PodStage::InDoubt`] to the same node, or else the nomination of [`PodMemory::nomination`], which is cleared if there is
    /// none. Nobody else does it where no binding of the pod is open and no node fits it any more.
    pub fn in_doubt(&self) -> impl Iterator<Item = &PodKey> {
        self.in_doubt.iter()
    }

    /// Returns a pod as it was seen last.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods.
    #[must_use]
    pub fn pod(&self, namespace: &str, name: &str) -> Option<&Arc<Pod>> {
        self.at(namespace, name).map(|known| &known.pod)
    }

    /// Returns the stage of a pod; `None` for a UID without a pod.
    ///
    /// # Complexity
    /// Logarithmic in the number of pods.
    #[must_use]
    pub fn stage(&self, uid: &str) -> Option<PodStage<'_>> {
        self.known(uid).map(KnownPod::stage)
    }

    /// Returns the node in the nomination of a pod, as written last or else seen last; `None` for a pod that is bound.
    #[must_use]
    pub fn nomination(&self, uid: &str) -> Option<&str> {
        let known = self.known(uid)?;
        known.nominated_to().filter(|_| !matches!(known.stage(), PodStage::Bound { .. } | PodStage::Ended))
    }

    /// Returns all pods with their stages, by namespace and name.
    pub fn pods(&self) -> impl Iterator<Item = (&Arc<Pod>, PodStage<'_>)> {
        self.all().map(|known| (&known.pod, known.stage()))
    }

    /// Returns the pods that take something of a node, bound or on their way to it, by namespace and name.
    pub fn pods_on(&self, node: &str) -> impl Iterator<Item = &Arc<Pod>> {
        self.by_node.placed(node).filter_map(|key| self.pod(&key.namespace, &key.name))
    }

    /// Returns the pods that wait and are nominated to a node, by namespace and name.
    pub fn pods_nominated_to(&self, node: &str) -> impl Iterator<Item = &Arc<Pod>> {
        self.by_node.promised(node).filter_map(|key| self.pod(&key.namespace, &key.name))
    }

    /// Returns all pods that wait and are nominated, by namespace and name, each with the name of its node. Nothing else is looked at.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use nnn::memory::PodMemory;
    /// use serde_json::{from_value, json};
    ///
    /// let mut memory = PodMemory::default();
    /// for (name, node) in [("web", json!("node-1")), ("db", json!(null))] {
    ///     let metadata = json!({"namespace": "default", "name": name, "uid": name});
    ///     memory.observe(from_value::<Pod>(json!({"metadata": metadata, "status": {"nominatedNodeName": node}}))?)?;
    /// }
    /// let nominated: Vec<_> = memory.nominated_pods().map(|(pod, node)| (pod.metadata.name.as_deref(), node)).collect();
    /// assert_eq!(nominated, [(Some("web"), "node-1")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn nominated_pods(&self) -> impl Iterator<Item = (&Arc<Pod>, &str)> {
        let promised = self.by_node.all_promised();
        promised.filter_map(|(key, node)| Some((self.pod(&key.namespace, &key.name)?, node)))
    }

    /// Returns the pods that use a claim of their namespace, by name.
    pub fn pods_with_claim(&self, namespace: &str, claim: &str) -> impl Iterator<Item = &Arc<Pod>> {
        self.by_claim.of(namespace, claim).filter_map(|key| self.pod(&key.namespace, &key.name))
    }

    /// Returns the pods of a group of their namespace, by name.
    pub fn pods_of_group(&self, namespace: &str, group: &str) -> impl Iterator<Item = &Arc<Pod>> {
        self.by_group.of(namespace, group).filter_map(|key| self.pod(&key.namespace, &key.name))
    }

    /// Returns what the pods on a node take of it.
    ///
    /// # Complexity
    /// Logarithmic in the number of nodes with pods.
    #[must_use]
    pub fn usage(&self, node: &str) -> &NodeUsage {
        self.by_node.usage(node)
    }

    /// Returns what is taken of a node for a pod: by the pods there, and by those of at least its priority that are nominated to
    /// the node; never by itself.
    ///
    /// # Complexity
    /// Linear in the nominations to the node. Nothing is copied if none counts.
    #[must_use]
    pub fn usage_for(&self, pod: &Pod, node: &str) -> Cow<'_, NodeUsage> {
        let counts =
            |other: &KnownPod| priority(&other.pod) >= priority(pod) && other.pod.metadata.uid != pod.metadata.uid;
        let promised = self.by_node.promised(node).filter_map(|key| self.at(&key.namespace, &key.name));
        let mut usage = Cow::Borrowed(self.usage(node));
        for used in promised.filter(|other| counts(other)).filter_map(|other| other.counted.as_ref()) {
            usage.to_mut().add(&used.usage);
        }
        usage
    }

    /// Returns the nodes whose pods, or nominations, have changed since the last call.
    pub fn take_changed_nodes(&mut self) -> BTreeSet<String> {
        self.by_node.take_changed()
    }

    fn all(&self) -> impl Iterator<Item = &KnownPod> {
        self.pods.values().flat_map(BTreeMap::values)
    }

    fn at(&self, namespace: &str, name: &str) -> Option<&KnownPod> {
        self.pods.get(namespace)?.get(name)
    }

    fn known(&self, uid: &str) -> Option<&KnownPod> {
        let key = self.by_uid.get(uid)?;
        self.at(&key.namespace, &key.name)
    }

    fn known_mut(&mut self, uid: &str) -> Option<&mut KnownPod> {
        let key = self.by_uid.get(uid)?;
        self.pods.get_mut(&key.namespace)?.get_mut(&key.name)
    }

    /// Changes what is known of a pod, and counts it anew.
    fn change<T>(&mut self, uid: &str, change: impl FnOnce(&mut KnownPod) -> T) -> Result<Option<T>, PodError> {
        let Some(known) = self.known_mut(uid) else { return Ok(None) };
        let result = change(known);
        self.count(uid).map(|()| Some(result))
    }

    /// Counts a pod at its node as it is now.
    fn count(&mut self, uid: &str) -> Result<(), PodError> {
        let Some(known) = self.known(uid) else { return Ok(()) };
        let (key, before, now) = (known.key.clone(), known.counted.clone(), known.usage());
        let is_in_doubt = known.binding.as_ref().is_some_and(|own| own.progress == Progress::InDoubt)
            || known.nomination.as_ref().is_some_and(|own| own.answer == Answer::Lost);
        let (now, problem) = match now {
            Ok(now) => (now, Ok(())),
            Err(error) => (None, Err(error)),
        };
        if before != now {
            if let Some(before) = &before {
                self.by_node.remove(&key, before);
            }
            if let Some(now) = &now {
                self.by_node.add(&key, now);
            }
        }
        if is_in_doubt {
            self.in_doubt.insert(key);
        } else {
            self.in_doubt.remove(&key);
        }
        if let Some(known) = self.known_mut(uid) {
            known.counted = now;
        }
        problem
    }

    fn forget(&mut self, namespace: &str, name: &str) {
        let Some(names) = self.pods.get_mut(namespace) else { return };
        let Some(known) = names.remove(name) else { return };
        if names.is_empty() {
            self.pods.remove(namespace);
        }
        self.by_uid.remove(&known.key.uid);
        self.in_doubt.remove(&known.key);
        if let Some(counted) = &known.counted {
            self.by_node.remove(&known.key, counted);
        }
        self.unindex(&known.key, &known.pod);
    }

    fn index(&mut self, key: &PodKey, pod: &Pod) {
        self.by_claim.add(key, claims_of(pod));
        self.by_group.add(key, group_of(pod));
    }

    fn unindex(&mut self, key: &PodKey, pod: &Pod) {
        self.by_claim.remove(key, claims_of(pod));
        self.by_group.remove(key, group_of(pod));
    }
}

/// Returns true if both versions are numbers, and the first is lower.
fn is_older(version: Option<u64>, than: Option<u64>) -> bool {
    version.zip(than).is_some_and(|(version, than)| version < than)
}

fn priority(pod: &Pod) -> i32 {
    pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default()
}
