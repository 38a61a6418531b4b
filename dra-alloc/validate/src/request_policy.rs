//! Validation of the request policy of a capacity: listed values, or a range with steps (KEP-5075).

use dra_attrs::internal::release::{DefaultPath, RangeNumbers};
use dra_attrs::{BadValue, ErrorType, FieldError, FieldPath, Gate, Quantity};
use k8s_openapi::api::resource::v1::{CapacityRequestPolicy, CapacityRequestPolicyRange};

use super::context::ValidationContext;
use super::list::List;
use super::{limits, quantity};

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// Unit in which the steps of a range are counted: whole numbers, or thousandths.
#[derive(Clone, Copy)]
enum Unit {
    Whole,
    Milli,
}

/// Checks the request policy of a capacity. `value` is the whole capacity of the device.
pub(super) fn check(
    policy: &CapacityRequestPolicy,
    value: Quantity,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let values = policy.valid_values.as_ref().filter(|values| !values.is_empty());
    let at_default = at.child("default");
    let default = quantity::read_optional(policy.default.as_ref(), &at_default, context);
    match (values, &policy.valid_range) {
        (Some(_), Some(_)) => {
            let detail = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the \
                          same time";
            context.push(FieldError::forbidden(at, detail));
        }
        (None, None) => {}
        (Some(_), None) if policy.default.is_none() => {
            context.push(FieldError::required(&at_default, "required when validValues is defined"));
        }
        (None, Some(_)) if policy.default.is_none() => {
            context.push(FieldError::required(&at_default, "required when validRange is defined"));
        }
        (Some(_), None) => {
            let Some(default) = default else { return };
            check_values(policy, default, value, &at.child("validValues"), context);
        }
        (None, Some(range)) => {
            let Some(default) = default else { return };
            check_range(range, default, value, &at.child("validRange"), context);
        }
    }
}

fn check_values(
    policy: &CapacityRequestPolicy,
    default: Quantity,
    capacity: Quantity,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let texts = policy.valid_values.as_deref().unwrap_or_default();
    let values: Vec<Option<Quantity>> =
        texts.iter().enumerate().map(|(index, text)| quantity::read(text, &at.index(index), context)).collect();
    for (index, pair) in values.windows(2).enumerate() {
        if let [Some(one), Some(next)] = pair
            && one > next
        {
            let detail = "values must be sorted in ascending order";
            context.push(FieldError::invalid(&at.index(index.saturating_add(1)), next.to_string(), detail));
        }
    }
    let fractional = context.has(Gate::FractionalCapacityRange);
    let mut found = false;
    List::new(Some(&values)).at_most(limits::VALID_VALUES).each_unique(
        at,
        context,
        |value| match value {
            None => String::new(),
            Some(value) if fractional => decimal(*value),
            Some(value) => whole(*value).to_string(),
        },
        |value, at, context| {
            let Some(value) = value else { return };
            found |= *value == default;
            if *value > capacity {
                let detail = format!("option is larger than capacity value: {capacity}");
                context.push(FieldError::invalid(at, value.to_string(), detail));
            }
        },
    );
    if !found {
        let detail = "default value is not valid according to the requestPolicy";
        context.push(FieldError::invalid(at, default.to_string(), detail));
    }
}

/// Parsed bounds of a `validRange`, with the default of its policy.
struct Bounds {
    default: Quantity,
    min: Quantity,
    max: Option<Quantity>,
    step: Option<Quantity>,
}

impl Bounds {
    fn all(&self) -> impl Iterator<Item = (&'static str, Quantity)> {
        let optional = [("max", self.max), ("step", self.step)];
        let optional = optional.into_iter().filter_map(|(name, bound)| Some((name, bound?)));
        [("default", self.default), ("min", self.min)].into_iter().chain(optional)
    }
}

fn check_range(
    range: &CapacityRequestPolicyRange,
    default: Quantity,
    capacity: Quantity,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    if range.min.0.is_empty() {
        return context.push(FieldError::required(&at.child("min"), "required when validRange is defined"));
    }
    let Some(min) = quantity::read(&range.min, &at.child("min"), context) else { return };
    let bounds = Bounds {
        default,
        min,
        max: quantity::read_optional(range.max.as_ref(), &at.child("max"), context),
        step: quantity::read_optional(range.step.as_ref(), &at.child("step"), context),
    };
    check_order(&bounds, capacity, at, context);
    let is_fraction = |bound: Quantity| bound.nanos() % NANOS_PER_UNIT != 0;
    let milli = context.has(Gate::FractionalCapacityRange) && bounds.all().any(|(_, bound)| is_fraction(bound));
    if milli && !check_each(&bounds, milli_problem, at, context) {
        return;
    }
    let Some(step) = bounds.step else { return };
    check_step(&bounds, step, capacity, if milli { Unit::Milli } else { Unit::Whole }, at, context);
}

