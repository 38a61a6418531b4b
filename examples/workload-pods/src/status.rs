//! Status of workloads, from their pods: the numbers and conditions that `kubectl rollout status` and `kubectl wait` look at.
//!
//! `pods` are those of the workload, in any state. A pod that is ready counts as available at once. Pods of a job that have
//! ended count for as long as they are there.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::{
    DaemonSet, DaemonSetStatus, Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet, ReplicaSetStatus,
    StatefulSet, StatefulSetStatus,
};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use crate::daemon;
use crate::demand::Demand;
use crate::indexes::Indexes;
use crate::replica_set::replica_set_of;
use crate::revision::{REVISION, template_hash};
use crate::state::{is_active, is_ready, label, number, phase};

/// Pods of a job that may fail before the job does, if it says nothing else.
const BACKOFF_LIMIT: i32 = 6;

/// Returns the number of pods of which something holds.
fn count<'p>(pods: impl IntoIterator<Item = &'p Pod>, holds: impl Fn(&Pod) -> bool) -> i32 {
    i32::try_from(pods.into_iter().filter(|pod| holds(pod)).count()).unwrap_or(i32::MAX)
}

/// Returns the status of a replica set.
#[must_use]
pub fn of_replica_set(set: &ReplicaSet, pods: &[&Pod]) -> ReplicaSetStatus {
    let pods = || pods.iter().copied();
    let (all, ready) = (count(pods(), is_active), count(pods(), is_ready));
    ReplicaSetStatus {
        replicas: all,
        fully_labeled_replicas: Some(all),
        ready_replicas: Some(ready),
        available_replicas: Some(ready),
        observed_generation: set.metadata.generation,
        ..ReplicaSetStatus::default()
    }
}

/// Returns the status of a deployment with its replica sets.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use k8s_openapi::jiff::Timestamp;
/// use workload_pods::{replica_set_of, status};
/// let web: Deployment = serde_json::from_value(serde_json::json!({
///     "metadata": {"name": "web"}, "spec": {"replicas": 1, "selector": {}, "template": {}}}))?;
/// let set = replica_set_of(&web);
/// let status = status::of_deployment(&web, &[&set], Timestamp::UNIX_EPOCH);
/// assert_eq!(status.unavailable_replicas, Some(1));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn of_deployment(deployment: &Deployment, sets: &[&ReplicaSet], now: Timestamp) -> DeploymentStatus {
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let newest = replica_set_of(deployment).metadata.name;
    let sum = |of: &dyn Fn(&ReplicaSet, &ReplicaSetStatus) -> i32| {
        let counts = sets.iter().filter_map(|set| Some(of(set, set.status.as_ref()?)));
        counts.fold(0_i32, i32::saturating_add)
    };
    let all = sum(&|_, status| status.replicas);
    let updated = sum(&|set, status| if set.metadata.name == newest { status.replicas } else { 0 });
    let ready = sum(&|_, status| status.ready_replicas.unwrap_or_default());
    let is_complete = updated == wanted && all == wanted && ready >= wanted;
    let known = deployment.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let available = if ready >= wanted { "MinimumReplicasAvailable" } else { "MinimumReplicasUnavailable" };
    let progress = if is_complete { "NewReplicaSetAvailable" } else { "ReplicaSetUpdated" };
    let conditions = [("Available", ready >= wanted, available), ("Progressing", true, progress)];
    let conditions = conditions.map(|(kind, holds, reason)| {
        let status = if holds { "True" } else { "False" };
        let is_same = |it: &&DeploymentCondition| it.type_.as_deref() == Some(kind);
        let before = known.iter().find(is_same).filter(|before| before.status.as_deref() == Some(status));
        let since = |time: fn(&DeploymentCondition) -> Option<Time>| before.and_then(time).unwrap_or(Time(now));
        DeploymentCondition {
            type_: Some(kind.to_owned()),
            status: Some(status.to_owned()),
            reason: Some(reason.to_owned()),
            message: None,
            last_transition_time: Some(since(|it| it.last_transition_time.clone())),
            last_update_time: Some(since(|it| it.last_update_time.clone())),
        }
    });
    DeploymentStatus {
        replicas: Some(all),
        updated_replicas: Some(updated),
        ready_replicas: Some(ready),
        available_replicas: Some(ready),
        unavailable_replicas: Some(wanted.saturating_sub(ready).max(0)),
        observed_generation: deployment.metadata.generation,
        conditions: Some(conditions.into()),
        ..DeploymentStatus::default()
    }
}

