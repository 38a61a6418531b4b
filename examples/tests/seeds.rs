//! Seeds of the fuzz targets, replayed through the same parsers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use dra_alloc::autoscaler::{ClusterSnapshot, NodeTemplate, ScaleSimulator};
use dra_alloc::declared_features::CandidateNodes;
use dra_alloc::driver::{CdiKind, CdiSpec, DeviceMetadata, Ledger, MetadataVersion};
use dra_alloc::eviction::{RulePreview, TaintIndex};
use dra_alloc::kubelet::ClaimCache;
use dra_alloc::pods::{ClaimTracker, PodOptions, check_owner};
use dra_alloc::selector::{self, Selector, SelectorCache, SelectorInput};
use dra_alloc::validate::{ApiServer, Write};
use dra_alloc::{Classes, GateSet, Inventory};
use dra_attrs::Resources;
use dra_attrs::internal::QualifiedName;
use dra_attrs::numa::CpuSet;
use dra_attrs::{
    Component, Gate, PciAddress, Profile, Quantity, Version, has_saturated_time, label_selector_matches,
    node_affinity_matches, node_selector_matches, saturate_times,
};
use examples::manifest::Manifests;
use examples::nominate::{Player, Writers, read_timeline};
use examples::plan::{Rules, plan};
use examples::preempt::Who;

