//! `PoolIndex`, compared with the computation from scratch.

use std::collections::BTreeMap;
use std::sync::Arc;

use dra_attrs::Profile;
use dra_attrs::{Component, Gate, GateSet};
use dra_device::ApplyOutcome;
use dra_device::InventoryError;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use poolstatus::{AvailabilityReport, Cluster, PoolIndex, PoolIndexEvent, Query};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use crate::cluster::{claim, kep_counts, node, now, query, rule, slice};
use crate::random;

/// Objects of a cluster by name: a simple model of the index.
#[derive(Default)]
struct Objects {
    slices: BTreeMap<String, Arc<ResourceSlice>>,
    claims: BTreeMap<(String, String), Arc<ResourceClaim>>,
    rules: BTreeMap<String, Arc<DeviceTaintRule>>,
}

impl Objects {
    fn apply(&mut self, change: PoolIndexEvent) {
        let name = |name: &Option<String>| name.clone().unwrap_or_default();
        match change {
            PoolIndexEvent::Slice(slice) => _ = self.slices.insert(name(&slice.metadata.name), slice),
            PoolIndexEvent::SliceDeleted { name, .. } => _ = self.slices.remove(&name),
            PoolIndexEvent::Claim(claim) => {
                let key = (name(&claim.metadata.namespace), name(&claim.metadata.name));
                self.claims.insert(key, claim);
            }
            PoolIndexEvent::ClaimDeleted { namespace, name, .. } => _ = self.claims.remove(&(namespace, name)),
            PoolIndexEvent::TaintRule(rule) => _ = self.rules.insert(name(&rule.metadata.name), rule),
            PoolIndexEvent::TaintRuleDeleted { name, .. } => _ = self.rules.remove(&name),
            _ => panic!("unknown"),
        }
    }

    fn report(&self, query: &Query) -> AvailabilityReport {
        let cluster = Cluster::new(Profile::V1_37, self.slices.values(), self.claims.values());
        cluster.with_taint_rules(self.rules.values()).report(query, now())
    }
}

fn slice_deleted(name: &str) -> PoolIndexEvent {
    PoolIndexEvent::SliceDeleted { name: name.to_owned(), uid: None }
}

fn rule_deleted(name: &str) -> PoolIndexEvent {
    PoolIndexEvent::TaintRuleDeleted { name: name.to_owned(), uid: None }
}

fn claim_deleted(namespace: &str, name: &str) -> PoolIndexEvent {
    PoolIndexEvent::ClaimDeleted { namespace: namespace.to_owned(), name: name.to_owned(), uid: None }
}

