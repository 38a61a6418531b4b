//! Pods of workloads.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Node, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use workload_pods::{Demand, Pods, TEMPLATE_HASH, controller};

use super::names::Names;
use super::{Idle, Named, Workload};
use crate::candidates::is_pending;
use crate::manifest::{Manifests, TemplatedObject, name_of};

/// Largest number of pods that are made of all workloads.
const MOST_IN_ALL: usize = 20_000;

/// Makes the pods of all workloads behind those that are there. A pod that waits and that no workload has made is one, too.
pub(super) fn make(manifests: &mut Manifests, new_nodes: &[&Node]) -> Vec<Workload> {
    let known = manifests.pods.len();
    let (workloads, pods) = {
        let mut maker = PodMaker {
            owned: Owned::of(manifests),
            nodes: manifests.nodes.iter().chain(new_nodes.iter().copied()).collect(),
            names: Names::of(manifests.pods.iter().map(|pod| &pod.metadata)),
            known,
            made: Vec::new(),
        };
        let all =
            demands(manifests).into_iter().map(|demand| (sequence(manifests, demand.kind, demand.metadata), demand));
        let mut all: Vec<(usize, Demand<'_>)> = all.collect();
        all.sort_by_key(|(sequence, _)| *sequence);
        let mut workloads: Vec<(usize, Workload)> =
            all.iter().map(|(sequence, demand)| (*sequence, maker.workload(demand))).collect();
        workloads.extend(bare_pods(manifests));
        workloads.sort_by_key(|(sequence, _)| *sequence);
        (workloads, maker.made)
    };
    manifests.pods.extend(pods);
    workloads.into_iter().map(|(_, workload)| workload).collect()
}

fn demands(manifests: &Manifests) -> Vec<Demand<'_>> {
    let all = &manifests.workloads;
    let sets = all.daemon_sets.iter().map(Demand::of_daemon_set);
    let sets = sets.chain(all.stateful_sets.iter().map(Demand::of_stateful_set));
    let sets = sets.chain(all.deployments.iter().map(Demand::of_deployment));
    let sets = sets.chain(all.replica_sets.iter().map(|set| Demand::of_replica_set(set, &all.deployments)));
    let jobs = all.jobs.iter().map(Demand::of_job).chain(all.cron_jobs.iter().map(Demand::of_cron_job));
    let others = all.others.iter().map(|TemplatedObject { kind, metadata, template, pods }| {
        Demand::of_template(kind, metadata, template, usize::try_from(*pods).unwrap_or(usize::MAX))
    });
    sets.chain(jobs).chain(others).collect()
}

/// Returns the place of an object among all that were read.
fn sequence(manifests: &Manifests, kind: &str, metadata: &ObjectMeta) -> usize {
    manifests.sequence(kind, &name_of(metadata)).unwrap_or(usize::MAX)
}

/// Returns the pods that wait or are held back, and that are not made by a controller.
fn bare_pods(manifests: &Manifests) -> impl Iterator<Item = (usize, Workload)> {
    let bare = manifests.pods.iter().enumerate();
    let bare = bare.filter(|(_, pod)| (is_pending(pod, None) || is_held(pod)) && controller(&pod.metadata).is_none());
    bare.map(|(index, pod)| {
        let workload = Workload {
            kind: "Pod".to_owned(),
            name: name_of(&pod.metadata),
            pods: index..index.saturating_add(1),
            running: 0,
            one_by_one: false,
            idle: None,
            left_out: 0,
            later: 0,
            names: pod.spec.as_ref().map(named_by).unwrap_or_default(),
        };
        (sequence(manifests, "Pod", &pod.metadata), workload)
    })
}

/// Returns true for a pod that no scheduler will look at, and that is not there yet: it has scheduling gates, or names its node.
fn is_held(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let is_gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
    let is_new = pod.status.is_none() && pod.metadata.resource_version.is_none();
    let has_claims = spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty());
    is_active(pod) && (is_gated || is_new && has_claims)
}

/// Returns the templates and claims that a pod names.
fn named_by(spec: &PodSpec) -> Vec<Named> {
    spec.resource_claims.iter().flatten().filter_map(Named::of).collect()
}

/// Pods that are there, by the workload that has made them.
#[derive(Default)]
struct Owned<'m>(BTreeMap<(String, String, String), Vec<&'m Pod>>);

