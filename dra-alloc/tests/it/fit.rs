//! Node rules beside a second implementation, over random pods and nodes.

use std::collections::BTreeMap;

use dra_alloc::Classes;
use dra_alloc::fit::{Allocatable, Misfit, PodNeeds, PodRules};
use k8s_openapi::api::core::v1::{Node, Pod};
use nnn::memory::{NodeUsage, PodUsage};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

const RESOURCES: [&str; 4] = ["cpu", "memory", "hugepages-2Mi", "example.com/gpu"];

/// Amount for each resource.
type Amounts = [u8; 4];

/// A pod by its amounts: containers, init containers with true for sidecars, amounts as a whole, overhead.
#[derive(Clone, Debug)]
struct Small {
    containers: Vec<Amounts>,
    init: Vec<(bool, Amounts)>,
    whole: Option<[Option<u8>; 2]>,
    overhead: Amounts,
    port: Option<u8>,
}

fn small() -> impl Strategy<Value = Small> {
    let amounts = || prop::array::uniform4(0..4_u8);
    (
        prop::collection::vec(amounts(), 1..3),
        prop::collection::vec((any::<bool>(), amounts()), 0..3),
        prop::option::of(prop::array::uniform2(prop::option::of(0..8_u8))),
        prop::array::uniform4(0..2_u8),
        prop::option::of(0..3_u8),
    )
        .prop_map(|(containers, init, whole, overhead, port)| Small { containers, init, whole, overhead, port })
}

fn list(amounts: Amounts) -> Value {
    RESOURCES
        .iter()
        .zip(amounts)
        .map(|(name, amount)| ((*name).to_owned(), json!(amount.to_string())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

impl Small {
    fn object(&self) -> Pod {
        let container = |(number, amounts): (usize, &Amounts)| json!({"name": format!("c{number}"), "resources": {"requests": list(*amounts)}});
        let mut containers: Vec<Value> = self.containers.iter().enumerate().map(container).collect();
        if let Some(port) = self.port {
            containers[0]["ports"] = json!([{"containerPort": 1, "hostPort": u16::from(port) + 80}]);
        }
        let init = self.init.iter().enumerate().map(|(number, (is_sidecar, amounts))| {
            let policy = is_sidecar.then_some("Always");
            json!({"name": format!("i{number}"), "restartPolicy": policy, "resources": {"requests": list(*amounts)}})
        });
        let init: Vec<Value> = init.collect();
        let whole: Option<BTreeMap<&str, String>> = self.whole.map(|whole| {
            RESOURCES.into_iter().zip(whole).filter_map(|(name, amount)| Some((name, amount?.to_string()))).collect()
        });
        let resources = whole.map(|requests| json!({"requests": requests}));
        from_value(json!({"metadata": {"name": "p"}, "spec": {"containers": containers, "initContainers": init,
            "resources": resources, "overhead": list(self.overhead)}}))
        .unwrap()
    }

    /// Returns the amount of one resource that the pod needs at the worst of its times: while each init container runs, and afterwards.
    fn need(&self, resource: usize) -> u32 {
        let of = |amounts: &Amounts| u32::from(amounts[resource]);
        let sidecars = |until: usize| -> u32 {
            self.init[..until].iter().filter(|(is_sidecar, _)| *is_sidecar).map(|(_, amounts)| of(amounts)).sum()
        };
        let starting = (0..self.init.len()).map(|at| sidecars(at) + of(&self.init[at].1));
        let running = self.containers.iter().map(of).sum::<u32>() + sidecars(self.init.len());
        let of_containers = starting.chain([running]).max().unwrap();
        let whole = self.whole.and_then(|whole| *whole.get(resource)?);
        whole.map_or(of_containers, u32::from) + of(&self.overhead)
    }
}

fn node(has: Amounts, pods: u8) -> Node {
    let mut allocatable = list(has.map(|amount| amount * 3));
    allocatable["pods"] = json!(pods.to_string());
    from_value(json!({"metadata": {"name": "n"}, "status": {"allocatable": allocatable}})).unwrap()
}

/// Names of the reasons by the second implementation.
fn expected(pod: &Small, others: &[Small], has: Amounts, pods: u8) -> Vec<String> {
    if others.iter().any(|other| other.port.is_some() && other.port == pod.port) {
        return vec!["node(s) didn't have free ports for the requested pod ports".to_owned()];
    }
    let mut reasons = Vec::new();
    if others.len() >= usize::from(pods) {
        reasons.push("Too many pods".to_owned());
    }
    let mut short: Vec<&str> = (0..RESOURCES.len())
        .filter(|resource| {
            let used: u32 = others.iter().map(|other| other.need(*resource)).sum();
            pod.need(*resource) > 0 && pod.need(*resource) + used > u32::from(has[*resource]) * 3
        })
        .map(|resource| RESOURCES[resource])
        .collect();
    short.sort_unstable();
    reasons.extend(short.into_iter().map(|name| format!("Insufficient {name}")));
    reasons
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn verdicts_are_those_of_the_second_implementation(
        pod in small(), others in prop::collection::vec(small(), 0..4), has in prop::array::uniform4(0..8_u8), pods in 0..6_u8,
    ) {
        let (object, node) = (pod.object(), node(has, pods));
        let mut usage = NodeUsage::default();
        for other in &others {
            usage.add(&PodUsage::held_by(&other.object()).unwrap());
        }
        let needs = PodNeeds::new(&object).unwrap();
        let has_room = Allocatable::new(&node).unwrap();
        let misfits = needs.misfits(&node, &has_room, &usage, &Classes::default());
        let reasons: Vec<String> = misfits.iter().map(ToString::to_string).collect();
        prop_assert_eq!(reasons, expected(&pod, &others, has, pods));
        // A reason is for good if it stays without the other pods.
        let alone = needs.misfits(&node, &has_room, &NodeUsage::default(), &Classes::default());
        let for_good = misfits.iter().any(Misfit::is_unresolvable);
        prop_assert!(!for_good || !alone.is_empty());
        prop_assert!(alone.iter().all(Misfit::is_unresolvable));
        // What was added goes again without a trace.
        for other in &others {
            usage.remove(&PodUsage::held_by(&other.object()).unwrap());
        }
        prop_assert_eq!(usage, NodeUsage::default());
    }
}

#[test]
fn a_bad_amount_of_a_node_is_named() {
    let node = from_value(json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "many"}}})).unwrap();
    let text = "node \"n\": status.allocatable: quantity \"many\": not a number with an optional suffix";
    assert_eq!(Allocatable::new(&node).unwrap_err().to_string(), text);
}

#[test]
fn a_taint_that_refuses_is_told() {
    let taint = json!({"key": "k", "value": "v", "effect": "NoExecute"});
    let node = from_value(json!({"spec": {"taints": [{"key": "soft", "effect": "PreferNoSchedule"}, taint]}})).unwrap();
    let pod = Pod::default();
    let Some(Misfit::UntoleratedTaint { taint: told }) = PodRules::new(&pod).misfit(&node) else { panic!("no taint") };
    assert_eq!(told, from_value(taint).unwrap());
}
