//! Validation of names, keys and IDs.
//!
//! Kubernetes has many rules twice, in code and declared on a type. Where the declared rule is on by default (its tag
//! says `beta` since 1.37), its messages replace those of the code.

use dra_attrs::internal::release::{AbsentValue, EmptyDriver, NameLength, Strictness};
use dra_attrs::{FieldError, FieldPath, NameFormat};

use super::context::ValidationContext;
use super::limits;

const SEVERAL_SLASHES: &str = "must not contain more than one slash";
/// Ends of the message about a length.
const BYTES: &str = " bytes";
const CHARACTERS: &str = " characters";
const NOT_FULLY_QUALIFIED: &str = "a fully qualified name must be a domain and a name separated by a slash";

/// Checks the name of a driver. Upper case is allowed; [`super::ApiServer::validate_slice`] warns about it.
pub(super) fn driver(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if name.is_empty() {
        context.push(FieldError::required(at, ""));
        match context.rules.validation.empty_driver {
            EmptyDriver::Required => return,
            EmptyDriver::RequiredAndInvalid => {}
        }
    }
    if name.len() > limits::DRIVER_NAME {
        context.push(FieldError::too_long(at, limits::DRIVER_NAME));
    }
    invalid(name, NameFormat::Subdomain.problems(&name.to_lowercase()), at, context);
}

/// Checks the name of a driver by the declared rule, which has other messages than [`driver`].
pub(super) fn declared_driver(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if name.is_empty() {
        context.push(FieldError::required(at, ""));
        match context.rules.validation.empty_driver {
            EmptyDriver::Required => return,
            EmptyDriver::RequiredAndInvalid => {}
        }
    }
    if name.chars().count() > limits::DRIVER_NAME {
        context.push(FieldError::too_long_characters(at, limits::DRIVER_NAME));
    } else if name.len() > limits::DRIVER_NAME {
        context.push(FieldError::too_long(at, limits::DRIVER_NAME));
    }
    context.extend(NameFormat::LongNameCaseless.check(name, at));
}

/// Checks the name of a pool by the declared rule, which has other messages than [`pool`].
pub(super) fn declared_pool(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if name.is_empty() {
        return context.push(FieldError::required(at, ""));
    }
    context.extend(NameFormat::PoolName.check(name, at));
}

/// Checks the name of a pool: DNS subdomains with slashes between them.
pub(super) fn pool(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if name.is_empty() {
        return context.push(FieldError::required(at, ""));
    }
    if name.len() > limits::POOL_NAME {
        context.push(FieldError::too_long(at, limits::POOL_NAME));
    }
    name.split('/').for_each(|part| subdomain(part, at, context));
}

/// Checks the name of a device or request: a DNS label.
pub(super) fn label(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    invalid(name, NameFormat::Label.problems(name), at, context);
}

/// Checks the name of a counter or counter set by the declared rule, which has other messages than [`label`].
pub(super) fn declared_label(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    context.extend(NameFormat::ShortName.check(name, at));
}

/// Checks the name of a class by the declared rule, which has other messages than [`subdomain`].
pub(super) fn declared_subdomain(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    context.extend(NameFormat::LongName.check(name, at));
}

/// Checks the name of an object or node: a DNS subdomain.
pub(super) fn subdomain(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    invalid(name, NameFormat::Subdomain.problems(name), at, context);
}

/// Checks the name of an attribute or capacity: an identifier, optionally after `domain/`. The domain has the form of a
/// driver's name.
pub(super) fn qualified(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    domain_and_id(name, driver, at, context);
}

/// Checks the name of an attribute that devices must not share: `domain/identifier`. The domain has the form of a
/// driver's name.
pub(super) fn fully_qualified(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    domain_and_id(name, driver, at, context);
    if !name.contains('/') {
        context.push(FieldError::invalid(at, name, NOT_FULLY_QUALIFIED));
    }
}

/// Checks a name of the form `domain/identifier` by the declarative rule of the API types. Its messages differ from
/// those of [`fully_qualified`], and it accepts names with several slashes.
pub(super) fn declared_fully_qualified(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    match context.rules.validation.absent_name {
        AbsentValue::Invalid => context.extend(NameFormat::QualifiedAttribute.check(name, at)),
        // The rule was not declared yet.
        AbsentValue::Required => fully_qualified(name, at, context),
    }
}

/// Checks that a name does not have several slashes.
pub(super) fn one_slash(name: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    match context.rules.validation.two_slashes {
        Strictness::Refused if name.split('/').count() > 2 => {
            context.push(FieldError::invalid(at, name, SEVERAL_SLASHES));
        }
        Strictness::Refused | Strictness::Accepted => {}
    }
}

/// Checks the key of a label or taint, or the type of a condition.
pub(super) fn label_key(key: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    invalid(key, NameFormat::LabelKey.problems(key), at, context);
}

/// Checks the value of a label or taint.
pub(super) fn label_value(value: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    invalid(value, NameFormat::LabelValue.problems(value), at, context);
}

/// Checks the ID of a share: a UUID in lower case.
pub(super) fn uuid(id: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    context.extend(NameFormat::Uuid.check(id, at));
}

/// Returns true for a native node resource that a device can account for: CPU, memory and huge pages, but not ephemeral
/// storage.
pub(super) fn is_node_allocatable(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// Returns true if the hand-written validation of Kubernetes accepts a text as `domain/identifier`. Case does not
/// matter.
pub(super) fn is_fully_qualified(name: &str) -> bool {
    let is_domain = |domain: &str| {
        let lower = domain.to_lowercase();
        domain.len() <= limits::DRIVER_NAME && NameFormat::Subdomain.problems(&lower).is_empty()
    };
    match name.split_once('/') {
        Some((domain, id)) => is_domain(domain) && NameFormat::Identifier.problems(id).is_empty(),
        None => false,
    }
}

fn domain_and_id(
    name: &str,
    check_domain: impl Fn(&str, &FieldPath<'_>, &mut ValidationContext),
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    match name.split_once('/') {
        None => match context.rules.validation.absent_name {
            AbsentValue::Required if name.is_empty() => context.push(FieldError::required(at, "name required")),
            AbsentValue::Required | AbsentValue::Invalid => context.extend(NameFormat::Identifier.check(name, at)),
        },
        Some((_, id)) if id.contains('/') => one_slash(name, at, context),
        Some((domain, id)) => {
            let absent = context.rules.validation.absent_name;
            if domain.is_empty() {
                context.push(absent_value(absent, at, "the domain must not be empty"));
            } else {
                check_domain(domain, at, context);
            }
            if id.is_empty() {
                context.push(absent_value(absent, at, "the name must not be empty"));
            } else {
                context.extend(NameFormat::Identifier.check(id, at));
            }
        }
    }
}

/// Returns the error of a value or part of a name that is absent.
pub(super) fn absent_value(error: AbsentValue, at: &FieldPath<'_>, detail: &str) -> FieldError {
    match error {
        AbsentValue::Required => FieldError::required(at, detail),
        AbsentValue::Invalid => FieldError::invalid(at, "", detail),
    }
}

fn invalid(
    value: &str,
    problems: impl IntoIterator<Item = String>,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    for problem in problems {
        let detail = match (context.rules.validation.name_length, problem.strip_suffix(BYTES)) {
            (NameLength::Characters, Some(rest)) => format!("{rest}{CHARACTERS}"),
            (NameLength::Characters | NameLength::Bytes, _) => problem,
        };
        context.push(FieldError::invalid(at, value, detail));
    }
}
