//! `PoolIndex`, compared with the computation from scratch.

use std::collections::BTreeMap;
use std::sync::Arc;

use dra_alloc::InventoryError;
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use poolstatus::{AvailabilityReport, Cluster, GateSet, PoolIndex, PoolIndexEvent, PoolStatusGate, Query};
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
            PoolIndexEvent::SliceDeleted(name) => _ = self.slices.remove(&name),
            PoolIndexEvent::Claim(claim) => {
                let key = (name(&claim.metadata.namespace), name(&claim.metadata.name));
                self.claims.insert(key, claim);
            }
            PoolIndexEvent::ClaimDeleted { namespace, name } => _ = self.claims.remove(&(namespace, name)),
            PoolIndexEvent::TaintRule(rule) => _ = self.rules.insert(name(&rule.metadata.name), rule),
            PoolIndexEvent::TaintRuleDeleted(name) => _ = self.rules.remove(&name),
            _ => panic!("unknown"),
        }
    }

    fn report(&self, query: &Query) -> AvailabilityReport {
        let cluster = Cluster::new(self.slices.values(), self.claims.values());
        cluster.with_taint_rules(self.rules.values()).report(query, now())
    }
}

fn change() -> impl Strategy<Value = PoolIndexEvent> {
    prop_oneof![
        6 => random::slice().prop_map(|slice| PoolIndexEvent::Slice(Arc::new(slice))),
        3 => (0..8_u8).prop_map(|name| PoolIndexEvent::SliceDeleted(format!("slice-{name}"))),
        6 => random::claim().prop_map(|claim| PoolIndexEvent::Claim(Arc::new(claim))),
        3 => (0..2_u8, 0..4_u8).prop_map(|(namespace, name)| PoolIndexEvent::ClaimDeleted {
            namespace: format!("ns-{namespace}"), name: format!("claim-{name}"),
        }),
        1 => random::rule().prop_map(|rule| PoolIndexEvent::TaintRule(Arc::new(rule))),
        1 => (0..3_u8).prop_map(|name| PoolIndexEvent::TaintRuleDeleted(format!("rule-{name}"))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn equals_the_computation_from_scratch(changes in vec((change(), random::query()), 1..40)) {
        // req: 5677-INCR-1
        let (mut index, mut objects) = (PoolIndex::default(), Objects::default());
        let mut relisted = PoolIndex::default();
        for (number, (change, query)) in changes.into_iter().enumerate() {
            prop_assert_eq!(index.apply(change.clone()), Ok(()));
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
    let mut index = PoolIndex::default();
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
    let deleted = PoolIndexEvent::ClaimDeleted { namespace: "team".to_owned(), name: "c".to_owned() };
    assert_eq!(counts(deleted), [[2, 0, 2, 0], [2, 0, 2, 0]]);
    assert_eq!(counts(PoolIndexEvent::SliceDeleted("node-1-gpus".to_owned())), [[2, 0, 2, 0]]);
}

#[test]
fn a_slice_that_comes_back_finds_its_claims() {
    let mut index = PoolIndex::default();
    let changes = [
        PoolIndexEvent::Claim(Arc::new(claim("c", &["node-1/gpu-0"]))),
        PoolIndexEvent::Slice(Arc::new(node("node-1", 2))),
        PoolIndexEvent::SliceDeleted("node-1-gpus".to_owned()),
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
        [(GateSet::default(), 2), (GateSet::default().without(PoolStatusGate::DeviceTaintRules), 0)]
    {
        let mut index = PoolIndex::new(gates);
        index.apply(PoolIndexEvent::Slice(Arc::new(node("node-1", 2)))).unwrap();
        index.apply(PoolIndexEvent::TaintRule(Arc::new(rule("r", json!({}), "NoExecute")))).unwrap();
        assert_eq!(kep_counts(&index.report(&query(), now())), [[2, 0, 2 - unavailable, unavailable]]);
    }
}

#[test]
fn names_that_are_missing_or_unknown() {
    let mut index = PoolIndex::default();
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
    for event in [
        PoolIndexEvent::SliceDeleted("x".to_owned()),
        PoolIndexEvent::TaintRuleDeleted("x".to_owned()),
        PoolIndexEvent::ClaimDeleted { namespace: "n".to_owned(), name: "x".to_owned() },
    ] {
        assert_eq!(index.apply(event), Ok(()));
    }
    assert_eq!(index.report(&query(), now()), before);
}
