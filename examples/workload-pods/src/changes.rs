//! Pods that a workload lacks, and pods that it has too many of.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dra_alloc::fit::PodRules;
use k8s_openapi::api::core::v1::{Node, Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::daemon;
use crate::demand::{Demand, Idle, Pods};
use crate::revision::REVISION;
use crate::state::{is_active, is_ready, label, number, phase};

/// Annotation and label of a pod with its index in a job.
pub(crate) const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Pods to make and to delete now.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Changes<'p> {
    /// New pods. A pod without a name has `generateName`.
    pub make: Vec<Pod>,
    /// Pods that have to go.
    pub delete: Vec<&'p Pod>,
}

/// Name of a new pod.
enum Name {
    Fixed(String),
    /// Beginning of the name, before the part that is made up.
    Begin(String),
}

impl Demand<'_> {
    /// Returns the pods that the workload lacks, `most` at the most. `there` are its pods in any state, `nodes` the nodes of the
    /// cluster, which daemon sets need. A pod whose name is not fixed has `generateName`. The time is n log n in pods and nodes.
    #[must_use]
    pub fn lacking(&self, there: &[&Pod], nodes: &[&Node], most: usize) -> Vec<Pod> {
        let Some(template) = self.template else { return Vec::new() };
        match &self.pods {
            Pods::None(_) => Vec::new(),
            Pods::Alike(count) => {
                let running = there.iter().filter(|pod| is_active(pod)).count();
                (running..*count).take(most).map(|_| self.pod(template, self.begin())).collect()
            }
            Pods::Numbered { numbers, .. } => self.lacking_numbers(template, there, numbers, most),
            Pods::Indexed(indexes) => self.lacking_indexes(template, there, indexes, most),
            Pods::EachNode => self.lacking_on_nodes(template, there, nodes, most),
        }
    }

    /// Returns the pods that the workload has too many of: those beyond its number, those of an earlier template, all if none are
    /// wanted. Pods that are going already do not count, nor does a workload whose pods are another one's.
    #[must_use]
    pub fn surplus<'p>(&self, there: &[&'p Pod], nodes: &[&Node]) -> Vec<&'p Pod> {
        let mut active: Vec<&Pod> = there.iter().copied().filter(|pod| is_active(pod)).collect();
        match &self.pods {
            Pods::None(Idle::Deleted | Idle::Owned | Idle::Paused) => Vec::new(),
            Pods::None(_) => active,
            Pods::Alike(count) => {
                active.sort_by_key(|pod| reasons_to_go(pod));
                active.split_off(active.len().min(*count))
            }
            Pods::Numbered { numbers, .. } => {
                let wanted: BTreeSet<usize> = numbers.iter().copied().collect();
                active.retain(|pod| !self.number_of(pod).is_some_and(|it| wanted.contains(&it)) || self.is_old(pod));
                active.sort_by_key(|pod| Reverse(self.number_of(pod)));
                active
            }
            Pods::Indexed(indexes) => {
                let mut open: BTreeSet<usize> = indexes.iter().copied().collect();
                active.sort_by_key(|pod| reasons_to_go(pod));
                active.retain(|pod| !self.number_of(pod).is_some_and(|index| open.remove(&index)));
                active
            }
            Pods::EachNode => {
                let admits = |pod: &Pod, node: &Node| PodRules::new(pod).is_selected(node);
                let model = self.template.map(|template| self.pod(template, self.begin()));
                let wanted = nodes.iter().filter(|node| model.as_ref().is_some_and(|model| admits(model, node)));
                let mut wanted: BTreeSet<&str> = wanted.filter_map(|node| node.metadata.name.as_deref()).collect();
                active.sort_by_key(|pod| reasons_to_go(pod));
                active.retain(|pod| self.is_old(pod) || !daemon::node_of(pod).is_some_and(|node| wanted.remove(node)));
                active
            }
        }
    }

    /// Returns the pods to make and to delete now. Where a stateful set has one pod after the other, that is one pod, and none
    /// before all others are ready and none is going. `most` is the largest number of either.
    #[must_use]
    pub fn changes<'p>(&self, there: &[&'p Pod], nodes: &[&Node], most: usize) -> Changes<'p> {
        let (mut make, mut delete) = (self.lacking(there, nodes, most), self.surplus(there, nodes));
        delete.truncate(most);
        if matches!(self.pods, Pods::Numbered { one_by_one: true, .. }) {
            let is_quiet = !there.iter().any(|pod| pod.metadata.deletion_timestamp.is_some());
            delete.truncate(usize::from(is_quiet));
            let is_next = delete.is_empty() && is_quiet && there.iter().all(|pod| is_ready(pod));
            make.truncate(usize::from(is_next));
        }
        Changes { make, delete }
    }

    /// Returns the name of the workload.
    pub(crate) fn own(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    fn begin(&self) -> Name {
        Name::Begin(format!("{}-", self.own()))
    }

    fn number_of(&self, pod: &Pod) -> Option<usize> {
        number(pod, self.own())
    }

    /// Returns true for a pod that was made of an earlier template. A pod that does not tell is none.
    fn is_old(&self, pod: &Pod) -> bool {
        let revision = label(pod, REVISION);
        !revision.is_empty() && self.revision.as_ref().is_some_and(|wanted| wanted != revision)
    }

    fn lacking_numbers(&self, template: &PodTemplateSpec, there: &[&Pod], numbers: &[usize], most: usize) -> Vec<Pod> {
        // A name is taken until its pod is gone.
        let taken: BTreeSet<usize> = there.iter().filter_map(|pod| self.number_of(pod)).collect();
        let open = numbers.iter().filter(|number| !taken.contains(number)).take(most);
        let make = |number: &usize| {
            let name = format!("{}-{number}", self.own());
            let mut pod = self.pod(template, Name::Fixed(name.clone()));
            mark(&mut pod, "statefulset.kubernetes.io/pod-name", &name);
            mark(&mut pod, "apps.kubernetes.io/pod-index", &number.to_string());
            pod
        };
        open.map(make).collect()
    }

    fn lacking_indexes(&self, template: &PodTemplateSpec, there: &[&Pod], indexes: &[usize], most: usize) -> Vec<Pod> {
        let active = there.iter().filter(|pod| is_active(pod));
        let taken: BTreeSet<usize> = active.filter_map(|pod| self.number_of(pod)).collect();
        let open = indexes.iter().filter(|index| !taken.contains(index)).take(most);
        let make = |index: &usize| {
            let mut pod = self.pod(template, Name::Begin(format!("{}-{index}-", self.own())));
            mark(&mut pod, INDEX, &index.to_string());
            let annotations = pod.metadata.annotations.get_or_insert_default();
            annotations.insert(INDEX.to_owned(), index.to_string());
            pod
        };
        open.map(make).collect()
    }

    /// Returns the pods of a daemon set for the nodes that may run them and have none.
    fn lacking_on_nodes(&self, template: &PodTemplateSpec, there: &[&Pod], nodes: &[&Node], most: usize) -> Vec<Pod> {
        let active = there.iter().filter(|pod| is_active(pod));
        let taken: BTreeSet<&str> = active.filter_map(|pod| daemon::node_of(pod)).collect();
        let mut model = self.pod(template, self.begin());
        daemon::tolerate(&mut model);
        let name = |node: &Node| node.metadata.name.clone().unwrap_or_default();
        let open = nodes.iter().filter(|node| !taken.contains(name(node).as_str()) && daemon::is_for(&model, node));
        let make = |node: &&Node| {
            let mut pod = model.clone();
            daemon::bind(&mut pod, &name(node));
            pod
        };
        open.take(most).map(make).collect()
    }

    /// Returns a pod of the template, owned by the workload.
    fn pod(&self, template: &PodTemplateSpec, name: Name) -> Pod {
        let own = template.metadata.clone().unwrap_or_default();
        let owner = OwnerReference {
            api_version: self.api_version.to_owned(),
            kind: self.kind.to_owned(),
            name: self.own().to_owned(),
            uid: self.metadata.uid.clone().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        let (name, generate_name) = match name {
            Name::Fixed(name) => (Some(name), None),
            Name::Begin(begin) => (None, Some(begin)),
        };
        let metadata = ObjectMeta {
            namespace: self.metadata.namespace.clone(),
            name,
            generate_name,
            labels: own.labels,
            annotations: own.annotations,
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        };
        let mut pod = Pod { metadata, spec: template.spec.clone(), status: None };
        if let Some(revision) = &self.revision {
            mark(&mut pod, REVISION, revision);
        }
        if self.kind == "Job" {
            mark(&mut pod, "batch.kubernetes.io/job-name", self.own());
            mark(&mut pod, "job-name", self.own());
        }
        pod
    }
}

/// Gives a pod a label.
fn mark(pod: &mut Pod, key: &str, value: &str) {
    pod.metadata.labels.get_or_insert_default().insert(key.to_owned(), value.to_owned());
}

/// Returns the key by which pods are sorted that are alike; those at the end go first: without a node, not running, not ready,
/// young.
fn reasons_to_go(pod: &Pod) -> impl Ord + use<> {
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let has_node = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    (!has_node, phase(pod) != "Running", !is_ready(pod), created, pod.metadata.name.clone())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use k8s_openapi::api::apps::v1::{DaemonSet, ReplicaSet, StatefulSet};
    use k8s_openapi::api::batch::v1::Job;
    use serde_json::{Value, from_value, json};

    use super::*;

    fn pod(name: &str, status: &Value) -> Pod {
        from_value(json!({"metadata": {"name": name}, "spec": {"containers": [], "nodeName": "n"}, "status": status}))
            .unwrap()
    }

    fn ready(name: &str) -> Pod {
        pod(name, &json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}))
    }

    fn names<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> Vec<String> {
        let name = |pod: &Pod| pod.metadata.name.clone().or_else(|| pod.metadata.generate_name.clone()).unwrap();
        pods.into_iter().map(name).collect()
    }

    /// Returns the names of the pods that are made and deleted.
    fn changed(demand: &Demand<'_>, there: &[Pod], nodes: &[Node]) -> (Vec<String>, Vec<String>) {
        let (there, nodes): (Vec<&Pod>, Vec<&Node>) = (there.iter().collect(), nodes.iter().collect());
        let changes = demand.changes(&there, &nodes, usize::MAX);
        (names(&changes.make), names(changes.delete))
    }

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_replica_set_replaces_what_has_ended_and_gives_up_what_does_not_run() {
        let set: ReplicaSet = from_value(json!({"metadata": {"name": "web", "uid": "u"},
            "spec": {"replicas": 2, "selector": {}, "template": {"spec": {"containers": []}}}}))
        .unwrap();
        let demand = Demand::of_replica_set(&set, &[]);
        let ended = pod("web-x", &json!({"phase": "Failed"}));
        assert_eq!(changed(&demand, &[ready("web-a"), ended.clone()], &[]), (owned(&["web-"]), owned(&[])));
        let made = demand.lacking(&[], &[], 1).remove(0);
        let owner = &made.metadata.owner_references.as_ref().unwrap()[0];
        assert_eq!((&*owner.api_version, &*owner.kind, &*owner.uid), ("apps/v1", "ReplicaSet", "u"));
        let mut waiting = pod("web-b", &json!({"phase": "Pending"}));
        waiting.spec.as_mut().unwrap().node_name = None;
        let there = [waiting, ready("web-a"), pod("web-c", &json!({"phase": "Running"})), ended];
        assert_eq!(changed(&demand, &there, &[]), (owned(&[]), owned(&["web-b"])));
    }

    #[test]
    fn a_stateful_set_moves_one_pod_at_a_time() {
        let set = |replicas: u32, image: &str| -> StatefulSet {
            from_value(json!({"metadata": {"name": "db"}, "spec": {"replicas": replicas, "selector": {},
                "template": {"spec": {"containers": [{"name": "m", "image": image}]}}}}))
            .unwrap()
        };
        let three = set(3, "a");
        let demand = Demand::of_stateful_set(&three);
        assert_eq!(changed(&demand, &[], &[]), (owned(&["db-0"]), owned(&[])));
        let starting = pod("db-0", &json!({"phase": "Pending"}));
        assert_eq!(changed(&demand, &[starting], &[]), (owned(&[]), owned(&[])));
        assert_eq!(changed(&demand, &[ready("db-0")], &[]), (owned(&["db-1"]), owned(&[])));
        let one = set(1, "a");
        let there = [ready("db-0"), ready("db-1"), ready("db-2")];
        assert_eq!(changed(&Demand::of_stateful_set(&one), &there, &[]), (owned(&[]), owned(&["db-2"])));
        let mut old = demand.lacking(&[], &[], 3);
        let running = ready("db-0").status;
        for pod in &mut old {
            pod.status.clone_from(&running);
        }
        let other = set(3, "b");
        let (make, delete) = changed(&Demand::of_stateful_set(&other), &old, &[]);
        assert_eq!(
            (make, delete),
            (owned(&[]), owned(&["db-2"])),
            "the pods of the earlier template go, the last one first"
        );
        assert_eq!(changed(&demand, &old, &[]), (owned(&[]), owned(&[])));
    }

    #[test]
    fn a_job_has_one_pod_for_each_open_index() {
        let job: Job = from_value(json!({"metadata": {"name": "j"}, "spec": {"parallelism": 2, "completions": 4,
            "completionMode": "Indexed", "template": {"spec": {"containers": []}}}, "status": {"completedIndexes": "0"}}))
        .unwrap();
        let demand = Demand::of_job(&job);
        let there = [pod("j-0-a", &json!({"phase": "Succeeded"})), ready("j-1-b"), ready("j-1-c"), ready("j-3-d")];
        let (make, delete) = changed(&demand, &there, &[]);
        assert_eq!((make, delete), (owned(&["j-2-"]), owned(&["j-1-c", "j-3-d"])));
        let first = demand.lacking(&[], &[], 1).remove(0);
        assert_eq!(first.metadata.annotations.unwrap()[INDEX], "1");
        let mut held = job.clone();
        held.spec.as_mut().unwrap().suspend = Some(true);
        assert_eq!(changed(&Demand::of_job(&held), &there, &[]).1.len(), 3);
    }

    #[test]
    fn a_daemon_set_follows_the_labels_of_nodes() {
        let set: DaemonSet = from_value(json!({"metadata": {"name": "ds"}, "spec": {"selector": {},
            "template": {"spec": {"containers": [], "nodeSelector": {"gpu": "yes"}}}}}))
        .unwrap();
        let node = |name: &str, gpu: &str| -> Node {
            from_value(json!({"metadata": {"name": name, "labels": {"gpu": gpu}}})).unwrap()
        };
        let demand = Demand::of_daemon_set(&set);
        let both = [node("a", "yes"), node("b", "yes")];
        let pods = demand.lacking(&[], &both.iter().collect::<Vec<_>>(), 10);
        assert_eq!(pods.iter().filter_map(|pod| daemon::node_of(pod)).collect::<Vec<_>>(), ["a", "b"]);
        let there: Vec<&Pod> = pods.iter().collect();
        let changed = [node("a", "no"), node("b", "yes")];
        let gone = demand.surplus(&there, &changed.iter().collect::<Vec<_>>());
        assert_eq!(gone.iter().filter_map(|pod| daemon::node_of(pod)).collect::<Vec<_>>(), ["a"]);
        assert_eq!(demand.surplus(&there, &[]).len(), 2, "nodes that are gone");
    }

    #[test]
    fn a_workload_whose_pods_are_another_s_changes_nothing() {
        let set: ReplicaSet =
            from_value(json!({"metadata": {"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"replicas": 0, "selector": {}, "template": {"spec": {"containers": []}}}}))
            .unwrap();
        assert_eq!(changed(&Demand::of_replica_set(&set, &[]), &[ready("web-a")], &[]), (owned(&[]), owned(&[])));
    }
}
