//! One more node: the answer is that of an inventory with the node, made anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dra_alloc::autoscaler::{NodeTemplate, NodeTemplateError, PlacementError, ScaleSimulator, ScaleUp, ScaleUpError};
use dra_alloc::pods::{ClaimTracker, Consumer, MemberError, PodCycle, PodOptions};
use dra_alloc::selector::SelectorCache;
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, Inventory, Outcome, Profile};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{AllocationResult, DeviceClass, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, from_value, json};

use crate::oracle::random::{self, Random};
use crate::oracle::{Case, DeviceId};

const GPU: &str = "gpu.example.com";

fn simulator<'s>(classes: &'s Classes, selectors: &'s SelectorCache, options: PodOptions) -> ScaleSimulator<'s> {
    ScaleSimulator::new(classes, selectors, options, Timestamp::UNIX_EPOCH)
}

fn pod(name: &str, claims: &[&str]) -> Pod {
    let entries: Vec<Value> = claims.iter().map(|claim| json!({"name": claim, "resourceClaimName": claim})).collect();
    from_value(
        json!({"metadata": {"namespace": "default", "name": name, "uid": name}, "spec": {"resourceClaims": entries}}),
    )
    .unwrap()
}

/// A claim of one device, with more fields of the request and of the claim.
fn claim(name: &str, more: Value, constraints: Value) -> ResourceClaim {
    let mut exactly = json!({"deviceClassName": "gpu"});
    exactly.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    from_value(json!({"metadata": {"namespace": "default", "name": name, "uid": name}, "spec": {"devices": {
        "requests": [{"name": "r", "exactly": exactly}], "constraints": constraints}}}))
    .unwrap()
}

fn slice(node: &str, devices: Value) -> ResourceSlice {
    from_value(json!({"metadata": {"name": format!("{node}-gpus")}, "spec": {"driver": GPU, "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": devices}}))
    .unwrap()
}

