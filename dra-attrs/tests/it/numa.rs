//! Decision table of the list algorithm, and the forms of the attribute.

use dra_attrs::StandardAttribute;
use dra_attrs::internal::NumaNodeValue;
use dra_attrs::numa::{
    CpuSet, Diagnostic, Distances, NumaError, NumaForm, NumaNode, NumaNodeAttribute, NumaTopology, SlitFinding, Socket,
    SocketUnknown, TopologyError, publish,
};
use k8s_openapi::api::resource::v1::DeviceAttribute;
use serde_json::json;
use std::collections::BTreeMap;

use super::{int, ints, string};

/// Builds nodes with ids 0, 1, 2, … from their rows and sockets.
fn machine<const N: usize>(rows: [[u32; N]; N], sockets: [Option<i64>; N]) -> NumaTopology {
    let ids = 0..i64::try_from(N).unwrap();
    let nodes = ids.zip(rows).zip(sockets).map(|((id, row), socket)| {
        let node = NumaNode::new(id, row);
        socket.map_or_else(
            || node.clone().on_unknown_socket(SocketUnknown::NoCpus),
            |socket| node.clone().on_socket(socket),
        )
    });
    NumaTopology::new(nodes.collect()).unwrap()
}

fn lists(topology: &NumaTopology) -> Vec<Vec<i64>> {
    topology.nodes().iter().map(|node| topology.local_nodes(node.id()).nodes).collect()
}

fn one_socket<const N: usize>(rows: [[u32; N]; N]) -> Vec<Vec<i64>> {
    lists(&machine(rows, [Some(0); N]))
}

/// Builds the KEP's table: AMD EPYC 9825, two sockets, NPS4.
fn epyc() -> NumaTopology {
    let row = |own: usize| -> [u32; 8] {
        std::array::from_fn(|other| match (own == other, own / 4 == other / 4) {
            (true, _) => 10,
            (false, true) => 12,
            (false, false) => 32,
        })
    };
    machine(std::array::from_fn(row), std::array::from_fn(|node| Some(i64::try_from(node).unwrap() / 4)))
}

#[test]
fn epyc_table_of_the_kep() {
    // req: 6072-LIST-1, 6072-LIST-4, 6072-LIST-10
    let epyc = epyc();
    assert_eq!(epyc.nodes()[0].distances(), &Distances::Row(vec![10, 12, 12, 12, 32, 32, 32, 32]));
    assert_eq!(epyc.nodes()[6].distances(), &Distances::Row(vec![32, 32, 32, 32, 12, 12, 10, 12]));
    assert_eq!(epyc.local_nodes(0).nodes, [0, 1, 2, 3]);
    assert_eq!(epyc.local_nodes(6).nodes, [6, 4, 5, 7]);
    assert_eq!(epyc.local_nodes(5).nodes, [5, 4, 6, 7]);
    assert!(epyc.local_nodes(6).diagnostics.is_empty());
}

#[test]
fn minimum_before_socket() {
    // req: 6072-LIST-2, 6072-LIST-3
    let topology = machine([[10, 20, 11], [20, 10, 20], [11, 20, 10]], [Some(0), Some(0), Some(1)]);
    assert_eq!(topology.local_nodes(0).nodes, [0]);
}

#[test]
fn matrices_with_expected_lists() {
    // req: 6072-LIST-6
    assert_eq!(one_socket([[10]]), [[0]]);
    assert_eq!(lists(&machine([[10, 21], [21, 10]], [Some(0), Some(1)])), [[0], [1]]);
    assert_eq!(one_socket([[10, 15, 17], [15, 10, 15], [17, 15, 10]]), [vec![0, 1], vec![1, 0, 2], vec![2, 1]]);
    assert_eq!(one_socket([[10, 12, 14], [20, 10, 12], [11, 13, 10]]), [[0, 1], [1, 2], [2, 0]]);
    let equal = std::array::from_fn(|own| std::array::from_fn(|other| if own == other { 10 } else { 16 }));
    assert_eq!(lists(&machine::<4>(equal, [Some(0), Some(0), Some(1), Some(1)])), [[0, 1], [1, 0], [2, 3], [3, 2]]);
}

