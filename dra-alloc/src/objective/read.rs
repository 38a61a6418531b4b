//! Reading of an objective from JSON. Unknown fields are errors.

use std::cell::RefCell;
use std::collections::BTreeSet;

use dra_device::DeviceId;
use serde_json::{Map, Value};

use super::error::ObjectiveError;
use super::term::{GroupBy, PairCost, PairScope, Pairs, Term, Unit, Weighted};

type Read<T> = Result<T, ObjectiveError>;

pub(super) fn read(levels: &Value) -> Read<Vec<Vec<Weighted>>> {
    let levels = items(levels, "")?;
    levels.map(|(field, level)| items(level, &field)?.map(|(field, term)| weighted(term, field)).collect()).collect()
}

fn weighted(value: &Value, path: String) -> Read<Weighted> {
    let fields = Fields::new(value, path)?;
    let weight = fields.optional("weight").map_or(Ok(1), |weight| number(weight, &fields.path("weight")))?;
    let weighted = Weighted { weight, term: term(&fields)? };
    fields.end()?;
    Ok(weighted)
}

/// Reads the fields of a term, by its name.
fn term(fields: &Fields<'_>) -> Read<Term> {
    Ok(match fields.text("term")?.as_str() {
        "opened" => Term::Opened { by: group(fields)? },
        "spread" => Term::Spread { by: group(fields)? },
        "room" => {
            if fields.required("by")?.as_str() != Some("counter_set") {
                return Err(ObjectiveError::Type { field: fields.path("by"), expected: "\"counter_set\"" });
            }
            Term::Room { size: fields.optional("size").map(|size| text(size, &fields.path("size"))).transpose()? }
        }
        "options" => Term::Options,
        "stranded" => Term::Stranded,
        "distance" | "links" => Term::Pairs(pairs(fields)?),
        "pairing" => {
            let [of, with, attribute] = ["a", "b", "attribute"].map(|name| fields.text(name));
            Term::Pairing { of: of?, with: with?, attribute: attribute? }
        }
        "waste" => Term::Waste { capacity: fields.text("capacity")? },
        "prefer" => Term::Prefer { selectors: fields.texts("selectors")? },
        "tainted" => Term::Tainted,
        "conditions" => Term::Conditions,
        "alternative" => Term::Alternative,
        "displaced" => Term::Displaced { units: units(fields)? },
        "outlook" => outlook(fields)?,
        name => {
            return Err(ObjectiveError::UnknownTerm { field: fields.path("term"), term: name.to_owned() });
        }
    })
}

fn group(fields: &Fields<'_>) -> Read<GroupBy> {
    let (by, path) = (fields.required("by")?, fields.path("by"));
    match by.as_str() {
        Some("pool") => return Ok(GroupBy::Pool),
        Some("counter_set") => return Ok(GroupBy::CounterSet),
        _ => {}
    }
    if !by.is_object() {
        let expected = "\"pool\", \"counter_set\" or {\"attribute\": name}";
        return Err(ObjectiveError::Type { field: path, expected });
    }
    let named = Fields { term: fields.term.clone(), ..Fields::new(by, path)? };
    let attribute = named.text("attribute")?;
    named.end()?;
    Ok(GroupBy::Attribute(attribute))
}

fn pairs(fields: &Fields<'_>) -> Read<Pairs> {
    let cost = if fields.term == "links" {
        let otherwise = fields.optional("default");
        let otherwise = otherwise.map_or(Ok(0), |score| number(score, &fields.path("default")))?;
        PairCost::Links { scores: fields.list("scores", score)?, otherwise }
    } else {
        PairCost::Distance { attributes: fields.texts("levels")? }
    };
    let across = fields.optional("across_claims").map_or(Ok(false), |across| {
        let field = fields.path("across_claims");
        across.as_bool().ok_or(ObjectiveError::Type { field, expected: "true or false" })
    })?;
    Ok(Pairs { cost, within: if across { PairScope::AllClaims } else { PairScope::Claim } })
}

