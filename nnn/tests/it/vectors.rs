//! Recorded rows of the decision tables.

use nnn::binding::prebind::{Concurrency, Plugin, Work, groups};
use nnn::binding::start::{BindingStart, PermitWait, PreFlight};
use nnn::gates::{Gate, Gates};
use nnn::nominating::NominatingInfo;
use nnn::nominator::decide_update;
use nnn::patch::{Change, Patch, decide_patch};
use nnn::pod::node_name;
use nnn::profile::Profile;
use nnn::scheduling::cycle::{CycleOutcome, decide_cycle};
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
    node_name(value.as_str())
}

#[test]
fn updates_of_the_nominator() {
    check(&vectors().update, 10, |row| {
        let (old, new, memory) = (text(&row["old"]), text(&row["new"]), text(&row["memory"]));
        json!(decide_update(old.as_deref(), new.as_deref(), memory.as_deref()).unwrap_or_default())
    });
}

#[test]
fn starts_of_binding_cycles() {
    check(&vectors().binding_start, 43, |row| {
        let named = |status: &Value| PreFlight::from_status("plugin", status.as_str().unwrap(), "");
        let pre_flights: Vec<PreFlight> = row["preflight"].as_array().unwrap().iter().map(named).collect();
        let nnn = text(&row["nnn"]);
        let host = row["host"].as_str().unwrap();
        let mut start = BindingStart::new(&pre_flights, host);
        start.nnn = nnn.as_deref();
        if row["waiting"] == true {
            start.permit = PermitWait::Waiting;
        }
        if row["gate"] == false {
            start.gates = Gates::default().without(Gate::Expectation);
        }
        match start.decide() {
            Ok(Patch::Needed) => json!(["PatchNnn", host]),
            Ok(Patch::None(reason)) => json!(["None", reason]),
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
        match decide_cycle(&outcome, Profile::V1_37) {
            NominatingInfo::Noop => json!([0, ""]),
            NominatingInfo::Override(node) => json!([1, node.unwrap_or_default()]),
        }
    });
}

#[test]
fn groups_of_pre_bind_plugins() {
    check(&vectors().groups, 38, |row| {
        let plugin = |row: &'static [Value; 3]| {
            let work = if row[1] == true { Work::Skipped } else { Work::Runs };
            let concurrency = if row[2] == true { Concurrency::Parallel } else { Concurrency::Alone };
            Plugin::new(row[0].as_str().unwrap(), work, concurrency)
        };
        let rows: Vec<[Value; 3]> = serde_json::from_value(row["plugins"].clone()).unwrap();
        let plugins: Vec<Plugin<'static>> = rows.leak().iter().map(plugin).collect();
        let groups = groups(&plugins);
        json!(groups.iter().map(|group| group.iter().map(|it| it.name).collect::<Vec<_>>()).collect::<Vec<_>>())
    });
}

#[test]
fn needed_patches() {
    check(&vectors().needs_patch, 7, |row| {
        let info = match row["mode"].as_u64() {
            Some(0) => NominatingInfo::Noop,
            _ => NominatingInfo::to(row["node"].as_str().unwrap()),
        };
        let condition = if row["condition_changed"] == true { Change::Changed } else { Change::Same };
        json!(decide_patch(&info, text(&row["known"]).as_deref(), condition) == Patch::Needed)
    });
}