#[test]
fn two_io_dies_in_a_socket() {
    // req: 6072-LIST-5, 6072-LIST-11
    let row = |own: usize, near: u32, far: u32| -> [u32; 8] {
        std::array::from_fn(|other| match (own == other, own / 2 == other / 2, own / 4 == other / 4) {
            (true, ..) => 10,
            (_, true, _) => near,
            (_, _, true) => far,
            _ => 32,
        })
    };
    let sockets: [_; 8] = std::array::from_fn(|node| Some(i64::from(node > 3)));
    let asymmetric = machine(std::array::from_fn(|own| row(own, 12, 16)), sockets);
    assert_eq!(asymmetric.local_nodes(0).nodes, [0, 1]);
    let equal = machine(std::array::from_fn(|own| row(own, 12, 12)), sockets);
    assert_eq!(equal.local_nodes(0).nodes, [0, 1, 2, 3]);
}

#[test]
fn the_list_follows_the_machine_of_the_call() {
    // req: 6072-LIST-12, 6072-LIST-5
    assert_eq!(epyc().attribute(0, NumaForm::LocalNodes).unwrap().value, ints(&[0, 1, 2, 3]));
    let nps1 = machine([[10, 32], [32, 10]], [Some(0), Some(1)]);
    assert_eq!(nps1.attribute(0, NumaForm::LocalNodes).unwrap().value, ints(&[0]));
}

#[test]
fn three_forms() {
    // req: 6072-FORM-1, 6072-LIST-9
    let epyc = epyc();
    assert_eq!(NumaForm::default(), NumaForm::Scalar);
    assert_eq!(epyc.attribute(4, NumaForm::Scalar).unwrap().value, int(4));
    assert_eq!(epyc.attribute(4, NumaForm::OwnNode).unwrap().value, ints(&[4]));
    assert_eq!(epyc.attribute(4, NumaForm::LocalNodes).unwrap().value, ints(&[4, 5, 6, 7]));
}

#[test]
fn no_affinity_and_out_of_range() {
    // req: 6072-FORM-8
    for form in [NumaForm::Scalar, NumaForm::OwnNode, NumaForm::LocalNodes] {
        assert_eq!(epyc().attribute(-1, form), Err(NumaError::NoAffinity { node: -1 }));
        assert_eq!(epyc().attribute(i64::MIN, form), Err(NumaError::NoAffinity { node: i64::MIN }));
        assert_eq!(epyc().attribute(1024, form), Err(NumaError::OutOfRange { node: 1024 }));
        assert_eq!(epyc().attribute(i64::MAX, form), Err(NumaError::OutOfRange { node: i64::MAX }));
    }
    assert_eq!(epyc().attribute(1023, NumaForm::Scalar).unwrap().value, int(1023));
}

#[test]
fn a_node_without_a_usable_row_stands_alone() {
    // req: 6072-LIST-7
    let with_row = |distances| {
        let nodes = vec![NumaNode::with_distances(0, distances).on_socket(0), NumaNode::new(1, [12, 10]).on_socket(0)];
        NumaTopology::new(nodes).unwrap()
    };
    for text in ["", "\n", "10 x", "10 -1", "10 12.0", "10 99999999999", "10", "10 12 12"] {
        let local = with_row(Distances::parse(text)).local_nodes(0);
        assert_eq!(local.nodes, [0], "{text}");
        assert!(matches!(local.diagnostics.as_slice(), [Diagnostic::NoDistances { node: 0, .. }]), "{text}");
    }
    // Also on a machine with one node, whose table was captured when it had two.
    let one = NumaTopology::new(vec![NumaNode::new(1, [21, 10]).on_socket(1)]).unwrap().local_nodes(1);
    assert_eq!((one.nodes, one.diagnostics.len()), (vec![1], 1));
    let usable = with_row(Distances::parse("  10\t12 \0"));
    assert_eq!(usable.local_nodes(0).nodes, [0, 1]);
    let offline = usable.local_nodes(7);
    assert_eq!((offline.nodes, offline.diagnostics), (vec![7], vec![Diagnostic::NotOnline { node: 7 }]));
}

