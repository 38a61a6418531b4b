//! Pages for users: limits, defaults and versions are those of the code, and links lead somewhere.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use dra_alloc::driver::SliceLimits;
use dra_alloc::pods::Consumer;
use dra_alloc::validate::validate_slice;
use dra_alloc::{Gate, Profile};
use examples::feature_gates::DEVICE_GATES;
use serde_json::{Value, json};

const DRIVERS: &str = include_str!("../../docs/for-driver-authors.md");
const SCHEDULERS: &str = include_str!("../../docs/for-scheduler-authors.md");
const VERSIONS: &str = include_str!("../../docs/versions.md");
const MANIFEST: &str = include_str!("../../Cargo.toml");

/// Returns the rows of the table below a header row that begins so, each as its cells.
fn table<'a>(page: &'a str, header: &str) -> Vec<Vec<&'a str>> {
    let (_, below) = page.split_once(&format!("\n{header}")).unwrap_or_else(|| panic!("no table {header}"));
    let rows = below.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Returns `count` objects that are named by their number.
fn named(count: usize, make: impl Fn(String) -> Value) -> Vec<Value> {
    (0..count).map(|number| make(format!("n{number}"))).collect()
}

/// Returns a map of `count` equal values.
fn map_of(count: usize, value: &Value) -> Value {
    (0..count).map(|number| (format!("n{number}"), value.clone())).collect()
}

/// Returns the spec of a slice that has `count` of something, by a row of the table of limits.
fn slice_with(count: usize, owner: &str, things: &str) -> Value {
    let device = |field: &str, value: Value| json!({"devices": [{"name": "d", field: value}]});
    let taint = json!({"key": "example.com/t", "effect": "NoSchedule"});
    match (owner, things.split([',', ';']).next().unwrap(), things.contains("taints,")) {
        ("a slice", "devices", false) => json!({"devices": named(count, |name| json!({"name": name}))}),
        ("a slice", "devices", true) => {
            json!({"devices": named(count, |name| json!({"name": name, "taints": [taint]}))})
        }
        ("a slice", "counter sets", _) => {
            json!({"sharedCounters": named(count, |name| json!({"name": name, "counters": {"c": {"value": "1"}}}))})
        }
        ("a counter set", "counters", _) => {
            json!({"sharedCounters": [{"name": "s", "counters": map_of(count, &json!({"value": "1"}))}]})
        }
        ("a device", "counter sets that it consumes from", _) => {
            let consumption = |name| json!({"counterSet": name, "counters": {"c": {"value": "1"}}});
            device("consumesCounters", named(count, consumption).into())
        }
        ("a device", "taints", _) => device(
            "taints",
            named(count, |name| json!({"key": format!("example.com/{name}"), "effect": "NoSchedule"})).into(),
        ),
        ("a device", "binding conditions", _) => {
            let conditions = named(count, |name| json!(name));
            json!({"devices": [{"name": "d", "bindingConditions": conditions, "bindingFailureConditions": ["failed"]}]})
        }
        ("a device", "attributes and capacities together", _) => {
            device("attributes", map_of(count, &json!({"int": 1})))
        }
        other => panic!("no slice for {other:?}"),
    }
}

/// Returns the problems of a slice with the spec, in one text.
fn problems(mut spec: Value) -> String {
    let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
    for (field, value) in [("driver", json!("d.example.com")), ("nodeName", json!("n")), ("pool", pool)] {
        spec[field] = value;
    }
    let slice = serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": spec})).unwrap();
    validate_slice(&slice).to_string()
}

#[test]
fn limits_of_slices() {
    let rows = table(DRIVERS, "| in | at most | of |");
    assert_eq!(rows.len(), 8);
    for row in rows {
        let [owner, limit, things] = row[..] else { panic!("{row:?}") };
        let limit: usize = limit.parse().unwrap();
        assert_eq!(problems(slice_with(limit, owner, things)), "", "{row:?}");
        let beyond = problems(slice_with(limit + 1, owner, things));
        assert!(beyond.contains(&limit.to_string()), "{row:?}: {beyond}");
    }
}

