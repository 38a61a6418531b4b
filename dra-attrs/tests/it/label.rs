//! Tests of label selectors.

use dra_attrs::label::selector_matches;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, from_value, json};

#[test]
fn each_operator_with_and_without_the_label() {
    let labels = [("zone".to_owned(), "a".to_owned())].into();
    let holds = |key: &str, operator: &str, values: Value| {
        let requirement = json!({"key": key, "operator": operator, "values": values});
        let selector: LabelSelector = from_value(json!({"matchExpressions": [requirement]})).unwrap();
        selector_matches(&selector, &labels).map_err(|error| error.to_string())
    };
    for (operator, values, with, without) in [
        ("In", json!(["a", "b"]), true, false),
        ("In", json!(["b"]), false, false),
        ("NotIn", json!(["a", "b"]), false, true),
        ("NotIn", json!(["b"]), true, true),
        ("Exists", json!([]), true, false),
        ("DoesNotExist", json!([]), false, true),
    ] {
        assert_eq!(holds("zone", operator, values.clone()), Ok(with), "{operator} {values}");
        assert_eq!(holds("rack", operator, values.clone()), Ok(without), "{operator} {values}");
    }
    assert_eq!(holds("zone", "Near", json!([])), Err("matchExpressions[0]: unknown operator \"Near\"".to_owned()));
}