#[test]
fn holes_in_the_numbering() {
    // req: 6072-LIST-6
    let node = |id, row: [u32; 4], socket| NumaNode::new(id, row).on_socket(socket);
    let topology = NumaTopology::new(vec![
        node(5, [20, 20, 12, 10], 1),
        node(0, [10, 12, 20, 20], 0),
        node(4, [20, 20, 10, 12], 1),
        node(1, [12, 10, 20, 20], 0),
    ]);
    assert_eq!(lists(&topology.unwrap()), [[0, 1], [1, 0], [4, 5], [5, 4]]);
}

#[test]
fn unreachable_nodes() {
    // req: 6072-LIST-6
    let topology = machine([[10, 255], [255, 10]], [Some(0), Some(0)]);
    let local = topology.local_nodes(0);
    assert_eq!((local.nodes, local.diagnostics), (vec![0], vec![Diagnostic::Unreachable { node: 0, distance: 255 }]));
    assert_eq!(machine([[10, 254], [254, 10]], [Some(0), Some(0)]).local_nodes(0).nodes, [0, 1]);
    assert_eq!(machine([[10, 256], [256, 10]], [Some(0), Some(0)]).local_nodes(0).nodes, [0]);
    // A memory node has no socket of a node that it does not reach.
    let one_way = machine([[10, 20], [255, 10]], [Some(0), None]);
    assert_eq!(one_way.local_nodes_of_known_sockets(0).nodes, [0]);
}

#[test]
fn a_memory_node_belongs_to_its_nearest_socket() {
    // req: 6072-LIST-6
    // Node 2 is a CXL device of socket 0; node 3 is equally far from both sockets.
    let rows = [[10, 21, 14, 14], [21, 10, 24, 14], [14, 24, 10, 30], [14, 14, 30, 10]];
    let topology = machine(rows, [Some(0), Some(1), None, None]);
    let local = topology.local_nodes(0);
    assert_eq!(local.nodes, [0, 2, 3]);
    assert_eq!(local.diagnostics, [Diagnostic::KeptUnknown { node: 3, reason: SocketUnknown::NoCpus }]);
    assert_eq!(topology.local_nodes(1).nodes, [1, 3]);
    assert_eq!(topology.local_nodes_of_known_sockets(0).nodes, [0, 2]);
    // The device's own node is such a memory node.
    assert_eq!(topology.local_nodes(2).nodes, [2, 0]);
    // A package id of -1 means unknown.
    let told = |node: NumaNode| NumaTopology::new(vec![NumaNode::new(0, [10, 14]).on_socket(0), node]).unwrap();
    let memory = NumaNode::new(1, [14, 10]);
    assert_eq!(told(memory.clone().on_socket(-1)).local_nodes(1), told(memory).local_nodes(1));
    let hub = topology.local_nodes(3);
    assert_eq!(hub.nodes, [3]);
    assert_eq!(hub.diagnostics, [Diagnostic::SocketUnknown { node: 3, reason: SocketUnknown::NoCpus }]);
    // The nearest node is a memory node of another socket.
    let apart = machine([[10, 20, 12], [20, 10, 12], [17, 12, 10]], [Some(0), Some(1), None]);
    assert_eq!((apart.local_nodes(0).nodes, apart.local_nodes(0).diagnostics), (vec![0], vec![]));
    // Two memory nodes of unknown socket: that of the device says it all.
    let rows = [[10, 20, 20, 20], [20, 10, 20, 20], [20, 20, 10, 12], [20, 20, 12, 10]];
    let hubs = machine(rows, [Some(0), Some(1), None, None]).local_nodes(2);
    assert_eq!(hubs.nodes, [2]);
    assert_eq!(hubs.diagnostics, [Diagnostic::SocketUnknown { node: 2, reason: SocketUnknown::NoCpus }]);
}

