//! An object as the API server keeps it: absent values replaced by their defaults, amounts in one form.
//!
//! The types of the API server don't tell an empty text and a 0 from an absent value. Where such a field has a default,
//! it is filled in before validation.
//!
//! Source: `pkg/apis/resource/v1/defaults.go`, `resource.Quantity`, 1.37.

use std::sync::LazyLock;

use dra_attrs::{FieldPath, Quantity};
use dra_device::internal::Places;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::fields::{ALLOCATION_TIMES, AMOUNTS, OPTIONAL_AMOUNTS, REQUESTS, TAINTS, TOLERATIONS};

/// Go's zero time, which is written as an absent one.
pub(super) const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// Fills in one object; returns true if it has changed the object.
type FillIn = fn(&mut Value, Option<Timestamp>) -> bool;

/// Rules with the places that they fill in.
const RULES: [(&[&str], FillIn); 6] = [
    (REQUESTS, request),
    (TOLERATIONS, toleration),
    (TAINTS, taint),
    (ALLOCATION_TIMES, time),
    (AMOUNTS, amount),
    (OPTIONAL_AMOUNTS, optional_amount),
];

static PLACES: LazyLock<Places<FillIn>> = LazyLock::new(|| {
    Places::new(RULES.into_iter().flat_map(|(places, rule)| places.iter().map(move |place| (*place, rule))))
});

/// Fills in the JSON of an object, of a template that of its spec. `now` is the time of taints without one; without it
/// they stay as they are. Returns true if the object has changed.
pub(super) fn fill_in(object: &mut Value, now: Option<Timestamp>) -> bool {
    let mut changed = false;
    PLACES.visit(object, &FieldPath::root(), &mut |place, value, _| changed |= (place.rule)(value, now));
    changed
}

fn request(request: &mut Value, _: Option<Timestamp>) -> bool {
    let mut changed = default(request, "allocationMode", is_no_text, json!("ExactCount"));
    if request.get("allocationMode").is_some_and(|mode| mode == "ExactCount") {
        return default(request, "count", is_no_number, json!(1)) || changed;
    }
    let fields = request.as_object_mut();
    changed |= fields.is_some_and(|fields| fields.get("count") == Some(&json!(0)) && fields.remove("count").is_some());
    changed
}

fn toleration(toleration: &mut Value, _: Option<Timestamp>) -> bool {
    default(toleration, "operator", is_no_text, json!("Equal"))
}

fn taint(taint: &mut Value, now: Option<Timestamp>) -> bool {
    // The zero time is not filled in.
    if let Some(added) = taint.get_mut("timeAdded").filter(|added| **added == ZERO_TIME) {
        return time(added, now);
    }
    now.is_some_and(|now| default(taint, "timeAdded", is_no_text, json!(Time(now))))
}

/// The zero time is not written.
fn time(time: &mut Value, _: Option<Timestamp>) -> bool {
    *time == ZERO_TIME && !time.take().is_null()
}

fn amount(amount: &mut Value, now: Option<Timestamp>) -> bool {
    if is_no_text(amount) {
        *amount = json!("0");
        return true;
    }
    optional_amount(amount, now)
}

fn optional_amount(amount: &mut Value, _: Option<Timestamp>) -> bool {
    let stored = amount.as_str().and_then(|text| Quantity::stored_text(text).ok());
    stored.is_some_and(|stored| set(amount, json!(stored)))
}

/// Sets a field of an object that is absent, or counts as absent.
fn default(object: &mut Value, field: &str, is_absent: impl Fn(&Value) -> bool, value: Value) -> bool {
    let Some(fields) = object.as_object_mut() else { return false };
    let absent = fields.get(field).is_none_or(is_absent);
    if absent {
        fields.insert(field.to_owned(), value);
    }
    absent
}

fn set(place: &mut Value, value: Value) -> bool {
    let changed = *place != value;
    *place = value;
    changed
}

fn is_no_text(value: &Value) -> bool {
    value.is_null() || value == ""
}

fn is_no_number(value: &Value) -> bool {
    value.is_null() || value == 0
}
