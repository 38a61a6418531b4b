//! Comparison of the oracle with the recorded answers of Kubernetes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../../dra-alloc/tests/oracle/mod.rs"]
mod oracle;
mod shared_corpus;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use dra_attrs::Quantity;
use flate2::read::GzDecoder;
use k8s_openapi::api::resource::v1::{CapacityRequestPolicy, DeviceCapacity, ResourceClaim};
use oracle::capacity::{self, Fractions};
use oracle::plain::plain;
use oracle::{Answer, Case, allocate_counting};
use serde_json::{Value, json};
use shared_corpus::shared_corpus;

/// Number of steps that suffices for every case of the corpus.
const STEPS: u64 = 1_000_000;

/// Number of steps that suffices for nearly all random cases.
const FEW_STEPS: u64 = 5_000;

/// Returns the cases of a directory, one per file.
fn files(folder: &Path) -> Vec<Value> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.iter().map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
}

/// Returns the cases of a compressed file, one per line.
fn lines(file: &Path) -> Vec<Value> {
    let mut text = String::new();
    GzDecoder::new(File::open(file).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns an answer as class and results.
fn shown(answer: &Answer) -> Value {
    match answer {
        Answer::Allocated(results) => json!({"allocated": plain(&json!(results))}),
        other => json!(kind(other)),
    }
}

fn expected(case: &Value) -> Value {
    let expect = &case["expect"];
    if let Some(error) = expect["error"].as_str() {
        let on_node = expect["failedOnNode"] == true || error.contains("asks for all devices");
        return json!(if on_node { "failed on node" } else { "failed" });
    }
    let results = expect["results"].as_array().cloned().unwrap_or_default();
    if results.is_empty() && !case["claims"].as_array().unwrap().is_empty() {
        return json!("unsatisfied");
    }
    json!({"allocated": plain(&Value::Array(results))})
}

/// Returns the difference between the oracle's answer and the recorded one.
fn difference(case: &Value) -> Option<String> {
    let (answer, steps) = allocate_counting(&Case::from_json(case.clone()), STEPS);
    let (actual, wanted) = (shown(&answer), expected(case));
    let reason = match &answer {
        Answer::Failed(reason) | Answer::FailedOnNode(reason) => reason,
        _ => "",
    };
    if actual != wanted {
        let name = &case["name"];
        return Some(format!("{name}\n  wanted {wanted} {}\n  got    {actual} {reason}", case["expect"]["error"]));
    }
    if case["expect"]["steps"].as_u64().is_some_and(|wanted| wanted != steps) {
        return Some(format!("{}: steps {} {steps}", case["name"], case["expect"]["steps"]));
    }
    None
}

fn check(cases: &[Value]) {
    assert!(!cases.is_empty());
    let wrong: Vec<_> = cases.iter().filter_map(difference).collect();
    println!("{} of {} cases agree", cases.len() - wrong.len(), cases.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_upstream_tables() {
    check(&files(&shared_corpus("allocator")));
}

#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_quirks() {
    check(&files(&shared_corpus("quirks")));
}

#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_random_clusters() {
    check(&lines(&shared_corpus("allocator-random/cases.jsonl.gz")));
}

#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_random_clusters_of_1_37() {
    check(&lines(&shared_corpus("allocator-random/cases-1.37.jsonl.gz")));
}

#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_rounding_of_capacity() {
    let rows: Vec<Value> =
        serde_json::from_slice(&fs::read(shared_corpus("consumable_capacity.json")).unwrap()).unwrap();
    let wrong: Vec<_> = rows.iter().filter_map(capacity_difference).collect();
    println!("{} of {} rows agree", rows.len() - wrong.len(), rows.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Compares amounts as numbers: the table is from a version that wrote an amount on a step in binary format, and not
/// yet in that of the step.
fn capacity_difference(row: &Value) -> Option<String> {
    let quantity = |value: &Value| value.as_str().map(|text| text.parse::<Quantity>().unwrap());
    let requested = quantity(&row["requestedVal"]);
    let actual = match row["function"].as_str()? {
        "calculateConsumedCapacity" => {
            let capacity: DeviceCapacity = serde_json::from_value(row["deviceCapacity"].clone()).unwrap();
            let consumed = capacity::consumed(&capacity, requested, Fractions::RoundedUp).ok();
            if consumed == quantity(&row["actual"]) {
                return None;
            }
            json!(consumed)
        }
        "violatesPolicy" => {
            let policy: Option<CapacityRequestPolicy> = serde_json::from_value(row["requestPolicy"].clone()).unwrap();
            json!(capacity::violates(requested?, policy.as_ref(), Fractions::RoundedUp).ok())
        }
        _ => return None,
    };
    (actual != row["actual"]).then(|| format!("{row}\n  got {actual}"))
}

/// Texts that the results of random cases must contain now and then.
const SEEN: [&str; 10] = [
    "adminAccess",
    "bindingConditions",
    "consumedCapacity",
    "FromClaim",
    "FromClass",
    "matchExpressions",
    "shareID",
    "skipNodeOperations",
    "/sub-1",
    "tolerations",
];

/// Checks the generator: all kinds of answers occur, and a case that is written reads back as the same case.
#[test]
fn random_cases_have_all_answers() {
    let mut kinds: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..1000 {
        let case = oracle::random::case(seed);
        let (answer, steps) = allocate_counting(&case, FEW_STEPS);
        let again = allocate_counting(&Case::from_json(case.to_json()), FEW_STEPS);
        assert_eq!((&answer, steps), (&again.0, again.1), "seed {seed}");
        *kinds.entry(kind(&answer)).or_default() += 1;
        if let Answer::Allocated(results) = &answer {
            let text = json!(results).to_string();
            for seen in SEEN.into_iter().filter(|seen| text.contains(seen)) {
                *kinds.entry(seen).or_default() += 1;
            }
            let devices = results.iter().flat_map(|result| &result.devices).flat_map(|devices| &devices.results);
            let least = case.claims.iter().map(least_steps).sum::<usize>() + devices.flatten().count() + 1;
            *kinds.entry("turned back").or_default() += u32::from(steps > u64::try_from(least).unwrap());
        }
    }
    println!("{kinds:?}");
    let wanted =
        [("allocated", 250), ("turned back", 50), ("unsatisfied", 250), ("failed on node", 25), ("failed", 50)];
    for (kind, least) in wanted.into_iter().chain(SEEN.map(|seen| (seen, 10))) {
        assert!(kinds.get(kind).is_some_and(|count| *count >= least), "{kind}: {kinds:?}");
    }
}

const fn kind(answer: &Answer) -> &'static str {
    match answer {
        Answer::Allocated(_) => "allocated",
        Answer::Unsatisfied => "unsatisfied",
        Answer::FailedOnNode(_) => "failed on node",
        Answer::Failed(_) => "failed",
        Answer::Stopped => "stopped",
    }
}

/// Returns the number of steps of a claim besides those for its devices, without backtracking.
fn least_steps(claim: &ResourceClaim) -> usize {
    let devices = claim.spec.as_ref().and_then(|spec| spec.devices.as_ref());
    let requests = devices.and_then(|devices| devices.requests.as_ref()).into_iter().flatten();
    1 + requests.map(|request| if request.exactly.is_some() { 1 } else { 2 }).sum::<usize>()
}