/// Returns the status of a stateful set.
#[must_use]
pub fn of_stateful_set(set: &StatefulSet, pods: &[&Pod]) -> StatefulSetStatus {
    let pods = || pods.iter().copied();
    let (all, ready) = (count(pods(), is_active), count(pods(), is_ready));
    let hash = template_hash(&set.spec.template);
    let updated = count(pods(), |pod| is_active(pod) && label(pod, REVISION) == hash);
    let revision = format!("{}-{hash}", set.metadata.name.as_deref().unwrap_or_default());
    // The update is over when no pod of an earlier template is left.
    let before = set.status.as_ref().and_then(|status| status.current_revision.clone());
    let current = if updated == all { None } else { before };
    StatefulSetStatus {
        replicas: all,
        ready_replicas: Some(ready),
        available_replicas: Some(ready),
        current_replicas: Some(updated),
        updated_replicas: Some(updated),
        current_revision: Some(current.unwrap_or_else(|| revision.clone())),
        update_revision: Some(revision),
        observed_generation: set.metadata.generation,
        ..StatefulSetStatus::default()
    }
}

/// Returns the status of a daemon set on the nodes of the cluster.
#[must_use]
pub fn of_daemon_set(set: &DaemonSet, pods: &[&Pod], nodes: &[&Node]) -> DaemonSetStatus {
    let demand = Demand::of_daemon_set(set);
    let wanted = demand.lacking(&[], nodes, usize::MAX);
    let hash = template_hash(&set.spec.template);
    let places: BTreeSet<&str> = wanted.iter().filter_map(daemon::node_of).collect();
    let is_wanted = |pod: &Pod| is_active(pod) && daemon::node_of(pod).is_some_and(|node| places.contains(node));
    let pods = || pods.iter().copied();
    let desired = i32::try_from(wanted.len()).unwrap_or(i32::MAX);
    let (current, ready) = (count(pods(), is_wanted), count(pods(), is_ready));
    DaemonSetStatus {
        desired_number_scheduled: desired,
        current_number_scheduled: current,
        number_misscheduled: count(pods(), is_active).saturating_sub(current),
        number_ready: ready,
        number_available: Some(ready),
        number_unavailable: Some(desired.saturating_sub(ready).max(0)),
        updated_number_scheduled: Some(count(pods(), |pod| is_active(pod) && label(pod, REVISION) == hash)),
        observed_generation: set.metadata.generation,
        ..DaemonSetStatus::default()
    }
}