#[test]
fn limits_by_version() {
    let rows = table(DRIVERS, "| server | devices |");
    assert_eq!(rows.len(), 4);
    for row in rows {
        let limits = SliceLimits::of(format!("v{}", row[0]).parse::<Profile>().unwrap());
        let advanced =
            format!("{}{}", limits.max_advanced_devices, if limits.counts_lists { ", also with lists" } else { "" });
        let sets = match limits.max_counter_sets() {
            Some(sets) => format!("{sets}, in slices of their own"),
            None => "in the slice of the devices".to_owned(),
        };
        assert_eq!(row[1..], [limits.max_devices.to_string(), advanced, sets]);
    }
}

#[test]
fn defaults_of_gates() {
    let rows = table(DRIVERS, "| gate | default |");
    let mut listed: Vec<(&str, &str)> = rows.iter().map(|row| (row[0].trim_matches('`'), row[1])).collect();
    let state = |gate: &Gate| if gate.is_default(Profile::V1_37) { "on" } else { "off" };
    let mut gates: Vec<(&str, &str)> =
        DEVICE_GATES.iter().map(|gate| (gate.name(Profile::V1_37), state(gate))).collect();
    listed.sort_unstable();
    gates.sort_unstable();
    assert_eq!(listed, gates);
}

#[test]
fn consumers_of_a_claim() {
    assert!(SCHEDULERS.contains(&format!("reserved for {} consumers", Consumer::MAX_PER_CLAIM)));
}

#[test]
fn versions_are_those_of_the_manifest() {
    let rows = table(VERSIONS, "| dra-sdk | Rust |");
    let [sdk, rust, types, client, _] = rows[0][..] else { panic!("{rows:?}") };
    for (name, version) in [("version", sdk), ("rust-version", rust)] {
        let line = MANIFEST.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap();
        assert!(line.starts_with(&format!("{name} = \"{version}")), "{line}");
    }
    let types = types.split(',').next().unwrap();
    for (name, version) in [("k8s-openapi", types), ("kube", client)] {
        assert!(MANIFEST.contains(&format!("{name} = {{ version = \"{version}\"")), "{name} {version}");
    }
}

/// Returns the pages of the project.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders =
        ["", "docs", "dra-attrs", "dra-alloc", "nnn", "poolstatus", "readiness"].map(|folder| root.join(folder));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    files.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// Returns the anchor that a heading has.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    text.chars().filter(|character| character.is_alphanumeric() || "-_".contains(*character)).collect()
}

#[test]
fn links_lead_somewhere() {
    let (mut found, mut broken) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            if link.contains("://") || link.contains(['[', ' ', '\n']) {
                continue;
            }
            found += 1;
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            let has_place = || {
                let text = fs::read_to_string(&target).unwrap();
                text.lines().any(|line| line.starts_with('#') && anchor(line) == place)
            };
            if !target.exists() || !place.is_empty() && !has_place() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(found > 60, "{found}");
    assert_eq!(broken, Vec::<String>::new());
}

/// Returns the code in backticks of a page, outside of blocks.
fn code_of(page: &str) -> Vec<&str> {
    page.split("\n```").step_by(2).flat_map(|prose| prose.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn the_map_names_what_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let is_path =
        |code: &&str| code.contains('/') && code.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
    // Not from the root: a folder that each package has, and one of Linux.
    let named = code_of(&page).into_iter().filter(is_path).filter(|path| !["tests/it", "/sys"].contains(path));
    let (there, gone): (Vec<&str>, Vec<&str>) = named.partition(|path| root.join(path).exists());
    assert!(there.len() > 80, "{}", there.len());
    assert_eq!(gone, Vec::<&str>::new());
    let words = page.split_whitespace().count();
    assert!(words <= 3000, "{words} words: the map is read at once");
}