#[test]
fn what_is_odd_is_said_in_words() {
    let reason = SocketUnknown::NoCpus;
    let said = [
        Diagnostic::NotOnline { node: 7 },
        Diagnostic::Unreachable { node: 0, distance: 255 },
        Diagnostic::KeptUnknown { node: 3, reason: reason.clone() },
        Diagnostic::LeftOutUnknown { node: 3, reason: reason.clone() },
    ]
    .map(|diagnostic| diagnostic.to_string());
    let expected = [
        "NUMA node 7 is not online; only the physical node is listed".to_owned(),
        "NUMA node 0: every other node is unreachable (distance 255); only the physical node is listed".to_owned(),
        format!("NUMA node 3 is listed although {reason}"),
        format!("NUMA node 3 is left out because {reason}"),
    ];
    assert_eq!(said, expected);
    let near = SlitFinding::TooNear { from: 0, to: 1, distance: 9 };
    assert_eq!(near.to_string(), "node 0: distance 9 to node 1, not above 10");
}

#[test]
fn a_node_with_cpus_takes_no_socket_from_its_neighbours() {
    // req: 6072-LIST-3
    // If the only neighbour were inferred to be on the same socket, the list would cross sockets.
    let unknown =
        |reason: SocketUnknown| NumaNode::new(0, [10, 21]).with_cpus("0-1".parse().unwrap()).on_unknown_socket(reason);
    let other = || NumaNode::new(1, [21, 10]).with_cpus("2-3".parse().unwrap()).on_socket(2);
    let reasons = [
        SocketUnknown::Unstated,
        SocketUnknown::Negative(-1),
        SocketUnknown::Spans(vec![0, 1]),
        SocketUnknown::Unreadable("no such file".to_owned()),
    ];
    for reason in reasons {
        let local = NumaTopology::new(vec![unknown(reason.clone()), other()]).unwrap().local_nodes(0);
        assert_eq!(local.nodes, [0]);
        assert_eq!(local.diagnostics, [Diagnostic::SocketUnknown { node: 0, reason }]);
    }
}

#[test]
fn without_any_known_socket_the_filter_is_off() {
    let rows = [[10, 20, 20], [20, 10, 20], [20, 20, 10]];
    assert_eq!(machine(rows, [None; 3]).local_nodes(1).nodes, [1, 0, 2]);
    let minus_one = |id, row: [u32; 3]| NumaNode::new(id, row).on_socket(-1);
    let nodes = rows.into_iter().zip(0..).map(|(row, id)| minus_one(id, row)).collect();
    let power7 = NumaTopology::new(nodes).unwrap();
    assert_eq!(power7.nodes()[0].socket(), &Socket::Unknown(SocketUnknown::Negative(-1)));
    assert_eq!(power7.local_nodes(1).nodes, [1, 0, 2]);
    assert!(power7.local_nodes(1).diagnostics.is_empty());
    assert_eq!(power7.local_nodes_of_known_sockets(1).nodes, [1]);
}

#[test]
fn only_the_row_of_the_physical_node_counts() {
    let topology = machine([[10, 12, 12], [14, 10, 12], [12, 12, 10]], [Some(0); 3]);
    assert_eq!(lists(&topology), [vec![0, 1, 2], vec![1, 2], vec![2, 0, 1]]);
}

