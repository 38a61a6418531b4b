//! Decisive cases: which shapes are left, with which labels.

use dra_alloc::superposition::{LostShapeError, ShapeError};
use serde_json::{from_value, json};

use super::world::{DRIVER, World, lost, plain, pod, shape, slice, survivors, together};

#[test]
fn a_shape_with_too_few_devices_is_lost() {
    let world = World::default().pod("p", 2);
    let node = world.ask(&[shape("a", &plain(&["g0", "g1"]), &[]), shape("b", &plain(&["g0"]), &[])], &[], &["p"]);
    assert_eq!((survivors(&node), together(&node)), (vec![0], vec![": 0".to_owned()]));
    assert!(lost(&node, 1).to_string().starts_with("pod ns/p: "), "{}", lost(&node, 1));
}

/// Karpenter takes the device of zone a, and loses the second shape later.
#[test]
fn the_zone_that_leaves_more_shapes_comes_first() {
    let world = World::default().zonal("pa", &["d"], &["a"]).zonal("pb", &["d"], &["b"]).pod("p", 1);
    let shapes = [shape("one", &[], &["a", "b"]), shape("two", &[], &["b"])];
    let node = world.ask(&shapes, &[], &["p"]);
    assert_eq!(together(&node), ["zone=b: 0 1", "zone=a: 0"]);
    let [one, two] = shapes;
    let node = world.ask(&[two, one], &[], &["p"]);
    assert_eq!(together(&node), ["zone=b: 0 1", "zone=a: 1"], "the order of the shapes makes no difference");
}

#[test]
fn devices_of_a_zone_help_those_of_the_node() {
    let world = World::default().zonal("pa", &["d"], &["a"]).zonal("pb", &["d"], &["b"]).pod("p", 2);
    let node = world.ask(&[shape("a", &plain(&["g"]), &["a", "b"]), shape("b", &[], &["a", "b"])], &[], &["p"]);
    assert_eq!(together(&node), ["zone=a: 0", "zone=b: 0"]);
    lost(&node, 1);
}

/// Karpenter takes the device of the cluster first, and narrows without need.
#[test]
fn nothing_is_narrowed_without_need() {
    let world = World::default().zonal("pa", &["d"], &["a"]).pod("p", 1).pod("q", 2);
    let shapes = [shape("one", &plain(&["g"]), &["a", "b"]), shape("two", &plain(&["g"]), &["a", "b"])];
    assert_eq!(together(&world.ask(&shapes, &[], &["p"])), [": 0 1"]);
    assert_eq!(together(&world.ask(&shapes, &[], &["q"])), ["zone=a: 0 1"]);
}

#[test]
fn labels_narrow_together() {
    let mut world = World::default().zonal("pa", &["d"], &["a"]).pod("p", 2);
    let spot = super::world::nodes_with(&[("capacity", &["spot"])]);
    world.slices.push(slice("ps", &plain(&["d"]), &spot));
    let both = |name| shape(name, &[], &["a", "b"]).label("capacity", &["spot", "on-demand"]);
    let node = world.ask(&[both("one"), both("two").priced(3), shape("three", &plain(&["g"]), &["a"])], &[], &["p"]);
    assert_eq!(together(&node), ["capacity=spot zone=a: 0 1", ": 2"], "the third one has no label capacity");
    let mut chosen = node.clone();
    let labels = node.together[0].labels.clone();
    chosen.choose(&labels);
    assert_eq!((survivors(&chosen), together(&chosen)), (vec![0, 1], vec!["capacity=spot zone=a: 0 1".to_owned()]));
    chosen.choose(&[("zone".to_owned(), ["b".to_owned()].into())].into());
    assert_eq!(survivors(&chosen), [0; 0]);
}

