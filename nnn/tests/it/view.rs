use std::collections::{BTreeMap, BTreeSet};

use dra_attrs::Index;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceSlice};
use nnn::view::{
    AutoscalerNode, AutoscalerNodePresence, ClusterObjects, ClusterView, ClusterViewError, ClusterViewOptions,
    NodeWarning, ReservedBy, UnremovableReason,
};
use serde_json::{Value, from_value, json};

use super::common::with;

fn node(name: &str, cpu: &str) -> Node {
    from_value(json!({"metadata": {"name": name}, "status": {"allocatable": {"cpu": cpu, "memory": "8Gi"}}})).unwrap()
}

/// Builds a pod of a controller with one CPU; `change` replaces parts of it.
fn pod(name: &str, change: &[(&str, Value)]) -> Pod {
    let mut pod = json!({
        "metadata": {"namespace": "ns", "name": name, "uid": name, "ownerReferences":
            [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true}]},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        "status": {},
    });
    for (path, value) in change {
        let (parent, key) = path.rsplit_once('/').unwrap();
        pod.pointer_mut(parent).unwrap()[key] = value.clone();
    }
    from_value(pod).unwrap()
}

fn nominated(name: &str, node: &str) -> Pod {
    pod(name, &[("/status/nominatedNodeName", json!(node))])
}

fn bound(name: &str, node: &str) -> Pod {
    pod(name, &[("/spec/nodeName", json!(node))])
}

fn view(nodes: &[Node], pods: &[Pod]) -> ClusterView {
    ClusterView::new(ClusterObjects::new(nodes, pods), &ClusterViewOptions::default()).unwrap()
}

fn texts(reasons: &[UnremovableReason]) -> Vec<String> {
    reasons.iter().map(ToString::to_string).collect()
}

fn cpu(node: &AutoscalerNode) -> String {
    node.committed().quantity("cpu").to_string()
}

#[test]
fn a_node_that_a_pod_is_expected_on_is_in_use() {
    // req: 5278-READER-1
    let view = view(&[node("n", "4")], &[nominated("p", "n")]);
    let node = view.node("n").unwrap();
    assert_eq!((cpu(node), node.utilisation_permille()), ("1".to_owned(), 250));
    assert_eq!(texts(&node.unremovable_reasons()), ["ns/p is expected here"]);
    assert_eq!(
        texts(&node.unremovable_reasons_without_nominations()),
        [""; 0],
        "as cluster-autoscaler, which only counts the use"
    );
}

#[test]
fn a_nomination_counts_whoever_wrote_it() {
    // req: 5278-READER-3
    let by = |manager: &str| {
        let fields = json!([{"manager": manager, "fieldsV1": {"f:status": {"f:nominatedNodeName": {}}}}]);
        let mut pod = nominated("p", "n");
        pod.metadata.managed_fields = Some(from_value(fields).unwrap());
        pod
    };
    for manager in ["kube-scheduler", "karpenter", ""] {
        let view = view(&[node("n", "4")], &[by(manager)]);
        assert!(!view.node("n").unwrap().unremovable_reasons().is_empty(), "{manager}");
    }
}

#[test]
fn a_pod_counts_once_for_the_strongest_reason() {
    // req: 5278-READER-1
    let pods = [
        pod("both", &[("/spec/nodeName", json!("n")), ("/status/nominatedNodeName", json!("m"))]),
        nominated("assumed", "m"),
        nominated("assumed", "m"),
    ];
    let assumed = BTreeMap::from([("assumed".to_owned(), "n".to_owned()), ("both".to_owned(), "m".to_owned())]);
    let nodes = [node("n", "4"), node("m", "4")];
    let view =
        ClusterView::new(ClusterObjects::new(&nodes, &pods).with_assumed(&assumed), &ClusterViewOptions::default())
            .unwrap();
    let (n, m) = (view.node("n").unwrap(), view.node("m").unwrap());
    assert_eq!(n.pods.iter().map(|pod| pod.reserved_by).collect::<Vec<_>>(), [ReservedBy::Bound, ReservedBy::Assumed]);
    assert!(m.pods.is_empty());
    assert!(matches!(&n.warnings[..], [NodeWarning::StaleNomination { nominated, .. }] if nominated == "m"));
    assert!(n.warnings[0].to_string().ends_with("both is bound here; its nomination to m means nothing"));
    assert!(matches!(
        &n.unremovable_reasons()[..],
        [UnremovableReason::Assumed { .. }, UnremovableReason::InUse { permille: 500, .. }]
    ));
}

