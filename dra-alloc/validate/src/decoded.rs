//! Values that the API server can't decode, and that the types of k8s-openapi can't tell from others.

use std::sync::LazyLock;

use dra_attrs::{FieldError, FieldErrors, FieldPath, Quantity, QuantityError};
use dra_device::internal::Places;
use serde_json::{Value, json};

use super::fields::{AMOUNTS, CONDITIONS, OPTIONAL_AMOUNTS, TIMES};
use super::quantity::FORM;
use super::stored::ZERO_TIME;

const NO_TIME: &str = "must be a time as in RFC 3339, such as 2026-01-31T10:30:00Z";

/// Checks the amounts and times of an object that the API server can't decode, of a template also those of its spec. A
/// condition without `lastTransitionTime`, which k8s-openapi can't read, gets the zero time.
pub(super) fn check(object: &mut Value) -> FieldErrors {
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
    check(object, &FieldPath::root(), false);
    if let Some(spec) = object.get_mut("spec") {
        check(spec, &FieldPath::new("spec"), true);
    }
    refused.sort_by_key(|(order, _)| *order);
    TIMED.visit(object, &FieldPath::root(), &mut |_, condition, _| {
        if let Some(condition) = condition.as_object_mut() {
            condition.entry("lastTransitionTime").or_insert_with(|| json!(ZERO_TIME));
        }
    });
    refused.into_iter().map(|(_, error)| error).collect()
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
