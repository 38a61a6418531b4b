//! Booleans in YAML where the API wants a string: `true` without quotes.

use serde_json::Value;

use super::problem::Fault;
use super::tree::Step;

/// Fields that hold strings, in which YAML reads `true` without quotes as a boolean. `*` stands for every entry.
const STRINGS: [&[&str]; 6] = [
    &["metadata", "labels", "*"],
    &["metadata", "annotations", "*"],
    &["spec", "taints", "*", "value"],
    &["spec", "readinessGates", "*", "readinessTaint", "value"],
    &["nodeReadinessGates", "*", "readinessTaint", "value"],
    &["status", "conditions", "*", "status"],
];

/// Checks that an object has no boolean in place of a string, and says what to write.
pub(super) fn check(object: &Value) -> Result<(), Fault> {
    let found = STRINGS.iter().find_map(|path| Some((path.last(), boolean(object, path)?)));
    let Some((field, (path, value))) = found else { return Ok(()) };
    let text = match (field, value) {
        (Some(&"status"), true) => "True",
        (Some(&"status"), false) => "False",
        (_, true) => "true",
        (_, false) => "false",
    };
    let reason = format!("a boolean, where the API wants a string: write \"{text}\", with the quotes");
    Err(Fault { path, reason })
}

/// Returns the first boolean at a path.
fn boolean(value: &Value, path: &[&str]) -> Option<(Vec<Step>, bool)> {
    let Some((step, rest)) = path.split_first() else { return value.as_bool().map(|value| (Vec::new(), value)) };
    let below = |step: Step, value: &Value| {
        let (path, value) = boolean(value, rest)?;
        Some(([vec![step], path].concat(), value))
    };
    match (step, value) {
        (&"*", Value::Array(entries)) => {
            entries.iter().enumerate().find_map(|(index, entry)| below(Step::Index(index), entry))
        }
        (&"*", Value::Object(entries)) => entries.iter().find_map(|(key, entry)| below(Step::Key(key.clone()), entry)),
        (key, _) => below((*key).into(), value.get(*key)?),
    }
}
