//! Values in messages of a real API server: its internal types as JSON, with all fields in their order.

use dra_attrs::{BadValue, FieldError, FieldErrors};
use object_patches::Object;
use serde_json::Value;

/// Form of a field of an internal type.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Number, text or bool; an absent one is `null`.
    Pointer,
    /// Text; an absent one is empty.
    Text,
    /// List of texts, or a map.
    Whole,
    /// Struct that is always there.
    Struct(&'static [Field]),
    /// Struct that may be absent.
    Optional(&'static [Field]),
    /// List of structs.
    List(&'static [Field]),
}

use Form::{List, Optional, Pointer, Struct, Text, Whole};

/// Field: its name in Go, its name in JSON, its form.
type Field = (&'static str, &'static str, Form);

const CLAIM_SPEC: &[Field] = &[("Devices", "devices", Struct(DEVICE_CLAIM))];

const DEVICE_CLAIM: &[Field] = &[
    ("Requests", "requests", List(REQUEST)),
    ("Constraints", "constraints", List(CONSTRAINT)),
    ("Config", "config", List(CLAIM_CONFIG)),
];

const REQUEST: &[Field] = &[
    ("Name", "name", Text),
    ("Exactly", "exactly", Optional(EXACT)),
    ("FirstAvailable", "firstAvailable", List(SUBREQUEST)),
];

const EXACT: &[Field] = &[
    ("DeviceClassName", "deviceClassName", Text),
    ("Selectors", "selectors", List(SELECTOR)),
    ("AllocationMode", "allocationMode", Text),
    ("Count", "count", Pointer),
    ("AdminAccess", "adminAccess", Pointer),
    ("Tolerations", "tolerations", List(TOLERATION)),
    ("Capacity", "capacity", Optional(CAPACITY)),
];

const SUBREQUEST: &[Field] = &[
    ("Name", "name", Text),
    ("DeviceClassName", "deviceClassName", Text),
    ("Selectors", "selectors", List(SELECTOR)),
    ("AllocationMode", "allocationMode", Text),
    ("Count", "count", Pointer),
    ("Tolerations", "tolerations", List(TOLERATION)),
    ("Capacity", "capacity", Optional(CAPACITY)),
];

const SELECTOR: &[Field] = &[("CEL", "cel", Optional(&[("Expression", "expression", Text)]))];

const TOLERATION: &[Field] = &[
    ("Key", "key", Text),
    ("Operator", "operator", Text),
    ("Value", "value", Text),
    ("Effect", "effect", Text),
    ("TolerationSeconds", "tolerationSeconds", Pointer),
];

const CAPACITY: &[Field] = &[("Requests", "requests", Whole)];

const CONSTRAINT: &[Field] = &[
    ("Requests", "requests", Whole),
    ("MatchAttribute", "matchAttribute", Pointer),
    ("DistinctAttribute", "distinctAttribute", Pointer),
];

const OPAQUE: &[Field] = &[("Driver", "driver", Text), ("Parameters", "parameters", Whole)];

const CLAIM_CONFIG: &[Field] = &[("Requests", "requests", Whole), ("Opaque", "opaque", Optional(OPAQUE))];

const ALLOCATION: &[Field] = &[
    (
        "Devices",
        "devices",
        Struct(&[("Results", "results", List(RESULT)), ("Config", "config", List(ALLOCATED_CONFIG))]),
    ),
    ("NodeSelector", "nodeSelector", Optional(NODE_SELECTOR)),
    ("AllocationTimestamp", "allocationTimestamp", Pointer),
];

const RESULT: &[Field] = &[
    ("Request", "request", Text),
    ("Driver", "driver", Text),
    ("Pool", "pool", Text),
    ("Device", "device", Text),
    ("AdminAccess", "adminAccess", Pointer),
    ("Tolerations", "tolerations", List(TOLERATION)),
    ("BindingConditions", "bindingConditions", Whole),
    ("BindingFailureConditions", "bindingFailureConditions", Whole),
    ("ShareID", "shareID", Pointer),
    ("ConsumedCapacity", "consumedCapacity", Whole),
];

const ALLOCATED_CONFIG: &[Field] =
    &[("Source", "source", Text), ("Requests", "requests", Whole), ("Opaque", "opaque", Optional(OPAQUE))];

const NODE_SELECTOR: &[Field] = &[("NodeSelectorTerms", "nodeSelectorTerms", List(NODE_TERM))];

const NODE_TERM: &[Field] =
    &[("MatchExpressions", "matchExpressions", List(EXPRESSION)), ("MatchFields", "matchFields", List(EXPRESSION))];

const EXPRESSION: &[Field] = &[("Key", "key", Text), ("Operator", "operator", Text), ("Values", "values", Whole)];

const DEVICE_ID: &[Field] =
    &[("Driver", "driver", Text), ("Pool", "pool", Text), ("Device", "device", Text), ("ShareID", "shareID", Text)];

const POD_CLAIM: &[Field] = &[
    ("Name", "name", Text),
    ("ResourceClaimName", "resourceClaimName", Pointer),
    ("ResourceClaimTemplateName", "resourceClaimTemplateName", Pointer),
];

/// Writes a value as Go writes its type.
fn go(form: Form, value: Option<&Value>) -> String {
    let value = value.filter(|value| !value.is_null());
    match (form, value) {
        (Text, None) => "\"\"".to_owned(),
        (Struct(fields), value) => structure(fields, value.unwrap_or(&Value::Null)),
        (_, None) => "null".to_owned(),
        (Optional(fields), Some(value)) => structure(fields, value),
        (List(fields), Some(value)) => {
            let entries: Vec<String> = value.as_array().into_iter().flatten().map(|it| structure(fields, it)).collect();
            format!("[{}]", entries.join(","))
        }
        (_, Some(value)) => value.to_string(),
    }
}

fn structure(fields: &[Field], value: &Value) -> String {
    let parts: Vec<String> =
        fields.iter().map(|(name, field, form)| format!("\"{name}\":{}", go(*form, value.get(field)))).collect();
    format!("{{{}}}", parts.join(","))
}

/// A template has the metadata of its claims before their spec, without a name of its own.
fn template(spec: &Value) -> String {
    let metadata = spec.get("metadata").and_then(Value::as_object);
    let metadata = metadata.into_iter().flatten().map(|(field, value)| format!("\"{field}\":{value},"));
    format!(
        "{{{}\"Spec\":{}}}",
        metadata.collect::<String>(),
        structure(CLAIM_SPEC, spec.get("spec").unwrap_or(&Value::Null))
    )
}

/// Returns a claim of a pod as messages show it.
pub(crate) fn pod_claim(claim: &Value) -> BadValue {
    BadValue::literal(structure(POD_CLAIM, claim))
}

/// Writes the values of errors about an object as a real server does.
pub(crate) fn as_in_go(kind: &str, object: &Value, errors: &FieldErrors) -> FieldErrors {
    let shown = |error: &FieldError| {
        let mut error = error.clone();
        if let Some(text) = value_of(kind, object, &error) {
            error.value = BadValue::literal(text);
        }
        error
    };
    errors.iter().map(shown).collect()
}

fn value_of(kind: &str, object: &Value, error: &FieldError) -> Option<String> {
    // The specification of an error has the defaults that the object as it was sent lacks.
    let given = || match &error.value {
        BadValue::Literal(text) => serde_json::from_str::<Value>(text).ok(),
        _ => None,
    };
    match (kind, error.field.as_str()) {
        ("ResourceClaim", "spec") => given().map(|spec| structure(CLAIM_SPEC, &spec)),
        ("ResourceClaimTemplate", "spec") => given().map(|spec| template(&spec)),
        ("ResourceClaim", "status.allocation") => {
            object.pointer("/status/allocation").map(|allocation| structure(ALLOCATION, allocation))
        }
        ("ResourceClaim", field) => {
            let index = field.strip_prefix("status.devices[")?.strip_suffix(']')?;
            let device = object.pointer(&format!("/status/devices/{index}"))?;
            matches!(&error.value, BadValue::Text(text) if text.starts_with(device.text("/driver")))
                .then(|| structure(DEVICE_ID, device))
        }
        _ => None,
    }
}
