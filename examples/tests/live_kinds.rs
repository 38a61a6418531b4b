//! Nodes that a pod is judged on: few of any number, and the choice is that among all.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use dra_alloc::pods::PodExplanation;
use dra_live::touched::Nodes;
use examples::live::kinds::{KindName, Kinds};
use examples::placing::{NoNode, NodeVerdict, Rank};
use k8s_openapi::api::core::v1::Node;
use serde_json::{from_value, json};

const SIZES: [usize; 2] = [20, 200];

/// Cluster of some nodes, each with a number of free devices of two sorts.
struct Cluster {
    nodes: BTreeMap<String, Node>,
    free: BTreeMap<String, (u32, u32)>,
}

fn node(name: &str) -> Node {
    from_value(json!({"metadata": {"name": name}})).unwrap()
}

fn name(node: usize) -> String {
    format!("node-{node:04}")
}

impl Cluster {
    fn new(size: usize, free: (u32, u32)) -> Self {
        let nodes = (0..size).map(|number| (name(number), node(&name(number)))).collect();
        Self { nodes, free: (0..size).map(|node| (name(node), free)).collect() }
    }

    /// Returns the score of a node: 8 for a device of the first sort, 7 for one of the second.
    fn verdict(&self, name: &str) -> NodeVerdict {
        match self.free.get(name) {
            Some((1.., _)) => NodeVerdict::Fits(Rank::new(8, None)),
            Some((0, 1..)) => NodeVerdict::Fits(Rank::new(7, None)),
            _ => {
                let mut reasons = PodExplanation::default();
                reasons.add_other(name, "none free");
                NodeVerdict::Refused(reasons)
            }
        }
    }

    /// Places a pod, and returns its node and the number of nodes that were judged.
    fn place(&mut self, kinds: &mut Kinds, kind: &str) -> (Result<String, String>, usize) {
        let mut judged = 0;
        let best = kinds.best_node(Some(&KindName::new(kind)), &self.nodes, 8, |node| {
            judged += 1;
            Ok(self.verdict(node.metadata.name.as_deref().unwrap()))
        });
        let best = best.map_err(|error| error.to_string());
        assert_eq!(best.as_ref().ok(), self.expected().as_ref(), "the choice is that among all nodes");
        if let Ok(node) = &best {
            let (first, second) = self.free.get_mut(node).unwrap();
            let taken = if *first > 0 { first } else { second };
            *taken -= 1;
            kinds.touch(&node.clone().into());
        }
        (best, judged)
    }

    fn expected(&self) -> Option<String> {
        let ranks = self.nodes.keys().filter_map(|name| match self.verdict(name) {
            NodeVerdict::Fits(rank) => Some((rank, name)),
            NodeVerdict::Refused(_) => None,
        });
        ranks.min().map(|(_, name)| name.clone())
    }
}

fn full(size: usize) -> String {
    format!("0/{size} nodes are available: {size} none free")
}

#[test]
fn a_pod_that_fits_is_judged_on_few_nodes_of_any_number() {
    for size in SIZES {
        let (mut cluster, mut kinds) = (Cluster::new(size, (4, 0)), Kinds::default());
        for _ in 0..4 * size {
            let (node, judged) = cluster.place(&mut kinds, "k");
            assert!(node.is_ok() && judged <= 2, "{judged} of {size}");
        }
        assert_eq!(cluster.place(&mut kinds, "k"), (Err(full(size)), 1), "the last one that was taken from");
        assert_eq!(cluster.place(&mut kinds, "k"), (Err(full(size)), 0));
        assert_eq!(cluster.place(&mut kinds, "another"), (Err(full(size)), size));
    }
}

