//! Bounds of SECURITY.md, measured: texts of 100 KB for each input of the libraries, made by three generators of different
//! kinds. Prints for each input the largest answer, the most memory and the most work of a search, and fails above the bound.
//! Times are in `.ci/release`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use dra_alloc::driver::{CdiSpec, DeviceMetadata, Ledger, MetadataVersion};
use dra_alloc::kubelet::ClaimCache;
use dra_alloc::objective::Objective;
use dra_alloc::validate::{Accepted, ApiServer, Write, read};
use dra_alloc::{AllocatedState, Allocator, Budget, Classes, GateSet, Inventory};
use dra_attrs::{Component, FieldErrors, Profile};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::serde::de::DeserializeOwned;
use poolstatus::{Cluster, Query};
use readiness::{EvaluatorRole, GatedNode, NodeState, Policy, step};
use serde_json::{Value, from_str, from_value, json};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Bytes of a text.
const SIZE: usize = 100_000;

/// Most bytes of an answer: ten times the text.
const MOST_ANSWER: usize = 10 * SIZE;

/// Most time for a text in `.ci/release`: twenty times the 50 ms that are aimed at.
const MOST_TIME: Duration = Duration::from_secs(1);

/// True if times decide, too.
const TIMED: bool = option_env!("BOUNDS_TIMED").is_some();

/// Texts of each generator for each input.
const TEXTS: u64 = if cfg!(debug_assertions) { 4 } else { 60 };

/// Reads a text. Returns the answer as text and the work of a search, or the refusal.
type Read = fn(&str) -> Result<(String, u64), String>;

/// Input of the libraries: an example that is not refused, and its reader.
struct Input {
    name: &'static str,
    sample: Value,
    read: Read,
    /// Most memory, as a multiple of the text.
    memory: usize,
}

/// Random numbers by a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(end).unwrap().max(1)).unwrap()
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Texts that strings of a long text repeat: plain ones, such that JSON escapes, wide ones, and pieces of expressions.
const PIECES: [&str; 10] = ["x", "\"", "\\", "é", "\u{200b}", "a||", "?", "device.x == 'é' &&\n", "1.", "a.b/c-"];

/// Values at the end of a range, or of another type.
const EDGES: [&str; 12] = [
    "9223372036854775807",
    "-9223372036854775808",
    "1e308",
    "-1",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"9999-12-31T23:59:59Z\"",
    "\"9223372036854775807Ei\"",
    "\"*\"",
];

/// Returns a part of a value, drawn among those that `wanted` admits; `None` if there is none.
fn drawn<'v>(value: &'v mut Value, wanted: fn(&Value) -> bool, random: &mut Random) -> Option<&'v mut Value> {
    fn count(value: &Value, wanted: fn(&Value) -> bool) -> usize {
        let below: usize = match value {
            Value::Array(items) => items.iter().map(|item| count(item, wanted)).sum(),
            Value::Object(fields) => fields.values().map(|field| count(field, wanted)).sum(),
            _ => 0,
        };
        below + usize::from(wanted(value))
    }
    fn nth<'v>(value: &'v mut Value, wanted: fn(&Value) -> bool, left: &mut usize) -> Option<&'v mut Value> {
        if wanted(value) {
            if *left == 0 {
                return Some(value);
            }
            *left -= 1;
        }
        match value {
            Value::Array(items) => items.iter_mut().find_map(|item| nth(item, wanted, left)),
            Value::Object(fields) => fields.values_mut().find_map(|field| nth(field, wanted, left)),
            _ => None,
        }
    }
    let number = count(value, wanted);
    let mut left = random.below(number);
    nth(value, wanted, &mut left)
}

fn room_left(text: &Value) -> usize {
    SIZE.saturating_sub(text.to_string().len())
}

/// One string is as long as the text.
fn long(sample: &Value, random: &mut Random) -> Value {
    let (mut value, piece) = (sample.clone(), random.of(&PIECES));
    let escaped = json!(piece).to_string().len() - 2;
    let times = room_left(sample) / escaped;
    if let Some(Value::String(text)) = drawn(&mut value, Value::is_string, random) {
        *text = piece.repeat(times);
    }
    value
}