fn score(value: &Value, path: &str) -> Read<(DeviceId, DeviceId, u32)> {
    let Some([left, right, score]) = value.as_array().map(Vec::as_slice) else {
        return Err(ObjectiveError::Type { field: path.to_owned(), expected: "[device, device, score]" });
    };
    let device = |value: &Value, field: String| {
        let named = text(value, &field)?;
        named.parse().map_err(|source| ObjectiveError::Device { field, source })
    };
    let (left, right) = (device(left, format!("{path}[0]"))?, device(right, format!("{path}[1]"))?);
    Ok((left, right, number(score, &format!("{path}[2]"))?))
}

fn units(fields: &Fields<'_>) -> Read<Vec<Unit>> {
    fields.list("units", |value, path| {
        let unit = Fields { term: fields.term.clone(), ..Fields::new(value, path.to_owned())? };
        let price = unit.required("price")?.as_u64();
        let price = price.ok_or_else(|| ObjectiveError::Type { field: unit.path("price"), expected: "a whole number" });
        let read = Unit { id: unit.text("id")?, claims: unit.texts("claims")?, price: price? };
        unit.end()?;
        Ok(read)
    })
}

fn outlook(fields: &Fields<'_>) -> Read<Term> {
    let of = Fields::new(fields.required("of")?, fields.path("of"))?;
    let name = of.text("term")?;
    if !matches!(name.as_str(), "links" | "distance") {
        return Err(ObjectiveError::Type { field: of.path("term"), expected: "\"links\" or \"distance\"" });
    }
    let read = pairs(&of)?;
    of.end()?;
    let times = fields.required("times")?;
    let times = match times.as_str() {
        Some("all") => None,
        _ => Some(number(times, &fields.path("times"))?),
    };
    Ok(Term::Outlook { of: read, times })
}

/// Fields of an object, of which each must be asked for.
struct Fields<'v> {
    path: String,
    /// Name of the term that the fields belong to; empty if there is none.
    term: String,
    all: &'v Map<String, Value>,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'v> Fields<'v> {
    fn new(value: &'v Value, path: String) -> Read<Self> {
        match value {
            Value::Object(all) => {
                let term = all.get("term").and_then(Value::as_str).unwrap_or_default().to_owned();
                Ok(Self { path, term, all, asked: RefCell::default() })
            }
            _ => Err(ObjectiveError::Type { field: path, expected: "an object" }),
        }
    }

    fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    /// Returns a field; `None` if it is absent or null.
    fn optional(&self, name: &'static str) -> Option<&'v Value> {
        self.asked.borrow_mut().insert(name);
        self.all.get(name).filter(|value| !value.is_null())
    }

    fn required(&self, name: &'static str) -> Read<&'v Value> {
        self.optional(name).ok_or_else(|| ObjectiveError::Missing { field: self.path(name) })
    }

    fn text(&self, name: &'static str) -> Read<String> {
        text(self.required(name)?, &self.path(name))
    }

    fn texts(&self, name: &'static str) -> Read<Vec<String>> {
        self.list(name, text)
    }

    fn list<T>(&self, name: &'static str, read: impl Fn(&Value, &str) -> Read<T>) -> Read<Vec<T>> {
        let path = self.path(name);
        items(self.required(name)?, &path)?.map(|(path, value)| read(value, &path)).collect()
    }

    /// Refuses fields that nobody asked for.
    fn end(self) -> Read<()> {
        let asked = self.asked.borrow();
        match self.all.keys().find(|name| !asked.contains(name.as_str())) {
            Some(unknown) => Err(ObjectiveError::UnknownField { field: self.path(unknown), term: self.term.clone() }),
            None => Ok(()),
        }
    }
}

/// Returns the items of a list, each with its path.
fn items<'v>(value: &'v Value, path: &str) -> Read<impl Iterator<Item = (String, &'v Value)> + use<'v>> {
    let list = value.as_array();
    let list = list.ok_or_else(|| ObjectiveError::Type { field: path.to_owned(), expected: "a list" })?;
    let path = path.to_owned();
    Ok(list.iter().enumerate().map(move |(index, item)| (format!("{path}[{index}]"), item)))
}

fn text(value: &Value, path: &str) -> Read<String> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| ObjectiveError::Type { field: path.to_owned(), expected: "a text" })
}

fn number(value: &Value, path: &str) -> Read<u32> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| ObjectiveError::Type { field: path.to_owned(), expected: "a whole number below 2^32" })
}
