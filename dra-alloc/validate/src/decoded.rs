//! JSON of an object as the API server decodes it: what the types of k8s-openapi can't tell.

use std::sync::LazyLock;

use dra_attrs::{FieldError, FieldErrors, FieldPath, Quantity, QuantityError};
use dra_device::internal::Places;
use serde_json::{Value, json};

use super::fields::{AMOUNTS, CONDITIONS, OPTIONAL_AMOUNTS, TIMES};
use super::quantity::FORM;
use super::stored::ZERO_TIME;

const NO_TIME: &str = "must be a time as in RFC 3339, such as 2026-01-31T10:30:00Z";

/// Prepares the JSON of a slice, claim, claim template or taint rule for deserialization, as the API server reads it. A text
/// that is no amount is refused, also the empty one; in the types of k8s-openapi it equals an absent amount. So is a time that is
/// not written as in RFC 3339, of which k8s-openapi reads more forms. A condition without `lastTransitionTime`, which
/// k8s-openapi can't read, gets the zero time.
///
/// # Errors
/// Every such amount and time, with the path of its field. The API server answers such a request with status 400, before
/// any validation.
///
/// # Complexity
/// Linear in the size of the object.
///
/// ```
/// use dra_validate::decoded;
/// use serde_json::json;
/// let empty = json!({"spec": {"devices": [{"name": "gpu-0", "capacity": {"memory": {"value": ""}}}]}});
/// assert_eq!(decoded(empty).unwrap_err().as_slice()[0].field, "spec.devices[0].capacity[memory].value");
/// let spaced = json!({"spec": {"taint": {"timeAdded": "2026-01-01 00:00:00Z"}}});
/// assert_eq!(decoded(spaced).unwrap_err().as_slice()[0].field, "spec.taint.timeAdded");
/// assert!(decoded(json!({"spec": {"devices": [{"capacity": {"memory": {}}}]}})).is_ok());
/// ```
pub fn decoded(mut object: Value) -> Result<Value, FieldErrors> {
    let mut refused = Vec::new();
    let mut check = |object: &mut Value, root: &FieldPath<'_>, is_in_template: bool| {
        CHECKED.visit(object, root, &mut |place, value, at| {
            let Check { is_refused, detail } = place.rule;
            if is_refused(value) {
                let error = FieldError::invalid(at, value.as_str().unwrap_or_default(), detail);
                refused.push(((is_in_template, place.number), error));
            }
        });
    };
    check(&mut object, &FieldPath::root(), false);
    if let Some(spec) = object.get_mut("spec") {
        check(spec, &FieldPath::new("spec"), true);
    }
    refused.sort_by_key(|(order, _)| *order);
    TIMED.visit(&mut object, &FieldPath::root(), &mut |_, condition, _| {
        if let Some(condition) = condition.as_object_mut() {
            condition.entry("lastTransitionTime").or_insert_with(|| json!(ZERO_TIME));
        }
    });
    let mut errors = FieldErrors::new();
    for (_, error) in refused {
        errors.push(error);
    }
    errors.into_result().map(|()| object)
}

/// Check of a value before it is read.
#[derive(Clone, Copy, Debug)]
struct Check {
    is_refused: fn(&Value) -> bool,
    detail: &'static str,
}

/// Values that are checked, of an object and of the spec of a template.
static CHECKED: LazyLock<Places<Check>> = LazyLock::new(|| {
    let amount = Check { is_refused: |amount| amount.as_str().is_some_and(is_no_quantity), detail: FORM };
    let time = Check { is_refused: |time| time.as_str().is_some_and(|time| !is_rfc3339(time)), detail: NO_TIME };
    let amounts = AMOUNTS.iter().chain(OPTIONAL_AMOUNTS).map(|place| (*place, amount));
    Places::new(amounts.chain(TIMES.iter().map(|place| (*place, time))))
});

/// Conditions, which get a time.
static TIMED: LazyLock<Places<()>> = LazyLock::new(|| Places::new(CONDITIONS.iter().map(|place| (*place, ()))));

/// Returns true for a text that is no quantity. One beyond the range of [`Quantity`] is one.
fn is_no_quantity(text: &str) -> bool {
    matches!(text.trim().parse::<Quantity>(), Err(error) if !matches!(error, QuantityError::OutOfRange { .. }))
}

/// Returns true for the one form of a time that the API server reads: `2026-01-31T10:30:00Z`, with any number of
/// fractional digits, and `Z` or an offset.
fn is_rfc3339(text: &str) -> bool {
    const FORM: &str = "dddd-dd-ddTdd:dd:dd";
    const OFFSET: &str = "dd:dd";
    let fits = |text: &str, form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(c, kind)| if kind == b'd' { c.is_ascii_digit() } else { c == kind })
    };
    let Some((time, rest)) = text.split_at_checked(FORM.len()) else { return false };
    let zone = match rest.strip_prefix(['.', ',']) {
        Some(fraction) if fraction.starts_with(|c: char| c.is_ascii_digit()) => {
            fraction.trim_start_matches(|c: char| c.is_ascii_digit())
        }
        Some(_) => return false,
        None => rest,
    };
    let is_zone = zone == "Z" || zone.strip_prefix(['+', '-']).is_some_and(|offset| fits(offset, OFFSET));
    // A leap second is none.
    fits(time, FORM) && is_zone && !time.ends_with(":60")
}