fn check_order(bounds: &Bounds, capacity: Quantity, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let Bounds { default, min, max, .. } = *bounds;
    let (below, above) = match context.rules.validation.default_path {
        DefaultPath::Bound => ("min", "max"),
        DefaultPath::Default => ("default", "default"),
    };
    let mut require = |holds: bool, field: &str, value: Quantity, detail: String| {
        if !holds {
            context.push(FieldError::invalid(&at.child(field), value.to_string(), detail));
        }
    };
    require(min <= capacity, "min", min, format!("min is larger than capacity value: {capacity}"));
    require(default >= min, below, default, format!("default is less than min: {min}"));
    if let Some(max) = max {
        require(min <= max, "max", min, format!("min is larger than max: {max}"));
        require(max <= capacity, "max", max, format!("max is larger than capacity value: {capacity}"));
        require(default <= max, above, default, format!("default is more than max: {max}"));
    }
}

fn check_step(
    bounds: &Bounds,
    step: Quantity,
    capacity: Quantity,
    unit: Unit,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    let at_step = at.child("step");
    let is_guarded = match context.rules.validation.range_numbers {
        RangeNumbers::Guarded if step <= Quantity::ZERO => {
            return context.push(FieldError::invalid(&at_step, step.to_string(), "must be greater than zero"));
        }
        RangeNumbers::Unguarded if whole(step) == 0 => {
            let detail = "the API server of this release divides by the step";
            return context.push(FieldError::new(ErrorType::ServerStops, &at_step, BadValue::Omitted, detail));
        }
        RangeNumbers::Guarded => true,
        RangeNumbers::Unguarded => false,
    };
    if let Some(added) = bounds.min.checked_add(step)
        && added > capacity
    {
        let detail = format!("one step {added} is larger than capacity value: {capacity}");
        context.push(FieldError::invalid(&at_step, step.to_string(), detail));
    }
    if is_guarded && matches!(unit, Unit::Whole) && !check_each(bounds, whole_problem, at, context) {
        return;
    }
    for value in std::iter::once(bounds.default).chain(bounds.max) {
        if !is_on_step(value, bounds.min, step, unit) {
            let detail = format!("value is not a multiple of a given step ({step}) from ({})", bounds.min);
            context.push(FieldError::invalid(&at_step, value.to_string(), detail));
        }
    }
}

/// Reports every bound for which `problem` returns a message. Returns true if no bound has a problem.
fn check_each(
    bounds: &Bounds,
    problem: impl Fn(Quantity) -> Option<&'static str>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) -> bool {
    let mut fine = true;
    for (name, bound) in bounds.all() {
        if let Some(detail) = problem(bound) {
            context.push(FieldError::invalid(&at.child(name), bound.to_string(), detail));
            fine = false;
        }
    }
    fine
}

fn milli_problem(bound: Quantity) -> Option<&'static str> {
    let is_milli = bound.nanos() % NANOS_PER_MILLI == 0 && i64::try_from(bound.nanos() / NANOS_PER_MILLI).is_ok();
    (!is_milli).then_some("value cannot be represented as a milli value")
}

fn whole_problem(bound: Quantity) -> Option<&'static str> {
    if bound < Quantity::ZERO {
        return Some("must be greater than or equal to 0");
    }
    let largest = i128::from(i64::MAX).saturating_mul(NANOS_PER_UNIT);
    (bound.nanos() > largest).then_some("must not be larger than 9223372036854775807")
}

fn is_on_step(value: Quantity, min: Quantity, step: Quantity, unit: Unit) -> bool {
    let number = |quantity: Quantity| match unit {
        Unit::Whole => whole(quantity),
        Unit::Milli => quantity.nanos() / NANOS_PER_MILLI,
    };
    let distance = number(value).checked_sub(number(min));
    distance.and_then(|distance| distance.checked_rem(number(step))) == Some(0)
}

/// Prints a quantity as a decimal number, independent of the format in which it was written.
fn decimal(quantity: Quantity) -> String {
    let (units, rest) = (quantity.nanos() / NANOS_PER_UNIT, quantity.nanos() % NANOS_PER_UNIT);
    let sign = if quantity < Quantity::ZERO { "-" } else { "" };
    let text = format!("{sign}{}.{:09}", units.unsigned_abs(), rest.unsigned_abs());
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns a quantity in whole units, rounded away from zero.
const fn whole(quantity: Quantity) -> i128 {
    let (units, rest) = (quantity.nanos() / NANOS_PER_UNIT, quantity.nanos() % NANOS_PER_UNIT);
    if rest == 0 { units } else { units.saturating_add(rest.signum()) }
}
