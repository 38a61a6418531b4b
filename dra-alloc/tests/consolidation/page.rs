//! Temporary.
use dra_alloc::autoscaler::{ClusterSnapshot, NodeTemplate, ScaleSimulator, SnapshotFit};
use dra_alloc::consolidation::{
    Consolidation, KeptNode, MoveGuard, MoveProof, MoveRules, MovesAnswer, NoMoves, NodeOffer, NodesNeeded, OfferError,
    PlanFault, PlanStep, PodMove, ReplaceError,
};
use dra_alloc::pods::{ClaimTracker, PodOptions};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Budget, Classes, Inventory, Profile};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use nnn::memory::PodMemory;
use serde_json::{from_value, json};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn node(name: &str) -> Outcome<Node> {
    Ok(from_value(json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": "8", "pods": "110"}}}))?)
}

fn slice(node: &str, gpus: &[&str]) -> Outcome<ResourceSlice> {
    let devices: Vec<_> = gpus.iter().map(|name| json!({"name": name})).collect();
    Ok(from_value(json!({"metadata": {"name": node}, "spec": {"driver": "gpu.example.com", "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": devices}}))?)
}

/// A pod on a node that has one GPU, or one that waits for two.
fn pod(name: &str, node: Option<&str>) -> Outcome<(Pod, ResourceClaim)> {
    let count = if node.is_some() { 1 } else { 2 };
    let mut claim = json!({"metadata": {"namespace": "ml", "name": name, "uid": format!("claim-{name}")}, "spec": {"devices": {
        "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}]}}});
    if let Some(node) = node {
        let only = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]});
        claim["metadata"]["finalizers"] = json!(["resource.kubernetes.io/delete-protection"]);
        claim["status"] = json!({"reservedFor": [{"resource": "pods", "name": name, "uid": name}], "allocation": {
            "nodeSelector": {"nodeSelectorTerms": [only]}, "devices": {"results": [
                {"request": "gpu", "driver": "gpu.example.com", "pool": node, "device": "gpu-0"}]}}});
    }
    let pod = json!({"metadata": {"namespace": "ml", "name": name, "uid": name}, "spec": {"nodeName": node,
        "containers": [{"name": "main"}], "resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}});
    Ok((from_value(pod)?, from_value(claim)?))
}

#[test]
fn page() -> Outcome {
    let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}}))?;
    let (classes, selectors, options) =
        (Classes::new([class]), SelectorCache::default(), PodOptions::new(Profile::V1_37));
    let nodes = [node("a")?, node("b")?];
    let ((x, of_x), (y, of_y), (training, wanted)) =
        (pod("x", Some("a"))?, pod("y", Some("b"))?, pod("training", None)?);
    let mut inventory = Inventory::new([slice("a", &["gpu-0", "gpu-1"])?, slice("b", &["gpu-0", "gpu-1"])?]);
    let mut tracker = ClaimTracker::new(options.scheduler());
    tracker.replace([of_x, of_y, wanted], None)?;

    // The memory of pods that a scheduler has; plain lists do as well.
    let mut memory = PodMemory::default();
    for pod in [&x, &y, &training] {
        memory.observe(pod.clone())?;
    }
    let snapshot = ClusterSnapshot::of_memory(&nodes, &memory);
    let fit = SnapshotFit::new(&snapshot, &classes).with_usage_of(&memory);
    let simulator = ScaleSimulator::new(&classes, &selectors, options, Timestamp::UNIX_EPOCH).with_fit(&fit);
    let rules = MoveRules::default();

    // Two GPUs are free, but not on one node: who has to move?
    let answer = simulator.make_moves(&inventory, &tracker, &snapshot, &[&training], &rules, Budget::default());
    let MovesAnswer::Moves(plan) = answer else { return Err("no moves".into()) };
    let moved: &PodMove = &plan.waves[0][0];
    assert_eq!((moved.pod.name.as_str(), moved.to.as_deref(), plan.proof), ("x", Some("b"), MoveProof::Least));
    assert!(matches!(plan.guards().next(), Some(MoveGuard::Reserved { node, .. }) if node == "b"));
    // Nobody moves if both pods must stay.
    let pinned = MoveRules::default().with_pinned(["x", "y"]);
    let answer = simulator.make_moves(&inventory, &tracker, &snapshot, &[&training], &pinned, Budget::default());
    assert!(matches!(answer, MovesAnswer::NoMoves(NoMoves::Pinned { by }) if by.len() == 2));

    // A minute later: does the plan still hold? Now x must not move.
    assert!(plan.check(&simulator, &mut inventory, &tracker, &snapshot, &rules).is_empty());
    let faults = plan.check(&simulator, &mut inventory, &tracker, &snapshot, &pinned);
    assert!(matches!(&faults[0], PlanFault::PodPinned { pod } if pod.name == "x"));

    // Which node can be emptied, and which new ones would stand in for both?
    let Consolidation { plan, kept, .. } =
        simulator.consolidate(&mut inventory, &tracker, &snapshot, ["a", "b"], &rules);
    assert_eq!((plan.removed, plan.cost), (vec!["a".to_owned()], 1));
    assert!(matches!(&kept[0], (node, KeptNode::Obstacle(_)) if node == "b"));
    let large = NodeTemplate::new(node("large")?, [slice("large", &["gpu-0", "gpu-1", "gpu-2", "gpu-3"])?])?;
    let offers = [NodeOffer::new(&large, 7)];
    let plan = simulator.replace_nodes(&mut inventory, &tracker, &snapshot, ["a", "b"], &offers, &rules)?;
    assert_eq!((plan.price, plan.new_nodes[0].name()), (7, "large"));
    assert!(matches!(plan.steps().next(), Some(PlanStep::Create(new)) if new.name() == "large"));
    let refused = simulator.replace_nodes(&mut inventory, &tracker, &snapshot, ["a", "b"], &[], &rules);
    assert!(matches!(refused, Err(ReplaceError::NoPlace { .. })));

    // Which new nodes does the pod that waits need?
    let needed: Result<NodesNeeded, OfferError> =
        simulator.nodes_needed(&mut inventory, &tracker, &offers, &[&training]);
    assert_eq!((needed?.price, plan.waves.concat().len()), (7, 2));
    Ok(())
}