impl<'m> Owned<'m> {
    fn of(manifests: &'m Manifests) -> Self {
        let mut all = Self::default();
        let sets = manifests.workloads.replica_sets.iter().map(|set| (name_of(&set.metadata), &set.metadata));
        let sets: BTreeMap<String, &ObjectMeta> = sets.collect();
        for pod in manifests.pods.iter().filter(|pod| is_active(pod)) {
            let Some(owner) = controller(&pod.metadata) else { continue };
            let namespace = pod.metadata.namespace.clone().unwrap_or_default();
            if owner.kind == "ReplicaSet" {
                let set = ObjectMeta {
                    namespace: pod.metadata.namespace.clone(),
                    name: Some(owner.name.clone()),
                    ..ObjectMeta::default()
                };
                let deployment = match sets.get(&name_of(&set)) {
                    Some(set) => controller(set).map(|owner| owner.name.clone()),
                    None => by_hash(pod, owner),
                };
                if let Some(deployment) = deployment {
                    all.add("Deployment", &namespace, &deployment, pod);
                }
            }
            all.add(&owner.kind, &namespace, &owner.name, pod);
        }
        all
    }

    fn add(&mut self, kind: &str, namespace: &str, name: &str, pod: &'m Pod) {
        self.0.entry((kind.to_owned(), namespace.to_owned(), name.to_owned())).or_default().push(pod);
    }

    fn by(&self, demand: &Demand<'_>) -> &[&'m Pod] {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let key = (demand.kind.to_owned(), text(&demand.metadata.namespace), text(&demand.metadata.name));
        self.0.get(&key).map_or(&[], Vec::as_slice)
    }
}

/// Returns the deployment whose replica set has made a pod, by the rule for the names of these sets.
fn by_hash(pod: &Pod, owner: &OwnerReference) -> Option<String> {
    let hash = pod.metadata.labels.as_ref()?.get(TEMPLATE_HASH)?;
    owner.name.strip_suffix(hash)?.strip_suffix('-').map(str::to_owned)
}

/// Returns true for a pod that counts for its controller.
fn is_active(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Succeeded" | "Failed"))
}

struct PodMaker<'m> {
    owned: Owned<'m>,
    nodes: Vec<&'m Node>,
    names: Names,
    /// Number of pods that were there.
    known: usize,
    made: Vec<Pod>,
}

