//! Scheduling of pods with claims: single pods on the best node, pods of one group on any nodes, all or none.

use std::fmt::Write;

use dra_alloc::pods::{
    ApiResponse, BindStep, ClaimCalls, ClaimTracker, ClaimWrite, GangSearch, GroupRound, PodCycle, PodExplanation,
    PodOptions, PostFilter, PreBind, pre_enqueue,
};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Allocator, Classes, DeviceId, Gate, Inventory, allocated_devices};
use dra_attrs::{Component, Profile};
use examples::candidates::candidates;
use examples::claim_store::ClaimStore;
use examples::manifest::{Manifests, name_of};
use examples::placing::{NoNode, NodeVerdict, Preference, best_node, judge, with_budget};
use examples::room::{Room, usage_with_devices};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceRequest, ResourceClaim};
use k8s_openapi::jiff::Timestamp;

use super::schedule::{ScheduleError, Settings, chosen_nodes};

/// A scheduler of pods, with an API server that only it writes to.
struct Scheduler<'a> {
    manifests: &'a Manifests,
    settings: &'a Settings,
    options: PodOptions,
    nodes: Vec<Node>,
    inventory: Inventory,
    classes: Classes,
    selectors: SelectorCache,
    tracker: ClaimTracker,
    server: ClaimStore,
    /// Room of the nodes for what devices take of them.
    room: Room,
    /// Time of the run: binding conditions are as the manifests have them.
    now: Timestamp,
    report: String,
}

/// Schedules the pods of the manifests in their order and returns a report. The first pod of a group stands for all of its
/// pods.
///
/// # Errors
/// See [`ScheduleError`].
pub(crate) fn schedule(manifests: &Manifests, settings: &Settings) -> Result<String, ScheduleError> {
    let options = PodOptions::new(Component::new(settings.profile, settings.gates)).accepting_group_allocations();
    let (mut server, mut tracker) =
        (ClaimStore::default(), ClaimTracker::new(Component::new(Profile::V1_37, settings.gates)));
    for claim in &manifests.claims {
        tracker.observe(server.put(with_uid(claim)))?;
    }
    let rules = manifests.taint_rules.iter().cloned();
    let mut scheduler = Scheduler {
        manifests,
        settings,
        options,
        nodes: chosen_nodes(&manifests.nodes, &settings.nodes)?.into_iter().cloned().collect(),
        inventory: Inventory::new(manifests.slices.iter().cloned()).with_taint_rules(rules),
        classes: Classes::new(manifests.classes.iter().cloned()),
        room: Room::new(&manifests.nodes, &manifests.pods)?,
        selectors: SelectorCache::default(),
        tracker,
        server,
        now: Timestamp::UNIX_EPOCH,
        report: String::new(),
    };
    let mut gangs: Vec<&str> = Vec::new();
    for pod in manifests.pods.iter().filter(|pod| pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none())) {
        match group_of(pod) {
            None => scheduler.schedule_pod(pod),
            Some(group) if gangs.contains(&group) => {}
            Some(group) => {
                gangs.push(group);
                scheduler.schedule_gang(group);
            }
        }
    }
    Ok(scheduler.report)
}

fn group_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.scheduling_group.as_ref()?.pod_group_name.as_deref()
}

/// Returns a claim with a UID: manifests rarely have one, and memory is by UID.
fn with_uid(claim: &ResourceClaim) -> ResourceClaim {
    let mut claim = claim.clone();
    let name = name_of(&claim.metadata);
    claim.metadata.uid.get_or_insert(name);
    claim
}

