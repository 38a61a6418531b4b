//! Clusters with the recorded answers of kube-scheduler's allocator, through the replay door.
//!
//! `data/allocator-random*.jsonl.gz` has random clusters, recorded with the project. Further ones are in the
//! shared corpus.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../dra-alloc/tests/oracle/plain.rs"]
#[expect(unreachable_pub, reason = "a module of the oracle")]
mod plain;
mod replies;
mod shared_corpus;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use plain::plain;
use replies::replies;
use shared_corpus::shared_corpus;

/// Case whose input lost an empty list on its way to JSON: only the class of its outcome is compared.
const LOST_EMPTY_LIST: &str = "list-attributes-distinct-constaint-with-empty-or-unknown-type";

fn recorded() -> Vec<Value> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let files = ["allocator-random.jsonl.gz", "allocator-random-1.37.jsonl.gz"];
    files.iter().flat_map(|file| unpack(&data.join(file))).collect()
}

fn unpack(file: &Path) -> Vec<Value> {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(file).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the cases of a directory of the shared corpus.
fn shared(folder: &str) -> Vec<Value> {
    let entries = fs::read_dir(shared_corpus(folder)).unwrap();
    let files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.iter().map(|file| serde_json::from_slice(&fs::read(file).unwrap()).unwrap()).collect()
}

/// Returns the input of a case for one profile.
fn input(case: &Value, profile: &str) -> Value {
    let mut input = case.clone();
    let fields = input.as_object_mut().unwrap();
    fields.retain(|name, _| !["expect", "name", "why", "upstreamJuly"].contains(&name.as_str()));
    fields.insert("profile".to_owned(), json!(profile));
    input
}

fn request(input: &Value) -> String {
    json!({"id": 1, "op": "alloc.allocate", "input": input}).to_string()
}

fn answers(inputs: impl Iterator<Item = Value>) -> Vec<Value> {
    let requests: Vec<String> = inputs.map(|input| request(&input)).collect();
    replies(&requests).iter().map(|reply| serde_json::from_str(reply).unwrap()).collect()
}

/// Returns the class of an answer: `error`, or the outcome.
fn class(answer: &Value) -> &str {
    if answer.get("error").is_some() { "error" } else { answer["ok"]["outcome"].as_str().unwrap() }
}

fn expected_class(case: &Value) -> &'static str {
    let expect = &case["expect"];
    let has_results = expect["results"].as_array().is_some_and(|results| !results.is_empty());
    let has_claims = case["claims"].as_array().is_some_and(|claims| !claims.is_empty());
    match (expect["error"].is_string(), expect["failedOnNode"] == true) {
        (true, true) => "failed_on_node",
        (true, false) => "error",
        (false, _) if has_results || !has_claims => "allocated",
        (false, _) => "unsatisfied",
    }
}

fn check_all(cases: &[Value]) {
    let answers = answers(cases.iter().map(|case| input(case, "v1.37")));
    cases.iter().zip(answers).for_each(|(case, answer)| check(case, &answer));
}

fn check(case: &Value, answer: &Value) {
    let name = case["name"].as_str().unwrap_or_default();
    let (expected, actual) = (expected_class(case), class(answer));
    // Later versions treat an incomplete pool as a failure of the node alone, and so does this project.
    let all_devices = case["expect"]["error"].as_str().is_some_and(|error| error.contains("asks for all devices"));
    if all_devices && actual == "failed_on_node" {
        return;
    }
    assert_eq!(actual, expected, "{name}: {answer}");
    if expected == "allocated" && name != LOST_EMPTY_LIST {
        let expected = plain(&case["expect"]["results"]);
        let actual = plain(&answer["ok"]["results"]);
        assert!(expected == actual || (expected.is_null() && actual == json!([])), "{name}:\n{expected}\n{actual}");
    }
}

#[test]
fn recorded_clusters() {
    let cases = recorded();
    assert_eq!(cases.len(), 1787);
    check_all(&cases);
}

#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_cases() {
    for folder in ["allocator", "quirks"] {
        let cases = shared(folder);
        assert!(!cases.is_empty());
        check_all(&cases);
    }
}

#[test]
fn a_gate_without_use_changes_nothing() {
    // req: 5945-GATE-3
    let mut cases: Vec<Value> = recorded().into_iter().step_by(3).collect();
    for slice in cases.iter_mut().flat_map(|case| case["slices"].as_array_mut().unwrap()) {
        slice["spec"].as_object_mut().unwrap().remove("skipNodeOperations");
    }
    for (profile, gate) in [("kep", "DRAOptionalNodePreparation"), ("v1.37", "DRAOptionalNodeOperations")] {
        let [on, off] = [true, false].map(|on| {
            answers(cases.iter().map(|case| {
                let mut input = input(case, profile);
                input["features"][gate] = json!(on);
                input
            }))
        });
        for ((case, on), off) in cases.iter().zip(on).zip(off) {
            assert_eq!(on, off, "{}", case["name"]);
        }
    }
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let requests: Vec<String> = recorded().iter().step_by(20).map(|case| request(&input(case, "v1.37"))).collect();
    let twice = replies(&[requests.clone(), requests.clone()].concat());
    assert_eq!(twice[..requests.len()], twice[requests.len()..], "in one run");
    assert_eq!(twice[..requests.len()], replies(&requests), "in another run");
}
