//! Partitions that are left, beside a count of all subsets.

use dra_node::driver::PartitionsLeft;
use k8s_openapi::api::resource::v1::ResourceSlice;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Devices of one type by what they consume of counters 0 to 3.
fn slice(counters: &[i64], devices: &[Vec<(usize, i64)>]) -> ResourceSlice {
    let sets = counters
        .iter()
        .enumerate()
        .map(|(number, value)| json!({"name": format!("s{number}"), "counters": {"m": {"value": value.to_string()}}}));
    let consumption = |(set, amount): &(usize, i64)| json!({"counterSet": format!("s{set}"), "counters": {"m": {"value": amount.to_string()}}});
    let devices = devices.iter().enumerate().map(|(number, consumes)| {
        json!({"name": format!("d{number}"), "attributes": {"type": {"string": "t"}},
            "consumesCounters": consumes.iter().map(consumption).collect::<Vec<Value>>()})
    });
    serde_json::from_value(json!({"spec": {
        "driver": "gpu.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "partitionTypeAttribute": "gpu.example.com/type",
        "sharedCounters": sets.collect::<Vec<Value>>(), "devices": devices.collect::<Vec<Value>>()}}))
    .unwrap()
}

/// Counts the largest subset of devices that fits, by trying all.
fn most_together(counters: &[i64], devices: &[Vec<(usize, i64)>]) -> usize {
    let fits = |subset: u32| {
        let mut left = counters.to_vec();
        for (number, consumes) in devices.iter().enumerate() {
            if subset & 1 << number != 0 {
                for (set, amount) in consumes {
                    left[*set] -= amount;
                }
            }
        }
        left.iter().all(|left| *left >= 0)
    };
    (0..1_u32 << devices.len()).filter(|subset| fits(*subset)).map(|subset| subset.count_ones() as usize).max().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_number_is_that_of_the_largest_subset(
        counters in prop::collection::vec(0..12_i64, 4),
        devices in prop::collection::vec(prop::collection::btree_map(0..4_usize, 1..6_i64, 1..3), 0..9),
    ) {
        let devices: Vec<Vec<(usize, i64)>> = devices.into_iter().map(|device| device.into_iter().collect()).collect();
        let left = PartitionsLeft::by_type([&slice(&counters, &devices)], None, |_| false);
        let found = left.first().map_or((0, true), |left| (left.left, left.is_exact));
        prop_assert_eq!(found, (most_together(&counters, &devices), true));
    }
}

#[test]
fn cards_with_sets_of_their_own_are_added_up() {
    // 24 cards with four quarters each; one quarter is allocated, and all of another card.
    let devices: Vec<Vec<(usize, i64)>> = (0..96).map(|number| vec![(number / 4, 1)]).collect();
    let slice = slice(&[4; 24], &devices);
    let in_use = ["d0", "d4", "d5", "d6", "d7"];
    let left = PartitionsLeft::by_type([&slice], None, |device| in_use.contains(&device));
    assert_eq!((left[0].total, left[0].left, left[0].is_exact), (96, 91, true));
}

#[test]
fn a_search_without_an_end_is_a_lower_bound() {
    // Each device takes of two counters of a chain: no device is like another.
    let devices: Vec<Vec<(usize, i64)>> = (0..120_i32)
        .map(|number: i32| {
            let set = |number: i32| usize::try_from(number % 12).unwrap();
            vec![(set(number), i64::from(3 + number % 7)), (set(number * 5 + 1), 2)]
        })
        .collect();
    let distinct = devices.into_iter().filter(|device| device[0].0 != device[1].0).collect::<Vec<_>>();
    let left = PartitionsLeft::by_type([&slice(&[31; 12], &distinct)], None, |_| false);
    assert!(left[0].left > 30 && !left[0].is_exact, "{left:?}");
}