fn node(name: &str) -> Node {
    from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn gpu_class() -> Classes {
    Classes::new([from_value::<DeviceClass>(json!({"metadata": {"name": "gpu"}, "spec": {}})).unwrap()])
}

fn names(placed: &ScaleUp) -> Vec<&str> {
    placed.placed.iter().map(|placement| placement.pod.name.as_str()).collect()
}

/// Claims that hold what the case has in use.
fn held(case: &Case) -> Vec<ResourceClaim> {
    let used = &case.allocated;
    let result = |id: &DeviceId| json!({"request": "r", "driver": id.driver, "pool": id.pool, "device": id.device});
    let exclusive = used.devices.iter().map(&result);
    let shared = used.shared.iter().map(|(id, share)| {
        let (mut result, consumed) = (result(id), used.capacity.get(id));
        result["shareID"] = json!(share);
        result["consumedCapacity"] = json!(consumed);
        result
    });
    let held = exclusive.chain(shared).enumerate().map(|(index, result)| {
        from_value(
            json!({"metadata": {"namespace": "default", "name": format!("held-{index}"), "uid": format!("h{index}")},
            "status": {"allocation": {"devices": {"results": [result]}}}}),
        )
        .unwrap()
    });
    held.collect()
}

/// The case's node is the template, with the slices that name it; the rest is the cluster.
struct Question {
    template: NodeTemplate,
    rest: Vec<ResourceSlice>,
    pods: Vec<Pod>,
}

impl Question {
    fn new(case: &Case, random: &mut Random) -> Option<Self> {
        let name = case.node.metadata.name.as_deref();
        let (own, rest): (Vec<_>, Vec<_>) =
            case.slices.iter().cloned().partition(|slice| slice.spec.node_name.as_deref() == name);
        let names: Vec<&str> = case.claims.iter().filter_map(|claim| claim.metadata.name.as_deref()).collect();
        // Claims of one pod or of several; one claim may be shared.
        let together = random.percent(50);
        let mut pods = if together {
            vec![pod("all", &names)]
        } else {
            names.iter().map(|name| pod(&format!("of-{name}"), &[name])).collect()
        };
        pods.push(pod("again", &names[..1]));
        // Slices of one name are no cluster.
        Some(Self { template: NodeTemplate::new(case.node.clone(), own).ok()?, rest, pods })
    }
}

/// Allocates the claims of each pod on an inventory with the node, without the kit.
fn expected(case: &Case, pods: &[Pod], held: &[ResourceClaim]) -> Vec<Option<Vec<AllocationResult>>> {
    let inventory = Inventory::new(case.slices.iter().cloned()).with_taint_rules(case.taint_rules.iter().cloned());
    let classes = Classes::new(case.classes.iter().cloned());
    let allocator = Allocator::new(Component::new(case.profile, case.gates), &inventory, &classes);
    let mut state = AllocatedState::from_claims(held, Component::new(Profile::V1_37, case.gates)).unwrap();
    let mut claims = case.claims.clone();
    let mut answers = Vec::new();
    for pod in pods {
        let entries = pod.spec.as_ref().unwrap().resource_claims.iter().flatten();
        let of_pod: Vec<usize> = entries
            .map(|entry| claims.iter().position(|claim| claim.metadata.name == entry.resource_claim_name).unwrap())
            .collect();
        let objects: Vec<ResourceClaim> = of_pod.iter().map(|index| claims[*index].clone()).collect();
        let outcome =
            allocator.allocate(&state, &case.node, &objects, Budget::default()).map(|verdict| verdict.outcome);
        let Ok(Outcome::Allocated(results)) = outcome else {
            answers.push(None);
            continue;
        };
        for (index, result) in of_pod.iter().zip(&results) {
            state.assume(&claims[*index], result).unwrap();
            claims[*index].status.get_or_insert_default().allocation = Some(result.clone());
        }
        answers.push(Some(results));
    }
    answers
}

#[test]
fn the_answer_is_that_of_a_new_inventory() {
    let (mut yes, mut no, mut blocked) = (0, 0, 0);
    let mut cases = 0;
    for seed in 0.. {
        if cases == 2_000 {
            break;
        }
        let random = &mut Random::new(seed);
        let case = if random.percent(60) { random::case(seed) } else { random::tight(seed) };
        let Some(question) = Question::new(&case, random) else { continue };
        cases += 1;
        let (held, options) = (held(&case), PodOptions::new(Component::new(case.profile, case.gates)));
        let mut tracker = ClaimTracker::new(Component::new(Profile::V1_37, case.gates));
        for claim in held.iter().chain(&case.claims) {
            tracker.observe(claim.clone()).unwrap();
        }
        let mut inventory =
            Inventory::new(question.rest.iter().cloned()).with_taint_rules(case.taint_rules.iter().cloned());
        let (classes, selectors) = (Classes::new(case.classes.iter().cloned()), SelectorCache::default());
        let simulator = simulator(&classes, &selectors, options).with_explanation(dra_alloc::explain::Detail::Off);
        let ask = |inventory: &mut Inventory| {
            simulator.scale_up(inventory, &tracker, &question.template, &question.pods).unwrap()
        };
        let answer = ask(&mut inventory);
        assert!(inventory.slices().eq(&question.rest), "the question leaves nothing behind");
        if seed % 20 == 0 {
            assert_eq!(ask(&mut inventory), answer, "seed {seed}: the question can be asked again");
        }
        assert_eq!(answer.placed.len() + answer.refused.len(), question.pods.len());

        let is_blocked = |pod: &&Pod| {
            let reason = answer.refused.iter().find(|(refused, _)| Some(&refused.name) == pod.metadata.name.as_ref());
            let reason = reason.map(|(_, reason)| reason);
            matches!(reason, Some(PlacementError::Unschedulable(MemberError::Blocked(_))))
        };
        // Claims that no scheduler tries on a node at all are not the allocator's.
        let (skipped, tried): (Vec<&Pod>, Vec<&Pod>) = question.pods.iter().partition(is_blocked);
        blocked += skipped.len();
        let tried: Vec<Pod> = tried.into_iter().cloned().collect();
        for (pod, expected) in tried.iter().zip(expected(&case, &tried, &held)) {
            let name = pod.metadata.name.as_deref().unwrap();
            let placed = answer.placed.iter().find(|placement| placement.pod.name == name);
            let results = placed.map(|placement| {
                let cycle: &PodCycle = placement.cycle.as_ref().unwrap();
                cycle.allocations_on("node-0").map(|(_, result)| result.clone()).collect::<Vec<_>>()
            });
            assert_eq!(results, expected, "seed {seed}, pod {name}: {}", case.to_json());
            if expected.is_some() { yes += 1 } else { no += 1 }
        }
    }
    assert!(yes.min(no) * 3 >= yes + no, "{yes} yes, {no} no");
    assert!(blocked * 20 < yes + no, "{blocked} blocked");
}

#[test]
fn the_work_does_not_grow_with_the_nodes() {
    let work_among = |nodes: usize| {
        let devices = json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]);
        let mut inventory = Inventory::new((0..nodes).map(|index| slice(&format!("n{index}"), devices.clone())));
        let (classes, selectors, options) = (gpu_class(), SelectorCache::default(), PodOptions::new(Profile::V1_37));
        let mut tracker = ClaimTracker::new(options.scheduler());
        let pods: Vec<Pod> = (0..5).map(|index| pod(&format!("p{index}"), &[&format!("c{index}")])).collect();
        for index in 0..5 {
            tracker.observe(claim(&format!("c{index}"), json!({}), json!([]))).unwrap();
        }
        let counted = AtomicU64::new(0);
        let count = || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        };
        let all: Vec<Node> = (0..nodes).map(|index| node(&format!("n{index}"))).collect();
        let versions = |inventory: &Inventory| {
            let allocator = Allocator::new(options.scheduler().profile(), inventory, &classes);
            all.iter().map(|node| allocator.node_version(tracker.state(), node).unwrap()).collect::<Vec<_>>()
        };
        let before = versions(&inventory);
        let template = NodeTemplate::new(node("new"), [slice("new", devices)]).unwrap();
        // The stop function counts looks at devices and decisions of the search, 16 at a time, and each search.
        let simulator = simulator(&classes, &selectors, options).with_budget(Budget::work(1_000).with_stop(&count));
        let answer = simulator.scale_up(&mut inventory, &tracker, &template, &pods).unwrap();
        assert_eq!(names(&answer), ["p0", "p1", "p2"]);
        assert_eq!(versions(&inventory), before, "what is known about other nodes stays");
        counted.load(Ordering::Relaxed)
    };
    assert_eq!(work_among(2_000), work_among(2));
    assert!(work_among(2) >= 5);
}