/// Returns the status of a job. It is complete when as many pods have succeeded as it wants, and has failed when more have failed
/// than its `backoffLimit`; after that, nothing changes any more.
#[must_use]
pub fn of_job(job: &Job, pods: &[&Pod], now: Timestamp) -> JobStatus {
    let before = job.status.clone().unwrap_or_default();
    let conditions = before.conditions.clone().unwrap_or_default();
    let has_ended = conditions.iter().any(|it| matches!(&*it.type_, "Complete" | "Failed") && it.status == "True");
    let Some(spec) = job.spec.as_ref().filter(|_| !has_ended) else { return before };
    let pods = || pods.iter().copied();
    let failed = count(pods(), |pod| phase(pod) == "Failed");
    let indexes = (spec.completion_mode.as_deref() == Some("Indexed")).then(|| {
        let own = job.metadata.name.as_deref().unwrap_or_default();
        let done = pods().filter(|pod| phase(pod) == "Succeeded").filter_map(|pod| number(pod, own));
        Indexes::of(done.collect::<BTreeSet<usize>>())
    });
    let succeeded = match &indexes {
        Some(indexes) => i32::try_from(indexes.count()).unwrap_or(i32::MAX),
        None => count(pods(), |pod| phase(pod) == "Succeeded"),
    };
    let active = count(pods(), is_active);
    let is_complete = spec.completions.map_or(succeeded > 0 && active == 0, |wanted| succeeded >= wanted);
    let has_failed = failed > spec.backoff_limit.unwrap_or(BACKOFF_LIMIT);
    let end = match (is_complete, has_failed) {
        (true, _) => Some(("Complete", "CompletionsReached", "Reached expected number of succeeded pods")),
        (false, true) => Some(("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")),
        (false, false) => None,
    };
    let end = end.map(|(kind, reason, message)| JobCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    });
    let is_held = spec.suspend == Some(true);
    JobStatus {
        active: Some(active),
        ready: Some(count(pods(), is_ready)),
        succeeded: Some(succeeded),
        failed: Some(failed),
        completed_indexes: indexes.map(|indexes| indexes.shown()).filter(|text| !text.is_empty()),
        start_time: before.start_time.clone().or_else(|| (!is_held).then_some(Time(now))),
        completion_time: is_complete.then_some(Time(now)),
        conditions: Some(conditions.into_iter().chain(end).collect()),
        ..before
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn pods(phases: &[&str]) -> Vec<Pod> {
        let pod = |(index, phase): (usize, &&str)| {
            let status = json!({"phase": phase, "conditions": [{"type": "Ready", "status": if *phase == "Running" { "True" } else { "False" }}]});
            from_value(json!({"metadata": {"name": format!("j-{index}-x")}, "status": status})).unwrap()
        };
        phases.iter().enumerate().map(pod).collect()
    }

    fn job(spec: &serde_json::Value) -> Job {
        from_value(json!({"metadata": {"name": "j"}, "spec": spec})).unwrap()
    }

    fn end(job: &Job, phases: &[&str]) -> (JobStatus, String) {
        let pods = pods(phases);
        let status = of_job(job, &pods.iter().collect::<Vec<_>>(), NOW);
        let end = status.conditions.iter().flatten().map(|it| it.type_.clone()).collect();
        (status, end)
    }

    #[test]
    fn a_job_ends_when_enough_pods_have() {
        let two = job(&json!({"completions": 2, "backoffLimit": 1, "template": {}}));
        for (phases, ended) in [
            (&["Succeeded", "Running"][..], ""),
            (&["Succeeded", "Failed", "Succeeded"], "Complete"),
            (&["Failed", "Pending"], ""),
            (&["Failed", "Failed"], "Failed"),
        ] {
            assert_eq!(end(&two, phases).1, ended, "{phases:?}");
        }
        let any = job(&json!({"template": {}}));
        assert_eq!([end(&any, &["Succeeded", "Running"]).1, end(&any, &["Succeeded"]).1], ["", "Complete"]);
        let indexed = job(&json!({"completions": 3, "completionMode": "Indexed", "template": {}}));
        let (status, _) = end(&indexed, &["Succeeded", "Running", "Succeeded"]);
        assert_eq!(
            (status.completed_indexes.as_deref(), status.succeeded, status.active),
            (Some("0,2"), Some(2), Some(1))
        );
        let ended = Job { status: Some(end(&two, &["Failed", "Failed"]).0), ..two.clone() };
        assert_eq!(end(&ended, &["Running"]).0, end(&two, &["Failed", "Failed"]).0, "what has ended stays so");
    }

    #[test]
    fn a_deployment_is_available_with_all_its_pods_and_remembers_since_when() {
        let mut web: Deployment = from_value(json!({"metadata": {"name": "web", "generation": 2},
            "spec": {"replicas": 2, "selector": {}, "template": {}}}))
        .unwrap();
        let mut set = replica_set_of(&web);
        let mut status_with = |running: &[&str], web: &Deployment, now: Timestamp| {
            let pods = pods(running);
            set.status = Some(of_replica_set(&set, &pods.iter().collect::<Vec<_>>()));
            of_deployment(web, &[&set], now)
        };
        let one = status_with(&["Running", "Pending"], &web, NOW);
        let available = |status: &DeploymentStatus| status.conditions.as_ref().unwrap()[0].clone();
        assert_eq!((one.updated_replicas, one.unavailable_replicas), (Some(2), Some(1)));
        assert_eq!(available(&one).status.as_deref(), Some("False"));
        web.status = Some(one);
        let later = Timestamp::from_second(60).unwrap();
        let both = status_with(&["Running", "Running"], &web, later);
        assert_eq!((available(&both).status.as_deref(), both.observed_generation), (Some("True"), Some(2)));
        assert_eq!(available(&both).last_transition_time, Some(Time(later)));
        web.status = Some(both.clone());
        assert_eq!(status_with(&["Running", "Running"], &web, Timestamp::from_second(90).unwrap()), both);
    }

    #[test]
    fn a_stateful_set_has_one_revision_when_no_earlier_pod_is_left() {
        let set: StatefulSet = from_value(json!({"metadata": {"name": "db"}, "spec": {"replicas": 1, "selector": {},
            "template": {"spec": {"containers": []}}}, "status": {"replicas": 1, "currentRevision": "db-old"}}))
        .unwrap();
        let mut pod = Demand::of_stateful_set(&set).lacking(&[], &[], 1).remove(0);
        let status = of_stateful_set(&set, &[&pod]);
        assert_eq!((&status.current_revision, status.updated_replicas), (&status.update_revision, Some(1)));
        pod.metadata.labels.as_mut().unwrap().insert(REVISION.to_owned(), "old".to_owned());
        assert_eq!(of_stateful_set(&set, &[&pod]).current_revision.as_deref(), Some("db-old"));
    }

    #[test]
    fn a_daemon_set_counts_nodes() {
        let set: DaemonSet = from_value(json!({"metadata": {"name": "ds"}, "spec": {"selector": {},
            "template": {"spec": {"containers": []}}}}))
        .unwrap();
        let node = |name: &str| -> Node { from_value(json!({"metadata": {"name": name}})).unwrap() };
        let (a, b) = (node("a"), node("b"));
        let pods = Demand::of_daemon_set(&set).lacking(&[], &[&a, &b], 9);
        let pods: Vec<&Pod> = pods.iter().collect();
        let status = of_daemon_set(&set, &pods, &[&a]);
        assert_eq!(
            (status.desired_number_scheduled, status.current_number_scheduled, status.number_misscheduled),
            (1, 1, 1)
        );
    }
}
