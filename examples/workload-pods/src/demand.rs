//! Pods that each kind of workload asks for: their number and names, or the reason that there are none.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::indexes::Indexes;
use crate::revision::template_hash;

/// Largest number of pods that are made of one workload.
pub const MOST_PODS: usize = 10_000;

/// Workload with the pods that it asks for.
#[derive(Debug)]
#[non_exhaustive]
pub struct Demand<'m> {
    /// Kind of the object.
    pub kind: &'m str,
    /// Version of its kind; empty if the caller does not know it.
    pub(crate) api_version: &'static str,
    /// Metadata of the object.
    pub metadata: &'m ObjectMeta,
    /// Template of its pods.
    pub template: Option<&'m PodTemplateSpec>,
    /// Pods that it asks for.
    pub pods: Pods,
    /// Number of pods above the largest number that is made.
    pub left_out: usize,
    /// Number of pods of a job that are made when the first ones have ended.
    pub later: usize,
    /// Mark of the template in its pods, where pods of an earlier template are replaced.
    pub(crate) revision: Option<String>,
}

/// Pods that a workload asks for.
#[derive(Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the ways in which Kubernetes makes pods")]
pub enum Pods {
    /// Pods that are alike, some of which may be there.
    Alike(usize),
    /// Pods with numbers in their fixed names.
    Numbered {
        /// The numbers.
        numbers: Vec<usize>,
        /// The next one is made when the one before is ready.
        one_by_one: bool,
    },
    /// Pods for indexes of a job, whose names begin with them.
    Indexed(Vec<usize>),
    /// One pod on each node that may run it.
    EachNode,
    /// No pods.
    None(Idle),
}

impl Pods {
    /// Returns the number of pods, as far as the workload alone tells it.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Self::Alike(count) => *count,
            Self::Numbered { numbers: all, .. } | Self::Indexed(all) => all.len(),
            Self::EachNode | Self::None(_) => 0,
        }
    }
}

/// Reason that a workload makes no pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the reasons that there are")]
pub enum Idle {
    /// A job or cron job is suspended.
    Suspended,
    /// A deployment is paused: it makes no pods of a new template.
    Paused,
    /// A job is complete or has failed.
    Finished,
    /// The object that owns this one stands for its pods.
    Owned,
    /// No pods are wanted.
    NonePlanned,
    /// The object is being deleted.
    Deleted,
    /// No node may run a pod of the daemon set.
    NoNode,
}

impl Idle {
    /// Returns the words for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Suspended => "suspended",
            Self::Paused => "paused",
            Self::Finished => "finished",
            Self::Owned => "made by its owner",
            Self::NonePlanned => "none wanted",
            Self::Deleted => "being deleted",
            Self::NoNode => "no node may run it",
        }
    }
}

fn number(count: Option<i32>) -> usize {
    usize::try_from(count.unwrap_or(1)).unwrap_or_default()
}

fn alike(count: usize) -> Pods {
    if count == 0 { Pods::None(Idle::NonePlanned) } else { Pods::Alike(count.min(MOST_PODS)) }
}

/// Returns the controller that an object has.
#[must_use]
pub fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

impl<'m> Demand<'m> {
    fn new(
        (api_version, kind): (&'static str, &'m str),
        metadata: &'m ObjectMeta,
        template: Option<&'m PodTemplateSpec>,
        pods: Pods,
    ) -> Self {
        let pods = if metadata.deletion_timestamp.is_some() { Pods::None(Idle::Deleted) } else { pods };
        Self { kind, api_version, metadata, template, pods, left_out: 0, later: 0, revision: None }
    }

    /// Marks pods with their template, unless they are replaced by hand alone.
    fn marked(self, strategy: Option<&str>) -> Self {
        let revision = self.template.filter(|_| strategy != Some("OnDelete")).map(template_hash);
        Self { revision, ..self }
    }

    fn wanting(self, count: usize) -> Self {
        let left_out = if matches!(self.pods, Pods::None(_)) { 0 } else { count.saturating_sub(MOST_PODS) };
        Self { left_out, ..self }
    }

    fn of_run(self, spec: Option<&JobSpec>, status: Option<&JobStatus>) -> Self {
        let count = self.pods.count();
        let later = spec.filter(|_| count > 0).map_or(0, |spec| left_of(spec, status).saturating_sub(at_a_time(spec)));
        Self { later, ..self.wanting(spec.map_or(0, at_a_time)) }
    }

    /// Reads a daemon set: a pod on each node that may run it.
    #[must_use]
    pub fn of_daemon_set(set: &'m DaemonSet) -> Self {
        let strategy = set.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
        Self::new(("apps/v1", "DaemonSet"), &set.metadata, Some(&set.spec.template), Pods::EachNode).marked(strategy)
    }

