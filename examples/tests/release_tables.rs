//! Tables of docs/versions.md by release, made from the rules, and a transcript of `kubectl dra check`. `UPDATE=1` writes them.
#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dra_alloc::validate::read;
use dra_attrs::internal::release::{CounterLimits, Limits, Validation};
use dra_attrs::{Gate, GateStage, Profile};
use serde_json::{Value, json};

/// Kinds of which releases serve different versions, with one that stands for the others.
const SERVED: [(&str, &str); 3] = [
    ("slices, claims, templates, classes", "ResourceSlice"),
    ("`DeviceTaintRule`", "DeviceTaintRule"),
    ("`ResourcePoolStatusRequest`", "ResourcePoolStatusRequest"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn number(profile: Profile) -> &'static str {
    profile.name().trim_start_matches('v')
}

/// Returns a table with a column for each release.
fn table(title: &str, rows: impl IntoIterator<Item = (String, Vec<String>)>) -> String {
    let row = |(name, cells): (String, Vec<String>)| format!("| {name} | {} |\n", cells.join(" | "));
    let rows: String = rows.into_iter().map(row).collect();
    let releases = Profile::RELEASES.map(number).join(" | ");
    let line = "---|".repeat(1 + Profile::RELEASES.len());
    format!("| {title} | {releases} |\n|{line}\n{rows}")
}

fn by_release(cell: impl Fn(Profile) -> String) -> Vec<String> {
    Profile::RELEASES.map(cell).to_vec()
}

const fn stage(stage: GateStage) -> &'static str {
    match stage {
        GateStage::Absent => "–",
        GateStage::Alpha => "alpha, off",
        GateStage::BetaOff => "beta, off",
        GateStage::BetaOn => "beta, on",
        GateStage::Stable => "stable, on",
        GateStage::Locked => "locked on",
    }
}

fn gates() -> String {
    let row = |gate: Gate| {
        (format!("`{}`", gate.name(Profile::V1_37)), by_release(|profile| stage(gate.stage(profile)).to_owned()))
    };
    table("feature gate", Gate::ALL.map(row))
}

fn served() -> String {
    let cell = |versions: &[&str]| if versions.is_empty() { "–".to_owned() } else { versions.join(", ") };
    let row = |(name, kind): (&str, &str)| (name.to_owned(), by_release(|profile| cell(profile.versions_of(kind))));
    table("versions of", SERVED.map(row))
}

fn limits() -> String {
    let row = |name: &str, cell: &dyn Fn(&Limits) -> String| {
        (name.to_owned(), by_release(|profile| cell(&profile.rules().limits)))
    };
    table(
        "at most",
        [
            row("taints of a device", &|limits| limits.taints.to_string()),
            row("devices of a slice with taints, counters or lists", &|limits| limits.advanced_devices.to_string()),
            row("counters of a slice", &|limits| match limits.counters {
                CounterLimits::InTotal { shared, consumed, .. } => {
                    format!("{shared}; its devices consume {consumed} in all")
                }
                CounterLimits::BySet { sets, counters, .. } => format!("{sets} sets of {counters}"),
            }),
            row("counters that a device consumes", &|limits| match limits.counters {
                CounterLimits::InTotal { of_device, .. } => of_device.to_string(),
                CounterLimits::BySet { counters, of_device, .. } => format!("{counters} of each of {of_device} sets"),
            }),
        ],
    )
}

/// Objects with a field of each kind that some release does not know.
fn newer_objects() -> [Value; 2] {
    let device = json!({
        "name": "d",
        "attributes": {"a": {"ints": [1]}},
        "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1"}}},
        "nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "1"}},
        "consumesCounters": [{"counterSet": "c", "counters": {"x": {"value": "1"}}, "compatibilityGroups": ["g"]}],
    });
    let slice = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"},
        "spec": {
            "driver": "d", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "nodeName": "n",
            "skipNodeOperations": ["*"], "partitionTypeAttribute": "d/type", "devices": [device],
        },
    });
    let derived = json!([{"name": "d/size", "expression": "1"}]);
    let request = json!({"name": "r", "exactly": {"deviceClassName": "c", "derivedAttributes": derived}});
    let claim = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [request]}},
    });
    [slice, claim]
}

fn unknown(profile: Profile) -> Vec<String> {
    let of = |object: Value| read(object, profile).unwrap().unknown.into_iter().map(|unknown| unknown.field);
    newer_objects().into_iter().flat_map(of).collect()
}

