//! A small cluster with an API server in memory, and a scheduler that works on it.

use std::collections::BTreeMap;

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::{BindError, BindStep, ClaimTracker, FilterVerdict, GroupRound, PodCycle, PodOptions, PreBind};
use dra_alloc::{Allocator, Budget, Classes, Gate, GateSet, Inventory, Profile};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

use super::api_server::ApiServer;

/// Extended resource of the device class.
pub(crate) const GPUS: &str = "example.com/gpu";

pub(crate) const NOW: Timestamp = Timestamp::UNIX_EPOCH;

pub(crate) fn node(name: &str) -> Node {
    from_value(json!({"metadata": {"name": name}})).unwrap()
}

/// A pod with claims by name, which belongs to the group `g` if `group` is set.
pub(crate) fn pod(name: &str, claims: &[&str], group: Option<&str>) -> Pod {
    let entry = |claim: &&str| json!({"name": claim, "resourceClaimName": claim});
    let entries: Vec<Value> = claims.iter().map(entry).collect();
    let group = group.map(|group| json!({"podGroupName": group}));
    from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("{name}-uid")},
        "spec": {"resourceClaims": entries, "schedulingGroup": group}}))
    .unwrap()
}

pub(crate) fn group(name: &str, claims: &[&str]) -> PodGroup {
    let entry = |claim: &&str| json!({"name": claim, "resourceClaimName": claim});
    let entries: Vec<Value> = claims.iter().map(entry).collect();
    from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("{name}-uid")},
        "spec": {"resourceClaims": entries}}))
    .unwrap()
}

/// A pod whose container `main` requests extended resources.
pub(crate) fn extended_pod(name: &str, requests: &[(&str, &str)]) -> Pod {
    let requests: BTreeMap<&str, &str> = requests.iter().copied().collect();
    from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("{name}-uid")},
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}}))
    .unwrap()
}

/// A claim of `count` devices.
pub(crate) fn claim(name: &str, count: i64) -> ResourceClaim {
    from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("{name}-uid")},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}]}}}))
    .unwrap()
}

/// A claim that is allocated with one device of a node, and reserved for pods.
pub(crate) fn allocated(name: &str, node: &str, device: &str, pods: &[&str]) -> ResourceClaim {
    let reserved: Vec<Value> =
        pods.iter().map(|pod| json!({"resource": "pods", "name": pod, "uid": format!("{pod}-uid")})).collect();
    let mut claim = claim(name, 1);
    claim.status = from_value(json!({"reservedFor": reserved, "allocation": {
        "devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": node, "device": device}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": [node]}]}]}}}))
    .unwrap();
    claim
}

/// A cluster with nodes `n1`, `n2`… of two devices each, and one scheduler.
pub(crate) struct World {
    pub(crate) inventory: Inventory,
    pub(crate) classes: Classes,
    pub(crate) tracker: ClaimTracker,
    pub(crate) round: GroupRound,
    pub(crate) options: PodOptions,
    pub(crate) server: ApiServer,
}

impl World {
    pub(crate) fn new(nodes: usize, claims: impl IntoIterator<Item = ResourceClaim>) -> Self {
        let slice = |node: usize| -> ResourceSlice {
            let name = format!("n{node}");
            from_value(json!({"metadata": {"name": name}, "spec": {"driver": "d.example.com", "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "a"}, {"name": "b"}]}}))
            .unwrap()
        };
        let class: DeviceClass =
            from_value(json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPUS}})).unwrap();
        let options = PodOptions::new(Profile::V1_37);
        let mut world = Self {
            inventory: Inventory::new((1..=nodes).map(slice)),
            classes: Classes::new([class]),
            tracker: ClaimTracker::new(options.scheduler()),
            round: GroupRound::default(),
            options,
            server: ApiServer::default(),
        };
        claims.into_iter().for_each(|claim| drop(world.store(claim)));
        world.watch();
        world
    }

    pub(crate) fn with_groups(mut self) -> Self {
        self.options = PodOptions::new(Component::new(
            Profile::V1_37,
            GateSet::of(Profile::V1_37).with(Gate::WorkloadResourceClaims),
        ));
        self.round = GroupRound::of_group();
        self
    }

    pub(crate) fn store(&mut self, claim: ResourceClaim) -> ResourceClaim {
        self.server.store(claim)
    }

    /// Shows the scheduler what the API server has.
    pub(crate) fn watch(&mut self) {
        self.tracker.replace(self.server.list(), Some(&self.server.version())).unwrap();
    }

    pub(crate) fn stored(&self, name: &str) -> ResourceClaim {
        ResourceClaim::clone(&self.server.claims[&ClaimKey::new("ns", name)])
    }

    pub(crate) fn reserved_for(&self, name: &str) -> Vec<String> {
        let status = self.stored(name).status.unwrap_or_default();
        status.reserved_for.into_iter().flatten().map(|entry| entry.name).collect()
    }

    pub(crate) fn begin(&self, pod: &Pod, group: Option<&PodGroup>) -> PodCycle {
        let begun = PodCycle::pre_filter(pod, group, &self.tracker, &self.classes, &self.round, self.options);
        begun.unwrap().unwrap()
    }

    pub(crate) fn filter(&self, cycle: &PodCycle, name: &str) -> FilterVerdict {
        let allocator = Allocator::new(self.options.scheduler(), &self.inventory, &self.classes);
        cycle.filter(&node(name), &allocator, self.tracker.state(), NOW, Budget::default())
    }

    /// Schedules a pod on a node, up to `Reserve`.
    pub(crate) fn reserve(&mut self, pod: &Pod, group: Option<&PodGroup>, node: &str) -> PodCycle {
        let mut cycle = self.begin(pod, group);
        let verdict = self.filter(&cycle, node);
        assert_eq!(verdict.refusal(), None);
        cycle.record(node, verdict);
        cycle.reserve(node, &mut self.tracker, &mut self.round).unwrap();
        cycle
    }

    pub(crate) fn bind(&mut self, cycle: &mut PodCycle) -> Result<(), BindError> {
        let mut binding = PreBind::default();
        loop {
            match binding.next(cycle, &mut self.tracker, NOW) {
                BindStep::Write(write) => {
                    let answer = self.server.call(&write);
                    binding.answer(cycle, &mut self.tracker, answer, NOW);
                }
                BindStep::Done => return Ok(()),
                BindStep::Failed(error) => return Err(error),
                step => panic!("{step:?}"),
            }
        }
    }

    /// Undoes a cycle, in memory and at the API server.
    pub(crate) fn unreserve(&mut self, cycle: &mut PodCycle) {
        let mut calls = cycle.unreserve(&mut self.tracker);
        while let Some(write) = calls.next() {
            let answer = self.server.call(&write);
            calls.answer(&mut self.tracker, answer);
        }
    }
}