/// The entry of a list or a map is there as often as the text has room; entries of maps have names of their own, and so have
/// objects of a list.
fn many(sample: &Value, random: &mut Random) -> Value {
    let mut value = sample.clone();
    let has_entries = |value: &Value| match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => false,
    };
    let room = room_left(sample);
    match drawn(&mut value, has_entries, random) {
        Some(Value::Array(items)) => {
            let entry = items[random.below(items.len())].clone();
            let times = room / (entry.to_string().len() + 4);
            let (is_named, piece) = (random.below(2) == 0, random.of(&PIECES));
            items.extend((0..times).map(|number| varied(&entry, number, is_named, piece)));
        }
        Some(Value::Object(fields)) => {
            let (key, entry) =
                fields.iter().nth(random.below(fields.len())).map(|(k, v)| (k.clone(), v.clone())).unwrap();
            let times = room / (entry.to_string().len() + key.len() + 10);
            fields.extend((0..times).map(|number| (format!("{key}{number}"), entry.clone())));
        }
        _ => {}
    }
    value
}

/// Returns an entry with a name of its own, or with an expression that has errors.
fn varied(entry: &Value, number: usize, is_named: bool, piece: &str) -> Value {
    let mut entry = entry.clone();
    if let Some(name) = entry.get_mut("name").filter(|_| is_named) {
        *name = json!(format!("{number}"));
    }
    if let Some(expression) = entry.pointer_mut("/cel/expression").filter(|_| !is_named) {
        *expression = json!(piece);
    }
    entry
}

/// Many entries, of which parts are at the end of their range, or of another type.
fn extreme(sample: &Value, random: &mut Random) -> Value {
    let mut value = many(sample, random);
    for _ in 0..random.below(20) {
        let edge = from_str(random.of(&EDGES)).unwrap();
        let is_leaf = |value: &Value| !value.is_array() && !value.is_object();
        if let Some(leaf) = drawn(&mut value, is_leaf, random) {
            *leaf = edge;
        }
    }
    value
}

/// Generator of texts from an example.
type Generator = fn(&Value, &mut Random) -> Value;

const GENERATORS: [(&str, Generator); 3] = [("long", long), ("many", many), ("extreme", extreme)];

fn server() -> ApiServer {
    ApiServer::new(Component::new(Profile::V1_37, GateSet::all()))
}

/// Reads an object as a server does, and returns it if it is stored, and the refusal else.
fn stored<T: DeserializeOwned + k8s_openapi::serde::Serialize>(
    text: &str,
    validate: fn(ApiServer, Write<'_, T>) -> Result<Accepted<T>, FieldErrors>,
) -> Result<T, String> {
    let value: Value = from_str(text).map_err(|error| error.to_string())?;
    let found = read(value, Profile::V1_37).map_err(|error| error.to_string())?;
    let object: T = from_value(found.object).map_err(|error| error.to_string())?;
    match validate(server(), Write::create(&object)) {
        Ok(accepted) => Ok(accepted.object),
        Err(errors) => Err(errors.to_string()),
    }
}

fn silent<T>(stored: Result<T, impl ToString>) -> Result<(String, u64), String> {
    stored.map(|_| (String::new(), 0)).map_err(|error| error.to_string())
}

fn request(name: &str) -> Value {
    let selectors = json!([{"cel": {"expression": "device.driver == 'd'"}}]);
    let toleration = json!({"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5});
    json!({"name": name, "exactly": {"deviceClassName": "gpu", "selectors": selectors, "tolerations": [toleration],
        "allocationMode": "ExactCount", "count": 1, "capacity": {"requests": {"memory": "1Gi"}}}})
}

fn claim() -> Value {
    let either = json!({"name": "b", "firstAvailable": [{"name": "x", "deviceClassName": "gpu"}, {"name": "y", "deviceClassName": "gpu"}]});
    let constraint = json!({"requests": ["a"], "matchAttribute": "d/model"});
    let config = json!({"requests": ["a"], "opaque": {"driver": "d", "parameters": {"kind": "K", "deep": [[["x"]]]}}});
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "n",
        "labels": {"l": "v"}, "annotations": {"a": "b"}}, "spec": {"devices": {
        "requests": [request("a"), either], "constraints": [constraint], "config": [config]}}})
}

