//! Topologies of any nodes: the local nodes start with the physical one and name no node twice.
#![no_main]

use dra_attrs::internal::NumaNodeValue;
use dra_attrs::numa::{NumaForm, NumaNode, NumaTopology};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, Vec<(i16, Vec<u8>, Option<i8>)>)| {
    let (square, nodes) = input;
    let count = nodes.len();
    let node = |(id, row, socket): (i16, Vec<u8>, Option<i8>)| {
        // Rows of a wrong length are ignored, so half of the inputs get the right length.
        let columns = if square { count } else { row.len() };
        let row: Vec<u32> = row.into_iter().map(u32::from).chain(std::iter::repeat(10)).take(columns).collect();
        let node = NumaNode::new(id.into(), row);
        if let Some(socket) = socket { node.on_socket(socket.into()) } else { node }
    };
    let Ok(topology) = NumaTopology::new(nodes.into_iter().map(node).collect()) else { return };
    let _ = topology.check_slit();
    for id in topology.nodes().iter().map(NumaNode::id).chain([-1, NumaTopology::MAX_NODES]) {
        for local in [topology.local_nodes(id), topology.local_nodes_of_known_sockets(id)] {
            let local = local.nodes;
            let (first, others) = local.split_first().expect("the physical node");
            assert!(*first == id && !others.contains(&id) && others.is_sorted_by(|a, b| a < b));
        }
        let attribute = topology.attribute(id, NumaForm::LocalNodes);
        let physical = attribute.as_ref().ok().and_then(|attribute| NumaNodeValue::physical(&attribute.value));
        assert!(physical == Some(id) || count > 48 || !(0..NumaTopology::MAX_NODES).contains(&id));
    }
});
