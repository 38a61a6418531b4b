//! Random clusters: each kind of node by a plain question, and the answer without an order.

use dra_alloc::Inventory;
use dra_alloc::autoscaler::NodeTemplate;
use dra_alloc::superposition::Superposed;
use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::{Strategy, any, prop, proptest};
use proptest::{prop_assert, prop_assert_eq};

use super::world::{Shape, World, nodes_with, plain, shape, slice, together, with_simulator};

const ZONES: [&str; 3] = ["a", "b", "c"];
const CAPACITIES: [&str; 2] = ["spot", "on-demand"];

/// Returns the values whose bits are set; all if none is.
fn some(of: &[&'static str], bits: u8) -> Vec<&'static str> {
    let chosen: Vec<&str> =
        of.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, value)| *value).collect();
    if chosen.is_empty() { of.to_vec() } else { chosen }
}

fn worlds() -> impl Strategy<Value = (World, Vec<Shape>)> {
    let slices = prop::collection::vec((1..3_usize, any::<u8>(), any::<u8>(), any::<bool>()), 0..5);
    let shapes = prop::collection::vec((0..3_usize, any::<u8>(), any::<u8>(), 1..4_u64), 1..4);
    let pods = prop::collection::vec(1..3_usize, 1..3);
    (slices, shapes, pods).prop_map(|(slices, shapes, pods)| {
        let mut world = World::default();
        for (number, (devices, zones, capacities, reads_both)) in slices.into_iter().enumerate() {
            let (zones, capacities) = (some(&ZONES, zones), some(&CAPACITIES, capacities));
            let labels: &[(&str, &[&str])] = &[("zone", &zones), ("capacity", &capacities)];
            let labels = if reads_both { labels } else { &labels[..1] };
            world.slices.push(slice(&format!("p{number}"), &plain(&["d0", "d1"][..devices]), &nodes_with(labels)));
        }
        for (number, count) in pods.into_iter().enumerate() {
            world = world.pod(&format!("pod-{number}"), count);
        }
        let shapes = shapes.into_iter().enumerate().map(|(number, (devices, zones, capacities, price))| {
            let made = shape(&format!("shape-{number}"), &plain(&["g0", "g1"][..devices]), &some(&ZONES, zones));
            made.label("capacity", &some(&CAPACITIES, capacities)).priced(price)
        });
        (world, shapes.collect())
    })
}

fn ask(world: &World, shapes: &[Shape]) -> Superposed {
    let pods: Vec<&str> = world.pods.iter().map(|pod| pod.metadata.name.as_deref().unwrap()).collect();
    world.ask(shapes, &[], &pods)
}

/// Returns true if one more node with these labels takes all pods.
fn serves(world: &World, shape: &Shape, labels: [(&str, &str); 2]) -> bool {
    let mut node = shape.template.node().clone();
    node.metadata.labels = Some(labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect());
    let template = NodeTemplate::new(node, shape.template.slices().iter().cloned()).unwrap();
    with_simulator(|simulator| {
        let mut inventory = Inventory::new(world.slices.iter().cloned());
        let pods: Vec<&Pod> = world.pods.iter().collect();
        let answer = simulator.scale_up(&mut inventory, &world.tracker(), &template, pods).unwrap();
        answer.refused.is_empty()
    })
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 300, ..Default::default() })]

    #[test]
    fn a_way_is_right_for_each_kind_of_node_and_none_is_missing((world, shapes) in worlds()) {
        let node = ask(&world, &shapes);
        for (position, shape) in shapes.iter().enumerate() {
            let survivor = node.survivors.iter().find(|survivor| usize::from(survivor.shape) == position);
            let ways = survivor.map_or(&[][..], |survivor| &survivor.ways);
            for zone in &shape.labels[0].1 {
                for capacity in &shape.labels[1].1 {
                    let labels = [("zone", *zone), ("capacity", *capacity)];
                    let is_allowed = |way: &dra_alloc::superposition::Way| {
                        labels.iter().all(|(key, value)| way.labels.get(*key).is_none_or(|values| values.contains(*value)))
                    };
                    prop_assert_eq!(ways.iter().any(is_allowed), serves(&world, shape, labels), "{} {:?}", position, labels);
                }
            }
        }
        for choice in &node.together {
            prop_assert!(!choice.shapes.is_empty());
            let mut chosen = node.clone();
            chosen.choose(&choice.labels);
            let left: Vec<_> = chosen.survivors.iter().map(|survivor| survivor.shape).collect();
            prop_assert_eq!(&left, &choice.shapes);
        }
    }

    #[test]
    fn the_order_of_shapes_makes_no_difference((world, shapes) in worlds()) {
        let forward = together(&ask(&world, &shapes));
        let backward: Vec<Shape> = shapes.iter().rev().cloned().collect();
        let last = shapes.len() - 1;
        let mirrored: Vec<String> = together(&ask(&world, &backward))
            .into_iter()
            .map(|text| {
                let (labels, positions) = text.split_once(": ").unwrap();
                let mut positions: Vec<usize> = positions.split(' ').map(|one| last - one.parse::<usize>().unwrap()).collect();
                positions.sort_unstable();
                let positions: Vec<String> = positions.iter().map(usize::to_string).collect();
                format!("{labels}: {}", positions.join(" "))
            })
            .collect();
        prop_assert_eq!(forward, mirrored);
    }

    /// Devices that one node may take are not given to another one.
    #[test]
    fn a_second_node_takes_no_device_of_the_first((world, shapes) in worlds()) {
        let world = world.pod("late", 1);
        let first = world.ask(&shapes, &[], &["pod-0"]);
        let second = world.ask(&shapes, &[&first], &["late"]);
        let devices = |node: &Superposed| -> Vec<(usize, String)> {
            let ways = node.survivors.iter().flat_map(|survivor| survivor.ways.iter().map(move |way| (survivor, way)));
            let results = ways.flat_map(|(survivor, way)| way.placed.iter().flat_map(|pod| &pod.results).map(move |(_, result)| (survivor, result)));
            results
                .flat_map(|(survivor, result)| {
                    let devices = result.devices.iter().flat_map(|devices| devices.results.iter().flatten());
                    devices.map(|one| (usize::from(survivor.shape), format!("{}/{}", one.pool, one.device))).collect::<Vec<_>>()
                })
                .filter(|(_, device)| device.starts_with('p'))
                .collect()
        };
        let taken: std::collections::BTreeSet<String> = devices(&first).into_iter().map(|(_, device)| device).collect();
        for (_, device) in devices(&second) {
            prop_assert!(!taken.contains(&device), "{} {:?}", device, taken);
        }
    }
}