fn slice() -> Value {
    let device = |name: &str| {
        json!({"name": name, "attributes": {"model": {"string": "m"}, "numa": {"int": 1}},
        "capacity": {"memory": {"value": "80Gi", "requestPolicy": {"default": "1Gi", "validValues": ["1Gi", "2Gi"]}}},
        "allowMultipleAllocations": true, "taints": [{"key": "k", "effect": "NoSchedule"}],
        "consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "1"}}}]})
    };
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {"driver": "d",
        "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [device("a"), device("b")]}})
}

/// Validates a claim, and searches devices for it on a node with eight.
fn read_claim(text: &str) -> Result<(String, u64), String> {
    let claim: ResourceClaim = stored(text, ApiServer::validate_claim)?;
    let device = |number: usize| {
        json!({"name": format!("g{number}"), "attributes": {"model": {"string": "m"}},
            "capacity": {"memory": {"value": "80Gi"}}})
    };
    let slice = json!({"metadata": {"name": "s"}, "spec": {"driver": "d", "nodeName": "n",
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": (0..8).map(device).collect::<Vec<_>>()}});
    let class: DeviceClass = from_value(json!({"metadata": {"name": "gpu"}, "spec": {}})).unwrap();
    let node: Node = from_value(json!({"metadata": {"name": "n"}})).unwrap();
    let inventory = Inventory::new([from_value::<ResourceSlice>(slice).unwrap()]);
    let classes = Classes::new([class]);
    let (state, allocator) = (AllocatedState::default(), Allocator::new(Profile::V1_37, &inventory, &classes));
    let verdict = allocator.allocate(&state, &node, [&claim], Budget::default()).map_err(|error| error.to_string())?;
    Ok((String::new(), verdict.work))
}

/// Validates a slice, and reports on its pool.
fn read_slice(text: &str) -> Result<(String, u64), String> {
    let slices = [stored::<ResourceSlice>(text, ApiServer::validate_slice)?];
    let report =
        Cluster::new(Profile::V1_37, &slices, &[] as &[ResourceClaim]).report(&Query::new("d"), Timestamp::UNIX_EPOCH);
    Ok((format!("{:?}", report.to_kep()), 0))
}

/// Evaluates the gates of a node.
fn read_node(text: &str) -> Result<(String, u64), String> {
    let node: GatedNode = from_str(text).map_err(|error| error.to_string())?;
    let state = NodeState::default();
    let after = step(&Policy::kep(), EvaluatorRole::Combined, &node.view(), Timestamp::UNIX_EPOCH, state);
    Ok((serde_json::to_string(&after.state).unwrap(), 0))
}

fn read_objective(text: &str) -> Result<(String, u64), String> {
    let value = from_str(text).map_err(|error| error.to_string())?;
    Objective::from_json(&value).map(|objective| (objective.to_string(), 0)).map_err(|error| error.to_string())
}

fn read_metadata(text: &str) -> Result<(String, u64), String> {
    silent(DeviceMetadata::from_stream(text, &MetadataVersion::ALL.map(MetadataVersion::api_version)))
}

/// Reads a checkpoint with this data and its checksum, as a kubelet's disk has it.
fn read_checkpoint(text: &str) -> Result<(String, u64), String> {
    let file = json!({"Data": text, "Checksum": crc32fast::hash(text.as_bytes())}).to_string();
    silent(ClaimCache::from_checkpoint(file.as_bytes()))
}

fn read_ledger(text: &str) -> Result<(String, u64), String> {
    let file = json!({"version": 1, "checksum": crc32fast::hash(text.as_bytes()), "data": text}).to_string();
    silent(Ledger::from_checkpoint(file.as_bytes()))
}

fn inputs() -> Vec<Input> {
    let template = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "n"}, "spec": {"metadata": {"labels": {"l": "v"}}, "spec": claim()["spec"]}});
    let class = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {
        "selectors": [{"cel": {"expression": "device.driver == 'd'"}}], "extendedResourceName": "e.com/gpu",
        "config": [{"opaque": {"driver": "d", "parameters": {"kind": "K"}}}]}});
    let rule = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "r"}, "spec": {
        "deviceSelector": {"driver": "d", "pool": "p"}, "taint": {"key": "k", "value": "v", "effect": "NoExecute"}}});
    let condition = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let node = json!({"metadata": {"name": "n", "labels": {"l": "v"}}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}],
        "readinessGates": [{"conditionType": "e.com/ready", "timeoutSeconds": 3,
            "readinessTaint": {"key": "a", "effect": "NoSchedule"}}]},
        "status": {"conditions": [condition], "nodeInfo": {"bootID": "1"}}});
    let objective = json!([[{"term": "opened", "by": "counter_set"}, {"term": "distance", "levels": ["d/root", "d/numa"]}], [{"term": "options"}]]);
    let metadata = json!({"kind": "DeviceMetadata", "apiVersion": MetadataVersion::ALL[0].api_version(),
        "metadata": {"name": "c", "namespace": "n", "uid": "u"}, "requests": [{"name": "r", "devices": [{"driver": "d",
        "pool": "p", "name": "g", "attributes": {"model": {"string": "m"}}}]}]});
    let cdi = json!({"cdiVersion": "0.6.0", "kind": "v.com/c", "devices": [{"name": "d", "containerEdits": {
        "env": ["A=B"], "mounts": [{"hostPath": "/a", "containerPath": "/b", "options": ["ro"]}]}}], "annotations": {"a": "b"}});
    let prepared = json!({"PoolName": "p", "DeviceName": "x", "ShareID": null, "RequestNames": ["r"], "CDIDeviceIDs": ["v.com/c=x"]});
    let entry = json!({"ClaimUID": "u", "ClaimName": "c", "Namespace": "n", "PodUIDs": {"p": {}},
        "DriverState": {"d.example.com": {"Devices": [prepared], "SkipNodeOperations": ["*"]}}});
    let checkpoint = json!({"kind": "DRACheckpoint", "apiVersion": "checkpoint.dra.kubelet.k8s.io/v1",
        "ClaimInfoStateList": [entry]});
    let ledger = json!({"entries": {"u": {"namespace": "n", "name": "c", "state": "Completed", "bootId": "b",
        "resourceVersion": "7", "results": [{"request": "r", "pool": "p", "device": "g", "cdiIds": ["v.com/c=d"]}]}},
        "tombstones": {"v": {"resourceVersion": "3", "until": "2026-11-22T10:00:00Z"}}});
    let input = |name, sample, read, memory| Input { name, sample, read, memory };
    vec![
        input("ResourceClaim", claim(), read_claim as Read, 80),
        input("ResourceClaimTemplate", template, |text| silent(stored(text, ApiServer::validate_claim_template)), 80),
        input("DeviceClass", class, |text| silent(stored(text, ApiServer::validate_class)), 120),
        input(
            "DeviceTaintRule",
            rule,
            |text| silent(stored::<DeviceTaintRule>(text, ApiServer::validate_taint_rule)),
            30,
        ),
        input("ResourceSlice", slice(), read_slice, 100),
        input("Node with gates", node, read_node, 40),
        input("objective", objective, read_objective, 60),
        input("device metadata", metadata, read_metadata, 60),
        input("CDI spec", cdi, |text| silent(from_str::<CdiSpec>(text)), 20),
        input("checkpoint", checkpoint, read_checkpoint, 60),
        input("ledger", ledger, read_ledger, 60),
    ]
}

