//! Properties that hold for every input.

use std::collections::BTreeSet;

use dra_attrs::internal::{NumaNodeValue, QualifiedName};
use dra_attrs::numa::{CpuSet, Distances, NumaForm, NumaNode, NumaTopology, Socket};
use dra_attrs::{DistinctState, ListTypes, MatchState, PciAddress, Quantity, QuantityFormat, ValueSet};
use k8s_openapi::api::resource::v1::DeviceAttribute;
use proptest::prelude::*;

use super::{int, ints};

/// Generates up to eight nodes with gaps in their ids, distances from 8 to 30 or 255, and known or unknown sockets.
fn topology() -> impl Strategy<Value = NumaTopology> {
    let ids = prop::collection::btree_set(0..1024_i64, 1..8);
    ids.prop_flat_map(|ids| {
        let count = ids.len();
        let row = prop::collection::vec(prop_oneof![8 => 8_u32..30, 1 => Just(255)], count);
        let nodes = prop::collection::vec((row, prop::option::of(-1..3_i64)), count);
        nodes.prop_map(move |nodes| {
            let nodes = ids.iter().zip(nodes).map(|(id, (row, socket))| {
                let node = NumaNode::new(*id, row);
                socket.map_or_else(|| node.clone(), |socket| node.clone().on_socket(socket))
            });
            NumaTopology::new(nodes.collect()).unwrap()
        })
    })
}

fn attribute() -> impl Strategy<Value = DeviceAttribute> {
    let list = prop::collection::vec(0..6_i64, 1..5);
    prop_oneof![
        (0..6_i64).prop_map(int),
        list.clone().prop_map(|list| ints(&list)),
        list.prop_map(|list| {
            let strings = Some(list.iter().map(ToString::to_string).collect());
            DeviceAttribute { strings, ..DeviceAttribute::default() }
        }),
        Just(ints(&[])),
        Just(DeviceAttribute::default()),
    ]
}

fn devices() -> impl Strategy<Value = Vec<Option<DeviceAttribute>>> {
    prop::collection::vec(prop::option::weighted(0.95, attribute()), 1..6)
}

fn all_match(devices: &[Option<DeviceAttribute>], lists: ListTypes) -> bool {
    let mut state = MatchState::new();
    devices.iter().all(|device| state.push(&ValueSet::from_attribute(device.as_ref(), lists)).is_ok())
}

fn all_distinct(devices: &[Option<DeviceAttribute>], lists: ListTypes) -> bool {
    let mut state = DistinctState::new();
    devices.iter().all(|device| state.push(&ValueSet::from_attribute(device.as_ref(), lists)).is_ok())
}