#[test]
fn odd_tables_are_found() {
    let emulated = machine([[10, 10], [10, 10]], [Some(0), Some(0)]);
    assert_eq!(emulated.local_nodes(0).nodes, [0, 1]);
    let near = |from, to| SlitFinding::TooNear { from, to, distance: 10 };
    assert_eq!(emulated.check_slit(), [near(0, 1), near(1, 0)]);
    let nearer = machine([[10, 9], [11, 10]], [Some(0), Some(0)]);
    assert_eq!(nearer.check_slit(), [SlitFinding::TooNear { from: 0, to: 1, distance: 9 }]);
    let nodes = vec![NumaNode::new(0, [11, 20]), NumaNode::new(1, [20])];
    let odd = NumaTopology::new(nodes).unwrap().check_slit();
    assert_eq!(odd, [SlitFinding::Diagonal { node: 0, distance: 11 }, SlitFinding::Row { node: 1 }]);
    assert!(epyc().check_slit().is_empty());
}

#[test]
fn a_topology_has_unique_ids_in_range() {
    let twice = NumaTopology::new(vec![NumaNode::new(3, [10, 20]), NumaNode::new(3, [10, 20])]);
    assert_eq!(twice, Err(TopologyError::DuplicateNode { id: 3 }));
    for id in [-1, 1024] {
        assert_eq!(NumaTopology::new(vec![NumaNode::new(id, [10])]), Err(TopologyError::NodeOutOfRange { id }));
    }
    let empty = NumaTopology::new(Vec::new()).unwrap();
    assert_eq!(empty.attribute(0, NumaForm::LocalNodes).unwrap().value, ints(&[0]));
}

#[test]
fn the_limit_of_48_values_is_an_error_not_a_cut() {
    let wide: Vec<_> = (0..49).map(|id| NumaNode::new(id, vec![20; 49]).on_socket(0)).collect();
    let topology = NumaTopology::new(wide).unwrap();
    assert_eq!(topology.attribute(3, NumaForm::LocalNodes), Err(NumaError::TooManyValues { count: 49 }));
    let most = NumaNodeAttribute::list(topology.local_nodes(3).trimmed(48)).unwrap();
    assert_eq!(most.value.ints.map(|nodes| nodes.len()), Some(48));
    let kept = NumaNodeAttribute::list(topology.local_nodes(3).trimmed(2)).unwrap();
    assert_eq!(kept.value, ints(&[3, 0]));
    assert_eq!(topology.local_nodes(3).trimmed(0).nodes, [3]);
}

#[test]
fn node_of_a_cpu() {
    // req: 6072-FORM-4
    let cpus = |text: &str| text.parse::<CpuSet>().unwrap();
    let topology = NumaTopology::new(vec![
        NumaNode::new(0, [10, 20]).with_cpus(cpus("0-3,8")),
        NumaNode::new(4, [20, 10]).with_cpus(cpus("4-7,8")),
    ])
    .unwrap();
    assert_eq!(topology.node_of_cpu(3), Ok(0));
    assert_eq!(topology.node_of_cpu(4), Ok(4));
    assert_eq!(topology.node_of_cpu(8), Ok(0), "the lowest node of several");
    assert_eq!(topology.node_of_cpu(9), Err(NumaError::UnknownCpu { cpu: 9 }));
}

#[test]
fn physical_node_from_either_form() {
    // req: 6072-READ-1, 6072-READ-2, 6072-READ-4
    assert_eq!(NumaNodeValue::physical(&int(4)), Some(4));
    assert_eq!(NumaNodeValue::physical(&ints(&[6, 4, 5, 7])), Some(6), "read as it is, not sorted");
    assert_eq!(NumaNodeValue::physical(&int(0)), Some(0));
    assert_eq!(NumaNodeValue::physical(&ints(&[0, 1])), Some(0));
    for unknown in [DeviceAttribute::default(), ints(&[]), string("0")] {
        assert_eq!(NumaNodeValue::physical(&unknown), None);
    }
}