#[test]
fn victims_and_priorities() {
    let victim = pod(
        "victim",
        &[
            ("/spec/nodeName", json!("n")),
            ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
            (
                "/status/conditions",
                json!([{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]),
            ),
        ],
    );
    let nominated = |name: &str| pod(name, &[("/status/nominatedNodeName", json!("n")), ("/spec/priority", json!(5))]);
    let expected = |pods: &[Pod]| {
        let view = view(&[node("n", "1")], pods);
        let node = view.node("n").unwrap();
        (cpu(node), node.expected().quantity("cpu").to_string())
    };
    let of = |committed: &str, expected: &str| (committed.to_owned(), expected.to_owned());
    assert_eq!(expected(&[victim.clone(), nominated("high"), nominated("higher")]), of("3", "2"));
    let view = view(&[node("n", "1")], &[victim, nominated("high")]);
    let node = view.node("n").unwrap();
    assert_eq!((cpu(node), node.expected().quantity("cpu").to_string()), of("2", "1"));
    let free = |priority| node.free_for(priority).quantity("cpu").to_string();
    assert_eq!([free(5), free(6)], ["-1", "0"]);
}

#[test]
fn a_node_that_is_not_there_is_expected_and_no_reason_for_another() {
    let (settings, pods) = (
        with(ClusterViewOptions::default(), |it| it.upcoming = BTreeSet::from(["new".to_owned()])),
        [nominated("a", "new"), nominated("b", "unknown")],
    );
    let view = ClusterView::new(ClusterObjects::new::<Node, _>(&[], &pods), &settings).unwrap();
    assert_eq!(view.pods_needing_nodes().count(), 0);
    let presence = |name: &str| view.node(name).unwrap().presence;
    assert_eq!(
        (presence("new"), presence("unknown")),
        (AutoscalerNodePresence::Upcoming, AutoscalerNodePresence::Missing)
    );
    assert_eq!(
        texts(&view.node("new").unwrap().unremovable_reasons()),
        ["the node is being created", "ns/a is expected here"]
    );
}

#[test]
fn no_scale_up_for_a_pod_that_is_expected() {
    // As cluster-autoscaler's TestStaticAutoscalerRunOnceWithNominatedNodeName: 1400m bound and 1400m expected on 2 CPUs.
    let requests = json!([{"name": "c", "resources": {"requests": {"cpu": "1400m"}}}]);
    let p1 = pod("p1", &[("/spec/containers", requests.clone()), ("/spec/nodeName", json!("n"))]);
    let p2 = pod("p2", &[("/spec/containers", requests), ("/status/nominatedNodeName", json!("n"))]);
    let view = view(&[node("n", "2")], &[p1, p2]);
    assert_eq!(view.pods_needing_nodes().count(), 0);
    assert_eq!(
        (cpu(view.node("n").unwrap()).as_str(), view.node("n").unwrap().utilisation_permille()),
        ("2800m", 1400)
    );
}

#[test]
fn pods_that_cost_nothing_do_not_count() {
    let expendable =
        |priority: i32, path: &'static str| pod("p", &[("/spec/priority", json!(priority)), (path, json!("n"))]);
    for path in ["/spec/nodeName", "/status/nominatedNodeName"] {
        let count = |priority| view(&[node("n", "4")], &[expendable(priority, path)]).node("n").unwrap().pods.len();
        assert_eq!((count(-11), count(-10)), (0, 1), "{path}");
    }
}

fn claim(name: &str, devices: &Value) -> ResourceClaim {
    let status = if devices.is_null() { Value::Null } else { json!({"allocation": {"devices": {"results": devices}}}) };
    from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}")}, "spec": {}, "status": status})).unwrap()
}

