//! Validation of a device attribute, which has exactly one of four scalar and four list values (KEP-5491).

use dra_attrs::internal::release::OneValue;
use dra_attrs::{FieldError, FieldPath};
use k8s_openapi::api::resource::v1::DeviceAttribute;
use serde::Serialize;

use super::context::{ValidationContext, json};
use super::limits;
use super::names::absent_value;

const ONE_VALUE: &str = "exactly one value must be specified";

/// Checks that an attribute has exactly one value, and that the value is valid.
pub(super) fn check(attribute: &DeviceAttribute, at: &FieldPath<'_>, context: &mut ValidationContext) {
    check_forms(attribute, at, context);
    let members = [
        ("int", attribute.int.is_some()),
        ("bool", attribute.bool.is_some()),
        ("string", attribute.string.is_some()),
        ("version", attribute.version.is_some()),
        ("ints", attribute.ints.is_some()),
        ("bools", attribute.bools.is_some()),
        ("strings", attribute.strings.is_some()),
        ("versions", attribute.versions.is_some()),
    ];
    let is_set = members.iter().filter(|(_, is_set)| *is_set);
    if is_set.clone().count() == 1 {
        return;
    }
    let set: Vec<&str> = is_set.map(|(name, _)| *name).collect();
    let all = members.map(|(name, _)| format!("`{name}`")).join(", ");
    context.push(match (context.rules.validation.one_value, set.as_slice()) {
        (OneValue::Counted(absent), []) => absent_value(absent, at, ONE_VALUE),
        (OneValue::Counted(_), _) => FieldError::invalid(at, json(attribute), ONE_VALUE),
        (OneValue::Named, []) => FieldError::invalid(at, "", format!("must specify one of: {all}")),
        (OneValue::Named, set) => {
            FieldError::invalid(at, format!("{{{}}}", set.join(", ")), format!("must specify exactly one of: {all}"))
        }
    });
}

/// Returns the number of values of an attribute: the length of a list, or 1 for a scalar.
pub(super) fn values(attribute: &DeviceAttribute) -> usize {
    let lists = [
        len(attribute.bools.as_deref()),
        len(attribute.ints.as_deref()),
        len(attribute.strings.as_deref()),
        len(attribute.versions.as_deref()),
    ];
    lists.iter().sum::<usize>().max(1)
}

fn check_forms(attribute: &DeviceAttribute, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if let Some(text) = &attribute.string {
        check_string(text, &at.child("string"), context);
    }
    if let Some(version) = &attribute.version {
        check_version(version, &at.child("version"), context);
    }
    check_not_empty(attribute.bools.as_ref(), &at.child("bools"), context);
    check_not_empty(attribute.ints.as_ref(), &at.child("ints"), context);
    check_not_empty(attribute.strings.as_ref(), &at.child("strings"), context);
    for (index, text) in attribute.strings.iter().flatten().enumerate() {
        check_string(text, &at.child("strings").index(index), context);
    }
    check_not_empty(attribute.versions.as_ref(), &at.child("versions"), context);
    for (index, version) in attribute.versions.iter().flatten().enumerate() {
        check_version(version, &at.child("versions").index(index), context);
    }
}

fn check_not_empty<T: Serialize>(list: Option<&Vec<T>>, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if let Some(list) = list.filter(|list| list.is_empty()) {
        context.push(FieldError::invalid(at, json(list), "must not be empty if specified"));
    }
}

fn check_string(text: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if text.len() > limits::ATTRIBUTE_VALUE_LEN {
        context.push(FieldError::too_long(at, limits::ATTRIBUTE_VALUE_LEN));
    }
}

fn check_version(version: &str, at: &FieldPath<'_>, context: &mut ValidationContext) {
    if !is_semver(version) {
        let detail = "must be a string compatible with semver.org spec 2.0.0";
        context.push(FieldError::invalid(at, version, detail));
    }
    check_string(version, at, context);
}

/// Returns true if a text is a version of semver 2.0.0. Its numbers may have any length, unlike those of
/// [`dra_attrs::Version`].
fn is_semver(text: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
    let is_digits = |word: &str| word.bytes().all(|c| c.is_ascii_digit());
    let is_number = |word: &str| !word.is_empty() && is_digits(word) && (word == "0" || !word.starts_with('0'));
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(|word| is_word(word) && (!is_digits(word) || is_number(word))))
        && build.is_none_or(|build| build.split('.').all(is_word))
}

fn len<T>(list: Option<&[T]>) -> usize {
    list.map_or(0, <[T]>::len)
}