/// A pool of ten units of the cluster: one shape needs four of them, the other one six.
#[test]
fn others_see_the_largest_use_by_a_shape_that_is_left() {
    let device = |name: &str, units: u32| {
        json!({"name": name, "attributes": {"kind": {"string": if units == 1 { "n" } else { "g" }}},
            "consumesCounters": [{"counterSet": "c", "counters": {"units": {"value": units.to_string()}}}]})
    };
    let part = |units: u32, node: &str| {
        let mut device = device(&format!("d{units}"), units);
        device["nodeSelector"] = super::world::nodes_with(&[("shape", &[node])])["nodeSelector"].clone();
        device
    };
    let mut units: Vec<serde_json::Value> = (0..10).map(|one| device(&format!("u{one}"), 1)).collect();
    for device in &mut units {
        device["allNodes"] = json!(true);
    }
    let devices: Vec<_> = [part(4, "a"), part(6, "b")].into_iter().chain(units).collect();
    let counters =
        json!({"perDeviceNodeSelection": true, "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2}});
    let mut world = World { slices: vec![slice("p", &devices, &counters)], ..World::default() };
    world.slices.push(
        from_value(json!({"metadata": {"name": "sets"}, "spec": {"driver": DRIVER, "allNodes": true,
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2},
            "sharedCounters": [{"name": "c", "counters": {"units": {"value": "10"}}}]}}))
        .unwrap(),
    );
    let asks = |class: &str, count: usize| json!({"requests": [{"name": "r", "exactly": {"deviceClassName": class, "count": count}}]});
    let world = world
        .pod_with("p", &asks("g", 1))
        .pod_with("four", &asks("n", 4))
        .pod_with("five", &asks("n", 5))
        .pod_with("six", &asks("n", 6));
    let shapes = [shape("a", &[], &[]).label("shape", &["a"]), shape("b", &[], &[]).label("shape", &["b"])];
    let mut node = world.ask(&shapes, &[], &["p"]);
    assert_eq!(survivors(&node), [0, 1]);
    let other = [shape("other", &[], &[])];
    let serves = |node: &_, pod: &str| survivors(&world.ask(&other, &[node], &[pod])) == [0];
    assert_eq!(["four", "five", "six"].map(|pod| serves(&node, pod)), [true, false, false], "four units are left");
    assert!(node.release(node.survivors[1].shape));
    assert_eq!(["four", "five", "six"].map(|pod| serves(&node, pod)), [true, true, true], "six units are left");
}

/// A claim that one shape can have in two zones and the other one in one of them.
#[test]
fn a_claim_can_be_used_where_all_shapes_allow_it() {
    // The device of zone b alone comes first where it is seen.
    let mut world = World::default().zonal("narrow", &["d"], &["b"]).zonal("wide", &["d"], &["a", "b"]).pod("p", 1);
    world.pods.push(pod("q", "p"));
    let mut node = world.ask(&[shape("a", &[], &["a", "b"]), shape("b", &[], &["b"])], &[], &["p"]);
    assert_eq!(together(&node), [": 0 1"]);
    let in_zone =
        |node: &_, zone: &'static str| survivors(&world.ask(&[shape("other", &[], &[zone])], &[node], &["q"])) == [0];
    assert_eq!(["a", "b"].map(|zone| in_zone(&node, zone)), [false, true]);
    node.release(node.survivors[1].shape);
    assert_eq!(["a", "b"].map(|zone| in_zone(&node, zone)), [true, true]);
}

/// A claim with a device that comes with one node is no other node's.
#[test]
fn a_claim_with_a_device_of_the_node_stays_on_it() {
    let mut world = World::default().pod("p", 1);
    world.pods.push(pod("q", "p"));
    let shapes = [shape("a", &plain(&["g"]), &[])];
    let node = world.ask(&shapes, &[], &["p"]);
    let second = world.ask(&shapes, &[&node], &["q"]);
    assert!(matches!(lost(&second, 0), LostShapeError::ClaimElsewhere { .. }), "{}", lost(&second, 0));
    assert_eq!(survivors(&world.ask(&shapes, &[&node], &[])), [0], "without the claim the shape serves");
}

/// Karpenter would take the claim to any new node.
#[test]
fn an_allocated_claim_keeps_to_its_node() {
    let mut world = World::default().pod("p", 1);
    world.pods.push(pod("q", "p"));
    world.claims[0].status = from_value(json!({"reservedFor": [{"resource": "pods", "name": "p", "uid": "p"}],
        "allocation": {"devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "n", "device": "g"}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}}}))
    .unwrap();
    let node = world.ask(&[shape("a", &plain(&["g"]), &[])], &[], &["q"]);
    assert_eq!(lost(&node, 0).to_string(), "claim ns/p is allocated for other nodes");
}

/// Twelve racks make 4,095 boxes, more than are tried.
#[test]
fn each_kind_of_node_is_tried_where_boxes_are_too_many() {
    const RACKS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let own = |racks: &[&'static str]| {
        let slices = RACKS.iter().map(|rack| {
            let devices = plain(if racks.contains(rack) { &["d"] } else { &[] });
            slice(rack, &devices, &super::world::nodes_with(&[("rack", &[rack])]))
        });
        World { slices: slices.collect(), ..World::default() }.pod("p", 1)
    };
    let shapes = [shape("one", &[], &[]).label("rack", &RACKS)];
    for racks in [&RACKS[4..5], &RACKS[..]] {
        let node = own(racks).ask(&shapes, &[], &["p"]);
        let ways: Vec<&str> = node.survivors[0].ways.iter().map(|way| &**way.labels["rack"].first().unwrap()).collect();
        assert_eq!(ways, racks);
        assert!(!node.survivors[0].is_complete);
    }
    lost(&own(&[]).ask(&shapes, &[], &["p"]), 0);
}

#[test]
fn labels_without_values_and_with_too_many_are_told() {
    let world = World::default().zonal("pa", &["d"], &["a"]).pod("p", 1);
    let empty = world.try_ask(&[shape("a", &[], &[]).label("zone", &[])], &[], &["p"]);
    assert_eq!(empty.unwrap_err().to_string(), "shape 0: label zone must have a value");
    // Values that nobody reads are one kind of node.
    let values: Vec<String> = (0..40_000).map(|value| value.to_string()).collect();
    let values: Vec<&'static str> = values.into_iter().map(|value| &*value.leak()).collect();
    let node = world.try_ask(&[shape("a", &[], &["a"]).label("rack", &values)], &[], &["p"]).unwrap();
    assert_eq!(together(&node), [": 0"]);
    let mut read = world;
    read.slices.push(slice(
        "far",
        &plain(&["d"]),
        &json!({"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "rack", "operator": "Gt", "values": ["20000"]}]}]}}),
    ));
    let many = read.try_ask(&[shape("a", &[], &["a"]).label("rack", &values)], &[], &["p"]).unwrap_err();
    assert!(matches!(many, ShapeError::TooMany { combinations: 40_000, most: 1_000, .. }), "{many}");
}
