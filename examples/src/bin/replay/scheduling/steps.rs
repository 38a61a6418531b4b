//! Steps of a replayed cycle.

use std::collections::BTreeMap;

use dra_alloc::claims::ClaimKey;
use dra_alloc::pods::{
    BindStep, ClaimCalls, ClaimTracker, ExtendedRequests, GroupRound, PodCycle, PostFilter, PreBind, StatusCode,
    pre_enqueue,
};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Allocator, Budget};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use serde_json::{Map, Value, json};

use super::api_server::ApiServer;
use super::cycle::World;
use super::input::devices;
use crate::refusal::Refusal;

/// A replayed scheduler: its memory, its cycles, and the API server.
pub(super) struct Run<'w> {
    world: &'w World,
    server: ApiServer,
    tracker: ClaimTracker,
    selectors: SelectorCache,
    round: GroupRound,
    cycles: BTreeMap<String, PodCycle>,
    /// Name of the pod whose steps come next.
    pod: String,
    has_news: bool,
}

/// Status of a step, and what else it shows.
type Shown = Vec<(&'static str, Value)>;

fn success() -> (&'static str, Value) {
    status(StatusCode::Success, None)
}

fn status(code: StatusCode, reason: Option<String>) -> (&'static str, Value) {
    ("status", json!({"code": code, "reasons": reason.into_iter().collect::<Vec<_>>()}))
}

impl<'w> Run<'w> {
    pub(super) fn new(world: &'w World, server: ApiServer, in_flight: &[ResourceClaim]) -> Result<Self, Refusal> {
        let mut tracker = ClaimTracker::new(world.options.scheduler());
        let uncounted = |field: &str| {
            let field = field.to_owned();
            move |error: dra_alloc::StateError| Refusal::field(&field, error.to_string())
        };
        for claim in server.store.claims().values() {
            tracker.observe(claim.clone()).map_err(uncounted("claims"))?;
        }
        for claim in in_flight {
            tracker.begin_allocation(claim.clone()).map_err(uncounted("inFlight"))?;
        }
        Ok(Self {
            world,
            server,
            tracker,
            selectors: SelectorCache::default(),
            round: if world.group_cycle { GroupRound::of_group() } else { GroupRound::default() },
            cycles: BTreeMap::new(),
            pod: world.pods.first().map(name_of_pod).unwrap_or_default(),
            has_news: true,
        })
    }

    /// Runs one step and returns its answer.
    pub(super) fn step(&mut self, step: &str) -> Result<Value, Refusal> {
        let (kind, name) = step.split_once(':').unwrap_or((step, ""));
        let shown = match kind {
            "PreEnqueue" => self.pre_enqueue()?,
            "PreFilter" => self.pre_filter()?,
            "Filter" => self.filter(name),
            "PostFilter" => self.post_filter(),
            "Score" => self.score(name),
            "Reserve" => self.reserve(name),
            "PreBind" => self.pre_bind(),
            "Unreserve" => self.unreserve(),
            "Api" => self.watch()?,
            "Pod" => {
                name.clone_into(&mut self.pod);
                self.pod()?;
                Vec::new()
            }
            other => return Err(Refusal::field("steps", format!("no step {other:?}"))),
        };
        let annotations = |claim: &ResourceClaim| claim.metadata.annotations.clone().unwrap_or_default();
        // The claim for extended resources has no name of its own before it is created.
        let of_entries = self
            .tracker
            .in_flight()
            .filter(|claim| !annotations(claim).contains_key(ExtendedRequests::CLAIM_ANNOTATION));
        let mut names: Vec<_> = of_entries.filter_map(|claim| claim.metadata.name.as_deref()).collect();
        names.sort_unstable();
        let mut answer = Map::from_iter([("step".to_owned(), json!(step)), ("inFlight".to_owned(), json!(names))]);
        answer.extend(shown.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Ok(Value::Object(answer))
    }

    fn pod(&self) -> Result<&'w Pod, Refusal> {
        let found = self.world.pods.iter().find(|pod| name_of_pod(pod) == self.pod);
        found.ok_or_else(|| Refusal::field("steps", format!("no pod {:?}", self.pod)))
    }

    /// Returns the group of a pod.
    fn group(&self, pod: &Pod) -> Option<&'w PodGroup> {
        let name = pod.spec.as_ref()?.scheduling_group.as_ref()?.pod_group_name.as_deref()?;
        self.world.groups.iter().find(|group| {
            group.metadata.name.as_deref() == Some(name) && group.metadata.namespace == pod.metadata.namespace
        })
    }

    fn pre_enqueue(&self) -> Result<Shown, Refusal> {
        let answer = pre_enqueue(self.pod()?, &self.tracker, self.world.options);
        Ok(vec![answer.map_or_else(|blocked| status(blocked.code(), Some(blocked.to_string())), |()| success())])
    }

    fn pre_filter(&mut self) -> Result<Shown, Refusal> {
        let (pod, world) = (self.pod()?, self.world);
        self.cycles.remove(&self.pod);
        let begun =
            PodCycle::pre_filter(pod, self.group(pod), &self.tracker, &world.classes, &self.round, world.options);
        let (status, needs) = match begun {
            Ok(Some(cycle)) => {
                let needs = cycle.needs_allocation();
                self.cycles.insert(self.pod.clone(), cycle);
                (success(), needs)
            }
            Ok(None) => (status(StatusCode::Skip, None), false),
            Err(blocked) => (status(blocked.code(), Some(blocked.to_string())), false),
        };
        Ok(vec![status, ("needsAllocation", json!(needs))])
    }

    fn filter(&mut self, node: &str) -> Shown {
        let world = self.world;
        let Some(cycle) = self.cycles.get_mut(&self.pod) else { return vec![success()] };
        let unknown = || Node {
            metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                name: Some(node.to_owned()),
                ..Default::default()
            },
            ..Node::default()
        };
        let known = world.nodes.iter().find(|known| known.metadata.name.as_deref() == Some(node)).cloned();
        let allocator = Allocator::new(world.options.scheduler(), &world.inventory, &world.classes)
            .with_selector_cache(&self.selectors);
        let state = self.tracker.state();
        let verdict = cycle.filter(&known.unwrap_or_else(unknown), &allocator, state, world.now, Budget::default());
        let status = match verdict.refusal() {
            None => success(),
            Some(refusal) => status(refusal.code(), Some(refusal.to_string())),
        };
        cycle.record(node, verdict);
        let allocations: Vec<_> = cycle.results_on(node).map(devices).collect();
        let unavailable: Vec<_> = cycle.out_of_reach().map(|claim| claim.claim().metadata.name.clone()).collect();
        let extended = cycle.extended_requests_on(node);
        vec![
            status,
            ("allocations", json!(allocations)),
            ("extendedRequests", json!(extended.map(|extended| &extended.requests))),
            ("mappings", json!(extended.map(|extended| &extended.mappings))),
            ("unavailable", json!(unavailable)),
        ]
    }

    fn score(&self, node: &str) -> Shown {
        match self.cycles.get(&self.pod).map_or(Ok(0), |cycle| cycle.score(node)) {
            Ok(score) => vec![success(), ("score", json!(score))],
            Err(error) => vec![status(StatusCode::Error, Some(error.to_string()))],
        }
    }

    fn reserve(&mut self, node: &str) -> Shown {
        let Some(cycle) = self.cycles.get_mut(&self.pod) else { return vec![success()] };
        let status = match cycle.reserve(node, &mut self.tracker, &mut self.round) {
            Ok(()) => success(),
            Err(error) => status(error.code(), Some(error.to_string())),
        };
        let chosen: Vec<_> = cycle.claims().iter().map(|claim| claim.chosen().map(devices)).collect();
        vec![status, ("chosen", json!(chosen))]
    }

    /// Binds the pod. No event comes while it waits for devices, so that a wait lasts until its end.
    fn pre_bind(&mut self) -> Shown {
        let Some(cycle) = self.cycles.get_mut(&self.pod) else { return vec![success()] };
        let (mut binding, mut now) = (PreBind::default(), self.world.now);
        let status = loop {
            match binding.next(cycle, &mut self.tracker, now) {
                BindStep::Write(write) => {
                    let answer = self.server.call(&write);
                    binding.answer(cycle, &mut self.tracker, answer, now);
                }
                BindStep::Wait { until, .. } => now = until,
                BindStep::Failed(error) => break status(error.code(), Some(error.to_string())),
                _ => break success(),
            }
        };
        vec![status, ("writes", json!(self.server.take_calls()))]
    }

    fn unreserve(&mut self) -> Shown {
        let Some(cycle) = self.cycles.get_mut(&self.pod) else { return Vec::new() };
        let calls = cycle.unreserve(&mut self.tracker);
        self.make(calls);
        vec![("writes", json!(self.server.take_calls()))]
    }

    fn post_filter(&mut self) -> Shown {
        let Some(cycle) = self.cycles.get(&self.pod) else {
            return vec![status(StatusCode::Unschedulable, Some(PostFilter::NO_CLAIMS.to_owned()))];
        };
        let decision = cycle.post_filter(self.world.scheduled_in_group);
        let status = match self.make(decision.calls()) {
            Some(error) => status(StatusCode::Error, Some(error)),
            None => status(decision.code(), Some(decision.reason().to_owned())),
        };
        vec![status, ("writes", json!(self.server.take_calls()))]
    }

    /// Makes calls one after the other, and returns the first error.
    fn make(&mut self, mut calls: ClaimCalls) -> Option<String> {
        while let Some(write) = calls.next() {
            calls.answer(&mut self.tracker, self.server.call(&write));
        }
        calls.errors().first().cloned()
    }

    /// Shows the cache what the API server has. The first time, others write and delete before.
    fn watch(&mut self) -> Result<Shown, Refusal> {
        let store = &mut self.server.store;
        if std::mem::take(&mut self.has_news) {
            self.world.updates.iter().for_each(|claim| drop(store.put(claim.clone())));
            let namespace =
                self.world.pods.first().and_then(|pod| pod.metadata.namespace.as_deref()).unwrap_or_default();
            self.world.deletes.iter().for_each(|name| drop(store.remove(&ClaimKey::new(namespace, name))));
        }
        let shown = self.tracker.replace(store.claims().values().cloned(), None);
        shown.map_err(|error| Refusal::field("apiUpdates", error.to_string()))?;
        Ok(Vec::new())
    }
}

fn name_of_pod(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap_or_default()
}
