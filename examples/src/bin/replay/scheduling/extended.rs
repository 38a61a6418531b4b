//! Operations on extended resources: their device classes, and the requests of a pod's claim for them.

use std::collections::BTreeMap;

use dra_alloc::pods::ExtendedRequests;
use dra_alloc::{Classes, Profile};
use k8s_openapi::api::resource::v1::DeviceClass;
use serde::Deserialize;
use serde_json::{Value, json};

use super::input::{pod, result};
use crate::operation::Operation;
use crate::refusal::{Refusal, object, objects, read};

/// Events of device classes in their order, and the names to look up afterwards.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClassCache {
    #[serde(default)]
    events: Vec<ClassEvent>,
    #[serde(default)]
    ask: Vec<String>,
    #[serde(default)]
    ask_classes: Vec<String>,
}

/// A class is added or deleted, or `old` becomes `new`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClassEvent {
    add: Option<Value>,
    delete: Option<Value>,
    old: Option<Value>,
    new: Option<Value>,
}

pub(crate) fn class_cache(input: Value) -> Result<Operation, Refusal> {
    let ClassCache { events, ask, ask_classes } = read(input)?;
    let class = |field: &str, value: Option<Value>| -> Result<Option<DeviceClass>, Refusal> {
        value.map(|value| object(field, value)).transpose()
    };
    let mut changes = Vec::new();
    for (index, event) in events.into_iter().enumerate() {
        let field = |name: &str| format!("events[{index}].{name}");
        let gone = [class(&field("delete"), event.delete)?, class(&field("old"), event.old)?];
        let there = [class(&field("add"), event.add)?, class(&field("new"), event.new)?];
        changes.push((gone.into_iter().flatten().collect::<Vec<_>>(), there.into_iter().flatten().collect::<Vec<_>>()));
    }
    Ok(result(move || {
        let mut classes = Classes::default();
        for (gone, there) in &changes {
            for class in gone {
                let metadata = &class.metadata;
                classes.remove(metadata.name.as_deref().unwrap_or_default(), metadata.uid.as_deref());
            }
            for class in there {
                classes.set(class.clone());
            }
        }
        let class_of = |resource: &String| classes.of_extended_resource(resource).map(|class| &class.metadata.name);
        let served: BTreeMap<&String, Value> =
            ask.iter().map(|resource| (resource, json!(class_of(resource)))).collect();
        let names: BTreeMap<&String, &str> =
            ask_classes.iter().map(|class| (class, classes.extended_resource_of(class).unwrap_or_default())).collect();
        json!({"classes": served, "names": names})
    }))
}

#[derive(Deserialize)]
struct Wanted {
    pod: Value,
    #[serde(default)]
    classes: Vec<Value>,
    /// Resources that a device class serves on the node.
    #[serde(default)]
    resources: Vec<String>,
    /// Release of the scheduler; 1.37 if it is absent.
    profile: Option<Profile>,
}

pub(crate) fn requests(input: Value) -> Result<Operation, Refusal> {
    let Wanted { pod: object, classes, resources, profile } = read(input)?;
    let profile = profile.unwrap_or(Profile::V1_37);
    let pod = pod("pod", object)?;
    let classes = Classes::new(objects::<DeviceClass>("classes", classes.into_iter())?);
    Ok(result(move || match ExtendedRequests::new(&pod, resources.iter().map(String::as_str), &classes, profile) {
        Ok(made) => json!({"requests": made.requests, "mappings": made.mappings}),
        Err(error) => json!({"error": error.to_string()}),
    }))
}