fn device(name: &str) -> Value {
    json!({"request": "r", "driver": "d", "pool": "n", "device": name})
}

fn using(name: &str, claims: &[&str], place: (&str, &str)) -> Pod {
    let claims: Vec<Value> = claims.iter().map(|claim| json!({"name": claim, "resourceClaimName": claim})).collect();
    pod(name, &[("/spec/resourceClaims", json!(claims)), (place.0, json!(place.1))])
}

#[test]
fn devices_come_from_allocations_each_once() {
    // req: 5278-RES-6
    let mut admin = device("admin");
    admin["adminAccess"] = json!(true);
    let claims = [
        claim("shared", &json!([device("a"), device("a"), admin])),
        claim("own", &json!([device("b"), device("gone")])),
        claim("open", &Value::Null),
    ];
    let pods = [
        using("bound", &["shared"], ("/spec/nodeName", "n")),
        using("expected", &["shared", "own"], ("/status/nominatedNodeName", "n")),
        using("partial", &["open"], ("/status/nominatedNodeName", "n")),
        using("unknown", &["not-there"], ("/status/nominatedNodeName", "n")),
    ];
    let slices = |generation: i64, count: usize| -> ResourceSlice {
        // A device that only an older generation has is not there any more.
        let last = if generation == 1 { "gone" } else { "b" };
        let names = (2..count).map(|number| format!("d{number}")).chain(["a".to_owned(), last.to_owned()]);
        let devices: Vec<Value> = names.map(|name| json!({"name": name})).collect();
        from_value(json!({"metadata": {"name": "s"}, "spec": {"driver": "d", "nodeName": "n", "devices": devices,
            "pool": {"name": "n", "generation": generation, "resourceSliceCount": 1}}}))
        .unwrap()
    };
    let slices = [slices(1, 100), slices(2, 8)];
    let nodes = [node("n", "64")];
    let view = ClusterView::new(
        ClusterObjects::new(&nodes, &pods).with_devices(&slices, &claims),
        &ClusterViewOptions::default(),
    )
    .unwrap();
    let node = view.node("n").unwrap();
    let devices: Vec<(&str, &str)> = node.devices.iter().map(|it| (it.claim.as_str(), it.device.as_str())).collect();
    assert_eq!(devices, [("uid-shared", "a"), ("uid-own", "b"), ("uid-own", "gone")]);
    assert_eq!(node.utilisation_permille(), 250, "2 of 8 devices of the newest generation; CPU does not count then");
    let unknown: Vec<&str> = node
        .warnings
        .iter()
        .filter_map(|finding| match finding {
            NodeWarning::DraUnknown { pod } => Some(pod.name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(unknown, ["partial", "unknown"]);
    assert!(node.unremovable_reasons().iter().any(|reason| matches!(reason, UnremovableReason::DraUnknown { .. })));
}

#[test]
fn claims_of_templates_and_of_extended_resources() {
    let entry = json!([{"name": "t", "resourceClaimTemplateName": "template"}]);
    let status = |claims: Value| {
        [
            ("/spec/resourceClaims", entry.clone()),
            ("/status/nominatedNodeName", json!("n")),
            ("/status/resourceClaimStatuses", claims),
        ]
    };
    let made = pod("made", &status(json!([{"name": "t", "resourceClaimName": "of-template"}])));
    let needless = pod("needless", &status(json!([{"name": "t"}])));
    let pending = pod("pending", &status(json!([])));
    let extended = pod(
        "extended",
        &[
            ("/status/nominatedNodeName", json!("n")),
            ("/status/extendedResourceClaimStatus", json!({"resourceClaimName": "extended", "requestMappings": []})),
        ],
    );
    let claims = [claim("of-template", &json!([device("a")])), claim("extended", &json!([device("b")]))];
    let (nodes, pods) = ([node("n", "64")], [made, needless, pending, extended]);
    let view = ClusterView::new(
        ClusterObjects::new(&nodes, &pods).with_devices::<ResourceSlice, _>(&[], &claims),
        &ClusterViewOptions::default(),
    )
    .unwrap();
    let node = view.node("n").unwrap();
    assert_eq!(node.devices.len(), 2);
    assert!(
        matches!(&node.warnings[..], [NodeWarning::DraUnknown { pod }] if pod.name == "pending"),
        "{:?}",
        node.warnings
    );
}

#[test]
fn an_allocation_for_other_nodes() {
    let with_selector = |selector: Value| -> ResourceClaim {
        let mut claim = claim("c", &json!([device("a")]));
        let allocation = claim.status.as_mut().unwrap().allocation.as_mut().unwrap();
        allocation.node_selector = Some(from_value(selector).unwrap());
        claim
    };
    let named = |names: Value| json!({"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": names}]}]});
    let labelled = |operator: &str, values: Value| json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": operator, "values": values}]}]});
    let mut here = node("n", "4");
    here.metadata.labels = Some([("zone".to_owned(), "5".to_owned())].into());
    let pods = [using("p", &["c"], ("/status/nominatedNodeName", "n"))];
    for (selector, fits) in [
        (named(json!(["n"])), true),
        (named(json!(["m"])), false),
        (labelled("In", json!(["5", "6"])), true),
        (labelled("NotIn", json!(["5"])), false),
        (labelled("Exists", json!([])), true),
        (labelled("DoesNotExist", json!([])), false),
        (labelled("Gt", json!(["4"])), true),
        (labelled("Lt", json!(["5"])), false),
        (labelled("Near", json!(["5"])), false),
        (json!({"nodeSelectorTerms": [{}]}), false),
    ] {
        let claims = [with_selector(selector.clone())];
        let nodes = [here.clone()];
        let view = ClusterView::new(
            ClusterObjects::new(&nodes, &pods).with_devices::<ResourceSlice, _>(&[], &claims),
            &ClusterViewOptions::default(),
        )
        .unwrap();
        let found =
            view.node("n").unwrap().warnings.iter().any(|warning| matches!(warning, NodeWarning::Inconsistent { .. }));
        assert_eq!(!found, fits, "{selector}");
    }
}