fn fields() -> String {
    let mut all: Vec<String> = Profile::RELEASES.into_iter().flat_map(unknown).collect();
    all.sort();
    all.dedup();
    let is_known = |field: &String| Profile::RELEASES.into_iter().any(|profile| !unknown(profile).contains(field));
    assert!(all.iter().all(is_known), "{all:?}");
    let row = |field: &String| {
        let cell = |profile| if unknown(profile).contains(field) { "–" } else { "known" };
        let name = field.replace("[0]", "[*]").replace("attributes[a].ints", "attributes[*].ints");
        (format!("`{name}`"), by_release(|profile| cell(profile).to_owned()))
    };
    table("field", all.iter().map(row))
}

/// Returns the name of a behaviour as words: `Counted(Required)` is "counted, required".
fn words(behaviour: &dyn Debug) -> String {
    let mut text = String::new();
    for character in format!("{behaviour:?}").chars() {
        match character {
            '(' => text.push_str(", "),
            ')' => {}
            upper if upper.is_uppercase() && !text.is_empty() && !text.ends_with(' ') => {
                text.push(' ');
                text.extend(upper.to_lowercase());
            }
            other => text.extend(other.to_lowercase()),
        }
    }
    text
}

/// Returns every switch with its behaviour: a new one does not compile without a row.
fn switches_of(validation: &Validation) -> [(&'static str, String); 25] {
    let Validation {
        counter_sets,
        one_value,
        absent_name,
        empty_driver,
        long_list,
        duplicate,
        bad_key,
        claim_update,
        both_kinds,
        stored_taints,
        stored_selectors,
        stored_capacities,
        allocated_tolerations,
        two_slashes,
        none_effect,
        range_numbers,
        default_path,
        upper_case_driver,
        kept_while_off,
        changed_allocation,
        changed_effect,
        extended_name,
        name_length,
        admin_access,
        conditions,
    } = validation;
    [
        ("counter sets: with devices, or in slices apart", words(counter_sets)),
        ("attribute without a value, or with several", words(one_value)),
        ("empty name of an attribute", words(absent_name)),
        ("empty name of a driver", words(empty_driver)),
        ("items of a list that is too long", words(long_list)),
        ("path of a duplicate", words(duplicate)),
        ("path of a bad key", words(bad_key)),
        ("bad new spec of a claim", words(claim_update)),
        ("members of a request of both kinds", words(both_kinds)),
        ("taints that stay", words(stored_taints)),
        ("selectors of a class that stay", words(stored_selectors)),
        ("capacities that stay", words(stored_capacities)),
        ("bad tolerations in an allocation", words(allocated_tolerations)),
        ("name with two slashes", words(two_slashes)),
        ("taint with the effect `None`", words(none_effect)),
        ("`step: \"0\"` of a range (unguarded: the server stops)", words(range_numbers)),
        ("path of a default outside of its range", words(default_path)),
        ("driver with upper case letters", words(upper_case_driver)),
        ("errors of admin access without the label", words(admin_access)),
        ("conditions in a status: rules in code, or declared", words(conditions)),
        ("time of a rule's taint whose effect changes", words(changed_effect)),
        ("message of a changed allocation", words(changed_allocation)),
        ("messages of a bad extended resource", words(extended_name)),
        ("unit of a length in messages", words(name_length)),
        ("fields that stay while their gate is off", kept_while_off.len().to_string()),
    ]
}

fn switches() -> String {
    let all = Profile::RELEASES.map(|profile| switches_of(&profile.rules().validation));
    let [first, ..] = &all;
    let row = |(index, (name, _)): (usize, &(&str, String))| {
        ((*name).to_owned(), all.each_ref().map(|switches| switches.get(index).unwrap().1.clone()).to_vec())
    };
    table("validation", first.iter().enumerate().map(row))
}

fn transcript() -> String {
    let file = "examples/data/releases/gpus.yaml";
    let run = |profile: Profile| {
        let args = ["check", "--release", number(profile), file];
        let output = Command::new(env!("CARGO_BIN_EXE_kubectl-dra")).current_dir(root()).args(args).output().unwrap();
        format!("$ kubectl dra {}\n{}", args.join(" "), String::from_utf8(output.stdout).unwrap())
    };
    format!("```console\n{}```\n", Profile::RELEASES.map(run).join("\n"))
}

#[test]
fn the_page_has_the_rules_of_each_release() {
    let parts = [
        ("gates", gates()),
        ("served", served()),
        ("limits", limits()),
        ("fields", fields()),
        ("validation", switches()),
        ("check", transcript()),
    ];
    let file = root().join("docs/versions.md");
    let page = fs::read_to_string(&file).unwrap();
    let made = parts.iter().fold(page.clone(), |page, (name, text)| {
        let (begin, end) = (format!("<!-- made: {name} -->\n"), format!("<!-- end: {name} -->"));
        let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no place for {name}"));
        let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no end of {name}"));
        format!("{before}{begin}\n{text}\n{end}{after}")
    });
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, made).unwrap();
        return;
    }
    assert!(page == made, "docs/versions.md is not what the rules say: UPDATE=1 writes it");
}
