//! Tests of the amount that a request consumes of a capacity with a range, and of the error messages.

use dra_alloc::capacity::Rounding;
use k8s_openapi::api::resource::v1::{CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// A range: minimum, maximum (empty for none), step.
type Range = [&'static str; 3];

fn quantity(text: &str) -> Quantity {
    Quantity(text.to_owned())
}

fn capacity([min, max, step]: Range) -> DeviceCapacity {
    let max = Some(max).filter(|max| !max.is_empty()).map(quantity);
    let range = CapacityRequestPolicyRange { min: quantity(min), max, step: Some(quantity(step)) };
    let policy = CapacityRequestPolicy { valid_range: Some(range), ..CapacityRequestPolicy::default() };
    DeviceCapacity { value: quantity("100Pi"), request_policy: Some(policy) }
}

fn answer(request: &str, range: Range, rounding: Rounding) -> String {
    let consumed = rounding.consumed(Some(&quantity(request)), &capacity(range));
    consumed.map_or_else(|error| error.to_string(), |amount| amount.to_string())
}

#[test]
fn an_amount_on_a_step_is_written_in_the_format_of_the_step() {
    let rows = [
        ("1G", ["1M", "", "8"], "1G"),
        ("1900", ["0", "", "1k"], "2k"),
        ("3G", ["1G", "", "1G"], "3G"),
        ("3G", ["1Gi", "", "1Gi"], "3Gi"),
        ("2500Mi", ["1Gi", "", "1e9"], "3073741824"),
        ("1500m", ["1", "", "1"], "2"),
    ];
    for (request, range, expected) in rows {
        assert_eq!(answer(request, range, Rounding::Whole), expected, "{request} in {range:?}");
    }
}

#[test]
fn fractions_are_computed_in_thousandths_if_the_whole_range_can_be_said_in_them() {
    let rows = [
        ("1200m", ["500m", "", "500m"], "1500m"),
        ("1700m", ["500m", "", "500m"], "2"),
        // The maximum exceeds 64 bits of thousandths, so that everything is computed in whole units.
        ("1200m", ["500m", "16Pi", "500m"], "2"),
        ("9Pi", ["1Gi", "16Pi", "1Gi"], "9Pi"),
        ("1200m", ["500m", "", "500u"], "2"),
    ];
    for (request, range, expected) in rows {
        assert_eq!(answer(request, range, Rounding::Fractional), expected, "{request} in {range:?}");
    }
}

#[test]
fn what_a_range_cannot_say_is_an_error_with_its_reason() {
    let (whole, fractional) = (Rounding::Whole, Rounding::Fractional);
    let rows = [
        ("10E", ["1", "", "1"], whole, "request 10E exceeds MaxInt64"),
        (
            "9223372036854775807",
            ["1", "", "1Gi"],
            whole,
            "rounding request 9223372036854775807 up to the next step passes MaxInt64",
        ),
        ("9Pi", ["1", "", "1"], fractional, "request 9Pi is not a representable milli value"),
        ("1500u", ["1m", "", "1m"], fractional, "request 1500u is not a representable milli value"),
        (
            "9223372036854775807m",
            ["1m", "", "7"],
            fractional,
            "rounding request 9223372036854775807m up to the next step passes the milli-value range",
        ),
    ];
    for (request, range, rounding, expected) in rows {
        let expected = format!("capacity request cannot be represented in the device's range arithmetic: {expected}");
        assert_eq!(answer(request, range, rounding), expected);
    }
}

#[test]
fn only_amounts_on_a_step_are_permitted() {
    let rows = [("1500m", true), ("1200m", false), ("1500u", false), ("9Pi", false)];
    for (amount, expected) in rows {
        let permitted = Rounding::Fractional.permits(&quantity(amount), &capacity(["500m", "", "500m"])).unwrap();
        assert_eq!(permitted, expected, "{amount}");
    }
}

#[test]
fn a_range_without_a_minimum_rounds_nothing() {
    let max = CapacityRequestPolicyRange { max: Some(quantity("4")), ..CapacityRequestPolicyRange::default() };
    let policy = CapacityRequestPolicy { valid_range: Some(max), ..CapacityRequestPolicy::default() };
    let memory = DeviceCapacity { value: quantity("10"), request_policy: Some(policy) };
    for rounding in [Rounding::Whole, Rounding::Fractional] {
        assert_eq!(rounding.consumed(Some(&quantity("1500m")), &memory).unwrap().to_string(), "1500m");
        assert!(rounding.permits(&quantity("4"), &memory).unwrap());
        assert!(!rounding.permits(&quantity("5"), &memory).unwrap());
    }
}