fn change() -> impl Strategy<Value = PoolIndexEvent> {
    prop_oneof![
        6 => random::slice().prop_map(|slice| PoolIndexEvent::Slice(Arc::new(slice))),
        3 => (0..8_u8).prop_map(|name| slice_deleted(&format!("slice-{name}"))),
        6 => random::claim().prop_map(|claim| PoolIndexEvent::Claim(Arc::new(claim))),
        3 => (0..2_u8, 0..4_u8).prop_map(|(namespace, name)| {
            claim_deleted(&format!("ns-{namespace}"), &format!("claim-{name}"))
        }),
        1 => random::rule().prop_map(|rule| PoolIndexEvent::TaintRule(Arc::new(rule))),
        1 => (0..3_u8).prop_map(|name| rule_deleted(&format!("rule-{name}"))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn equals_the_computation_from_scratch(changes in vec((change(), random::query()), 1..40)) {
        // req: 5677-INCR-1
        let (mut index, mut objects) = (PoolIndex::new(Profile::V1_37), Objects::default());
        let mut relisted = PoolIndex::new(Profile::V1_37);
        for (number, (change, query)) in changes.into_iter().enumerate() {
            prop_assert!(index.apply(change.clone()).is_ok());
            objects.apply(change);
            prop_assert_eq!(index.report(&query, now()), objects.report(&query));
            if number % 8 == 0 {
                relisted.replace_slices(objects.slices.values().cloned()).unwrap();
                relisted.replace_claims(objects.claims.values().cloned()).unwrap();
                relisted.replace_taint_rules(objects.rules.values().cloned()).unwrap();
                prop_assert_eq!(relisted.report(&query, now()), objects.report(&query));
            }
        }
    }
}

#[test]
fn a_claim_that_moves() {
    // req: 5677-INCR-1
    let mut index = PoolIndex::new(Profile::V1_37);
    let mut counts = |change: PoolIndexEvent| {
        index.apply(change).unwrap();
        kep_counts(&index.report(&query(), now()))
    };
    counts(PoolIndexEvent::Slice(Arc::new(node("node-1", 2))));
    assert_eq!(counts(PoolIndexEvent::Slice(Arc::new(node("node-2", 2)))), [[2, 0, 2, 0], [2, 0, 2, 0]]);
    assert_eq!(counts(PoolIndexEvent::Claim(Arc::new(claim("c", &["node-1/gpu-0"])))), [[2, 1, 1, 0], [2, 0, 2, 0]]);
    assert_eq!(
        counts(PoolIndexEvent::Claim(Arc::new(claim("c", &["node-2/gpu-0", "node-2/gpu-1"])))),
        [[2, 0, 2, 0], [2, 2, 0, 0]]
    );
    let deleted = claim_deleted("team", "c");
    assert_eq!(counts(deleted), [[2, 0, 2, 0], [2, 0, 2, 0]]);
    assert_eq!(counts(slice_deleted("node-1-gpus")), [[2, 0, 2, 0]]);
}

#[test]
fn a_slice_that_comes_back_finds_its_claims() {
    let mut index = PoolIndex::new(Profile::V1_37);
    let changes = [
        PoolIndexEvent::Claim(Arc::new(claim("c", &["node-1/gpu-0"]))),
        PoolIndexEvent::Slice(Arc::new(node("node-1", 2))),
        slice_deleted("node-1-gpus"),
        PoolIndexEvent::Slice(Arc::new(node("node-1", 3))),
    ];
    for change in changes {
        index.apply(change).unwrap();
    }
    assert_eq!(kep_counts(&index.report(&query(), now())), [[3, 1, 2, 0]]);
}

#[test]
fn the_gate_of_taint_rules() {
    for (gates, unavailable) in
        [(GateSet::of(Profile::V1_37), 2), (GateSet::of(Profile::V1_37).without(Gate::DeviceTaintRules), 0)]
    {
        let mut index = PoolIndex::new(Component::new(Profile::V1_37, gates));
        index.apply(PoolIndexEvent::Slice(Arc::new(node("node-1", 2)))).unwrap();
        index.apply(PoolIndexEvent::TaintRule(Arc::new(rule("r", json!({}), "NoExecute")))).unwrap();
        assert_eq!(kep_counts(&index.report(&query(), now())), [[2, 0, 2 - unavailable, unavailable]]);
    }
}

#[test]
fn names_that_are_missing_or_unknown() {
    let mut index = PoolIndex::new(Profile::V1_37);
    index.apply(PoolIndexEvent::Slice(Arc::new(node("node-1", 2)))).unwrap();
    let before = index.report(&query(), now());
    let mut nameless = slice("", "p", json!({}));
    assert_eq!(
        index.apply(PoolIndexEvent::Slice(Arc::new(nameless.clone()))),
        Err(InventoryError::NoName { kind: "ResourceSlice" })
    );
    nameless.metadata.name = None;
    assert_eq!(
        index.apply(PoolIndexEvent::Slice(Arc::new(nameless.clone()))),
        Err(InventoryError::NoName { kind: "ResourceSlice" })
    );
    assert_eq!(
        index.replace_slices([node("node-2", 1), nameless]),
        Err(InventoryError::NoName { kind: "ResourceSlice" })
    );
    for event in [slice_deleted("x"), rule_deleted("x"), claim_deleted("n", "x")] {
        assert_eq!(index.apply(event), Ok(ApplyOutcome::Unknown));
    }
    assert_eq!(index.report(&query(), now()), before);
}

/// Gives an object the UID and version of a watch's history.
fn at(metadata: &mut ObjectMeta, uid: &str, version: u32) {
    (metadata.uid, metadata.resource_version) = (Some(uid.to_owned()), Some(version.to_string()));
}

/// The events of a slice, a claim and a taint rule of one UID and version. As many devices are there, held and tainted as
/// the version has digits.
fn state(uid: &str, version: u32) -> [PoolIndexEvent; 3] {
    let digits = version.to_string().len();
    let (mut slice, devices) = (node("node-1", digits), (0..digits).map(|gpu| format!("node-1/gpu-{gpu}")));
    let devices: Vec<String> = devices.collect();
    let mut claim = claim("c", &devices.iter().map(String::as_str).collect::<Vec<_>>());
    let mut rule = rule("r", json!({"device": format!("gpu-{}", digits - 1)}), "NoExecute");
    at(&mut slice.metadata, uid, version);
    at(&mut claim.metadata, uid, version);
    at(&mut rule.metadata, uid, version);
    [PoolIndexEvent::Slice(slice.into()), PoolIndexEvent::Claim(claim.into()), PoolIndexEvent::TaintRule(rule.into())]
}

/// The deletions of the objects of [`state`].
fn deleted(uid: &str) -> [PoolIndexEvent; 3] {
    let (uid, namespace) = (Some(uid.to_owned()), "team".to_owned());
    [
        PoolIndexEvent::SliceDeleted { name: "node-1-gpus".to_owned(), uid: uid.clone() },
        PoolIndexEvent::ClaimDeleted { namespace, name: "c".to_owned(), uid: uid.clone() },
        PoolIndexEvent::TaintRuleDeleted { name: "r".to_owned(), uid },
    ]
}

fn index_of(events: [PoolIndexEvent; 3]) -> PoolIndex {
    let mut index = PoolIndex::new(Profile::V1_37);
    for event in events {
        assert_eq!(index.apply(event), Ok(ApplyOutcome::Applied));
    }
    index
}

#[test]
fn a_late_event_about_a_former_object() {
    let index_now = |index: &PoolIndex| index.report(&query(), now());
    let mut index = index_of(state("1", 1000));
    let expected = index_now(&index);
    for (event, outcome) in state("1", 99).into_iter().map(|event| (event, ApplyOutcome::Older)) {
        assert_eq!(index.apply(event), Ok(outcome));
        assert_eq!(index_now(&index), expected);
    }
    for event in state("2", 10) {
        assert_eq!(index.apply(event), Ok(ApplyOutcome::Applied), "an object that was created anew");
    }
    let expected = index_now(&index_of(state("2", 10)));
    for event in deleted("1") {
        assert_eq!(index.apply(event), Ok(ApplyOutcome::OtherObject), "its predecessor is deleted late");
        assert_eq!(index_now(&index), expected);
    }
    for event in deleted("2") {
        assert_eq!(index.apply(event.clone()), Ok(ApplyOutcome::Applied));
        assert_eq!(index.apply(event), Ok(ApplyOutcome::Unknown));
    }
    assert_eq!(index_now(&index), PoolIndex::new(Profile::V1_37).report(&query(), now()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_versions_ends_with_the_newest(
        shown in vec((0..3_usize, prop::sample::select(std::vec![1_u32, 9, 10, 99, 100, 101, 1000])), 1..20),
    ) {
        let (mut index, mut newest) = (PoolIndex::new(Profile::V1_37), [None; 3]);
        for (kind, version) in shown {
            let event = state("1", version)[kind].clone();
            let outcome = if Some(version) < newest[kind] { ApplyOutcome::Older } else { ApplyOutcome::Applied };
            prop_assert_eq!(index.apply(event), Ok(outcome));
            newest[kind] = newest[kind].max(Some(version));
        }
        let mut expected = PoolIndex::new(Profile::V1_37);
        for (kind, version) in newest.into_iter().enumerate() {
            if let Some(version) = version {
                expected.apply(state("1", version)[kind].clone()).unwrap();
            }
        }
        prop_assert_eq!(index.report(&query(), now()), expected.report(&query(), now()));
    }
}
