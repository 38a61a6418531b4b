//! Attributes that nobody knows: yes, no, and what must be true.

use dra_alloc::superposition::LostShapeError;
use serde_json::{Value, json};

use super::world::{ROOT, Shape, World, lost, rooted, shape, slice, survivors};

/// Asks for a device of each class, with a constraint on `pcieRoot`.
fn world(constraint: &str, classes: &[&str], cluster: &[Value]) -> World {
    let request =
        |(number, class): (usize, &&str)| json!({"name": format!("r{number}"), "exactly": {"deviceClassName": class}});
    let requests: Vec<Value> = classes.iter().enumerate().map(request).collect();
    let mut world = World::default().pod_with("p", &json!({"requests": requests, "constraints": [{constraint: ROOT}]}));
    if !cluster.is_empty() {
        world.slices.push(slice("cluster", cluster, &json!({"allNodes": true})));
    }
    world
}

fn bound(devices: &[Value]) -> Shape {
    shape("a", devices, &[]).unknown(ROOT)
}

/// Returns yes, no, or what must be true.
fn answer(world: &World, shape: Shape) -> String {
    let node = world.ask(&[shape], &[], &["p"]);
    if survivors(&node) == [0] {
        return "yes".to_owned();
    }
    match lost(&node, 0) {
        reason @ LostShapeError::Unknown { .. } => reason.to_string(),
        LostShapeError::NoPlace { .. } => "no".to_owned(),
        other => panic!("{other}"),
    }
}

#[test]
fn devices_of_one_group_match() {
    let world = world("matchAttribute", &["g", "n"], &[]);
    assert_eq!(answer(&world, bound(&[rooted("g0", "g", "u0"), rooted("n0", "n", "u0")])), "yes");
    let node = world.ask(
        &[
            bound(&[rooted("g0", "g", "u0"), rooted("n0", "n", "u0")]),
            shape(
                "b",
                &[
                    json!({"name": "g0", "attributes": {"kind": {"string": "g"}}}),
                    json!({"name": "n0", "attributes": {"kind": {"string": "n"}}}),
                ],
                &[],
            ),
        ],
        &[],
        &["p"],
    );
    assert_eq!(survivors(&node), [0], "the second shape says nothing about roots");
}

#[test]
fn groups_with_a_common_device_are_one() {
    let devices = [rooted("g0", "g", "x"), rooted("n0", "n", "y"), rooted("g1", "g", "z")];
    let grouped = bound(&devices);
    let template = grouped.template.clone().with_equal_devices(ROOT, [["g0", "n0"], ["n0", "g1"]]);
    let grouped = Shape { template, ..grouped };
    assert_eq!(answer(&world("matchAttribute", &["g", "g"], &[]), grouped), "yes");
}

#[test]
fn devices_of_two_groups_may_match() {
    let two = || bound(&[rooted("g0", "g", "u0"), rooted("n0", "n", "u1")]);
    assert_eq!(
        answer(&world("matchAttribute", &["g", "n"], &[]), two()),
        "nobody knows before the node exists: claim ns/p needs equal values of gpu.example.com/pcieRoot of \
         gpu.example.com/a/g0, gpu.example.com/a/n0"
    );
    assert_eq!(answer(&world("matchAttribute", &["g", "n", "n"], &[]), two()), "no", "there is one device of kind n");
}

/// Karpenter says no.
#[test]
fn a_device_of_the_cluster_may_match_one_of_the_node() {
    let world = world("matchAttribute", &["g", "n"], &[rooted("n0", "n", "pci0000:40")]);
    assert_eq!(
        answer(&world, bound(&[rooted("g0", "g", "u0")])),
        "nobody knows before the node exists: claim ns/p needs equal values of gpu.example.com/pcieRoot of \
         gpu.example.com/a/g0, gpu.example.com/cluster/n0"
    );
    let both = bound(&[rooted("g0", "g", "u0"), rooted("n9", "n", "u0")]);
    assert_eq!(answer(&world, both), "yes", "a device that matches for sure is preferred");
}

#[test]
fn two_devices_of_the_cluster_that_differ_do_not_match_whatever_is_true() {
    let roots = [rooted("n0", "n", "pci0000:40"), rooted("n1", "n", "pci0000:80")];
    let world = world("matchAttribute", &["g", "n", "n"], &roots);
    assert_eq!(answer(&world, bound(&[rooted("g0", "g", "u0")])), "no");
}

#[test]
fn devices_of_one_group_are_not_distinct_and_of_two_may_be() {
    let world = world("distinctAttribute", &["g", "g"], &[]);
    assert_eq!(answer(&world, bound(&[rooted("g0", "g", "u0"), rooted("g1", "g", "u0")])), "no");
    assert_eq!(
        answer(&world, bound(&[rooted("g0", "g", "u0"), rooted("g1", "g", "u1")])),
        "nobody knows before the node exists: claim ns/p needs different values of gpu.example.com/pcieRoot of \
         gpu.example.com/a/g0, gpu.example.com/a/g1"
    );
}

#[test]
fn a_selector_that_reads_an_unknown_value_says_nothing() {
    let selector = json!([{"cel": {"expression": "device.attributes['gpu.example.com'].pcieRoot == 'pci0000:40'"}}]);
    let asks = json!({"requests": [{"name": "r", "exactly": {"deviceClassName": "g", "selectors": selector}}]});
    let world = World::default().pod_with("p", &asks);
    assert_eq!(
        answer(&world, bound(&[rooted("g0", "g", "u0")])),
        "nobody knows before the node exists: claim ns/p reads gpu.example.com/pcieRoot"
    );
}