#[test]
fn a_changed_node_is_judged_alone() {
    for size in SIZES {
        let (mut cluster, mut kinds) = (Cluster::new(size, (0, 0)), Kinds::default());
        let middle = name(size / 2);
        assert_eq!(cluster.place(&mut kinds, "k"), (Err(full(size)), size));
        kinds.touch(&middle.clone().into());
        assert_eq!(cluster.place(&mut kinds, "k"), (Err(full(size)), 1));
        cluster.free.insert(middle.clone(), (0, 1));
        kinds.touch(&middle.clone().into());
        assert_eq!(cluster.place(&mut kinds, "k"), (Ok(middle), 1));
        // Nodes that come and go.
        cluster.nodes.remove(&name(3));
        kinds.touch(&name(3).into());
        cluster.nodes.insert("aaa".to_owned(), node("aaa"));
        kinds.touch(&"aaa".to_owned().into());
        assert_eq!(
            cluster.place(&mut kinds, "k"),
            (Err(full(size)), 2),
            "the new one, and the one that was taken from"
        );
        kinds.touch(&Nodes::All);
        assert_eq!(cluster.place(&mut kinds, "k"), (Err(full(size)), size));
    }
}

#[test]
fn the_highest_score_wins_and_is_remembered() {
    let (mut cluster, mut kinds) = (Cluster::new(50, (0, 1)), Kinds::default());
    assert_eq!(cluster.place(&mut kinds, "k"), (Ok(name(0)), 50), "a better one might come");
    assert_eq!(cluster.place(&mut kinds, "k"), (Ok(name(1)), 2));
    cluster.free.insert(name(40), (1, 1));
    kinds.touch(&name(40).into());
    assert_eq!(cluster.place(&mut kinds, "k").0, Ok(name(40)));
    assert_eq!(cluster.place(&mut kinds, "k").0, Ok(name(2)));
}

#[test]
fn the_kind_that_was_not_asked_about_for_longest_is_forgotten() {
    let (mut cluster, mut kinds) = (Cluster::new(2, (0, 0)), Kinds::default());
    for kind in 0..32 {
        assert_eq!(cluster.place(&mut kinds, &kind.to_string()).1, 2);
    }
    assert_eq!(cluster.place(&mut kinds, "0").1, 0);
    assert_eq!(cluster.place(&mut kinds, "one more").1, 2);
    assert_eq!(cluster.place(&mut kinds, "0").1, 0);
    assert_eq!(cluster.place(&mut kinds, "1").1, 2);
}

#[test]
fn a_judgement_that_fails_is_made_again() {
    let (mut cluster, mut kinds) = (Cluster::new(3, (1, 0)), Kinds::default());
    let kind = KindName::new("k");
    let failed = kinds.best_node(Some(&kind), &cluster.nodes, 8, |_| Err(NoNode::Failed("no time".to_owned())));
    assert_eq!(failed.unwrap_err().to_string(), "no time");
    assert_eq!(cluster.place(&mut kinds, "k"), (Ok(name(0)), 1));
}

#[test]
fn a_pod_that_waits_alone_is_remembered_until_it_has_a_node() {
    for size in SIZES {
        let (cluster, mut kinds) = (Cluster::new(size, (0, 0)), Kinds::default());
        let kind = KindName::new("one pod").while_a_pod_waits();
        let ask = |kinds: &mut Kinds, verdict: &dyn Fn(&str) -> NodeVerdict| {
            let mut judged = 0;
            let best = kinds.best_node(Some(&kind), &cluster.nodes, 0, |node| {
                judged += 1;
                Ok(verdict(node.metadata.name.as_deref().unwrap()))
            });
            (best.map_err(|error| error.to_string()), judged)
        };
        let refuses = |node: &str| cluster.verdict(node);
        assert_eq!(ask(&mut kinds, &refuses), (Err(full(size)), size));
        assert_eq!(ask(&mut kinds, &refuses), (Err(full(size)), 0));
        kinds.touch(&name(3).into());
        let fits = |node: &str| if node == name(3) { NodeVerdict::Fits(Rank::new(0, None)) } else { refuses(node) };
        assert_eq!(ask(&mut kinds, &fits), (Ok(name(3)), 1));
        // The next pod of the name begins anew.
        assert_eq!(ask(&mut kinds, &fits), (Ok(name(3)), 4));
        assert_eq!(ask(&mut kinds, &refuses), (Err(full(size)), size));
        kinds.forget(&kind);
        assert_eq!(ask(&mut kinds, &refuses), (Err(full(size)), size));
    }
}
