//! Pods of the node: prepared before they run, unprepared before they go.

use std::collections::BTreeSet;

use dra_alloc::kubelet::claims_of_pod;
use examples::live::failure::{Trouble, text, trouble};
use examples::live::now;
use examples::live::retry::answered;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Error};
use serde_json::{Value, json};

use super::super::agent::AgentError;
use super::super::{print, show};
use super::{LiveError, NodeAgent, key_of, note, uid_of};

/// Reason of the event about a pod whose claims can't be prepared.
const FAILED_PREPARE: &str = "FailedPrepareDynamicResources";

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn has_ended(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

impl NodeAgent<'_> {
    /// Does what is next for a pod.
    pub(super) async fn look_at(&mut self, pod: &Pod) -> Result<(), LiveError> {
        let uid = uid_of(pod);
        let is_leaving = pod.metadata.deletion_timestamp.is_some();
        if is_leaving || has_ended(pod) {
            return self.stop(pod, is_leaving).await;
        }
        if self.running.contains(&uid) && phase(pod) == "Running" {
            return Ok(());
        }
        self.start(pod).await
    }

    async fn start(&mut self, pod: &Pod) -> Result<(), LiveError> {
        let (uid, key) = (uid_of(pod), key_of(pod));
        let claims = self.claims_of(pod);
        if let Some(version) = &self.admission
            && let Err(error) = self.agent.admit(pod, &claims, version)
        {
            let status = json!({"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": error.to_string()});
            return self.write_status(pod, status).await.map(drop);
        }
        match self.agent.prepare(pod, &claims).await {
            // Without its file the kubelet must not go on.
            Err(error @ AgentError::StateFile(_)) => self.fail_on_disk(pod, error).await,
            Err(error) => {
                note(format_args!("{key}: {error}"));
                self.delay(Some(&uid));
                self.events.warning(&self.cluster.client, &key, FAILED_PREPARE, &error.to_string()).await;
                Ok(())
            }
            Ok(done) => {
                show(&done)?;
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
                if self.write_status(pod, status).await? {
                    self.running.insert(uid);
                    print(&format!("{key}: runs with {}", self.devices_of(pod)))?;
                }
                Ok(())
            }
        }
    }

    /// Unprepares the claims of a pod, and lets a pod that is being deleted go.
    async fn stop(&mut self, pod: &Pod, is_leaving: bool) -> Result<(), LiveError> {
        let (uid, key) = (uid_of(pod), key_of(pod));
        match self.agent.unprepare(pod).await {
            Err(error @ AgentError::StateFile(_)) => return self.fail_on_disk(pod, error).await,
            Err(error) => {
                note(format_args!("{key}: {error}"));
                self.delay(Some(&uid));
                self.events
                    .warning(&self.cluster.client, &key, "FailedUnprepareDynamicResources", &error.to_string())
                    .await;
                return Ok(());
            }
            Ok(done) => show(&done)?,
        }
        self.running.remove(&uid);
        if !is_leaving {
            // Its claims are free; the object is somebody else's.
            self.delay(Some(&uid));
            return Ok(());
        }
        let pods: Api<Pod> = Api::namespaced(self.cluster.client.clone(), &key.namespace);
        let same = Preconditions { uid: Some(uid.clone()), resource_version: None };
        let params = DeleteParams::default().grace_period(0).preconditions(same);
        match answered(|| pods.delete(&key.name, &params)).await.outcome {
            Err(error) if !is_gone(&error) => {
                note(format_args!("{key}: not removed: {}", text(&error)));
                self.delay(Some(&uid));
            }
            _ => {
                print(&format!("{key}: gone"))?;
                self.pods.remove(&uid);
            }
        }
        Ok(())
    }

    /// Unprepares the claims of pods that are gone without having been seen to go.
    pub(super) async fn unprepare_orphans(&mut self) -> Result<(), LiveError> {
        let active: BTreeSet<String> = self.pods.keys().cloned().collect();
        let has_orphans =
            self.agent.cache().claims().values().any(|info| info.pods.iter().any(|pod| !active.contains(pod)));
        if !has_orphans || !self.is_due(None) {
            return Ok(());
        }
        let mut has_failed = false;
        for (pod, done) in self.agent.reconcile(&active).await? {
            match done {
                Ok(done) => show(&done)?,
                Err(error) => {
                    has_failed = true;
                    note(format_args!("pod {pod}, which is gone: {error}"));
                }
            }
        }
        if has_failed {
            self.delay(None);
        } else {
            self.delayed.remove(&None);
        }
        Ok(())
    }

    /// Ends the kubelet if its checkpoint can't be written: what it prepares next would not be known after a crash.
    async fn fail_on_disk(&mut self, pod: &Pod, error: AgentError) -> Result<(), LiveError> {
        self.events.warning(&self.cluster.client, &key_of(pod), FAILED_PREPARE, &error.to_string()).await;
        Err(error.into())
    }

    fn claims_of(&self, pod: &Pod) -> Vec<ResourceClaim> {
        let named = claims_of_pod(pod, self.options).flatten();
        named.filter_map(|named| self.claims.get(&named.claim).cloned()).collect()
    }

    fn devices_of(&self, pod: &Pod) -> String {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let ids: Vec<&str> =
            containers.flat_map(|container| self.agent.container_devices(pod, container).unwrap_or_default()).collect();
        if ids.is_empty() { "no device".to_owned() } else { ids.join(" ") }
    }

    /// Writes the status of a pod; returns false if that has to be tried again.
    async fn write_status(&mut self, pod: &Pod, status: Value) -> Result<bool, LiveError> {
        let key = key_of(pod);
        let pods: Api<Pod> = Api::namespaced(self.cluster.client.clone(), &key.namespace);
        let patch = Patch::Strategic(json!({"metadata": {"uid": key.uid}, "status": status}));
        let params = PatchParams::default();
        match answered(|| pods.patch_status(&key.name, &params, &patch)).await.outcome {
            Ok(stored) => {
                self.pods.insert(key.uid.clone(), stored);
                self.delayed.remove(&Some(key.uid));
                Ok(true)
            }
            Err(error) => {
                note(format_args!("{key}: status not written: {}", text(&error)));
                self.delay(Some(&key.uid));
                Ok(false)
            }
        }
    }
}

fn is_gone(error: &Error) -> bool {
    matches!(trouble(error), Trouble::Missing | Trouble::Conflict)
}
