//! Pods of the node: prepared before they run, unprepared before they go.

use std::time::Instant;

use dra_alloc::kubelet::{ClaimCache, Operation};
use dra_live::failure::{Trouble, text, trouble};
use dra_live::now;
use dra_live::retry::answered;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Error};
use serde_json::{Value, json};

use super::super::agent::{AgentError, Done};
use super::super::line::Line;
use super::{ClusterError, LiveError, NodeAgent, key_of, note, uid_of};

/// Reason of the event about a pod whose claims can't be prepared.
const FAILED_PREPARE: &str = "FailedPrepareDynamicResources";

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Whom the kubelet works on.
#[derive(Debug)]
pub(super) enum Subject {
    /// A pod of the node, as it was when the work began.
    Pod(Box<Pod>),
    /// A pod that is gone without having been seen to go, and whose claims are prepared.
    Orphan,
}

fn is_leaving(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Returns true if something is to be done about a pod, which may have been said to run.
pub(super) fn needs_work(pod: &Pod, was_said_to_run: bool) -> bool {
    is_leaving(pod) || has_ended(pod) || !was_said_to_run
}

impl NodeAgent<'_> {
    /// Does what is next for a pod.
    pub(super) async fn work_on(&self, uid: &str, subject: Subject) -> Result<(), LiveError> {
        match subject {
            Subject::Orphan => self.unprepare_orphan(uid).await,
            Subject::Pod(pod) if is_leaving(&pod) || has_ended(&pod) => self.stop(&pod).await,
            Subject::Pod(pod) => self.start(&pod).await,
        }
    }

    async fn start(&self, pod: &Pod) -> Result<(), LiveError> {
        let (uid, key) = (uid_of(pod), key_of(pod));
        let claims = match self.claims_of(pod).await {
            Ok(claims) => claims,
            Err(error) => {
                let message = format!("claims not read: {error}");
                note(format_args!("{key}: {message}"));
                self.delay(&uid);
                self.events.warning(&self.cluster.client, &key, FAILED_PREPARE, &message).await;
                return Ok(());
            }
        };
        if let Some(version) = &self.admission
            && let Err(error) = self.agent.admit(pod, &claims, version)
        {
            let status = json!({"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": error.to_string()});
            self.write_status(pod, status).await;
            self.delay(&uid);
            return Ok(());
        }
        let begin = Instant::now();
        let outcome = self.agent.prepare(pod, &claims).await;
        self.counts.observe(&self.agent, Operation::Prepare, outcome.is_err(), begin.elapsed());
        match outcome {
            // Without its file the kubelet must not go on.
            Err(error @ AgentError::StateFile(_)) => self.fail_on_disk(pod, error).await,
            Err(error) => {
                note(format_args!("{key}: {error}"));
                self.delay(&uid);
                self.events.warning(&self.cluster.client, &key, FAILED_PREPARE, &error.to_string()).await;
                Ok(())
            }
            Ok(done) => {
                self.show(&done)?;
                let time = now().to_string();
                let container = |name: &str| {
                    json!({"name": name, "ready": true, "started": true, "restartCount": 0, "image": "", "imageID": "",
                        "state": {"running": {"startedAt": time}}})
                };
                let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
                let statuses: Vec<Value> = containers.map(|found| container(&found.name)).collect();
                let ready = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": time});
                let conditions = ["PodReadyToStartContainers", "ContainersReady", "Ready"].map(ready);
                let status = json!({"phase": "Running", "startTime": time, "conditions": conditions,
                    "containerStatuses": statuses});
                if self.write_status(pod, status).await {
                    let mut view = self.view.borrow_mut();
                    view.delayed.remove(&uid);
                    view.running.insert(uid);
                    self.tell(&Line::Runs { pod: key.to_string(), devices: self.devices_of(pod) })?;
                }
                Ok(())
            }
        }
    }

    /// Unprepares the claims of a pod, and lets a pod that is being deleted go.
    async fn stop(&self, pod: &Pod) -> Result<(), LiveError> {
        let (uid, key) = (uid_of(pod), key_of(pod));
        let begin = Instant::now();
        let outcome = self.agent.unprepare(pod).await;
        self.counts.observe(&self.agent, Operation::Unprepare, outcome.is_err(), begin.elapsed());
        match outcome {
            Err(error @ AgentError::StateFile(_)) => return self.fail_on_disk(pod, error).await,
            Err(error) => {
                note(format_args!("{key}: {error}"));
                self.delay(&uid);
                self.events
                    .warning(&self.cluster.client, &key, "FailedUnprepareDynamicResources", &error.to_string())
                    .await;
                return Ok(());
            }
            Ok(done) => self.show(&done)?,
        }
        self.view.borrow_mut().running.remove(&uid);
        if !is_leaving(pod) {
            // Its claims are free; the object is somebody else's.
            self.delay(&uid);
            return Ok(());
        }
        let pods: Api<Pod> = Api::namespaced(self.cluster.client.clone(), &key.namespace);
        let same = Preconditions { uid: Some(uid.clone()), resource_version: None };
        let params = DeleteParams::default().grace_period(0).preconditions(same);
        match answered(|| pods.delete(&key.name, &params)).await.outcome {
            Err(error) if !is_gone(&error) => {
                note(format_args!("{key}: not removed: {}", text(&error)));
                self.delay(&uid);
            }
            _ => {
                self.tell(&Line::Gone { pod: key.to_string() })?;
                self.view.borrow_mut().pods.remove(&uid);
            }
        }
        Ok(())
    }

    async fn unprepare_orphan(&self, uid: &str) -> Result<(), LiveError> {
        let held = self.agent.cache().claims().values().flat_map(|info| info.pods.clone()).collect::<Vec<_>>();
        let others = held.into_iter().filter(|other| other != uid).collect();
        let begin = Instant::now();
        for (_, outcome) in self.agent.reconcile(&others).await? {
            self.counts.observe(&self.agent, Operation::Unprepare, outcome.is_err(), begin.elapsed());
            match outcome {
                Ok(done) => self.show(&done)?,
                Err(error) => {
                    note(format_args!("pod {uid}, which is gone: {error}"));
                    self.delay(uid);
                }
            }
        }
        Ok(())
    }

    fn delay(&self, uid: &str) {
        self.view.borrow_mut().delay(uid);
    }

    fn show(&self, done: &Done) -> Result<(), LiveError> {
        Ok(Line::of_calls(done).try_for_each(|line| self.tell(&line))?)
    }

    /// Ends the kubelet if its checkpoint can't be written: what it prepares next would not be known after a crash.
    async fn fail_on_disk(&self, pod: &Pod, error: AgentError) -> Result<(), LiveError> {
        self.events.warning(&self.cluster.client, &key_of(pod), FAILED_PREPARE, &error.to_string()).await;
        Err(error.into())
    }

    /// Reads the claims of a pod. One that is not there is left out: who prepares the pod misses it.
    async fn claims_of(&self, pod: &Pod) -> Result<Vec<ResourceClaim>, ClusterError> {
        let mut claims = Vec::new();
        for named in ClaimCache::claims_of_pod(pod, self.options).flatten() {
            let api: Api<ResourceClaim> = Api::namespaced(self.cluster.client.clone(), &named.claim.namespace);
            match answered(|| api.get(&named.claim.name)).await.outcome {
                Ok(claim) => claims.push(claim),
                Err(error) if trouble(&error) == Trouble::Missing => {}
                Err(error) => return Err(ClusterError::from_call("get", "resourceclaims", &error)),
            }
        }
        Ok(claims)
    }

    fn devices_of(&self, pod: &Pod) -> Vec<String> {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        containers.flat_map(|container| self.agent.container_devices(pod, container).unwrap_or_default()).collect()
    }

    /// Writes the status of a pod; returns false if that has to be tried again.
    async fn write_status(&self, pod: &Pod, status: Value) -> bool {
        let key = key_of(pod);
        let pods: Api<Pod> = Api::namespaced(self.cluster.client.clone(), &key.namespace);
        let patch = Patch::Strategic(json!({"metadata": {"uid": key.uid}, "status": status}));
        let params = PatchParams::default();
        let written = answered(|| pods.patch_status(&key.name, &params, &patch)).await.outcome;
        if let Err(error) = &written {
            note(format_args!("{key}: status not written: {}", text(error)));
            self.delay(&key.uid);
        }
        written.is_ok()
    }
}

fn is_gone(error: &Error) -> bool {
    matches!(trouble(error), Trouble::Missing | Trouble::Conflict)
}