impl PodMaker<'_> {
    fn workload(&mut self, demand: &Demand<'_>) -> Workload {
        let begin = self.known.saturating_add(self.made.len());
        let there = self.owned.by(demand).to_vec();
        let running = there.len();
        for pod in demand.lacking(&there, &self.nodes, self.room()) {
            self.add(pod);
        }
        let end = self.known.saturating_add(self.made.len());
        let has_none = running == 0 && end == begin;
        let idle = match &demand.pods {
            Pods::None(reason) => Some(*reason),
            _ if demand.template.is_none() => Some(Idle::NonePlanned),
            Pods::EachNode => has_none.then_some(Idle::NoNode),
            _ => None,
        };
        let made = end.saturating_sub(begin).saturating_add(running);
        let not_made = if self.room() == 0 { demand.pods.count().saturating_sub(made) } else { 0 };
        let spec = demand.template.and_then(|template| template.spec.as_ref());
        Workload {
            kind: demand.kind.to_owned(),
            name: name_of(demand.metadata),
            pods: begin..end,
            running,
            one_by_one: matches!(demand.pods, Pods::Numbered { one_by_one: true, .. }) && demand.template.is_some(),
            idle,
            left_out: demand.left_out.saturating_add(not_made),
            later: demand.later,
            names: spec.map(named_by).unwrap_or_default(),
        }
    }

    /// Returns the number of pods that can still be made.
    fn room(&self) -> usize {
        MOST_IN_ALL.saturating_sub(self.made.len())
    }

    /// Adds a pod, with a name that is made up unless Kubernetes fixes it. One whose fixed name is another pod's is not made.
    fn add(&mut self, mut pod: Pod) {
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        if let Some(prefix) = pod.metadata.generate_name.take() {
            pod.metadata.name = Some(self.names.make(&namespace, &prefix));
        } else if !self.names.take(&namespace, pod.metadata.name.as_deref().unwrap_or_default()) {
            return;
        }
        pod.metadata.uid = Some(name_of(&pod.metadata));
        self.made.push(pod);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use dra_alloc::Profile;
    use dra_alloc::pods::PodOptions;

    use crate::manifest::Manifests;
    use crate::workload::{Idle, Made, make};

    fn made(text: &str) -> (Manifests, Made) {
        let mut manifests = Manifests::default();
        manifests.read("t.yaml", text);
        assert_eq!(manifests.problems, []);
        let made = make(&mut manifests, PodOptions::new(Profile::V1_37));
        (manifests, made)
    }

    fn names(manifests: &Manifests) -> Vec<&str> {
        manifests.pods.iter().filter_map(|pod| pod.metadata.name.as_deref()).collect()
    }

    #[test]
    fn pods_that_are_there_count() {
        let text = "
{kind: StatefulSet, metadata: {name: db}, spec: {replicas: 3, template: {spec: {}}}}
---
{kind: Deployment, metadata: {name: web}, spec: {replicas: 3, template: {spec: {}}}}
---
{kind: Pod, metadata: {name: db-1, ownerReferences: [{kind: StatefulSet, name: db, controller: true}]}, spec: {nodeName: n}}
---
{kind: Pod, metadata: {name: web-7c-x, labels: {pod-template-hash: 7c},
  ownerReferences: [{kind: ReplicaSet, name: web-7c, controller: true}]}, spec: {nodeName: n}}
---
{kind: Pod, metadata: {name: web-7c-y, labels: {pod-template-hash: 7c},
  ownerReferences: [{kind: ReplicaSet, name: web-7c, controller: true}]}, spec: {nodeName: n}, status: {phase: Failed}}
";
        let (manifests, made) = made(text);
        assert_eq!(names(&manifests), ["db-1", "web-7c-x", "web-7c-y", "db-0", "db-2", "web-1", "web-2"]);
        assert_eq!(made.workloads.iter().map(|workload| workload.running).collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn a_daemon_set_has_a_pod_on_each_node_that_may_run_it() {
        let text = "
{kind: DaemonSet, metadata: {name: ds}, spec: {template: {spec: {nodeSelector: {gpu: 'yes'}}}}}
---
{kind: Node, metadata: {name: a, labels: {gpu: 'yes'}}}
---
{kind: Node, metadata: {name: b}}
---
{kind: Node, metadata: {name: c, labels: {gpu: 'yes'}}, spec: {taints: [{key: k, effect: NoSchedule}]}}
---
{kind: Node, metadata: {name: d, labels: {gpu: 'yes'}}, spec: {unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}}
---
{kind: Node, metadata: {name: e, labels: {gpu: 'yes'}}}
---
{kind: Pod, metadata: {name: ds-x, ownerReferences: [{kind: DaemonSet, name: ds, controller: true}]}, spec: {nodeName: e}}
";
        let (manifests, _) = made(text);
        assert_eq!(names(&manifests), ["ds-x", "ds-1", "ds-2"]);
        let nodes: Vec<_> = manifests.pods.iter().filter_map(workload_pods::node_of).collect();
        assert_eq!(nodes, ["e", "a", "d"]);
    }

    #[test]
    fn workloads_without_pods_say_why() {
        let text = "
{kind: Job, metadata: {name: held}, spec: {suspend: true, template: {}}}
---
{kind: CronJob, metadata: {name: night}, spec: {schedule: '0 0 * * *', jobTemplate: {spec: {template: {spec: {}}}}}}
---
{kind: DaemonSet, metadata: {name: ds}, spec: {template: {spec: {}}}}
";
        let (manifests, made) = made(text);
        assert_eq!(names(&manifests), ["night-1"]);
        let idle: Vec<_> = made.workloads.iter().map(|workload| workload.idle).collect();
        assert_eq!(idle, [Some(Idle::Suspended), None, Some(Idle::NoNode)]);
        assert_eq!(made.notes("p")[0], "p: no pods of Job held: suspended");
    }

    #[test]
    fn templates_at_a_path_count_the_replicas_beside_it() {
        let mut manifests =
            Manifests::default().with_templates(vec!["MPIJob=spec.mpiReplicaSpecs.*.template".parse().unwrap()]);
        manifests.read(
            "mpi.yaml",
            "
{kind: MPIJob, metadata: {name: pi}, spec: {mpiReplicaSpecs: {
  Launcher: {template: {spec: {}}}, Worker: {replicas: 2, template: {spec: {}}}}}}
---
{kind: MPIJob, metadata: {name: empty}, spec: {}}
",
        );
        let problems: Vec<String> = manifests.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "mpi.yaml:5: MPIJob empty: spec.mpiReplicaSpecs.*.template: no pod template there: nothing at mpiReplicaSpecs"
            ]
        );
        make(&mut manifests, PodOptions::new(Profile::V1_37));
        assert_eq!(names(&manifests), ["pi-launcher-1", "pi-worker-1", "pi-worker-2"]);
    }

    #[test]
    fn a_missing_template_is_the_reason_of_each_pod() {
        let text = "
{kind: Pod, metadata: {namespace: ns, name: p}, spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]}}
";
        let (_, made) = made(text);
        let failure = made.failures.values().next().unwrap();
        assert!(failure.ends_with("resourceclaimtemplate.resource.k8s.io \"t\" not found"), "{failure}");
    }
}
