//! Selection of objects by labels and fields, as lists and watches ask for it.

use std::collections::BTreeMap;

use dra_attrs::label_selector_matches;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use object_patches::Object;
use serde_json::Value;

use crate::kinds::Kind;
use crate::refusal::Refusal;

/// Objects that a list or watch is about.
#[derive(Clone, Debug)]
pub(crate) struct Selector {
    kind: &'static Kind,
    namespace: Option<String>,
    labels: LabelSelector,
    /// Fields with the values that they must have, or must not have.
    fields: Vec<(String, Comparison, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
}

impl Selector {
    /// Reads the selectors of a request.
    ///
    /// # Errors
    /// A selector is malformed, or names a field that selects nothing of the kind.
    pub(crate) fn parse(
        kind: &'static Kind,
        namespace: Option<String>,
        labels: &str,
        fields: &str,
    ) -> Result<Self, Refusal> {
        let labels = terms(labels).into_iter().map(requirement).collect::<Result<Vec<_>, _>>()?;
        let fields = terms(fields).into_iter().map(|term| field(kind, term)).collect::<Result<Vec<_>, _>>()?;
        let labels = LabelSelector { match_expressions: Some(labels), match_labels: None };
        Ok(Self { kind, namespace, labels, fields })
    }

    pub(crate) const fn kind(&self) -> &'static Kind {
        self.kind
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Returns true for an object of the kind that is selected.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let is_equal = |field: &str, value: &str| {
            let found = object.pointer(&format!("/{}", field.replace('.', "/")));
            match found {
                Some(Value::Bool(flag)) => flag.to_string() == value,
                Some(found) => found.as_str().unwrap_or_default() == value,
                None => value.is_empty() || (value == "false" && field == "spec.unschedulable"),
            }
        };
        let is_here = self.namespace.as_deref().is_none_or(|namespace| object.metadata("namespace") == namespace);
        let mut fields = self.fields.iter();
        is_here
            && fields.all(|(field, comparison, value)| is_equal(field, value) == (*comparison == Comparison::Equal))
            && label_selector_matches(&self.labels, &labels_of(object)).unwrap_or(false)
    }
}

fn labels_of(object: &Value) -> BTreeMap<String, String> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    labels.into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect()
}

/// Splits a selector at the commas outside of parentheses.
fn terms(selector: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    let split = selector.split(move |c: char| {
        match c {
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    split.map(str::trim).filter(|term| !term.is_empty()).collect()
}

fn requirement(term: &str) -> Result<LabelSelectorRequirement, Refusal> {
    let make = |key: &str, operator: &str, values: Option<Vec<String>>| LabelSelectorRequirement {
        key: key.trim().to_owned(),
        operator: operator.to_owned(),
        values,
    };
    let one = |value: &str| match value.split_whitespace().nth(1) {
        Some(further) => Err(Refusal::bad_request(format!(
            "unable to parse requirement: found '{further}', expected: ',' or 'end of string'"
        ))),
        None => Ok(Some(vec![value.trim().to_owned()])),
    };
    if let Some((key, value)) = term.split_once("!=") {
        return Ok(make(key, "NotIn", one(value)?));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return Ok(make(key, "In", one(value)?));
    }
    if let Some((head, values)) = term.strip_suffix(')').and_then(|term| term.split_once('(')) {
        let values = Some(values.split(',').map(|value| value.trim().to_owned()).collect());
        return match head.split_whitespace().collect::<Vec<_>>().as_slice() {
            [key, "in"] => Ok(make(key, "In", values)),
            [key, "notin"] => Ok(make(key, "NotIn", values)),
            _ => Err(Refusal::bad_request(format!("unable to parse requirement: {term:?}"))),
        };
    }
    match term.strip_prefix('!') {
        Some(key) => Ok(make(key, "DoesNotExist", None)),
        None if term.contains(char::is_whitespace) => {
            Err(Refusal::bad_request(format!("unable to parse requirement: {term:?}")))
        }
        None => Ok(make(term, "Exists", None)),
    }
}

fn field(kind: &Kind, term: &str) -> Result<(String, Comparison, String), Refusal> {
    let parts = match term.split_once("!=") {
        Some((field, value)) => Some((field, Comparison::NotEqual, value)),
        None => term
            .split_once("==")
            .or_else(|| term.split_once('='))
            .map(|(field, value)| (field, Comparison::Equal, value)),
    };
    let Some((field, comparison, value)) = parts else {
        return Err(Refusal::bad_request(format!("invalid selector: '{term}'; can't understand '{term}'")));
    };
    if !["metadata.name", "metadata.namespace"].contains(&field) && !kind.selectable.contains(&field) {
        let sentence = match (kind.selectable, kind.group) {
            ([], _) => {
                format!("{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
            }
            (_, "") => format!("field label not supported: {field}"),
            _ => format!("field label not supported for {}, Kind={}: {field}", kind.api_version(), kind.name),
        };
        return Err(Refusal::bad_request(sentence));
    }
    Ok((field.to_owned(), comparison, value.to_owned()))
}