#[test]
fn node_resources_that_claims_take() {
    let status = json!([{"resourceClaimName": "c", "containers": ["a", "b"],
        "mapping": [{"name": "cpu", "quantity": "2"}],
        "overhead": [{"name": "cpu", "perPod": "100m", "perContainer": "10m"}]}]);
    let with_duration = |name: &str| {
        pod(name, &[("/spec/nodeName", json!("n")), ("/status/nodeAllocatableResourceClaimStatuses", status.clone())])
    };
    let view = view(&[node("n", "16")], &[with_duration("a"), with_duration("b")]);
    assert_eq!(cpu(view.node("n").unwrap()), "4240m", "the claim's two CPUs once, the overhead for each pod");
}

#[test]
fn utilisation_as_cluster_autoscaler_has_it() {
    let daemon = pod(
        "daemon",
        &[
            ("/spec/nodeName", json!("n")),
            (
                "/metadata/ownerReferences",
                json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d", "controller": true}]),
            ),
        ],
    );
    let terminating = pod(
        "terminating",
        &[("/spec/nodeName", json!("n")), ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))],
    );
    let pods = [daemon, bound("p", "n"), terminating];
    let nodes = [node("n", "4")];
    let at = |time: &str| {
        let inputs = ClusterObjects::new(&nodes, &pods).with_now(time.parse().unwrap());
        ClusterView::new(inputs, &ClusterViewOptions::default()).unwrap().node("n").unwrap().utilisation_permille()
    };
    assert_eq!(at("2026-01-01T00:01:00Z"), 666, "2 of the 3 that the node's own pod leaves");
    assert_eq!(at("2026-01-01T00:01:01Z"), 333, "overdue");
    let gpus: Node =
        from_value(json!({"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "nvidia.com/gpu": "4"}}}))
            .unwrap();
    let takes = |count: &str, owner: &str| {
        let requests = json!({"cpu": "1", "nvidia.com/gpu": count});
        let owner = json!([{"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "o", "controller": true}]);
        pod(
            owner[0]["kind"].as_str().unwrap(),
            &[
                ("/spec/nodeName", json!("n")),
                ("/metadata/ownerReferences", owner.clone()),
                ("/spec/containers", json!([{"name": "c", "resources": {"requests": requests}}])),
            ],
        )
    };
    let mut pods = vec![takes("1", "ReplicaSet")];
    assert_eq!(view(std::slice::from_ref(&gpus), &pods).node("n").unwrap().utilisation_permille(), 250);
    pods.push(takes("2", "DaemonSet"));
    assert_eq!(view(&[gpus], &pods).node("n").unwrap().utilisation_permille(), 500, "1 of the 2 that are left");
}

#[test]
fn a_terminating_pod_is_overdue_after_its_grace_period_and_half_a_minute() {
    let nodes = [node("n", "4")];
    for (grace, last, first) in [
        (json!(null), "2026-01-01T00:01:00Z", "2026-01-01T00:01:01Z"),
        (json!(0), "2026-01-01T00:00:30Z", "2026-01-01T00:00:31Z"),
        (json!(600), "2026-01-01T00:10:30Z", "2026-01-01T00:10:31Z"),
    ] {
        let terminating = pod(
            "p",
            &[
                ("/spec/nodeName", json!("n")),
                ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
                ("/spec/terminationGracePeriodSeconds", grace.clone()),
            ],
        );
        let used = |time: &str| {
            let inputs =
                ClusterObjects::new(&nodes, std::slice::from_ref(&terminating)).with_now(time.parse().unwrap());
            ClusterView::new(inputs, &ClusterViewOptions::default()).unwrap().node("n").unwrap().utilisation_permille()
        };
        assert_eq!((used(last), used(first)), (250, 0), "{grace}");
    }
}

#[test]
fn pods_that_can_not_be_moved() {
    let owned =
        |annotations: Value| pod("p", &[("/spec/nodeName", json!("n")), ("/metadata/annotations", annotations)]);
    let alone = |annotations: Value| {
        pod(
            "p",
            &[
                ("/spec/nodeName", json!("n")),
                ("/metadata/ownerReferences", json!([])),
                ("/metadata/annotations", annotations),
            ],
        )
    };
    let safe = |value: &str| json!({"cluster-autoscaler.kubernetes.io/safe-to-evict": value});
    for (pod, expected) in [
        (owned(json!({})), None),
        (owned(safe("false")), Some("ns/p can't be moved: it is marked as not safe to evict")),
        (alone(json!({})), Some("ns/p can't be moved: no controller would make it anew")),
        (alone(safe("true")), None),
        (alone(json!({"kubernetes.io/config.mirror": "x"})), None),
    ] {
        let found =
            texts(&view(&[node("n", "4")], &[pod]).node("n").unwrap().unremovable_reasons_without_nominations());
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn objects_that_can_not_be_read() {
    let broken = |pods: &[Pod], nodes: &[Node]| {
        ClusterView::new(ClusterObjects::new(nodes, pods), &ClusterViewOptions::default()).unwrap_err()
    };
    let anonymous: Pod = from_value(json!({"metadata": {"name": "p"}})).unwrap();
    assert_eq!(broken(&[bound("p", "n"), anonymous], &[]).to_string(), "pods[1]: metadata.uid: must be set");
    let odd = pod("p", &[("/spec/containers", json!([{"name": "c", "resources": {"requests": {"cpu": "much"}}}]))]);
    assert!(matches!(broken(&[odd], &[]), ClusterViewError::Pod { index, .. } if index == Index::FIRST));
    assert!(
        matches!(broken(&[], &[node("n", "many")]), ClusterViewError::Allocatable { index, .. } if index == Index::FIRST)
    );
    assert!(matches!(broken(&[], &[Node::default()]), ClusterViewError::NodeName { index } if index == Index::FIRST));
}