/// Returns the attribute's values by the plain definition: a set of texts with their types.
fn as_set(device: Option<&DeviceAttribute>) -> BTreeSet<String> {
    let Some(device) = device else { return BTreeSet::new() };
    let ints = device.ints.iter().flatten().chain(&device.int).map(|value| format!("int {value}"));
    let strings = device.strings.iter().flatten().chain(&device.string).map(|value| format!("string {value}"));
    ints.chain(strings).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn local_nodes_obey_the_two_filters(topology in topology()) {
        // req: 6072-LIST-1, 6072-LIST-2, 6072-LIST-3, 6072-LIST-8
        for (position, node) in topology.nodes().iter().enumerate() {
            let nodes = topology.local_nodes(node.id()).nodes;
            prop_assert_eq!(nodes[0], node.id());
            prop_assert!(nodes[1..].is_sorted());
            prop_assert_eq!(nodes.iter().collect::<BTreeSet<_>>().len(), nodes.len());

            let Distances::Row(row) = node.distances() else { unreachable!() };
            let others = row.iter().enumerate().filter(|(other, _)| *other != position);
            let minimum = others.map(|(_, distance)| *distance).min();
            for other in &nodes[1..] {
                let column = topology.nodes().iter().position(|node| node.id() == *other).unwrap();
                prop_assert_eq!(Some(row[column]), minimum);
                if let (Socket::Id(own), Socket::Id(its)) = (node.socket(), topology.nodes()[column].socket()) {
                    prop_assert_eq!(own, its);
                }
            }
        }
    }

    #[test]
    fn the_order_of_the_nodes_given_does_not_matter(topology in topology(), seed in any::<usize>()) {
        let mut nodes = topology.nodes().to_vec();
        let turn = seed % nodes.len();
        nodes.rotate_left(turn);
        nodes.reverse();
        prop_assert_eq!(NumaTopology::new(nodes).unwrap(), topology);
    }

    #[test]
    fn the_physical_node_is_recovered_from_every_form(topology in topology()) {
        // req: 6072-READ-1
        for node in topology.nodes() {
            for form in [NumaForm::Scalar, NumaForm::OwnNode, NumaForm::LocalNodes] {
                let attribute = topology.attribute(node.id(), form).unwrap();
                prop_assert_eq!(NumaNodeValue::physical(&attribute.value), Some(node.id()));
            }
        }
    }

    #[test]
    fn matching_is_the_intersection_of_sets(devices in devices()) {
        let sets: Vec<_> = devices.iter().map(|device| as_set(device.as_ref())).collect();
        let common = sets.iter().skip(1).fold(sets[0].clone(), |common, set| &common & set);
        prop_assert_eq!(all_match(&devices, ListTypes::Enabled), !common.is_empty());
        let disjoint = sets.iter().enumerate().all(|(i, a)| !a.is_empty() && sets[..i].iter().all(|b| a.is_disjoint(b)));
        prop_assert_eq!(all_distinct(&devices, ListTypes::Enabled), disjoint);
    }

    #[test]
    fn with_list_types_the_order_of_devices_does_not_matter(devices in devices()) {
        let reversed: Vec<_> = devices.iter().rev().cloned().collect();
        for lists in [ListTypes::Enabled, ListTypes::Refused] {
            prop_assert_eq!(all_match(&devices, lists), all_match(&reversed, lists));
            prop_assert_eq!(all_distinct(&devices, lists), all_distinct(&reversed, lists));
        }
    }

    #[test]
    fn constraints_are_monotone(devices in devices()) {
        for lists in [ListTypes::Enabled, ListTypes::Disabled, ListTypes::Refused] {
            let fewer = &devices[..devices.len() - 1];
            prop_assert!(!all_match(&devices, lists) || all_match(fewer, lists));
            prop_assert!(!all_distinct(&devices, lists) || all_distinct(fewer, lists));
        }
    }

    #[test]
    fn push_then_pop_restores(devices in devices(), extra in attribute()) {
        for lists in [ListTypes::Enabled, ListTypes::Disabled, ListTypes::Refused] {
            let sets: Vec<_> = devices.iter().map(|device| ValueSet::from_attribute(device.as_ref(), lists)).collect();
            let extra = ValueSet::from_attribute(Some(&extra), lists);
            let (mut same, mut other) = (MatchState::new(), DistinctState::new());
            for set in &sets {
                let (common, len) = (same.common().to_vec(), same.len());
                if same.push(&extra).is_ok() {
                    same.pop();
                }
                prop_assert_eq!((same.common(), same.len()), (common.as_slice(), len));
                if other.push(&extra).is_ok() {
                    other.pop();
                }
                // A fresh state with the same history must give the same answers.
                let (mut fresh_same, mut fresh_other) = (MatchState::new(), DistinctState::new());
                for set in &sets[..len.min(sets.len())] {
                    let _ = fresh_same.push(set);
                }
                for set in &sets[..other.len().min(sets.len())] {
                    let _ = fresh_other.push(set);
                }
                let (a, b) = (same.push(set), other.push(set));
                prop_assert_eq!(a, fresh_same.push(set));
                prop_assert_eq!(b, fresh_other.push(set));
                if a.is_err() || b.is_err() {
                    break;
                }
            }
        }
    }

    #[test]
    fn canonical_quantities_read_back_as_themselves(nanos in any::<i64>(), shift in 0..60_u32, binary in any::<bool>()) {
        let format = if binary { QuantityFormat::BinarySi } else { QuantityFormat::DecimalSi };
        let quantity = Quantity::from_nanos(i128::from(nanos) << shift, format);
        let text = quantity.to_string();
        let read: Quantity = text.parse().unwrap();
        let capped = binary && read.nanos().abs() == i128::from(i64::MAX) * 1_000_000_000;
        prop_assert!(read == quantity || capped, "{} as {}", quantity.nanos(), text);
    }

    #[test]
    fn quantities_add_like_numbers(a in any::<i64>(), b in any::<i64>()) {
        let quantity = |nanos| Quantity::from_nanos(i128::from(nanos), QuantityFormat::DecimalSi);
        let sum = quantity(a).checked_add(quantity(b)).unwrap();
        prop_assert_eq!(sum.nanos(), i128::from(a) + i128::from(b));
        prop_assert_eq!(sum.checked_sub(quantity(b)), Some(quantity(a)));
        prop_assert_eq!(quantity(a).cmp(&quantity(b)), a.cmp(&b));
    }

    #[test]
    fn parsers_take_any_text(text in "\\PC{0,40}") {
        let _ = (text.parse::<Quantity>(), text.parse::<CpuSet>(), PciAddress::parse_extended(&text));
        if let Ok(name) = QualifiedName::parse(&text) {
            prop_assert_eq!(name.to_string(), text.as_str());
        }
        let _ = Distances::parse(&text);
    }

    #[test]
    fn addresses_print_what_was_read(domain in any::<u32>(), bus in any::<u8>(), device in 0..32_u8, function in 0..8_u8) {
        let text = format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}");
        prop_assert_eq!(PciAddress::parse_extended(&text).unwrap().to_string(), text);
    }
}
