//! Formats of names and texts.

use std::borrow::Cow;

use dra_attrs::NameFormat;

use super::{time, url};

/// Format of texts.
#[derive(Debug)]
pub(crate) struct NamedFormat {
    pub(crate) name: &'static str,
    /// Length of the pattern that upstream matches texts with.
    pub(crate) pattern_length: usize,
    /// Says what is wrong with a text.
    pub(crate) problems: fn(&str) -> Vec<String>,
}

const fn format(name: &'static str, pattern_length: usize, problems: fn(&str) -> Vec<String>) -> NamedFormat {
    NamedFormat { name, pattern_length, problems }
}

static FORMATS: [NamedFormat; 13] = [
    format("dns1123Label", 30, |text| NameFormat::Label.problems(text)),
    format("dns1123Subdomain", 60, |text| NameFormat::Subdomain.problems(text)),
    format("dns1035Label", 30, dns1035_problems),
    format("qualifiedName", 60, |text| NameFormat::LabelKey.problems(text)),
    format("dns1123LabelPrefix", 30, |text| NameFormat::Label.problems(&unprefixed(text))),
    format("dns1123SubdomainPrefix", 60, |text| NameFormat::Subdomain.problems(&unprefixed(text))),
    format("dns1035LabelPrefix", 30, |text| dns1035_problems(&unprefixed(text))),
    format("labelValue", 40, |text| NameFormat::LabelValue.problems(text)),
    format("uri", 1_103, |text| url::request_problem(text).into_iter().collect()),
    format("uuid", 70, |text| unless(is_uuid(text), "does not match the UUID format")),
    format("byte", 84, |text| unless(is_base64(text), "invalid base64")),
    format("date", 71, |text| unless(is_date(text), "invalid date")),
    format("datetime", 71, |text| unless(is_datetime(text), "invalid datetime")),
];

/// Returns the format of a name.
pub(crate) fn named(name: &str) -> Option<&'static NamedFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

fn unless(is_valid: bool, problem: &str) -> Vec<String> {
    if is_valid { Vec::new() } else { vec![problem.to_owned()] }
}

/// Returns a prefix of a generated name as upstream checks it: with a letter instead of its last two bytes.
fn unprefixed(text: &str) -> Cow<'_, str> {
    let head = text.len().checked_sub(2).and_then(|end| text.get(..end));
    match head.filter(|_| text.ends_with('-')) {
        Some(head) => Cow::Owned(format!("{head}a")),
        None => Cow::Borrowed(text),
    }
}

const DNS_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
                        alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
                        regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

fn dns1035_problems(text: &str) -> Vec<String> {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label =
        text.starts_with(|c: char| c.is_ascii_lowercase()) && !text.ends_with('-') && text.bytes().all(is_part);
    let mut problems = Vec::new();
    if text.len() > NameFormat::MAX_LABEL_LEN {
        problems.push(format!("must be no more than {} bytes", NameFormat::MAX_LABEL_LEN));
    }
    if !is_label {
        problems.push(DNS_1035.to_owned());
    }
    problems
}

/// Returns true for 32 hexadecimal digits, in groups with or without dashes between them.
fn is_uuid(text: &str) -> bool {
    let groups = [8, 4, 4, 4, 12];
    let mut rest = text;
    for (index, length) in groups.into_iter().enumerate() {
        let Some((group, after)) = rest.split_at_checked(length) else { return false };
        if !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        rest = if index < 4 { after.strip_prefix('-').unwrap_or(after) } else { after };
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !text.is_empty() && text.len().is_multiple_of(4) && text.len() - body.len() <= 2 && body.bytes().all(is_digit)
}

fn is_date(text: &str) -> bool {
    text.len() == "2006-01-02".len() && time::parse_timestamp(&format!("{text}T00:00:00Z")).is_some()
}

fn is_datetime(text: &str) -> bool {
    let upper = text.replacen('t', "T", 1).replacen('z', "Z", 1);
    time::parse_timestamp(&upper).is_some()
}
