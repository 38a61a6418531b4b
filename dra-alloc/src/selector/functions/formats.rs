//! Formats of names and texts: `format.dns1123Label().validate(text)`.

use std::borrow::Cow;

use dra_attrs::{dns, label};

use super::{Function, function, list, time, url};
use crate::selector::fault::Fault;
use crate::selector::meter::Meter;
use crate::selector::value::{Answer, Value};

/// Format by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::selector) enum NamedFormat {
    Dns1123Label,
    Dns1123Subdomain,
    Dns1035Label,
    QualifiedName,
    Dns1123LabelPrefix,
    Dns1123SubdomainPrefix,
    Dns1035LabelPrefix,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    Datetime,
}

/// Formats with their names and the lengths of the patterns that upstream matches them with.
const FORMATS: [(&str, NamedFormat, usize); 13] = [
    ("dns1123Label", NamedFormat::Dns1123Label, 30),
    ("dns1123Subdomain", NamedFormat::Dns1123Subdomain, 60),
    ("dns1035Label", NamedFormat::Dns1035Label, 30),
    ("qualifiedName", NamedFormat::QualifiedName, 60),
    ("dns1123LabelPrefix", NamedFormat::Dns1123LabelPrefix, 30),
    ("dns1123SubdomainPrefix", NamedFormat::Dns1123SubdomainPrefix, 60),
    ("dns1035LabelPrefix", NamedFormat::Dns1035LabelPrefix, 30),
    ("labelValue", NamedFormat::LabelValue, 40),
    ("uri", NamedFormat::Uri, 1_103),
    ("uuid", NamedFormat::Uuid, 70),
    ("byte", NamedFormat::Byte, 84),
    ("date", NamedFormat::Date, 71),
    ("datetime", NamedFormat::Datetime, 71),
];

pub(super) const FUNCTIONS: &[Function] = &[
    function("format.named", |_, arguments| match arguments {
        [Value::String(name)] => {
            let found = FORMATS.iter().find(|(known, ..)| *known == &**name);
            found.map_or(Ok(Value::NONE), |(_, format, _)| Value::Format(*format).held())
        }
        _ => Err(Fault::no_overload()),
    }),
    function("format.dns1123Label", |_, _| Ok(Value::Format(NamedFormat::Dns1123Label))),
    function("format.dns1123Subdomain", |_, _| Ok(Value::Format(NamedFormat::Dns1123Subdomain))),
    function("format.dns1035Label", |_, _| Ok(Value::Format(NamedFormat::Dns1035Label))),
    function("format.qualifiedName", |_, _| Ok(Value::Format(NamedFormat::QualifiedName))),
    function("format.dns1123LabelPrefix", |_, _| Ok(Value::Format(NamedFormat::Dns1123LabelPrefix))),
    function("format.dns1123SubdomainPrefix", |_, _| Ok(Value::Format(NamedFormat::Dns1123SubdomainPrefix))),
    function("format.dns1035LabelPrefix", |_, _| Ok(Value::Format(NamedFormat::Dns1035LabelPrefix))),
    function("format.labelValue", |_, _| Ok(Value::Format(NamedFormat::LabelValue))),
    function("format.uri", |_, _| Ok(Value::Format(NamedFormat::Uri))),
    function("format.uuid", |_, _| Ok(Value::Format(NamedFormat::Uuid))),
    function("format.byte", |_, _| Ok(Value::Format(NamedFormat::Byte))),
    function("format.date", |_, _| Ok(Value::Format(NamedFormat::Date))),
    function("format.datetime", |_, _| Ok(Value::Format(NamedFormat::Datetime))),
    function("validate", validate),
];

impl NamedFormat {
    /// Returns the length of the pattern that upstream matches texts with.
    pub(in crate::selector) fn pattern_length(self) -> usize {
        FORMATS.iter().find(|(_, format, _)| *format == self).map_or(0, |(.., length)| *length)
    }

    /// Returns what is wrong with a text.
    fn problems(self, text: &str) -> Vec<String> {
        let single = |is_valid: bool, problem: &str| if is_valid { Vec::new() } else { vec![problem.to_owned()] };
        match self {
            Self::Dns1123Label => dns::label_problems(text),
            Self::Dns1123LabelPrefix => dns::label_problems(&unprefixed(text)),
            Self::Dns1123Subdomain => dns::subdomain_problems(text),
            Self::Dns1123SubdomainPrefix => dns::subdomain_problems(&unprefixed(text)),
            Self::Dns1035Label => dns1035_problems(text),
            Self::Dns1035LabelPrefix => dns1035_problems(&unprefixed(text)),
            Self::QualifiedName => label::key_problems(text),
            Self::LabelValue => label::value_problems(text),
            Self::Uri => url::request_problem(text).into_iter().collect(),
            Self::Uuid => single(is_uuid(text), "does not match the UUID format"),
            Self::Byte => single(is_base64(text), "invalid base64"),
            Self::Date => single(is_date(text), "invalid date"),
            Self::Datetime => single(is_datetime(text), "invalid datetime"),
        }
    }
}

fn validate<'v>(meter: &mut Meter<'_>, arguments: &[Value<'v>]) -> Answer<'v> {
    let [Value::Format(format), Value::String(text)] = arguments else { return Err(Fault::no_overload()) };
    meter.work(text.len())?;
    let problems = format.problems(text);
    if problems.is_empty() {
        return Ok(Value::NONE);
    }
    list(meter, problems.into_iter().map(Value::owned).collect())?.held()
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
    if text.len() > dns::MAX_LABEL_LEN {
        problems.push(format!("must be no more than {} bytes", dns::MAX_LABEL_LEN));
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
