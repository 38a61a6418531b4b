//! Shared tables of selectors, which have the answers of Kubernetes' own code.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod shared_corpus;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};

use dra_alloc::selector::{CompileError, Evaluation, Options, Selector, SelectorInput, Value as Outcome};
use dra_alloc::{Gate, GateSet};
use flate2::read::GzDecoder;
use k8s_openapi::api::resource::v1::Device;
use serde_json::{Value, json};
use shared_corpus::shared_corpus;

/// Expressions that are answered otherwise, each with the reason.
const DIFFERENT: [(&str, &str); 7] = [
    ("quantity(\"1e", "beyond 128 bits a quantity is shown in nano-units"),
    ("cel.bind(x, [], x + [1] + x)", "a bound empty list is changed by `+` in upstream"),
    ("cel.bind(x, dyn([]), x + [1] + x)", "a bound empty list is changed by `+` in upstream"),
    ("cel.bind(x, [], (x + [1]).size()", "a bound empty list is changed by `+` in upstream"),
    (".sub(-9223372036854775808)", "the sign of the smallest int is lost in upstream"),
    ("lists.range(2000000)", "refused before it is made, so that its cost is not counted"),
    ("isInteger()", "quantities beyond 64 bits are integers by their digits"),
];

/// Loops over maps whose order is random in upstream: the recorded costs are not all that there are.
const RANDOM: [&str; 3] = ["dm == ", "n == \"model\"", "4 / v"];

#[derive(Default)]
struct Report {
    counts: BTreeMap<&'static str, (usize, usize)>,
    problems: Vec<String>,
}

impl Report {
    fn add(&mut self, what: &'static str, is_right: bool, expression: &str, detail: impl FnOnce() -> String) {
        let (right, all) = self.counts.entry(what).or_default();
        *all += 1;
        *right += usize::from(is_right);
        let is_known = || DIFFERENT.iter().any(|(known, _)| expression.contains(known));
        let is_random = || what == "cost" && RANDOM.iter().any(|known| expression.contains(known));
        if !is_right && !is_known() && !is_random() && !matches!(what, "issue" | "text") {
            self.problems.push(format!("{what}: {expression}: {}", detail()));
        }
    }

    /// Returns true if more than 98 % are right.
    fn is_close(&self, what: &str) -> bool {
        let (right, all) = self.counts[what];
        right * 100 > all * 98
    }
}

#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_cases() {
    let file = shared_corpus("cel/cases.jsonl.gz");
    let mut lines = BufReader::new(GzDecoder::new(File::open(file).unwrap())).lines();
    let head: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let devices: Vec<(String, Device)> = head["devices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["driver"].as_str().unwrap().to_owned(), serde_json::from_value(row["device"].clone()).unwrap()))
        .collect();
    let mut report = Report::default();
    for line in lines {
        let case: Value = serde_json::from_str(&line.unwrap()).unwrap();
        check_case(&case, &devices, &mut report);
    }
    println!("{:?}", report.counts);
    assert!(report.problems.is_empty(), "{}", report.problems.join("\n"));
    assert!(report.counts["value"].1 > 80_000);
    assert!(report.is_close("issue") && report.is_close("text"), "{:?}", report.counts);
}

fn check_case(case: &Value, devices: &[(String, Device)], report: &mut Report) {
    let expression = case["expr"].as_str().unwrap();
    let gates = GateSet::all().without(Gate::ConsumableCapacity).without(Gate::ListTypeAttributes);
    for (mode, options) in [("stored", Options::stored()), ("newOff", Options::new_expression(gates))] {
        let expected = if case[mode] == "same" { &case["stored"] } else { &case[mode] };
        let compiled = Selector::compile(expression, &options);
        check_compiled(expression, expected, compiled.as_ref(), report);
    }
    let Ok(selector) = Selector::compile_any(expression, &Options::stored()) else { return };
    for (index, (value, cost)) in
        case["v"].as_array().into_iter().flatten().zip(case["c"].as_array().into_iter().flatten()).enumerate()
    {
        let alternatives = case["alts"][index.to_string()].as_array();
        let wanted: Vec<(&str, u64)> = std::iter::once((value, cost))
            .chain(alternatives.into_iter().flatten().map(|pair| (&pair[0], &pair[1])))
            .map(|(value, cost)| (value.as_str().unwrap(), cost.as_u64().unwrap()))
            .collect();
        if wanted[0].0.contains("interrupted") {
            continue;
        }
        let (driver, device) = &devices[index];
        let evaluation = selector.evaluate(SelectorInput::new(driver, device));
        let found = shown(&evaluation, case["of"] == "match");
        let is_error = |text: &str| text.starts_with("E:");
        let detail = || format!("device {index}: {found} at {}, expected {wanted:?}", evaluation.cost);
        let equal = |text: &str| if is_error(text) { is_error(&found) } else { normal(text) == normal(&found) };
        report.add("value", wanted.iter().any(|(text, _)| equal(text)), expression, detail);
        report.add("cost", wanted.iter().any(|(_, cost)| *cost == evaluation.cost), expression, detail);
        if is_error(&found) {
            report.add("text", wanted.iter().any(|(text, _)| *text == found), expression, detail);
        }
    }
}