    /// Reads a deployment, as if it made its pods without a replica set.
    #[must_use]
    pub fn of_deployment(deployment: &'m Deployment) -> Self {
        let spec = &deployment.spec;
        let is_paused = spec.paused == Some(true);
        let pods = if is_paused { Pods::None(Idle::Paused) } else { alike(number(spec.replicas)) };
        Self::new(("apps/v1", "Deployment"), &deployment.metadata, Some(&spec.template), pods)
            .wanting(number(spec.replicas))
    }

    /// Reads a replica set. One that is owned by one of `deployments` makes nothing: the deployment does.
    #[must_use]
    pub fn of_replica_set(set: &'m ReplicaSet, deployments: &[Deployment]) -> Self {
        let is_owner = |owner: &OwnerReference, deployment: &Deployment| {
            owner.kind == "Deployment"
                && deployment.metadata.name.as_ref() == Some(&owner.name)
                && deployment.metadata.namespace == set.metadata.namespace
        };
        let owner = controller(&set.metadata);
        let has_owner = owner.is_some_and(|owner| deployments.iter().any(|deployment| is_owner(owner, deployment)));
        let pods = if has_owner { Pods::None(Idle::Owned) } else { alike(number(set.spec.replicas)) };
        let template = set.spec.template.as_ref();
        Self::new(("apps/v1", "ReplicaSet"), &set.metadata, template, pods).wanting(number(set.spec.replicas))
    }

    /// Reads a stateful set.
    #[must_use]
    pub fn of_stateful_set(set: &'m StatefulSet) -> Self {
        let spec = &set.spec;
        let replicas = number(spec.replicas).min(MOST_PODS);
        let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or_default();
        let start = usize::try_from(start).unwrap_or_default();
        let one_by_one = spec.pod_management_policy.as_deref() != Some("Parallel");
        let pods = match replicas {
            0 => Pods::None(Idle::NonePlanned),
            _ => Pods::Numbered { numbers: (start..start.saturating_add(replicas)).collect(), one_by_one },
        };
        let strategy = spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
        let demand = Self::new(("apps/v1", "StatefulSet"), &set.metadata, Some(&spec.template), pods);
        demand.marked(strategy).wanting(number(spec.replicas))
    }

    /// Reads a job with what its status says of pods that have ended.
    #[must_use]
    pub fn of_job(job: &'m Job) -> Self {
        let spec = job.spec.as_ref();
        let pods = spec.map_or(Pods::None(Idle::NonePlanned), |spec| job_pods(spec, job.status.as_ref()));
        Self::new(("batch/v1", "Job"), &job.metadata, spec.map(|spec| &spec.template), pods)
            .of_run(spec, job.status.as_ref())
    }

    /// Reads a cron job: one run.
    #[must_use]
    pub fn of_cron_job(cron: &'m CronJob) -> Self {
        let job = cron.spec.job_template.spec.as_ref();
        let pods = match job {
            _ if cron.spec.suspend == Some(true) => Pods::None(Idle::Suspended),
            Some(job) => job_pods(job, None),
            None => Pods::None(Idle::NonePlanned),
        };
        Self::new(("batch/v1", "CronJob"), &cron.metadata, job.map(|job| &job.template), pods).of_run(job, None)
    }

    /// Reads an object of any kind with a pod template, which asks for so many pods.
    #[must_use]
    pub fn of_template(kind: &'m str, metadata: &'m ObjectMeta, template: &'m PodTemplateSpec, count: usize) -> Self {
        Self::new(("", kind), metadata, Some(template), alike(count)).wanting(count)
    }
}

/// Returns the number of pods that a job runs at a time.
fn at_a_time(spec: &JobSpec) -> usize {
    number(spec.parallelism).min(spec.completions.map_or(usize::MAX, |count| number(Some(count))))
}

/// Returns the number of pods that have still to succeed, of a job that has a number of them.
fn left_of(spec: &JobSpec, status: Option<&JobStatus>) -> usize {
    let closed =
        |text: fn(&JobStatus) -> Option<&str>| status.and_then(text).map_or(0, |text| Indexes::parse(text).count());
    let ended = if spec.completion_mode.as_deref() == Some("Indexed") {
        let failed = closed(|status| status.failed_indexes.as_deref());
        closed(|status| status.completed_indexes.as_deref()).saturating_add(failed)
    } else {
        number(Some(status.and_then(|status| status.succeeded).unwrap_or_default()))
    };
    spec.completions.map_or(0, |all| number(Some(all)).saturating_sub(ended))
}