#[test]
fn publishing_leaves_other_attributes_alone() {
    // req: 6072-FORM-9
    let before = BTreeMap::from([("model".to_owned(), string("x"))]);
    let mut attributes = before.clone();
    attributes.insert(StandardAttribute::NUMA_NODE.to_owned(), int(3));
    let error = NumaError::NoAffinity { node: -1 };
    assert_eq!(publish(&mut attributes, Err(error.clone())), Err(error));
    assert_eq!(attributes, before);
    assert_eq!(publish(&mut attributes, epyc().attribute(2, NumaForm::Scalar)), Ok(Vec::new()));
    assert_eq!(attributes.remove(StandardAttribute::NUMA_NODE), Some(int(2)));
    assert_eq!(attributes, before);
}

#[test]
fn a_value_made_by_hand_is_the_same_value() {
    // req: 6072-NAME-3
    let mut published = BTreeMap::new();
    publish(&mut published, epyc().attribute(4, NumaForm::Scalar)).unwrap();
    let by_hand = DeviceAttribute { int: Some(4), ..DeviceAttribute::default() };
    assert_eq!(published, BTreeMap::from([(StandardAttribute::NUMA_NODE.to_owned(), by_hand)]));
}

#[test]
fn cpu_sets() {
    for (text, canonical) in [
        ("0-3,8", "0-3,8"),
        (" 3,1,2\n", "1-3"),
        ("5", "5"),
        ("", ""),
        ("\0", ""),
        ("0-65535", "0-65535"),
        ("0-5,3-4,7", "0-5,7"),
    ] {
        let set: CpuSet = text.parse().unwrap();
        assert_eq!((set.to_string(), serde_json::to_value(&set).unwrap()), (canonical.to_owned(), json!(canonical)));
        assert_eq!(set.iter().collect::<CpuSet>(), set);
        assert_eq!(serde_json::from_value::<CpuSet>(json!(text)).unwrap(), set);
    }
    for text in ["3-1", "a", "1,", ",1", "1-", "-1", "0-3:1/2", "0x3", "65536", "99999999999", "+1", "1 2"] {
        assert!(text.parse::<CpuSet>().is_err(), "{text}");
    }
}

#[test]
fn nodes_of_other_sockets_are_left_out_also_where_a_node_spans_several() {
    // req: 6072-LIST-3
    let node = |id, row: [u32; 2], cpus: &str| NumaNode::new(id, row).with_cpus(cpus.parse().unwrap());
    let spans = |node: NumaNode, packages: &[i64]| node.on_unknown_socket(SocketUnknown::Spans(packages.to_vec()));
    let wide = || spans(node(0, [10, 21], "0-1"), &[0, 1]);
    for other in [node(1, [21, 10], "2-3").on_socket(2), spans(node(1, [21, 10], "2-3"), &[2, 3])] {
        let topology = NumaTopology::new(vec![wide(), other]).unwrap();
        assert_eq!(lists(&topology), [[0], [1]]);
        assert_eq!(topology.local_nodes_of_known_sockets(1).nodes, [1]);
    }
    // With a common or unknown socket, the node may be on the same socket.
    let reason = SocketUnknown::Spans(vec![0, 1]);
    let shared = NumaTopology::new(vec![wide(), node(1, [21, 10], "2-3").on_socket(1)]).unwrap();
    assert_eq!(shared.local_nodes(1).nodes, [1, 0]);
    assert_eq!(shared.local_nodes(1).diagnostics, [Diagnostic::KeptUnknown { node: 0, reason }]);
    let negative = node(0, [10, 21], "0-1").on_unknown_socket(SocketUnknown::Negative(-1));
    let topology = NumaTopology::new(vec![negative, node(1, [21, 10], "2-3").on_socket(1)]).unwrap();
    assert_eq!(topology.local_nodes(1).diagnostics.len(), 1, "no socket of its neighbour");
    assert_eq!(topology.local_nodes_of_known_sockets(1).nodes, [1]);
}
