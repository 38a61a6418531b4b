//! Recorded rows of the decision tables.

use dra_attrs::{Component, Gate, GateSet, Profile};
use nnn::binding::{BindingStart, PreBindPlugin};
use nnn::{CycleOutcome, NominatingInfo, Nominator, PreFlight};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Vectors {
    update: Vec<Value>,
    binding_start: Vec<Value>,
    cycle: Vec<Value>,
    groups: Vec<Value>,
    needs_patch: Vec<Value>,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../data/vectors.json")).unwrap()
}

fn check(rows: &[Value], least: usize, decide: impl Fn(&Value) -> Value) {
    assert!(rows.len() >= least, "{} rows", rows.len());
    for row in rows {
        assert_eq!(decide(row), row["result"], "{row}");
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|name| !name.is_empty()).map(str::to_owned)
}

#[test]
fn updates_of_the_nominator() {
    check(&vectors().update, 10, |row| {
        let (old, new, memory) = (text(&row["old"]), text(&row["new"]), text(&row["memory"]));
        json!(Nominator::decide_update(old.as_deref(), new.as_deref(), memory.as_deref()).unwrap_or_default())
    });
}

#[test]
fn starts_of_binding_cycles() {
    check(&vectors().binding_start, 43, |row| {
        let named = |status: &Value| PreFlight::from_status("plugin", status.as_str().unwrap(), "");
        let pre_flights: Vec<PreFlight> = row["preflight"].as_array().unwrap().iter().map(named).collect();
        let nnn = text(&row["nnn"]);
        let host = row["host"].as_str().unwrap();
        let gates =
            GateSet::of(Profile::V1_37).with_values([(Gate::NominatedNodeNameForExpectation, row["gate"] != false)]);
        let mut start = BindingStart::new(Component::new(Profile::V1_37, gates), &pre_flights, host);
        start.nnn = nnn.as_deref();
        start.waits_on_permit = row["waiting"] == true;
        match start.no_patch_reason() {
            Ok(None) => json!(["PatchNnn", host]),
            Ok(Some(reason)) => json!(["None", reason]),
            Err(_) => json!(["Fail", "PreFlight"]),
        }
    });
}

#[test]
fn results_of_cycles() {
    check(&vectors().cycle, 7, |row| {
        let outcome = match row["outcome"].as_str().unwrap() {
            "no_nodes" => CycleOutcome::NoNodes,
            "error" => CycleOutcome::Error,
            "snapshot_failed" => CycleOutcome::SnapshotFailed,
            "nofit_no_postfilter" => CycleOutcome::NoFitNoPostFilter,
            "nofit_podgroup" => CycleOutcome::NoFitInPodGroup,
            "postfilter_no_candidates" => CycleOutcome::NoCandidates,
            "policy_never" => CycleOutcome::PolicyNever,
            other => panic!("outcome {other}"),
        };
        match outcome.nominating_info(Profile::V1_37) {
            NominatingInfo::Noop => json!([0, ""]),
            NominatingInfo::Override(node) => json!([1, node.unwrap_or_default()]),
        }
    });
}

#[test]
fn groups_of_pre_bind_plugins() {
    check(&vectors().groups, 38, |row| {
        let plugin = |row: &'static [Value; 3]| {
            let mut plugin = PreBindPlugin::new(row[0].as_str().unwrap());
            (plugin.is_skipped, plugin.is_parallel) = (row[1] == true, row[2] == true);
            plugin
        };
        let rows: Vec<[Value; 3]> = serde_json::from_value(row["plugins"].clone()).unwrap();
        let plugins: Vec<PreBindPlugin<'static>> = rows.leak().iter().map(plugin).collect();
        let groups = PreBindPlugin::group(GateSet::of(Profile::V1_37), &plugins);
        json!(groups.iter().map(|group| group.iter().map(|it| it.name).collect::<Vec<_>>()).collect::<Vec<_>>())
    });
}

#[test]
fn needed_patches() {
    check(&vectors().needs_patch, 7, |row| {
        let info = match row["mode"].as_u64() {
            Some(0) => NominatingInfo::Noop,
            _ => NominatingInfo::nominate(row["node"].as_str().unwrap()),
        };
        json!(row["condition_changed"] == true || info.no_patch_reason(text(&row["known"]).as_deref()).is_none())
    });
}