impl Scheduler<'_> {
    fn say(&mut self, line: impl AsRef<str>) {
        // Writing to a string can't fail.
        let _ = writeln!(self.report, "{}", line.as_ref());
    }

    fn allocator(&self) -> Allocator<'_> {
        Allocator::new(Component::new(self.settings.profile, self.settings.gates), &self.inventory, &self.classes)
            .with_selector_cache(&self.selectors)
            .with_explanation(self.settings.detail)
            .with_objective(&self.settings.objective)
    }

    fn schedule_pod(&mut self, pod: &Pod) {
        let name = name_of(&pod.metadata);
        let mut round = GroupRound::default();
        let begun = pre_enqueue(pod, &self.tracker, self.options)
            .and_then(|()| PodCycle::pre_filter(pod, None, &self.tracker, &self.classes, &round, self.options));
        let mut cycle = match begun {
            Ok(Some(cycle)) => cycle,
            Ok(None) => return,
            Err(blocked) => return self.say(format!("pod {name}: {blocked}")),
        };
        let node = match self.best_node(pod, &mut cycle) {
            Ok(node) => node,
            Err(reason) => {
                self.say(format!("pod {name}: {reason}"));
                return self.free(&cycle);
            }
        };
        let object = self.nodes.iter().find(|known| known.metadata.name.as_ref() == Some(&node));
        let demand = object.map(|object| usage_with_devices(pod, &cycle, &self.inventory, object));
        if let Some(Ok(demand)) = demand {
            self.room.take(&node, &demand);
        }
        if let Err(error) = cycle.reserve(&node, &mut self.tracker, &mut round) {
            return self.say(format!("pod {name}: {error}"));
        }
        self.say(format!("pod {name}: {node}"));
        self.say_choice(&cycle, &node);
        self.bind(cycle);
    }

    /// Says why the devices on a node are better than the first ones that fit.
    fn say_choice(&mut self, cycle: &PodCycle, node: &str) {
        if let Some(reason) = cycle.choice_on(node).and_then(|choice| choice.reason.as_ref()) {
            self.say(format!("  {reason}"));
        }
    }

    /// Returns the node with the highest score, or the reasons of all nodes.
    fn best_node(&self, pod: &Pod, cycle: &mut PodCycle) -> Result<String, NoNode> {
        let (mut nodes, mut explanation) = candidates(pod, self.nodes.iter());
        let state = self.tracker.state();
        if self.settings.gates.has(Gate::NodeAllocatableResources) {
            nodes = self.with_room(pod, cycle, nodes, &mut explanation)?;
        }
        let preference = if self.settings.best_fit { Preference::BestFit(&self.inventory) } else { Preference::First };
        best_node(cycle, nodes, &self.allocator(), state, explanation, self.now, preference)
    }

    /// Leaves out the nodes that have too little of what the pod's devices take of a node (KEP-5517).
    fn with_room<'n>(
        &self,
        pod: &Pod,
        cycle: &mut PodCycle,
        nodes: Vec<&'n Node>,
        explanation: &mut PodExplanation,
    ) -> Result<Vec<&'n Node>, NoNode> {
        let (allocator, state) = (self.allocator(), self.tracker.state());
        let mut usable = Vec::new();
        with_budget(|budget| {
            for node in nodes {
                let name = node.metadata.name.as_deref().unwrap_or_default();
                let short = match judge(cycle, node, &allocator, state, self.now, budget)? {
                    NodeVerdict::Refused(_) => None,
                    NodeVerdict::Fits(_) => {
                        let demand = usage_with_devices(pod, cycle, &self.inventory, node).map_err(NoNode::Failed)?;
                        self.room.refusal(name, &demand, &self.classes)
                    }
                };
                match short {
                    Some(reason) => explanation.add_other(name, reason),
                    None => usable.push(node),
                }
            }
            Ok(usable)
        })
    }

    /// Frees a claim that keeps the pod from all nodes, if nobody else uses it.
    fn free(&mut self, cycle: &PodCycle) {
        let decision = cycle.post_filter(0);
        self.make(decision.calls());
        if decision != PostFilter::Nothing {
            self.say(format!("  {}; the pod is tried again", decision.reason()));
        }
    }

    fn schedule_gang(&mut self, group: &str) {
        let members = self.manifests.pods.iter().filter(|pod| group_of(pod) == Some(group));
        let pods: Vec<Pod> = members.cloned().collect();
        let named =
            |known: &&k8s_openapi::api::scheduling::v1beta1::PodGroup| known.metadata.name.as_deref() == Some(group);
        let group_object = self.manifests.pod_groups.iter().find(named);
        let mut tracker = self.tracker.clone();
        let allocator = self.allocator();
        let search = GangSearch::new(&allocator, &self.nodes, self.options, self.now);
        let placed = with_budget(|budget| search.with_budget(budget).place(&pods, group_object, &mut tracker));
        let placed = match placed {
            Ok(placed) => placed,
            Err(refusal) => return self.say(format!("gang {group}, {} pods: none is placed: {refusal}", pods.len())),
        };
        self.tracker = tracker;
        self.say(format!("gang {group}, {} pods: all are placed", pods.len()));
        for (pod, placement) in pods.iter().zip(placed.pods) {
            self.say(format!("pod {}: {}", name_of(&pod.metadata), placement.node));
            if let Some(cycle) = placement.cycle {
                self.say_choice(&cycle, &placement.node);
                self.bind(cycle);
            }
        }
    }

    fn bind(&mut self, mut cycle: PodCycle) {
        let mut binding = PreBind::default();
        loop {
            match binding.next(&mut cycle, &mut self.tracker, self.now) {
                BindStep::Write(write) => {
                    let answer = self.call(&write);
                    binding.answer(&mut cycle, &mut self.tracker, answer, self.now);
                }
                BindStep::Wait { claim, .. } => return self.say(format!("  waits for the devices of {claim}")),
                BindStep::Failed(error) => {
                    self.say(format!("  {error}"));
                    let calls = cycle.unreserve(&mut self.tracker);
                    return self.make(calls);
                }
                _ => return,
            }
        }
    }

    /// Makes calls one after the other.
    fn make(&mut self, mut calls: ClaimCalls) {
        while let Some(write) = calls.next() {
            let answer = self.call(&write);
            calls.answer(&mut self.tracker, answer);
        }
    }

    fn call(&mut self, write: &ClaimWrite) -> ApiResponse {
        self.say(format!("  {}", shown(write)));
        self.server.call(write)
    }
}