use examples::simulation::{Description, Recorded, Simulation, Statistics};
use k8s_openapi::api::core::v1::{Binding, Node, NodeSelector, Pod};
use k8s_openapi::api::resource::v1::{Device, DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::jiff::Timestamp;
use nnn::binding::apply_binding;
use nnn::{Behavior, NominationOptions, NominationTracker, PodSnapshot, TrackerInput};
use poolstatus::kep::PoolStatus;
use poolstatus::{Cluster, PoolIndex, PoolIndexEvent, Query, StatusRequest, validate_status};
use readiness::network::Aggregate;
use readiness::rule::{Expansion, NodeReadinessRule, ReadinessTaintRule};
use readiness::{EvaluatorRole, GatedNode, KubeletConfiguration, NodeState, Policy, StepResult, step};
use serde_json::{Value, json};

/// Check that parses a text; a valid text must print a text that reads back as the same value.
type Check = fn(&str);

const TARGETS: [(&str, Check); 29] = [
    ("attrs_names", |text| {
        if let Ok(name) = QualifiedName::parse(text) {
            assert_eq!(name.to_string(), text);
        }
    }),
    ("attrs_quantity", |text| {
        if let Ok(quantity) = text.parse::<Quantity>() {
            assert_eq!(quantity.to_string().parse(), Ok(quantity));
        }
    }),
    ("attrs_time_range", |text| {
        // A time, or an object with times; other lines are the end of one.
        let mut object = serde_json::from_str(text).unwrap_or_else(|_| json!({"time": text}));
        let (found, count) = (has_saturated_time(&object), saturate_times(&mut object));
        assert!(found || count == 0);
        assert_eq!((has_saturated_time(&object), saturate_times(&mut object)), (found, 0));
    }),
    ("attrs_selectors", |text| {
        type Selectors = (NodeSelector, LabelSelector, Vec<Node>);
        let (of_nodes, of_labels, nodes): Selectors = serde_json::from_str(text).unwrap();
        assert!(node_affinity_matches(&of_nodes, &nodes[0]));
        let labels = nodes[0].metadata.labels.clone().unwrap_or_default();
        let is_known = label_selector_matches(&of_labels, &labels).map(|matches| assert!(matches)).is_ok();
        assert_eq!(node_selector_matches(&of_nodes, &nodes[0]).is_ok(), is_known);
    }),
    ("attrs_pci", |text| {
        if let Ok(address) = PciAddress::parse_extended(text) {
            assert_eq!(PciAddress::parse_extended(&address.to_string()), Ok(address));
        }
    }),
    ("attrs_cpu_set", |text| {
        if let Ok(set) = text.parse::<CpuSet>() {
            assert_eq!(set.to_string().parse(), Ok(set));
        }
    }),
    ("alloc_selector", |text| {
        let device = Device::default();
        let input = SelectorInput::new("d.example", &device);
        if let Ok(selector) = Selector::compile(text, &selector::Options::stored()) {
            assert_eq!(selector.matches(input), selector.matches(input));
        }
    }),
    ("alloc_checkpoint", |text| {
        let file = json!({"Data": text, "Checksum": crc32fast::hash(text.as_bytes())}).to_string();
        let caches = [text, &file].map(|file| ClaimCache::from_checkpoint(file.as_bytes()));
        for cache in caches.into_iter().flatten() {
            let written = cache.to_checkpoint(Profile::V1_37);
            let again = ClaimCache::from_checkpoint(written.as_bytes()).unwrap();
            assert_eq!(again.claims(), cache.claims());
        }
    }),
    ("alloc_controllers", |text| {
        type Objects = (Vec<Pod>, Vec<ResourceClaim>, Vec<ResourceSlice>, Vec<DeviceTaintRule>, Value);
        let (pods, claims, slices, rules, _): Objects = serde_json::from_str(text).unwrap();
        let (taints, options) = (TaintIndex::new(&slices), PodOptions::new(Profile::V1_37));
        let preview = RulePreview::new(&rules[0], &taints, &claims, &pods, options);
        assert_eq!((preview.published, preview.allocated, preview.pods.len()), (1, 1, 1));
    }),
    ("alloc_kubelet", |text| {
        type Steps = Vec<(u8, BTreeMap<String, Result<(), String>>)>;
        let (pod, claims, _): (Pod, Vec<ResourceClaim>, Steps) = serde_json::from_str(text).unwrap();
        let settings = Component::new(Profile::V1_37, GateSet::of(Profile::V1_37).with(Gate::OptionalNodeOperations));
        assert!(ClaimCache::default().plan_prepare(&pod, &claims, |_| true, settings).is_ok());
    }),
    ("alloc_pod_claims", |text| {
        type Objects = (u32, Vec<Pod>, Vec<ResourceClaim>, Value, Binding, Vec<Node>, Value);
        let (minor, pods, claims, _, binding, nodes, _): Objects = serde_json::from_str(text).unwrap();
        let kubelet = Component::new(Profile::of_minor(minor), GateSet::all());
        let found: Vec<String> =
            ClaimCache::claims_of_pod(&pods[0], kubelet).map(|found| found.unwrap().claim.name).collect();
        assert_eq!(found, ["c", "p-b", "p-ext"]);
        assert!(check_owner(&pods[0], &claims[0], PodOptions::new(kubelet)).is_ok());
        assert!(apply_binding(&pods[0], &binding, GateSet::all(), Timestamp::UNIX_EPOCH).is_ok());
        assert_eq!(CandidateNodes::from_nodes(&nodes, &["DRAOptionalNodeOperations"]).fitting, ["n"]);
    }),
    ("alloc_scaling", |text| {
        type New = (Vec<DeviceClass>, Node, Vec<ResourceSlice>);
        type Objects = (Vec<Node>, Vec<Pod>, Vec<ResourceClaim>, Vec<ResourceSlice>, New);
        let (nodes, pods, claims, slices, (classes, new, new_slices)): Objects = serde_json::from_str(text).unwrap();
        let (options, selectors) = (PodOptions::new(Profile::V1_37), SelectorCache::default());
        let mut tracker = ClaimTracker::new(options.scheduler());
        tracker.replace(claims, None).unwrap();
        let (classes, mut inventory) = (Classes::new(classes), Inventory::new(slices));
        let simulator = ScaleSimulator::new(&classes, &selectors, options, Timestamp::UNIX_EPOCH);
        let template = NodeTemplate::new(new, new_slices).unwrap();
        let answer = simulator.scale_up(&mut inventory, &tracker, &template, &pods).unwrap();
        assert_eq!((answer.placed.len(), answer.refused.len()), (1, 1));
        let snapshot = ClusterSnapshot::new(&nodes, &pods);
        let names = nodes.iter().filter_map(|node| node.metadata.name.as_deref());
        assert_eq!(simulator.scale_down(&mut inventory, &tracker, &snapshot, names).removable, ["n"]);
    }),
    ("alloc_validate", |text| {
        let (gates, kep, old, new): (u32, bool, Value, Value) = serde_json::from_str(text).unwrap();
        assert_eq!(gates, 0xffff, "seeds have every gate on");
        let server = ApiServer::new(Component::new(if kep { Profile::Kep } else { Profile::V1_37 }, GateSet::all()));
        let slice =
            serde_json::from_value(new.clone()).is_ok_and(|new| server.validate_slice(Write::create(&new)).is_ok());
        let claim =
            serde_json::from_value(new.clone()).is_ok_and(|new| server.validate_claim(Write::create(&new)).is_ok());
        let template = serde_json::from_value(new.clone())
            .is_ok_and(|new| server.validate_claim_template(Write::create(&new)).is_ok());
        let class =
            serde_json::from_value(new.clone()).is_ok_and(|new| server.validate_class(Write::create(&new)).is_ok());
        let rule = serde_json::from_value(new.clone())
            .is_ok_and(|new| server.validate_taint_rule(Write::create(&new)).is_ok());
        assert!(slice || claim || template || class || rule, "some kind of object is valid");
        if let (Ok(old), Ok(new)) = (serde_json::from_value(old), serde_json::from_value(new)) {
            assert!(server.validate_claim_status(Write::update(&old, &new)).is_ok());
        }
    }),
    ("poolstatus_compute", |text| {
        type Objects = (Vec<ResourceSlice>, Vec<ResourceClaim>, Vec<DeviceTaintRule>, Option<String>);
        let (slices, claims, rules, attribute): Objects = serde_json::from_str(text).unwrap();
        let query =
            Query::new("d.example").with_partition_type_attribute(attribute.as_deref().unwrap_or("d.example/type"));
        let report = Cluster::new(Profile::V1_37, &slices, &claims)
            .with_taint_rules(&rules)
            .report(&query, Timestamp::UNIX_EPOCH);
        let status = report.to_kep();
        let sum = |pool: &PoolStatus| pool.allocated_devices + pool.available_devices + pool.unavailable_devices;
        assert!(!status.pools.is_empty() && status.pools.iter().all(|pool| sum(pool) == pool.total_devices));
    }),
    ("poolstatus_index", |text| {
        let mut index = PoolIndex::new(Profile::V1_37);
        for object in text.lines().filter_map(|line| serde_json::from_str::<ResourceSlice>(line).ok()) {
            let is_named = object.metadata.name.is_some();
            assert_eq!(index.apply(PoolIndexEvent::Slice(Arc::new(object))).is_ok(), is_named);
        }
        assert!(index.report(&Query::new("d.example"), Timestamp::UNIX_EPOCH).matching_pools <= 2);
    }),
    ("poolstatus_request", |text| {
        type Objects = (poolstatus::kep::ResourcePoolStatusRequest, Vec<ResourcePoolStatusRequest>, Value, Value, i64);
        let (of_kep, of_server, ..): Objects = serde_json::from_str(text).unwrap();
        assert!(Query::from_request((&of_kep).into()).is_ok());
        for request in &of_server {
            assert!(StatusRequest::from(request).validate(GateSet::all()).is_empty());
            assert!(request.status.iter().all(|status| validate_status(None, status).is_empty()));
        }
    }),
    ("readiness_kubelet_configuration", |text| {
        let configuration: KubeletConfiguration = serde_json::from_str(text).unwrap();
        let gates = &configuration.node_readiness_gates;
        assert!(!gates.is_empty() && configuration.merge_gates(gates) == *gates);
    }),
    ("readiness_rules", |text| {
        type Objects = (Vec<NodeReadinessRule>, ReadinessTaintRule, Vec<(i64, GatedNode)>, Value, Value);
        let (rules, taint_rule, nodes, ..): Objects = serde_json::from_str(text).unwrap();
        for (second, node) in &nodes {
            let now = Timestamp::from_second(*second).unwrap();
            let expansion = Expansion::from_rules(&rules, node, 600, now).unwrap();
            assert_eq!(expansion.gates.len(), rules.len());
            let network = Aggregate::from_gates(&node.view(), Aggregate::NETWORK_PREFIX);
            assert_eq!(taint_rule.removal(&node.view()).is_some(), network == Some(Aggregate::True));
        }
    }),
    ("readiness_state", |text| {
        let (state, node): (Value, GatedNode) =
            serde_json::from_str(text).unwrap_or_else(|_| (serde_json::from_str(text).unwrap(), GatedNode::default()));
        match NodeState::from_json(&state.to_string()) {
            Ok(state) => {
                let now = Timestamp::UNIX_EPOCH;
                let after = step(&Policy::kep(), EvaluatorRole::Combined, &node.view(), now, state.clone());
                assert_eq!(NodeState::from_json(&serde_json::to_string(&state).unwrap()).unwrap(), state);
                assert!(after.requeue_at.is_none_or(|at| at > now));
            }
            Err(error) => assert!(state["version"] == 2 || state.get("seconds").is_some(), "{error}"),
        }
    }),
    ("readiness_step", |text| {
        let (policy, role, nodes): (Policy, EvaluatorRole, Vec<(i64, GatedNode)>) = serde_json::from_str(text).unwrap();
        let mut state = NodeState::default();
        for (second, mut node) in nodes {
            let now = Timestamp::from_second(second).unwrap();
            let StepResult { writes, state: after, .. } = step(&policy, role, &node.view(), now, state);
            assert!(writes.iter().all(|write| write.apply(&mut node.node, now)));
            let again = step(&policy, role, &node.view(), now, after);
            assert_eq!(again.writes, []);
            state = again.state;
        }
    }),
    ("nnn_resources", |text| {
        let parse = |cpu: String| Resources::parse(&[("cpu".to_owned(), KubeQuantity(cpu))].into());
        if let Ok(resources) = parse(text.to_owned()) {
            assert_eq!(parse(resources.quantity("cpu").to_string()), Ok(resources));
        }
    }),
    ("nnn_run", |text| {
        let mut tracker = NominationTracker::new(NominationOptions::new(Profile::Kep, Behavior::Safe));
        for step in text.as_bytes().get(1..).unwrap_or_default().chunks_exact(3) {
            let pod = PodSnapshot::pending("d", &format!("p{}", step[1] % 4)).with_uid(&format!("u{}", step[1] % 8));
            let input = match step[0] % 3 {
                0 => TrackerInput::PodDeleted { uid: pod.key.uid },
                1 => TrackerInput::PodObserved(pod.with_nomination(&format!("n{}", step[2] % 4))),
                _ => TrackerInput::Bound { pod: pod.key },
            };
            let _ = tracker.handle(input);
            assert!(tracker.nominator().len() <= tracker.pods().count());
        }
    }),
    ("nominate_timeline", |text| {
        let cluster = concat!(env!("CARGO_MANIFEST_DIR"), "/data/stories/5278/cluster.yaml");
        let mut manifests = Manifests::default();
        manifests.read_path(Path::new(cluster));
        // A line of a list is a list, but without the events before it.
        let timeline = read_timeline(text).unwrap();
        let options = NominationOptions::new(Profile::V1_37, Behavior::Safe);
        let mut player = Player::new(&manifests, options, Writers::Owners).unwrap();
        let played = timeline.iter().try_for_each(|entry| player.play(entry));
        assert!(played.is_ok() || timeline.len() == 1, "{played:?}");
        assert!(player.finish().contains("requests of the scheduler: "));
    }),
    ("simulation_description", |text| {
        // A line of a description is none.
        let Ok(day) = Description::read(text) else { return };
        let simulation =
            Simulation::new(&day, &Recorded::default(), Profile::V1_37, GateSet::of(Profile::V1_37)).unwrap();
        let mut statistics = Statistics::new(&simulation);
        let end = simulation.run(|event| statistics.count(event));
        let sum = statistics.finish(&end).sum;
        assert!(sum.placed > 0 || sum.arrived == 0);
        assert_eq!(sum.arrived, sum.placed + sum.refused + sum.waiting);
    }),
    ("workload_plan", |text| {
        let mut manifests = Manifests::default();
        manifests.read("seed.yaml", text);
        let rules = Rules { profile: Profile::V1_37, gates: GateSet::of(Profile::V1_37), who: Who::Room };
        let plan = plan(manifests, rules).unwrap();
        let waiting = plan.workloads.iter().flat_map(|workload| &workload.waiting).map(|group| group.pods.len());
        assert_eq!(plan.placed + waiting.sum::<usize>(), plan.pods);
    }),
    ("driver_ledger", |text| {
        let file = json!({"version": 1, "checksum": crc32fast::hash(text.as_bytes()), "data": text}).to_string();
        let ledger = Ledger::from_checkpoint(file.as_bytes()).unwrap();
        assert!(!ledger.entries().is_empty());
        assert_eq!(Ledger::from_checkpoint(ledger.to_checkpoint().as_bytes()), Ok(ledger));
    }),
    ("driver_metadata", |text| {
        let known = MetadataVersion::ALL.map(MetadataVersion::api_version);
        let (_, document) = DeviceMetadata::from_stream(text, &known).unwrap();
        let again = document.to_stream(&MetadataVersion::ALL);
        assert_eq!(DeviceMetadata::from_stream(&again, &known).unwrap().1, document);
    }),
    ("driver_cdi", |text| {
        if text.starts_with('{') {
            let spec: CdiSpec = serde_json::from_str(text).unwrap();
            assert_eq!(spec.minimum_version(), spec.cdi_version);
        } else if let [vendor, class, name] = text.split('\n').collect::<Vec<_>>()[..] {
            assert!(CdiKind::new(vendor, class).unwrap().device_id(name).is_ok());
        }
    }),
    ("attrs_semver", |text| {
        if let Ok(version) = text.parse::<Version>() {
            assert_eq!(version.to_string(), text);
        }
    }),
];

#[test]
fn seeds_of_the_parsers() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds");
    for (target, check) in TARGETS {
        let folder = seeds.join(target);
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let texts = entries.map(|entry| fs::read(entry.unwrap().path()).unwrap());
        let texts: Vec<String> = texts.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect();
        assert!(!texts.is_empty(), "{target} has no seeds");
        texts.iter().flat_map(|text| text.lines().chain([text.as_str()])).for_each(check);
    }
}