#[test]
fn refusals_have_reasons() {
    let (classes, selectors, options) = (gpu_class(), SelectorCache::default(), PodOptions::new(Profile::V1_37));
    let mut inventory = Inventory::new([slice("old", json!([{"name": "a"}]))]);
    let mut tracker = ClaimTracker::new(options.scheduler());
    tracker.observe(claim("one", json!({}), json!([]))).unwrap();
    tracker.observe(claim("two", json!({"count": 2}), json!([]))).unwrap();
    let mut elsewhere = claim("elsewhere", json!({}), json!([]));
    elsewhere.status = from_value(json!({"allocation": {"devices": {"results": [
        {"request": "r", "driver": GPU, "pool": "old", "device": "a"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["old"]}]}]}}}))
    .unwrap();
    tracker.observe(elsewhere).unwrap();
    let mut in_flight = claim("busy", json!({}), json!([]));
    tracker.observe(in_flight.clone()).unwrap();
    in_flight.status = from_value(json!({"allocation": {"devices": {"results": []}}})).unwrap();
    tracker.begin_allocation(in_flight).unwrap();
    let mut full = claim("full", json!({}), json!([]));
    let consumers: Vec<Value> = (0..Consumer::MAX_PER_CLAIM)
        .map(|index| json!({"resource": "pods", "name": index.to_string(), "uid": index.to_string()}))
        .collect();
    full.status = from_value(json!({"allocation": {}, "reservedFor": consumers})).unwrap();
    tracker.observe(full).unwrap();

    let template = NodeTemplate::new(node("new"), [slice("new", json!([{"name": "a"}]))]).unwrap();
    let mut bound = pod("bound", &["one"]);
    bound.spec.as_mut().unwrap().node_name = Some("old".to_owned());
    let pods = vec![
        pod("big", &["two"]),
        pod("tied", &["elsewhere"]),
        pod("early", &["missing"]),
        pod("waits", &["busy"]),
        pod("late", &["full"]),
        bound,
        pod("first", &["one"]),
        pod("shares", &["one"]),
    ];
    let simulator = simulator(&classes, &selectors, options);
    let answer = simulator.scale_up(&mut inventory, &tracker, &template, &pods).unwrap();
    assert_eq!(names(&answer), ["first", "shares"]);
    let reasons: Vec<(&str, String)> =
        answer.refused.iter().map(|(pod, reason)| (pod.name.as_str(), reason.to_string())).collect();
    let expected = [
        (
            "big",
            "0/1 nodes are available: 1 too few: 1 of 1 free, 2 wanted of class gpu; possible on 1 node if request r asked for 1 device",
        ),
        ("tied", "0/1 nodes are available: 1 claim allocated for other nodes"),
        ("early", "could not find resource claim \"default/missing\""),
        ("waits", "resource claim default/busy is in the process of being allocated"),
        ("late", "claim default/full: the claim is reserved for 256 consumers, of at most 256"),
        ("bound", "the pod is on node old already"),
    ];
    assert_eq!(reasons, expected.map(|(pod, reason)| (pod, reason.to_owned())));

    let there = NodeTemplate::new(node("old"), Vec::<ResourceSlice>::new()).unwrap();
    let error = simulator.scale_up(&mut inventory, &tracker, &there, &pods).unwrap_err();
    assert_eq!(error, ScaleUpError::NodeExists { node: "old".to_owned() });
    let mut twin = slice("twin", json!([]));
    twin.metadata.name = Some("old-gpus".to_owned());
    let taken = NodeTemplate::new(node("twin"), [twin]).unwrap();
    let error = simulator.scale_up(&mut inventory, &tracker, &taken, &pods).unwrap_err();
    assert_eq!(error, ScaleUpError::SliceExists { slice: "old-gpus".to_owned() });
    assert_eq!(inventory.slices().count(), 1);
}

