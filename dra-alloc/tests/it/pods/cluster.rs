//! A cluster with pods and claims: an API server in memory, and the memories of a scheduler that works on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use dra_alloc::pods::{
    ApiResponse, Binding, BindingCall, BindingMemory, BindingRequest, BindingStep, ClaimTracker, GroupRound, PodCycle,
    PodOptions,
};
use dra_alloc::{Allocator, Budget, Classes, GateSet, Inventory, Profile};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use nnn::PodKey;
use nnn::binding::apply_binding;
use nnn::memory::{PodMemory, PodUsage};
use serde_json::{Value, from_value, json};

use super::api_server::ApiServer;
use super::world::{NOW, World, node};

pub(crate) const GATES: Profile = Profile::V1_37;

/// Pods and claims of an API server.
#[derive(Clone, Default)]
pub(crate) struct ClusterServer {
    pub(crate) claims: ApiServer,
    pub(crate) pods: BTreeMap<String, Arc<Pod>>,
    version: u64,
}

impl ClusterServer {
    pub(crate) fn new(claims: ApiServer) -> Self {
        Self { claims, ..Self::default() }
    }

    pub(crate) fn store(&mut self, mut pod: Pod) -> Arc<Pod> {
        self.version += 1;
        let name = pod.metadata.name.clone().unwrap();
        let own = || self.pods.get(&name).and_then(|known| known.metadata.resource_version.as_ref()?.parse().ok());
        let version = if self.claims.has_own_versions() { own().unwrap_or(0) + 1 } else { self.version };
        pod.metadata.resource_version = Some(version.to_string());
        let pod = Arc::new(pod);
        self.pods.insert(name, Arc::clone(&pod));
        pod
    }

    pub(crate) fn change(&mut self, name: &str, change: impl FnOnce(&mut Pod)) -> Arc<Pod> {
        let mut pod = Pod::clone(&self.pods[name]);
        change(&mut pod);
        self.store(pod)
    }

    /// Returns true if a call nominates a pod that is bound: no binding may ask for it, and one that arrives late is refused.
    pub(crate) fn nominates_bound(&self, pod: &PodKey, request: &BindingRequest) -> bool {
        let BindingRequest::Status(command) = request else { return false };
        let is_bound = self.pods.get(&pod.name).is_some_and(|pod| node_of(pod).is_some());
        is_bound && command.patch(NOW).is_some_and(|patch| !patch["status"]["nominatedNodeName"].is_null())
    }

    pub(crate) fn call(&mut self, call: &BindingCall) -> ApiResponse {
        self.request(&call.pod, &call.request)
    }

    pub(crate) fn request(&mut self, key: &PodKey, request: &BindingRequest) -> ApiResponse {
        let name = &key.name;
        if self.nominates_bound(key, request) {
            return ApiResponse::Failed("may not be set on pods that are already bound to a node".to_owned());
        }
        if let BindingRequest::Claim(write) = request {
            return self.claims.call(write);
        }
        let Some(pod) = self.pods.get(name).filter(|pod| pod.metadata.uid.as_deref() == Some(&key.uid)).cloned() else {
            return match request {
                BindingRequest::ReadPod => ApiResponse::Done,
                _ => ApiResponse::Failed("not found".to_owned()),
            };
        };
        match request {
            BindingRequest::Status(command) => {
                let patch = command.patch(NOW).unwrap();
                assert_eq!(patch["metadata"]["uid"], key.uid);
                let wanted = &patch["status"]["nominatedNodeName"];
                let set = |pod: &mut Pod| {
                    pod.status.get_or_insert_default().nominated_node_name = wanted.as_str().map(str::to_owned);
                };
                ApiResponse::Pod(Box::new(Pod::clone(&self.change(name, set))))
            }
            BindingRequest::Bind { node } => {
                let binding = json!({"metadata": {"name": name, "uid": key.uid}, "target": {"name": node}});
                match apply_binding(&pod, &from_value(binding).unwrap(), GateSet::of(GATES), NOW) {
                    Ok(bound) => {
                        self.store(bound);
                        ApiResponse::Done
                    }
                    Err(error) => ApiResponse::Conflict(error.to_string()),
                }
            }
            _ => ApiResponse::Pod(Box::new(Pod::clone(&pod))),
        }
    }
}

pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

pub(crate) fn nomination_of(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.nominated_node_name.as_deref()
}

pub(crate) fn key(name: &str) -> PodKey {
    PodKey::new("ns", name, &format!("{name}-uid"))
}

pub(crate) fn after(seconds: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(seconds)
}

/// A scheduler with nodes `n1`, `n2`… of two devices each, and its server.
pub(crate) struct Cluster {
    pub(crate) inventory: Inventory,
    pub(crate) classes: Classes,
    pub(crate) options: PodOptions,
    pub(crate) pods: PodMemory,
    pub(crate) claims: ClaimTracker,
    pub(crate) server: ClusterServer,
}

impl Cluster {
    pub(crate) fn new(nodes: usize, claims: impl IntoIterator<Item = ResourceClaim>, pods: &[Pod]) -> Self {
        let World { inventory, classes, tracker, options, server, .. } = World::new(nodes, claims);
        let server = ClusterServer::new(server);
        let mut cluster = Self { inventory, classes, options, pods: PodMemory::default(), claims: tracker, server };
        for pod in pods {
            cluster.server.store(pod.clone());
        }
        cluster.watch();
        cluster
    }

    /// Shows the scheduler what the API server has.
    pub(crate) fn watch(&mut self) {
        self.claims.replace(self.server.claims.list(), Some(&self.server.claims.version())).unwrap();
        self.pods.replace(self.server.pods.values().cloned(), None).unwrap();
    }

    pub(crate) fn memory(&mut self) -> BindingMemory<'_> {
        BindingMemory { pods: &mut self.pods, claims: &mut self.claims }
    }

    /// Chooses the devices of a pod on a node; `None` if the pod has no claims.
    pub(crate) fn reserve(&mut self, pod: &str, on: &str) -> Option<PodCycle> {
        let pod = self.pods.pod("ns", pod).cloned().unwrap();
        let mut round = GroupRound::default();
        let begun = PodCycle::pre_filter(&pod, None, &self.claims, &self.classes, &round, self.options);
        let mut cycle = begun.unwrap()?;
        let allocator = Allocator::new(self.options.scheduler(), &self.inventory, &self.classes);
        let verdict = cycle.filter(&node(on), &allocator, self.claims.state(), NOW, Budget::default());
        assert_eq!(verdict.refusal(), None);
        cycle.record(on, verdict);
        cycle.reserve(on, &mut self.claims, &mut round).unwrap();
        Some(cycle)
    }

    pub(crate) fn begin(&mut self, pod: &str, on: &str) -> Binding {
        let cycle = self.reserve(pod, on);
        Binding::begin(&key(pod), on, PodUsage::default(), cycle, &mut self.memory()).unwrap()
    }

    pub(crate) fn next(&mut self, binding: &mut Binding, seconds: i64) -> BindingStep {
        binding.next(&mut self.memory(), after(seconds))
    }

    pub(crate) fn next_call(&mut self, binding: &mut Binding, seconds: i64) -> BindingCall {
        match self.next(binding, seconds) {
            BindingStep::Call(call) => call,
            step => panic!("{step:?}"),
        }
    }

    pub(crate) fn answer(&mut self, binding: &mut Binding, call: &BindingCall, answer: ApiResponse, seconds: i64) {
        binding.answer(call, answer, &mut self.memory(), after(seconds));
    }

    /// Makes calls until there is none to make, and returns them with the step that ended them.
    pub(crate) fn run(&mut self, binding: &mut Binding, seconds: i64) -> (Vec<BindingRequest>, BindingStep) {
        let mut requests = Vec::new();
        loop {
            match self.next(binding, seconds) {
                BindingStep::Call(call) => {
                    let answer = self.server.call(&call);
                    self.answer(binding, &call, answer, seconds);
                    requests.push(call.request);
                }
                step => return (requests, step),
            }
        }
    }

    pub(crate) fn stored(&self, pod: &str) -> Value {
        let pod = &self.server.pods[pod];
        json!({"node": node_of(pod), "nomination": nomination_of(pod)})
    }
}