/// Describes a call in one line.
fn shown(write: &ClaimWrite) -> String {
    match write {
        ClaimWrite::Update { claim } => format!("update {}: finalizer", name_of(&claim.metadata)),
        ClaimWrite::UpdateStatus { claim } => {
            let devices = allocated_devices(claim).iter();
            let devices = devices.map(|result| DeviceId::new(&result.driver, &result.pool, &result.device).to_string());
            let devices: Vec<String> = devices.collect();
            let status = claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten());
            let consumers: Vec<String> = status.map(|entry| format!("{}/{}", entry.resource, entry.name)).collect();
            let listed = |texts: Vec<String>| if texts.is_empty() { "none".to_owned() } else { texts.join(", ") };
            let name = name_of(&claim.metadata);
            format!("update {name}/status: devices {}; reserved for {}", listed(devices), listed(consumers))
        }
        ClaimWrite::PatchReservation { name, consumer, .. } => format!("patch {name}/status: without {consumer}"),
        ClaimWrite::Create { claim } => {
            let requests = claim.spec.iter().flat_map(|spec| spec.devices.iter()).flat_map(|devices| &devices.requests);
            let request = |request: &DeviceRequest| match &request.exactly {
                Some(exactly) => format!("{} {}", exactly.count.unwrap_or(1), exactly.device_class_name),
                None => request.name.clone(),
            };
            let requests: Vec<String> = requests.flatten().map(request).collect();
            let prefix = claim.metadata.generate_name.as_deref().unwrap_or_default();
            format!("create {prefix}*: {}", requests.join(", "))
        }
        ClaimWrite::Delete { namespace, name, .. } => format!("delete {namespace}/{name}"),
        ClaimWrite::PatchPodStatus { namespace, name, extended_resource_claim } => {
            let mappings = extended_resource_claim.request_mappings.iter();
            let mappings: Vec<String> =
                mappings.map(|mapping| format!("{} of {}", mapping.resource_name, mapping.container_name)).collect();
            let claim = &extended_resource_claim.resource_claim_name;
            format!("patch pod {namespace}/{name}/status: {claim} for {}", mappings.join(", "))
        }
        ClaimWrite::Get { namespace, name } => format!("get {namespace}/{name}"),
        other => format!("{other:?}"),
    }
}