#[test]
fn a_template_has_names_of_its_own() {
    let new = |node_name: &str, slices: Vec<ResourceSlice>| NodeTemplate::new(node(node_name), slices).unwrap_err();
    let one = slice("n", json!([]));
    let mut nameless = one.clone();
    nameless.metadata.name = None;
    assert_eq!(new("", vec![]), NodeTemplateError::NoNodeName);
    assert_eq!(new("n", vec![nameless]), NodeTemplateError::NoSliceName);
    assert_eq!(new("n", vec![one.clone(), one.clone()]), NodeTemplateError::SliceTwice { slice: "n-gpus".to_owned() });
    let other = NodeTemplateError::OtherNode { slice: "n-gpus".to_owned(), node: "m".to_owned() };
    assert_eq!(new("m", vec![one]), other);
}

#[test]
fn the_lowest_price_for_a_pod_is_first() {
    let (classes, selectors, options) = (gpu_class(), SelectorCache::default(), PodOptions::new(Profile::V1_37));
    let mut tracker = ClaimTracker::new(options.scheduler());
    let pods: Vec<Pod> = (0..4).map(|index| pod(&format!("p{index}"), &[&format!("c{index}")])).collect();
    for index in 0..4 {
        tracker.observe(claim(&format!("c{index}"), json!({}), json!([]))).unwrap();
    }
    let template = |name: &str, gpus: usize| {
        let devices: Vec<Value> = (0..gpus).map(|gpu| json!({"name": format!("gpu-{gpu}")})).collect();
        NodeTemplate::new(node(name), [slice(name, json!(devices))]).unwrap()
    };
    let (none, one, two, many) = (template("none", 0), template("one", 1), template("two", 2), template("many", 8));
    let priced = [(&none, 1), (&one, 100), (&many, 480), (&two, 200)];
    let pods: Vec<&Pod> = pods.iter().collect();
    let simulator = simulator(&classes, &selectors, options);
    let ranked = simulator.expansion_options(&mut Inventory::default(), &tracker, priced, &pods).unwrap();
    let order: Vec<(&str, usize)> = ranked
        .iter()
        .map(|option| (option.template.node().metadata.name.as_deref().unwrap(), option.scale_up.placed.len()))
        .collect();
    assert_eq!(order, [("two", 2), ("one", 1), ("many", 4), ("none", 0)], "100, 100 with fewer pods, 120, nothing");
}

