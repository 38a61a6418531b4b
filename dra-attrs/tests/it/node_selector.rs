//! Tests of node selectors against Kubernetes' semantics.

use dra_attrs::node_selector_matches;
use k8s_openapi::api::core::v1::{Node, NodeSelector};
use serde_json::{Value, from_value, json};

fn node() -> Node {
    from_value(json!({"metadata": {"name": "node-1", "labels": {"zone": "b", "cores": "16", "empty": ""}}})).unwrap()
}

fn selector(terms: &Value) -> NodeSelector {
    from_value(json!({"nodeSelectorTerms": terms})).unwrap()
}

fn expression(key: &str, operator: &str, values: &Value) -> Value {
    json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}])
}

#[test]
fn operators() {
    let rows = [
        ("zone", "In", json!(["a", "b"]), true),
        ("zone", "In", json!(["a"]), false),
        ("none", "In", json!(["a"]), false),
        ("zone", "NotIn", json!(["a"]), true),
        ("none", "NotIn", json!(["a"]), true),
        ("zone", "NotIn", json!(["b"]), false),
        ("empty", "Exists", json!(null), true),
        ("none", "Exists", json!([]), false),
        ("none", "DoesNotExist", json!([]), true),
        ("zone", "DoesNotExist", json!([]), false),
        ("cores", "Gt", json!(["15"]), true),
        ("cores", "Gt", json!(["16"]), false),
        ("cores", "Lt", json!(["17"]), true),
        ("cores", "Lt", json!(["16"]), false),
        ("zone", "Lt", json!(["17"]), false),
        ("none", "Gt", json!(["0"]), false),
    ];
    for (key, operator, values, matches) in rows {
        let terms = expression(key, operator, &values);
        assert_eq!(node_selector_matches(&selector(&terms), &node()), Ok(matches), "{terms}");
    }
}

#[test]
fn terms_are_alternatives_and_requirements_hold_together() {
    let yes = json!({"key": "zone", "operator": "Exists"});
    let no = json!({"key": "none", "operator": "Exists"});
    let name = json!({"key": "metadata.name", "operator": "In", "values": ["node-1"]});
    let other = json!({"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]});
    let rows = [
        (json!([]), false),
        (json!([{}]), false),
        (json!([{"matchExpressions": [yes, no]}]), false),
        (json!([{"matchExpressions": [no]}, {"matchExpressions": [yes]}]), true),
        (json!([{"matchExpressions": [yes], "matchFields": [name]}]), true),
        (json!([{"matchExpressions": [yes], "matchFields": [other]}]), false),
        (json!([{}, {"matchFields": [name]}]), true),
    ];
    for (terms, matches) in rows {
        assert_eq!(node_selector_matches(&selector(&terms), &node()), Ok(matches), "{terms}");
    }
}

#[test]
fn requirements_that_cannot_be_used_are_named() {
    let rows = [
        expression("zone", "In", &json!([])),
        expression("zone", "Exists", &json!(["b"])),
        expression("cores", "Gt", &json!(["many"])),
        expression("cores", "Lt", &json!(["1", "2"])),
        expression("zone", "Near", &json!(["b"])),
        json!([{"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}]),
        json!([{"matchFields": [{"key": "metadata.name", "operator": "Gt", "values": ["1"]}]}]),
    ];
    for terms in rows {
        let mut all = json!([{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]);
        all.as_array_mut().unwrap().extend(terms.as_array().unwrap().clone());
        let error = node_selector_matches(&selector(&all), &node()).unwrap_err();
        assert_eq!(
            (usize::from(error.term), usize::from(error.index)),
            (1, 0),
            "{terms}: also a term that is not needed is read"
        );
        assert!(error.to_string().starts_with("nodeSelector.nodeSelectorTerms[1].match"), "{error}");
    }
}
