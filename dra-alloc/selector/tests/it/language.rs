//! The language by examples: for each expression what Kubernetes' own code says of it, estimates, and computes on one
//! device.

use dra_selector::{CompileError, Options, Selector, SelectorInput, Value as Outcome};
use k8s_openapi::api::resource::v1::Device;
use serde_json::{Value, json};

const ROWS: &str = include_str!("golden/selectors.json");
const DEVICE: &str = include_str!("golden/selector_device.json");

/// Text that kube-scheduler adds to an error of the language itself.
const ADVICE: &str = ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() \
                      for optional fields";

#[test]
fn each_expression_is_answered_as_by_kubernetes() {
    let rows: Vec<Value> = serde_json::from_str(ROWS).unwrap();
    let device: Value = serde_json::from_str(DEVICE).unwrap();
    let driver = device["driver"].as_str().unwrap();
    let device: Device = serde_json::from_value(device["device"].clone()).unwrap();
    assert!(rows.len() > 300);
    let wrong: Vec<String> =
        rows.iter().filter_map(|row| difference(row, SelectorInput::new(driver, &device))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns what is answered otherwise.
fn difference(row: &Value, input: SelectorInput<'_>) -> Option<String> {
    let compiled = Selector::compile(row["expr"].as_str().unwrap(), &Options::stored());
    let found = match &compiled {
        Ok(selector) => {
            let (min, max) = selector.estimated_cost();
            let evaluation = selector.evaluate(input);
            let answer = match &evaluation.result {
                Ok(Outcome::Bool(true)) => "T".to_owned(),
                Ok(Outcome::Bool(false)) => "F".to_owned(),
                Ok(other) => other.to_string(),
                Err(error) => format!("E:{}", error.to_string().trim_end_matches(ADVICE)),
            };
            json!({"class": "ok", "min": min, "max": max, "v": answer, "c": evaluation.cost})
        }
        Err(CompileError::Syntax { report } | CompileError::Type { report }) => {
            let (place, message) = report.issues().next().unwrap();
            let (line, column) = place.map_or((-1, 0), |(line, column)| (i64::from(line), i64::from(column)));
            let class = if matches!(&compiled, Err(CompileError::Syntax { .. })) { "parse" } else { "check" };
            json!({"class": class, "issue": [line, column, message]})
        }
        Err(CompileError::NotBool { .. }) => json!({"class": "type"}),
        Err(_) => json!({"class": "program"}),
    };
    let is_same = found.as_object().unwrap().iter().all(|(key, value)| *value == row[key]);
    (!is_same).then(|| format!("{row}: {found}"))
}
