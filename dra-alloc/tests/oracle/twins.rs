//! Twins of a case: the same node with other names, or with one random difference.

use serde_json::{Value, json};

use super::case::{Allocated, Case, DeviceId};
use super::random::{self, Random};

/// Makes all slices those of the node alone.
pub fn local(case: &Case) -> Case {
    let mut value = case.to_json();
    let node = value["node"]["metadata"]["name"].clone();
    for slice in value["slices"].as_array_mut().unwrap() {
        let spec = slice["spec"].as_object_mut().unwrap();
        for field in ["nodeSelector", "perDeviceNodeSelection", "allNodes"] {
            spec.remove(field);
        }
        spec.insert("nodeName".to_owned(), node.clone());
    }
    Case { allocated: case.allocated.clone(), ..Case::from_json(value) }
}

/// Puts a letter before a name, which changes no order.
fn rename(name: &mut Value) {
    *name = format!("x{}", name.as_str().unwrap_or_default()).into();
}

/// Renames pools and devices.
pub fn renamed(case: &Case) -> Case {
    let mut value = case.to_json();
    for slice in value["slices"].as_array_mut().unwrap() {
        rename(&mut slice["spec"]["pool"]["name"]);
        slice["spec"]["devices"].as_array_mut().into_iter().flatten().for_each(|device| rename(&mut device["name"]));
    }
    let (other, used) = (Case::from_json(value), &case.allocated);
    let rename = |id: &DeviceId| DeviceId::new(&id.driver, &format!("x{}", id.pool), &format!("x{}", id.device));
    let allocated = Allocated {
        devices: used.devices.iter().map(rename).collect(),
        shared: used.shared.iter().map(|(id, share)| (rename(id), share.clone())).collect(),
        capacity: used.capacity.iter().map(|(id, amounts)| (rename(id), amounts.clone())).collect(),
    };
    Case { allocated, ..other }
}

/// Changes of one device, with another one to take values from.
const DEVICE_CHANGES: [fn(&mut Random, &mut Value, &Value); 9] = [
    |random, device, _| toggle(&mut device["taints"], json!([random::taint(random)])),
    |_, device, _| toggle(&mut device["allowMultipleAllocations"], json!(true)),
    |_, device, _| toggle(&mut device["bindingConditions"], json!(["ready"])),
    |random, device, other| take_one(random, device, other, "attributes"),
    |random, device, other| take_one(random, device, other, "capacity"),
    |random, device, _| {
        let value = json!(random.pick(&["1", "2", "4", "8"]));
        change_one(random, &mut device["capacity"], |capacity| capacity["value"] = value);
    },
    |_, device, other| device["consumesCounters"] = other["consumesCounters"].clone(),
    |random, device, _| {
        let value = json!(random.between(0, 4).to_string());
        let consumed = device["consumesCounters"].as_array_mut().and_then(|all| all.first_mut());
        if let Some(consumed) = consumed {
            change_one(random, &mut consumed["counters"], |counter| counter["value"] = value);
        }
    },
    |random, device, _| {
        let groups = json!(random.some(&["a", "b", "c"], 50));
        let consumed = device["consumesCounters"].as_array_mut().and_then(|all| all.first_mut());
        if let Some(consumed) = consumed {
            consumed["compatibilityGroups"] = groups;
        }
    },
];

fn toggle(field: &mut Value, value: Value) {
    *field = if field.is_null() { value } else { Value::Null };
}

/// Changes one field of an object.
fn change_one(random: &mut Random, fields: &mut Value, change: impl FnOnce(&mut Value)) {
    let Some(fields) = fields.as_object_mut().filter(|fields| !fields.is_empty()) else { return };
    let names: Vec<String> = fields.keys().cloned().collect();
    fields.get_mut(&random.pick(&names)).map(change);
}

/// Takes one entry from another device, or loses it.
fn take_one(random: &mut Random, device: &mut Value, other: &Value, map: &str) {
    let names: Vec<String> = [&device[map], &other[map]]
        .iter()
        .filter_map(|map| map.as_object())
        .flat_map(|map| map.keys().cloned())
        .collect();
    if !names.is_empty() {
        let name = random.pick(&names);
        match other[map].get(&name) {
            Some(value) => device[map][&name] = value.clone(),
            None => drop(device[map].as_object_mut().unwrap().remove(&name)),
        }
    }
}

/// Changes of a slice.
const SLICE_CHANGES: [fn(&mut Random, &mut Value); 5] = [
    |_, spec| toggle(&mut spec["skipNodeOperations"], json!(["*"])),
    |_, spec| spec["pool"]["resourceSliceCount"] = json!(9),
    |_, spec| spec["devices"].as_array_mut().into_iter().for_each(|devices| devices.reverse()),
    |_, spec| drop(spec["devices"].as_array_mut().and_then(Vec::pop)),
    |random, spec| {
        let value = json!(random.between(0, 9).to_string());
        if let Some(set) = spec["sharedCounters"].as_array_mut().and_then(|sets| sets.first_mut()) {
            change_one(random, &mut set["counters"], |counter| counter["value"] = value);
        }
    },
];

/// Makes one random change of what a node is made of.
pub fn changed(random: &mut Random, case: &Case) -> Case {
    let mut value = case.to_json();
    let with = |field: &str| {
        let slices = value["slices"].as_array().unwrap().iter().enumerate();
        let slices = slices.filter(|(_, slice)| slice["spec"][field].as_array().is_some_and(|list| !list.is_empty()));
        slices.map(|(number, _)| number).collect::<Vec<usize>>()
    };
    let (with_devices, with_counters) = (with("devices"), with("sharedCounters"));
    if with_devices.is_empty() {
        return case.clone();
    }
    let slice = random.pick(&with_devices);
    let devices = value["slices"][slice]["spec"]["devices"].as_array().unwrap().clone();
    match random.below(10) {
        0..6 => {
            let (place, other) = (random.below(devices.len()), random.pick(&devices));
            let change = random.pick(&DEVICE_CHANGES);
            change(random, &mut value["slices"][slice]["spec"]["devices"][place], &other);
        }
        6 | 7 => {
            let slice =
                if with_counters.is_empty() || random.percent(50) { slice } else { random.pick(&with_counters) };
            let change = random.pick(&SLICE_CHANGES);
            change(random, &mut value["slices"][slice]["spec"]);
        }
        _ => {
            let (spec, device) = (&value["slices"][slice]["spec"], random.pick(&devices));
            let names =
                [&spec["driver"], &spec["pool"]["name"], &device["name"]].map(|name| name.as_str().unwrap_or_default());
            use_device(random, &names.join("/"), &mut value["allocated"]);
        }
    }
    Case::from_json(value)
}

/// Changes the use of a device: held or free, shared, with other amounts of its capacities in use.
fn use_device(random: &mut Random, device: &str, allocated: &mut Value) {
    let held = allocated["devices"].as_array_mut().unwrap();
    match held.iter().position(|held| held == device) {
        Some(place) => drop(held.remove(place)),
        None if random.percent(40) => held.push(device.into()),
        None if random.percent(50) => {
            allocated["shared"].as_array_mut().unwrap().push(format!("{device}/share").into());
        }
        None => {
            allocated["shared"].as_array_mut().unwrap().push(format!("{device}/share").into());
            allocated["capacity"][device] = json!({"memory": random.pick(&["1", "2"]), "cores": "1"});
        }
    }
}
