//! Headlines of refusals, and summaries over nodes.

use dra_alloc::explain::Detail;
use dra_alloc::selector::SelectorCache;
use dra_alloc::{Allocator, Budget, Classes, Profile, Verdict, cluster_summary};
use dra_attrs::Component;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use crate::cluster::{Cluster, NUMA, claim, node, on_numa, pool, request, together, with};
use crate::explain::{GPU, NIC, ask, explained, gpu_devices, held_again, selector};

#[test]
fn a_summary_of_many_nodes() {
    let pools = (0..5).flat_map(|index| {
        let (node, gpu, nic) = (format!("node-{index}"), [0_i64], [if index < 2 { 4 } else { 0 }]);
        [pool(GPU, &node, json!([on_numa("gpu-0", &gpu)])), pool(NIC, &node, json!([on_numa("nic-0", &nic)]))]
    });
    let mut cluster = Cluster::new(pools);
    let gpu = [claim("other", json!([request("gpu", "gpu", json!({}))]), json!([]))];
    for node in ["node-2", "node-3", "node-4"] {
        assert!(cluster.allocate_in_turn(node, &gpu)[0].is_some());
    }
    let (inventory, selectors) = (cluster.inventory(), SelectorCache::default());
    let classes = Classes::new(cluster.classes.iter().cloned());
    let allocator = Allocator::new(Component::new(Profile::Kep, cluster.gates), &inventory, &classes)
        .with_selector_cache(&selectors)
        .with_explanation(Detail::Summary);
    let nodes: Vec<Node> = (0..5).map(|index| node(&format!("node-{index}"))).collect();
    let claims = [together("training", &["gpu", "nic"], NUMA)];
    let verdicts: Vec<Verdict> =
        allocator.allocate_each(&cluster.state, &nodes, &claims, Budget::default()).map(Result::unwrap).collect();
    let summary = "0/5 nodes can serve the claims: 3 no free device of class gpu, 2 numaNode mismatch";
    assert_eq!(cluster_summary(&verdicts), summary);
}

#[test]
fn a_headline_is_about_the_devices_that_came_farthest() {
    let taint = |key: &str| json!({"taints": [{"key": key, "effect": "NoSchedule"}]});
    let elsewhere = || json!({"nodeName": "node-2"});
    // Models and fields of devices, the number of devices of model H that are held, and the headline for one of model H.
    let table = [
        (
            vec![("H", json!({})), ("A", json!({})), ("A", json!({}))],
            1,
            "no free device of class gpu that the selectors admit",
        ),
        (vec![("H", json!({})), ("A", json!({}))], 1, "no free device of class gpu that the selectors admit"),
        (vec![("H", json!({})), ("H", json!({}))], 2, "no free device of class gpu"),
        (vec![("A", json!({})), ("A", json!({}))], 0, "no device of class gpu that the selectors admit"),
        (
            vec![("H", taint("broken")), ("A", json!({})), ("A", taint("other"))],
            0,
            "taint broken:NoSchedule on devices of class gpu that the selectors admit",
        ),
        (
            vec![("H", json!({})), ("H", taint("broken")), ("H", taint("broken")), ("A", json!({}))],
            1,
            "no usable device of class gpu that the selectors admit: held, taint broken:NoSchedule",
        ),
        (
            vec![("H", json!({})), ("A", json!({})), ("H", elsewhere()), ("H", elsewhere())],
            1,
            "no free device of class gpu for the node that the selectors admit",
        ),
        (vec![("A", json!({})), ("H", elsewhere())], 0, "no device of class gpu for the node that the selectors admit"),
    ];
    for (devices, held, wanted) in table {
        let devices = devices.into_iter().enumerate().map(|(index, (model, fields))| {
            let mut device = json!({"name": format!("gpu-{index}"), "nodeName": "node-1",
                "attributes": {"model": {"string": model}}});
            device.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            device
        });
        let slice = with(pool(GPU, "node-1", devices.collect()), "nodeName", Value::Null);
        let mut cluster = Cluster::new([with(slice, "perDeviceNodeSelection", json!(true))]);
        let mut of_h = selector("device.attributes['gpu.example.com'].model == 'H'");
        let one = ask(of_h.clone());
        if held > 0 {
            of_h["count"] = json!(held);
            assert!(cluster.allocate_in_turn("node-1", &ask(of_h))[0].is_some());
        }
        let explanation = explained(&cluster, &one).unwrap();
        assert_eq!(explanation.headline().as_deref(), Some(wanted));
    }
}

#[test]
fn a_node_with_a_device_that_is_held_twice_is_told_apart() {
    let pools = ["node-1", "node-2", "node-3"].map(|name| pool(GPU, name, gpu_devices(2, json!({}))));
    let mut cluster = Cluster::new(pools);
    for name in ["node-1", "node-2", "node-3"] {
        let two = claim(name, json!([request("gpu", "gpu", json!({"count": 2}))]), json!([]));
        assert!(cluster.allocate_in_turn(name, &[two])[0].is_some());
    }
    let cluster = held_again(cluster, "another", &["gpu-0"]);
    let (inventory, classes) = (cluster.inventory(), Classes::new(cluster.classes.iter().cloned()));
    let allocator = Allocator::new(Profile::V1_37, &inventory, &classes).with_explanation(Detail::Summary);
    let (claims, nodes) = (ask(json!({})), ["node-2", "node-1", "node-3"].map(node));
    let verdicts = allocator.allocate_each(&cluster.state, &nodes, &claims, Budget::default());
    let explanations = verdicts.map(|verdict| verdict.unwrap().explanation.unwrap());
    let headlines: Vec<String> = explanations.map(|explanation| explanation.headline().unwrap()).collect();
    let usual = "no free device of class gpu";
    assert_eq!(headlines, [usual, "no free device of class gpu, some held by 2 claims or more", usual]);
}