#[test]
fn an_attribute_that_nobody_knows_is_neither_yes_nor_no() {
    let root = format!("{GPU}/pcieRoot");
    let device =
        |name: &str, value: Value| json!({"name": name, "attributes": {"pcieRoot": value, "model": {"string": "l4"}}});
    let matching = json!([{"matchAttribute": root}]);
    let of = |expression: &str| json!({"selectors": [{"cel": {"expression": expression}}]});
    let (classes, selectors, options) = (gpu_class(), SelectorCache::default(), PodOptions::new(Profile::V1_37));
    let mut tracker = ClaimTracker::new(options.scheduler());
    let asked = [
        claim("model", of(&format!("device.attributes['{GPU}'].model == 'l4'")), json!([])),
        claim("not-that-root", of(&format!("device.attributes['{GPU}'].pcieRoot != 'pci0000:00'")), json!([])),
        claim("any-root", of("device.attributes.exists(domain, 'pcieRoot' in device.attributes[domain])"), json!([])),
        claim("pair", json!({"count": 2}), matching),
        claim(
            "derived",
            json!({"derivedAttributes": [{"name": "example.com/root", "expression":
            format!("device.attributes['{GPU}'].pcieRoot")}]}),
            json!([]),
        ),
    ];
    let pods = ["model", "not-that-root", "any-root", "pair", "derived"].map(|name| pod(name, &[name]));
    tracker.replace(asked, None).unwrap();
    let simulator = simulator(&classes, &selectors, options);
    let refused = |devices: Value| {
        let template =
            NodeTemplate::new(node("new"), [slice("new", devices)]).unwrap().with_unknown_attributes([&root]);
        let answer = simulator.scale_up(&mut Inventory::default(), &tracker, &template, &pods).unwrap();
        let unknown = answer.refused.iter().filter_map(|(_, reason)| match reason {
            PlacementError::UnknownInClaim { claim, attribute } => {
                assert_eq!(*attribute, root);
                Some(claim.name.clone())
            }
            _ => None,
        });
        (unknown.collect::<Vec<_>>(), answer.placed.len())
    };
    let absent: Vec<Value> =
        ["a", "b", "c"].iter().map(|name| json!({"name": name, "attributes": {"model": {"string": "l4"}}})).collect();
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(refused(json!(absent)), (names(&["not-that-root", "any-root", "pair", "derived"]), 1));
    let text = |value: &str| json!({"string": value});
    let placeholders = json!([device("a", text("?0")), device("b", text("?1")), device("c", text("?1"))]);
    assert_eq!(refused(placeholders), (names(&["not-that-root", "any-root", "derived"]), 2), "the pair is b and c");
    let apart = json!([device("a", text("?0")), device("b", text("?1")), device("c", text("?2"))]);
    assert_eq!(refused(apart).1, 1, "no two devices share a root");
}

#[test]
fn a_template_may_complete_a_pool_and_see_shared_slices() {
    let (classes, selectors, options) = (gpu_class(), SelectorCache::default(), PodOptions::new(Profile::V1_37));
    let mut tracker = ClaimTracker::new(options.scheduler());
    tracker.observe(claim("two", json!({"count": 2}), json!([]))).unwrap();
    let part = |name: &str| -> Arc<ResourceSlice> {
        let mut part = slice(name, json!([{"name": format!("gpu-of-{name}")}]));
        part.spec.pool = from_value(json!({"name": "both", "generation": 1, "resourceSliceCount": 2})).unwrap();
        Arc::new(part)
    };
    let mut fabric = slice("x", json!([{"name": "port"}]));
    (fabric.spec.node_name, fabric.spec.all_nodes) = (None, Some(true));
    let mut inventory = Inventory::new([part("old"), Arc::new(fabric)]);
    let template = NodeTemplate::new(node("new"), [part("new")]).unwrap();
    let answer = simulator(&classes, &selectors, options)
        .scale_up(&mut inventory, &tracker, &template, &[pod("p", &["two"])])
        .unwrap();
    let placed = answer.placed[0].cycle.as_ref().unwrap();
    let devices = placed.allocations_on("new").flat_map(|(_, result)| result.devices.clone().unwrap().results.unwrap());
    assert_eq!(devices.map(|device| device.device).collect::<Vec<_>>(), ["gpu-of-new", "port"]);
}
