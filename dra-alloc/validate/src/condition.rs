//! Validation of the conditions in a status.

use dra_attrs::internal::release::ConditionRules;
use dra_attrs::{FieldError, FieldPath};
use dra_device::internal::validate_conditions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::context::ValidationContext;
use super::limits;

/// Checks the conditions of a device: their number, the form of each, and that no type occurs twice.
pub(super) fn check_list(conditions: Option<&Vec<Condition>>, at: &FieldPath<'_>, context: &mut ValidationContext) {
    let conditions = conditions.map_or(&[][..], Vec::as_slice);
    let rules = context.rules.validation.conditions;
    if conditions.len() > limits::CONDITIONS {
        context.push(FieldError::too_many(at, conditions.len(), limits::CONDITIONS));
        match rules {
            ConditionRules::Declared => return,
            ConditionRules::Written => {}
        }
    }
    context.extend(validate_conditions(conditions, at, rules));
}