#[test]
fn texts_of_100_kb_stay_within_their_bounds() {
    println!("{:22} {:>9} {:>9} {:>9} {:>9}  generators", "input", "answer KB", "memory n", "work", "ms");
    for input in inputs() {
        let sample = (input.read)(&input.sample.to_string());
        assert!(sample.is_ok(), "{}: {sample:?}", input.name);
        let (mut answer, mut memory, mut work, mut time) = (0, 0, 0, Duration::ZERO);
        let mut dearest = "";
        for (number, (kind, generate)) in GENERATORS.into_iter().enumerate() {
            let mut random = Random(20_261_129 + number as u64);
            for _ in 0..TEXTS {
                let text = generate(&input.sample, &mut random).to_string();
                let begin = Instant::now();
                drop((input.read)(&text));
                time = time.max(begin.elapsed());
                let profiler = dhat::Profiler::builder().testing().build();
                let (told, searched) = (input.read)(&text).unwrap_or_else(|refusal| (refusal, 0));
                let most = dhat::HeapStats::get().max_bytes;
                drop(profiler);
                let of = format!("{}: {kind}: {}", input.name, text.chars().take(200).collect::<String>());
                assert!(told.len() <= MOST_ANSWER, "{of}: an answer of {} bytes", told.len());
                assert!(most <= input.memory * SIZE, "{of}: {most} bytes of memory");
                if most > memory {
                    dearest = kind;
                }
                (answer, memory, work) = (answer.max(told.len()), memory.max(most), work.max(searched));
            }
        }
        if TIMED {
            assert!(time <= MOST_TIME, "{}: {time:?}", input.name);
        }
        let (kilobytes, times, time) = (answer / 1_000, memory / SIZE, time.as_millis());
        println!("{:22} {kilobytes:>9} {times:>9} {work:>9} {time:>9}  {dearest}", input.name);
    }
}
