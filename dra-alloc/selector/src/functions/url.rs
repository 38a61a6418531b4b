//! URLs.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::counted::{list, made};
use super::function::functions;
use crate::fault::{Fault, quoted};
use crate::meter::Meter;
use crate::scalar::url::Url;
use crate::value::{Answer, Key, Map, Table, Value};

/// Work of reading a URL, besides that for its text.
const URL: usize = 80;

functions! { meter;
    "url" {
        "(string) -> URL" Copy: [Value::String(text)] => {
            meter.make(text.len() * 2)?;
            meter.work(URL + 2 * text.len())?;
            Url::parse(text).map(|url| Value::Url(Arc::new(url))).map_err(|reason| {
                let shown = quoted(text);
                Fault::text(format!("URL parse error during conversion from string: parse {shown}: {reason}"))
            })
        };
    }
    "isURL" {
        "(string) -> bool" One: [Value::String(text)] => {
            meter.work(URL + 2 * text.len())?;
            Ok(Value::Bool(Url::parse(text).is_ok()))
        };
    }
    "getScheme" { "URL.() -> string" One: [Value::Url(url)] => made(meter, url.scheme().to_owned()); }
    "getHost" { "URL.() -> string" One: [Value::Url(url)] => made(meter, url.host().to_owned()); }
    "getHostname" { "URL.() -> string" One: [Value::Url(url)] => made(meter, url.host_and_port().0.to_owned()); }
    "getPort" { "URL.() -> string" One: [Value::Url(url)] => made(meter, url.host_and_port().1.to_owned()); }
    "getEscapedPath" { "URL.() -> string" One: [Value::Url(url)] => made(meter, url.escaped_path()); }
    "getQuery" { "URL.() -> map(string, list(string))" One: [Value::Url(url)] => query(meter, url); }
}

/// Returns the parameters of the query by name.
fn query<'v>(meter: &mut Meter<'_>, url: &Url) -> Answer<'v> {
    let mut values: BTreeMap<String, Vec<Value<'v>>> = BTreeMap::new();
    for (name, value) in url.parameters() {
        meter.make(name.len() + value.len() + 200)?;
        meter.work(name.len() + value.len() + 20)?;
        values.entry(name).or_default().push(Value::owned(value));
    }
    let entries: Result<BTreeMap<_, _>, Box<Fault>> =
        values.into_iter().map(|(name, values)| Ok((Key::new(Value::owned(name))?, list(meter, values)?))).collect();
    Ok(Value::Map(Map::Table(Table::new(entries?)?)))
}
