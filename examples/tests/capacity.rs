//! Shared table of consumable capacity.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod shared_corpus;

use std::fs;

use dra_alloc::capacity::Rounding;
use dra_attrs::Quantity;
use k8s_openapi::api::resource::v1::DeviceCapacity;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;
use serde_json::{Value, from_value, json};

use shared_corpus::shared_corpus;

fn quantity(value: &Value) -> Option<KubeQuantity> {
    value.as_str().map(|text| KubeQuantity(text.to_owned()))
}

fn same(computed: &Quantity, expected: &Value) -> bool {
    Some(*computed) == expected.as_str().map(|text| text.parse().unwrap())
}

fn check(row: &Value) {
    match row["function"].as_str().unwrap() {
        "calculateConsumedCapacity" => {
            let capacity: DeviceCapacity = from_value(row["deviceCapacity"].clone()).unwrap();
            let amount = Rounding::Whole.consumed(quantity(&row["requestedVal"]).as_ref(), &capacity).unwrap();
            assert!(same(&amount, &row["actual"]), "{amount}: {row}");
        }
        "violatesPolicy" => {
            let capacity = json!({"value": "1", "requestPolicy": row["requestPolicy"]});
            let capacity: DeviceCapacity = from_value(capacity).unwrap();
            let permitted = Rounding::Whole.permits(&quantity(&row["requestedVal"]).unwrap(), &capacity).unwrap();
            assert_eq!(json!(!permitted), row["actual"], "{row}");
        }
        "GetConsumedCapacityFromRequest" => {
            let requests = &row["requestedCapacity"]["requests"];
            for (name, capacity) in row["consumableCapacity"].as_object().unwrap() {
                let capacity: DeviceCapacity = from_value(capacity.clone()).unwrap();
                let amount = Rounding::Whole.consumed(quantity(&requests[name]).as_ref(), &capacity).unwrap();
                assert!(same(&amount, &row["actual"][name]), "{name} {amount}: {row}");
            }
        }
        function => panic!("no check for {function}"),
    }
}

#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_table() {
    let text = fs::read(shared_corpus("consumable_capacity.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_slice(&text).unwrap();
    assert!(!rows.is_empty());
    rows.iter().for_each(check);
}
