//! Selectors of labels and of nodes: a list of requirements is all of them, a list of terms any of them, an error names what is
//! there, and the two ways to read a node selector agree where it has none.
#![no_main]

use std::collections::BTreeMap;

use dra_attrs::{label_selector_matches, node_affinity_matches, node_selector_matches};
use k8s_openapi::api::core::v1::{Node, NodeSelector};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use libfuzzer_sys::fuzz_target;

type Input = (NodeSelector, LabelSelector, Vec<Node>);

fuzz_target!(|text: &[u8]| {
    let Ok((of_nodes, of_labels, nodes)) = serde_json::from_slice::<Input>(text) else { return };
    for node in nodes.iter().take(8) {
        select_nodes(&of_nodes, node);
        select_labels(&of_labels, &node.metadata.labels.clone().unwrap_or_default());
    }
});

fn select_nodes(selector: &NodeSelector, node: &Node) {
    let admits = node_affinity_matches(selector, node);
    let alone = selector.node_selector_terms.iter().map(|term| {
        let alone = NodeSelector { node_selector_terms: vec![term.clone()] };
        node_selector_matches(&alone, node)
    });
    let alone: Vec<Option<bool>> = alone.map(Result::ok).collect();
    assert_eq!(admits, alone.contains(&Some(true)), "a term with an error matches nothing");
    match node_selector_matches(selector, node) {
        Ok(matches) => {
            assert_eq!(matches, admits);
            assert!(!alone.contains(&None));
        }
        Err(error) => {
            let first = alone.iter().position(Option::is_none);
            assert_eq!(first, Some(usize::from(error.term)), "{error}");
            let term = &selector.node_selector_terms[usize::from(error.term)];
            let list = if error.field == "matchFields" { &term.match_fields } else { &term.match_expressions };
            assert!(list.as_ref().is_some_and(|list| usize::from(error.index) < list.len()), "{error}");
        }
    }
}

fn select_labels(selector: &LabelSelector, labels: &BTreeMap<String, String>) {
    let named = LabelSelector { match_labels: selector.match_labels.clone(), ..LabelSelector::default() };
    let named = label_selector_matches(&named, labels).expect("no operator is unknown");
    let alone = selector.match_expressions.iter().flatten().map(|requirement| {
        let alone = LabelSelector { match_expressions: Some(vec![requirement.clone()]), ..LabelSelector::default() };
        label_selector_matches(&alone, labels).ok()
    });
    let alone: Vec<Option<bool>> = alone.collect();
    match label_selector_matches(selector, labels) {
        Ok(matches) => {
            assert!(!alone.contains(&None));
            assert_eq!(matches, named && !alone.contains(&Some(false)));
        }
        Err(error) => assert_eq!(alone.iter().position(Option::is_none), Some(usize::from(error.index)), "{error}"),
    }
}