/// Returns the pods that a job has at a time.
fn job_pods(spec: &JobSpec, status: Option<&JobStatus>) -> Pods {
    let is_true = |kind: &str| {
        let conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == kind && condition.status == "True")
    };
    if is_true("Complete") || is_true("Failed") {
        return Pods::None(Idle::Finished);
    }
    if spec.suspend == Some(true) {
        return Pods::None(Idle::Suspended);
    }
    let parallelism = number(spec.parallelism);
    let completions = spec.completions.map(|count| number(Some(count)));
    let status_text = |of: fn(&JobStatus) -> Option<&str>| status.and_then(of).unwrap_or_default();
    if spec.completion_mode.as_deref() == Some("Indexed") {
        let closed = [
            Indexes::parse(status_text(|status| status.completed_indexes.as_deref())),
            Indexes::parse(status_text(|status| status.failed_indexes.as_deref())),
        ];
        let open = open_indexes(&closed, completions.unwrap_or(parallelism), parallelism.min(MOST_PODS));
        return if open.is_empty() { Pods::None(Idle::NonePlanned) } else { Pods::Indexed(open) };
    }
    let succeeded = number(Some(status.and_then(|status| status.succeeded).unwrap_or_default()));
    alike(completions.map_or(parallelism, |all| parallelism.min(all.saturating_sub(succeeded))))
}

/// Returns the first indexes below an end that are in none of the sets, so many at the most.
fn open_indexes(closed: &[Indexes], end: usize, most: usize) -> Vec<usize> {
    let (mut open, mut index) = (Vec::new(), 0_usize);
    while index < end && open.len() < most {
        if let Some(last) = closed.iter().find_map(|closed| closed.last_with(index)) {
            index = last.saturating_add(1);
        } else {
            open.push(index);
            index = index.saturating_add(1);
        }
    }
    open
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json};

    fn pods_of(mut spec: Value, status: &Value) -> Pods {
        spec["template"] = json!({});
        let job: Job = from_value(json!({"metadata": {"name": "j"}, "spec": spec, "status": status})).unwrap();
        Demand::of_job(&job).pods
    }

    #[test]
    fn a_job_has_as_many_pods_as_it_runs_at_a_time() {
        let none = json!({});
        let cases = [
            (json!({}), none.clone(), Pods::Alike(1)),
            (json!({"parallelism": 3}), none.clone(), Pods::Alike(3)),
            (json!({"parallelism": 4, "completions": 2}), none.clone(), Pods::Alike(2)),
            (json!({"parallelism": 4, "completions": 6}), json!({"succeeded": 5}), Pods::Alike(1)),
            (json!({"parallelism": 0}), none.clone(), Pods::None(Idle::NonePlanned)),
            (json!({"suspend": true}), none, Pods::None(Idle::Suspended)),
            (
                json!({"suspend": true}),
                json!({"conditions": [{"type": "Complete", "status": "True"}]}),
                Pods::None(Idle::Finished),
            ),
            (
                json!({"completionMode": "Indexed", "parallelism": 2, "completions": 6}),
                json!({"completedIndexes": "0,2-3"}),
                Pods::Indexed(vec![1, 4]),
            ),
        ];
        for (spec, status, expected) in cases {
            assert_eq!(pods_of(spec.clone(), &status), expected, "{spec}");
        }
    }

    #[test]
    fn a_job_says_how_many_pods_come_later() {
        let later = |mut spec: Value, status: &Value| {
            spec["template"] = json!({});
            let job: Job = from_value(json!({"metadata": {"name": "j"}, "spec": spec, "status": status})).unwrap();
            Demand::of_job(&job).later
        };
        let none = json!({});
        assert_eq!(later(json!({"parallelism": 3, "completions": 9}), &none), 6);
        assert_eq!(later(json!({"parallelism": 3, "completions": 9}), &json!({"succeeded": 5})), 1);
        assert_eq!(later(json!({"parallelism": 3}), &none), 0);
        assert_eq!(later(json!({"parallelism": 3, "completions": 9, "suspend": true}), &none), 0);
        let indexed = json!({"completionMode": "Indexed", "parallelism": 2, "completions": 6});
        assert_eq!(later(indexed, &json!({"completedIndexes": "0,2-3"})), 1);
    }

    #[test]
    fn a_stateful_set_begins_at_its_first_ordinal() {
        let set: StatefulSet = from_value(json!({"metadata": {"name": "db"}, "spec": {"replicas": 2,
            "ordinals": {"start": 5}, "podManagementPolicy": "Parallel", "selector": {}, "template": {}}}))
        .unwrap();
        let expected = Pods::Numbered { numbers: vec![5, 6], one_by_one: false };
        assert_eq!(Demand::of_stateful_set(&set).pods, expected);
    }
}