fn check_compiled(expression: &str, expected: &Value, compiled: Result<&Selector, &CompileError>, report: &mut Report) {
    let class = match compiled {
        Ok(_) => "ok",
        Err(CompileError::Syntax { .. }) => "parse",
        Err(CompileError::Type { .. }) => "check",
        Err(CompileError::NotBool { .. }) => "type",
        Err(_) => "program",
    };
    let wanted = expected["class"].as_str().unwrap();
    if wanted == "panic" {
        return;
    }
    report.add("class", class == wanted, expression, || format!("{compiled:?}, expected {expected}"));
    match compiled {
        Ok(selector) => {
            let (min, max) = selector.estimated_cost();
            let is_right =
                expected["min"] == min && expected["max"] == max && expected["type"] == selector.result_type();
            report.add("estimate", is_right, expression, || format!("{min} to {max}, expected {expected}"));
        }
        Err(CompileError::Syntax { report: issues } | CompileError::Type { report: issues }) => {
            let first = issues.issues().next().unwrap();
            let (line, column) = first.0.map_or((-1, 0), |(line, column)| (i64::from(line), i64::from(column)));
            let is_right = expected["issues"][0] == json!([line, column, first.1]);
            report.add("issue", is_right, expression, || format!("{first:?}, expected {expected}"));
            if let Some(text) = expected["text"]
                .as_str()
                .filter(|_| is_right && expected["issues"].as_array().is_some_and(|all| all.len() == 1))
            {
                let shown = compiled.map_or_else(ToString::to_string, |_| String::new());
                report.add("report", shown == text, expression, || format!("{shown}, expected {text}"));
            }
        }
        Err(error) => {
            let is_right = expected["text"].as_str().is_some_and(|text| error.to_string() == text);
            report.add("issue", is_right, expression, || format!("{error}, expected {expected}"));
        }
    }
}

/// Returns an outcome as the corpus writes it.
fn shown(evaluation: &Evaluation, is_selector: bool) -> String {
    match &evaluation.result {
        Ok(Outcome::Bool(true)) if is_selector => "T".to_owned(),
        Ok(Outcome::Bool(false)) if is_selector => "F".to_owned(),
        Ok(value) => value.to_string(),
        Err(error) => format!("E:{}", error.message()),
    }
}

/// Returns a value with its quantities in nano-units, without kind and format.
fn normal(text: &str) -> String {
    if text.starts_with("kubernetes.NamedFormat") {
        return "format".to_owned();
    }
    let words = text.replace("*quantity ", "").replace("quantity ", "");
    let words = words.split_inclusive([' ', ',', ']', '}']).map(|word| {
        let bare = word.trim_end_matches([' ', ',', ']', '}']);
        let nanos = bare.parse::<dra_attrs::Quantity>().map(|quantity| quantity.nanos().to_string());
        nanos.ok().filter(|_| !bare.is_empty()).map_or_else(|| word.to_owned(), |nanos| word.replacen(bare, &nanos, 1))
    });
    words.collect()
}

#[test]
#[ignore = "needs ../shared/corpus"]
fn shared_table() {
    let file = shared_corpus("cel.json");
    let rows: Vec<Value> = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert!(!rows.is_empty());
    let wrong: Vec<String> = rows.iter().filter_map(difference).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the environment that a row was recorded in: its name tells of gates that are off.
fn options(name: &str) -> Options {
    let is_new = name.starts_with("NewExpressions")
        || ["includes-function-compilation-error", "allow_multiple_allocations_disabled"].contains(&name);
    if !is_new {
        return Options::stored();
    }
    let is_on = |gate: &str| name.contains(&format!("{gate}=true"));
    let gates = GateSet::all()
        .with_values([(Gate::ConsumableCapacity, is_on("consumable"))])
        .with_values([(Gate::ListTypeAttributes, is_on("list"))]);
    Options::new_expression(gates)
}

/// Returns the difference from the answer of Kubernetes.
fn difference(row: &Value) -> Option<String> {
    let name = row["name"].as_str().unwrap();
    let expected = &row["expected"];
    let expression = row["expression"].as_str().unwrap();
    let refusal = expected["compileErrorSubstring"].as_str().unwrap_or_default();
    let selector = match Selector::compile(expression, &options(name)) {
        Ok(_) if !refusal.is_empty() => return Some(format!("{name}: compiled, expected {refusal:?}")),
        Ok(selector) => selector,
        Err(error) => {
            let as_expected = refusal == "(any)" || !refusal.is_empty() && error.to_string().contains(refusal);
            return (!as_expected).then(|| format!("{name}: {error}, expected {refusal:?}"));
        }
    };
    let mut device = json!({ "name": "device", "attributes": row["attributes"], "capacity": row["capacity"] });
    if row["allowMultipleAllocations"].is_boolean() {
        device["allowMultipleAllocations"] = row["allowMultipleAllocations"].clone();
    }
    let device: Device = serde_json::from_value(device).unwrap();
    let result = selector.matches(SelectorInput::new(row["driver"].as_str().unwrap(), &device));
    let failure = expected["matchErrorSubstring"].as_str().unwrap_or_default();
    let as_expected = match &result {
        Ok(matches) => failure.is_empty() && *matches == expected["match"].as_bool().unwrap_or_default(),
        Err(error) => !failure.is_empty() && error.to_string().contains(failure),
    };
    (!as_expected).then(|| format!("{name}: {result:?}, expected {expected}"))
}
