//! Tests of late and repeated events: the newest version of an object counts, and a deletion is that of its own object.

use std::sync::Arc;

use dra_alloc::ApplyOutcome::{self, Applied, Older, OtherObject, Unknown};
use dra_alloc::{Classes, Inventory, InventoryEvent};
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceSlice};
use proptest::prelude::*;
use serde_json::{Value, from_value, json};

/// Metadata of the only object of its kind; an empty text is left out.
fn metadata(uid: &str, version: &str) -> Value {
    let mut metadata = json!({"name": "it"});
    for (field, text) in [("uid", uid), ("resourceVersion", version)] {
        if !text.is_empty() {
            metadata[field] = json!(text);
        }
    }
    metadata
}

fn slice(uid: &str, version: &str) -> Arc<ResourceSlice> {
    // The device is named after the version, so that an answer tells which one counts.
    let spec = json!({"driver": "d.example.com", "nodeName": "node-1", "devices": [{"name": format!("dev-{uid}-{version}")}],
        "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1}});
    Arc::new(from_value(json!({"metadata": metadata(uid, version), "spec": spec})).unwrap())
}

fn rule(uid: &str, version: &str) -> Arc<DeviceTaintRule> {
    let spec = json!({"taint": {"key": format!("{uid}-{version}"), "effect": "NoSchedule"}});
    Arc::new(from_value(json!({"metadata": metadata(uid, version), "spec": spec})).unwrap())
}

fn class(uid: &str, version: &str) -> DeviceClass {
    let spec = json!({"extendedResourceName": format!("example.com/{uid}-{version}")});
    from_value(json!({"metadata": metadata(uid, version), "spec": spec})).unwrap()
}

/// A store of objects under test, seen as that of the object "it": of one kind, by UID and version.
trait Store: Default {
    fn set(&mut self, uid: &str, version: &str) -> ApplyOutcome;
    fn delete(&mut self, uid: Option<&str>) -> ApplyOutcome;
    /// Returns UID and version of the object that is there.
    fn there(&self) -> Option<(String, String)>;
}

fn named(uid: Option<&String>, version: Option<&String>) -> (String, String) {
    (uid.cloned().unwrap_or_default(), version.cloned().unwrap_or_default())
}

#[derive(Default)]
struct Slices(Inventory);

impl Store for Slices {
    fn set(&mut self, uid: &str, version: &str) -> ApplyOutcome {
        self.0.apply(InventoryEvent::Slice(slice(uid, version))).unwrap()
    }

    fn delete(&mut self, uid: Option<&str>) -> ApplyOutcome {
        let uid = uid.map(str::to_owned);
        self.0.apply(InventoryEvent::SliceDeleted { name: "it".to_owned(), uid }).unwrap()
    }

    fn there(&self) -> Option<(String, String)> {
        let slice = self.0.slices().next()?;
        let of_node: Vec<&ResourceSlice> = self.0.slices_of_node("node-1").collect();
        assert_eq!((of_node, self.0.slices().count()), (vec![slice], 1), "the indexes have the slice too");
        let there = named(slice.metadata.uid.as_ref(), slice.metadata.resource_version.as_ref());
        let device = slice.spec.devices.as_ref().map(|devices| devices[0].name.clone());
        assert_eq!(device, Some(format!("dev-{}-{}", there.0, there.1)));
        Some(there)
    }
}

/// Slices changed through a layer that is kept.
#[derive(Default)]
struct Layered(Slices);

impl Store for Layered {
    fn set(&mut self, uid: &str, version: &str) -> ApplyOutcome {
        let (before, mut layer) = (self.0.0.slices().cloned().collect::<Vec<_>>(), self.0.0.layer());
        let outcome = layer.apply(InventoryEvent::Slice(slice(uid, version))).unwrap();
        drop(layer);
        assert!(self.0.0.slices().eq(&before), "a layer that is dropped leaves nothing behind");
        let mut layer = self.0.0.layer();
        assert_eq!(layer.apply(InventoryEvent::Slice(slice(uid, version))), Ok(outcome));
        layer.keep();
        outcome
    }

    fn delete(&mut self, uid: Option<&str>) -> ApplyOutcome {
        let mut layer = self.0.0.layer();
        let event = InventoryEvent::SliceDeleted { name: "it".to_owned(), uid: uid.map(str::to_owned) };
        let outcome = layer.apply(event).unwrap();
        layer.keep();
        outcome
    }

    fn there(&self) -> Option<(String, String)> {
        self.0.there()
    }
}

#[derive(Default)]
struct Rules(Inventory);

impl Store for Rules {
    fn set(&mut self, uid: &str, version: &str) -> ApplyOutcome {
        self.0.apply(InventoryEvent::TaintRule(rule(uid, version))).unwrap()
    }

    fn delete(&mut self, uid: Option<&str>) -> ApplyOutcome {
        let uid = uid.map(str::to_owned);
        self.0.apply(InventoryEvent::TaintRuleDeleted { name: "it".to_owned(), uid }).unwrap()
    }

    fn there(&self) -> Option<(String, String)> {
        let rule = self.0.taint_rules().next()?;
        Some(named(rule.metadata.uid.as_ref(), rule.metadata.resource_version.as_ref()))
    }
}

impl Store for Classes {
    fn set(&mut self, uid: &str, version: &str) -> ApplyOutcome {
        Self::set(self, class(uid, version))
    }

    fn delete(&mut self, uid: Option<&str>) -> ApplyOutcome {
        self.remove("it", uid)
    }

    fn there(&self) -> Option<(String, String)> {
        let resource = self.extended_resource_of("it")?;
        let class = self.of_extended_resource(resource).unwrap();
        assert_eq!(self.len(), 1);
        Some(named(class.metadata.uid.as_ref(), class.metadata.resource_version.as_ref()))
    }
}

/// Event about the object: a version of a UID, or its deletion, with the expected answer and what is there afterwards.
type Row<'t> = (&'t str, Option<&'t str>, ApplyOutcome, Option<(&'t str, &'t str)>);

fn play<S: Store>() {
    let rows: [&[Row<'_>]; 6] = [
        // Versions are numbers: 9 is before 10.
        &[("1", Some("10"), Applied, Some(("1", "10"))), ("1", Some("9"), Older, Some(("1", "10")))],
        &[("1", Some("9"), Applied, Some(("1", "9"))), ("1", Some("10"), Applied, Some(("1", "10")))],
        &[
            ("1", Some("10"), Applied, Some(("1", "10"))),
            ("1", Some("10"), Applied, Some(("1", "10"))),
            // A version that is not known is taken, before and after.
            ("1", Some(""), Applied, Some(("1", ""))),
            ("1", Some("3"), Applied, Some(("1", "3"))),
        ],
        // An object that was created anew counts, and outlives the late deletion of its predecessor.
        &[
            ("1", Some("10"), Applied, Some(("1", "10"))),
            ("2", Some("8"), Applied, Some(("2", "8"))),
            ("1", None, OtherObject, Some(("2", "8"))),
            ("2", None, Applied, None),
            ("2", None, Unknown, None),
        ],
        // A deletion without a UID is that of whatever is there.
        &[("1", Some("10"), Applied, Some(("1", "10"))), ("", None, Applied, None), ("", None, Unknown, None)],
        &[
            ("", Some("10"), Applied, Some(("", "10"))),
            ("", Some("9"), Older, Some(("", "10"))),
            ("1", None, Applied, None),
        ],
    ];
    for history in rows {
        let mut store = S::default();
        for (uid, version, outcome, there) in history {
            let told = match version {
                Some(version) => store.set(uid, version),
                None => store.delete((!uid.is_empty()).then_some(*uid)),
            };
            assert_eq!(told, *outcome, "{uid} {version:?} of {history:?}");
            let there = there.map(|(uid, version)| (uid.to_owned(), version.to_owned()));
            assert_eq!(store.there(), there, "{uid} {version:?} of {history:?}");
        }
    }
}

#[test]
fn late_and_repeated_events_tell_what_came_of_them() {
    play::<Slices>();
    play::<Layered>();
    play::<Rules>();
    play::<Classes>();
}

#[test]
fn a_new_list_is_taken_as_it_is() {
    let mut inventory = Inventory::new([slice("1", "10")]).with_taint_rules([rule("1", "10")]);
    inventory.replace([slice("1", "9")]);
    inventory.replace_taint_rules([rule("1", "9")]);
    let versions = inventory.slices().map(|slice| slice.metadata.resource_version.as_deref());
    assert_eq!(versions.collect::<Vec<_>>(), [Some("9")], "as after the restore of a backup");
    let versions = inventory.taint_rules().map(|rule| rule.metadata.resource_version.as_deref());
    assert_eq!(versions.collect::<Vec<_>>(), [Some("9")]);
}

#[test]
fn of_several_slices_of_one_name_the_newest_decides() {
    let mut inventory = Inventory::new([slice("1", "8"), slice("1", "10")]);
    assert_eq!(inventory.apply(InventoryEvent::Slice(slice("1", "9"))), Ok(Older));
    assert_eq!(inventory.slices().count(), 2);
    assert_eq!(inventory.apply(InventoryEvent::Slice(slice("1", "11"))), Ok(Applied));
    assert_eq!(inventory.slices().count(), 1);
}

/// Versions of an object in any order, each one or more times.
fn shown() -> impl Strategy<Value = Vec<u32>> {
    let versions = prop::collection::vec(prop::sample::select(vec![1, 9, 10, 11, 99, 100, 101, 1000]), 1..12);
    versions.prop_shuffle()
}

fn ends_with_the_newest<S: Store>(shown: &[u32]) {
    let (mut store, mut newest) = (S::default(), 0);
    for version in shown {
        let outcome = store.set("1", &version.to_string());
        assert_eq!(outcome, if *version < newest { Older } else { Applied });
        newest = newest.max(*version);
        assert_eq!(store.there(), Some(("1".to_owned(), newest.to_string())));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_versions_ends_with_the_newest(shown in shown()) {
        ends_with_the_newest::<Slices>(&shown);
        ends_with_the_newest::<Layered>(&shown);
        ends_with_the_newest::<Rules>(&shown);
        ends_with_the_newest::<Classes>(&shown);
    }
}
