//! Formats of names and texts: `format.dns1123Label().validate(text)`.

use super::counted::list;
use super::function::functions;
use crate::fault::Fault;
use crate::scalar::format::named;
use crate::value::{Answer, Value};

functions! { meter;
    "format.named" {
        "(string) -> optional(Format)" One: [Value::String(name)] => named(name).map_or(Ok(Value::NONE), |format| Value::Format(format).held());
    }
    "format.dns1123Label" { "() -> Format" One: [] => made("dns1123Label"); }
    "format.dns1123Subdomain" { "() -> Format" One: [] => made("dns1123Subdomain"); }
    "format.dns1035Label" { "() -> Format" One: [] => made("dns1035Label"); }
    "format.qualifiedName" { "() -> Format" One: [] => made("qualifiedName"); }
    "format.dns1123LabelPrefix" { "() -> Format" One: [] => made("dns1123LabelPrefix"); }
    "format.dns1123SubdomainPrefix" { "() -> Format" One: [] => made("dns1123SubdomainPrefix"); }
    "format.dns1035LabelPrefix" { "() -> Format" One: [] => made("dns1035LabelPrefix"); }
    "format.labelValue" { "() -> Format" One: [] => made("labelValue"); }
    "format.uri" { "() -> Format" One: [] => made("uri"); }
    "format.uuid" { "() -> Format" One: [] => made("uuid"); }
    "format.byte" { "() -> Format" One: [] => made("byte"); }
    "format.date" { "() -> Format" One: [] => made("date"); }
    "format.datetime" { "() -> Format" One: [] => made("datetime"); }
    "validate" {
        "Format.(string) -> optional(list(string))" Validate: [Value::Format(format), Value::String(text)] => {
            meter.work(text.len())?;
            match (format.problems)(text) {
                problems if problems.is_empty() => Ok(Value::NONE),
                problems => list(meter, problems.into_iter().map(Value::owned).collect())?.held(),
            }
        };
    }
}

fn made<'v>(name: &str) -> Answer<'v> {
    named(name).map(Value::Format).ok_or_else(Fault::no_overload)
}
