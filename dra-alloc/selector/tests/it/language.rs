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

#[test]
fn an_expensive_part_is_named_with_its_cause() {
    let model = "device.attributes['a'].s + device.attributes['a'].s";
    for (expression, said) in [
        ("lists.range(30000000) == [1]".to_owned(), "'lists.range' at line 1, column 12, can cost 30000011: a value that it reads can have the size 1"),
        (
            "device.driver.replace('a', device.driver).replace('a', device.driver).replace('a', device.driver).matches('a')".to_owned(),
            "'matches' at line 1, column 106, can cost 1626122: a value that it reads can have the size 15752961",
        ),
        (
            "device.driver.split('').join('') == ''".to_owned(),
            "'join' at line 1, column 29, has no limit on its cost: the elements of the list have no known size",
        ),
        (
            format!("lists.range(1000).all(i, lists.range(1000).all(j, ({model}).lowerAscii() == ''))"),
            "'all' at line 1, column 22, can cost 38016012: 1000 rounds, each of which can cost 38015",
        ),
    ] {
        let selector = Selector::compile(&expression, &Options::stored()).unwrap();
        assert_eq!(selector.too_complex().map(ToString::to_string).as_deref(), Some(said), "{expression}");
    }
}
