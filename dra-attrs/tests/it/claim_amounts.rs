//! Node resources that a claim takes.

use dra_attrs::{ClaimAmounts, DeviceOverhead, Quantity};

fn amount(text: &str) -> Quantity {
    text.parse().unwrap()
}

fn overhead(per_pod: Option<&str>, per_container: Option<&str>) -> DeviceOverhead {
    DeviceOverhead { per_pod: per_pod.map(amount), per_container: per_container.map(amount) }
}

#[test]
fn overheads_add_up_part_by_part() {
    let sum = |mut one: DeviceOverhead, other| {
        one.add(other);
        one
    };
    let (pod, container) = (overhead(Some("1"), None), overhead(None, Some("2")));
    assert_eq!(sum(pod, container), overhead(Some("1"), Some("2")));
    assert_eq!(sum(container, pod), overhead(Some("1"), Some("2")));
    assert_eq!(sum(sum(pod, container), sum(pod, container)), overhead(Some("2"), Some("4")));
    assert_eq!(sum(DeviceOverhead::default(), DeviceOverhead::default()), DeviceOverhead::default());
}

#[test]
fn a_mapping_is_shared_and_an_overhead_is_each_pods_own() {
    let mut amounts = ClaimAmounts::new("gpu");
    assert!(amounts.is_empty() && amounts.claim == "gpu");
    amounts.mapping.insert("cpu".to_owned(), amount("4"));
    assert!(!amounts.is_empty());
    amounts.overhead.insert("memory".to_owned(), overhead(Some("1Gi"), Some("2Gi")));
    assert_eq!((amounts.own().quantity("memory"), amounts.own().quantity("cpu")), (amount("1Gi"), Quantity::ZERO));
    amounts.containers = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(amounts.own().quantity("memory"), amount("5Gi"));
    assert_eq!((amounts.shared().quantity("cpu"), amounts.shared().quantity("memory")), (amount("4"), Quantity::ZERO));
    amounts.mapping.clear();
    assert!(!amounts.is_empty());
}
