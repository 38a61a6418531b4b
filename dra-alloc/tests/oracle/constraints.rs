//! Constraints `matchAttribute` and `distinctAttribute`, evaluated over the list of all values each time.

use dra_attrs::ListTypes;
use k8s_openapi::api::resource::v1::{DeviceAttribute, DeviceConstraint};

/// Condition of a constraint on the values of its attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constraint<'a> {
    Match(&'a str),
    Distinct(&'a str),
}

impl<'a> Constraint<'a> {
    /// Reads a constraint; `None` for an unknown kind.
    pub fn of(constraint: &'a DeviceConstraint) -> Option<Self> {
        let (same, distinct) = (&constraint.match_attribute, &constraint.distinct_attribute);
        same.as_deref().map(Self::Match).or_else(|| distinct.as_deref().map(Self::Distinct))
    }

    pub const fn attribute(&self) -> &'a str {
        match self {
            Self::Match(name) | Self::Distinct(name) => name,
        }
    }
}

/// Returns true if a constraint applies to a request. The name of an alternative's parent counts too.
pub fn applies(constraint: &DeviceConstraint, request: &str, alternative: Option<&str>) -> bool {
    let named = constraint.requests.as_deref().unwrap_or_default();
    let full = alternative.map_or_else(|| request.to_owned(), |sub| format!("{request}/{sub}"));
    named.is_empty() || named.iter().any(|name| name == request || *name == full)
}

/// Single value of an attribute. Versions are text, but differ from strings.
#[derive(Clone, Debug, PartialEq, Eq)]
enum One {
    Bool(bool),
    Int(i64),
    String(String),
    Version(String),
}

fn scalar(attribute: &DeviceAttribute) -> Option<One> {
    let int = attribute.int.map(One::Int);
    let bool = attribute.bool.map(One::Bool);
    let string = attribute.string.clone().map(One::String);
    int.or(bool).or(string).or_else(|| attribute.version.clone().map(One::Version))
}

/// Returns the attribute as a set; empty if it has no value.
fn set(attribute: &DeviceAttribute) -> Vec<One> {
    let ints = attribute.ints.iter().flatten().map(|value| One::Int(*value)).collect();
    let bools = attribute.bools.iter().flatten().map(|value| One::Bool(*value)).collect();
    let strings = attribute.strings.iter().flatten().cloned().map(One::String).collect();
    let versions = attribute.versions.iter().flatten().cloned().map(One::Version).collect();
    let lists: [Vec<One>; 4] = [ints, bools, strings, versions];
    lists.into_iter().find(|list| !list.is_empty()).unwrap_or_else(|| scalar(attribute).into_iter().collect())
}

/// Returns true if the constraint holds for devices with these values, in the order of the choice. `None` is a device
/// without the attribute.
pub fn holds(constraint: &Constraint<'_>, values: &[Option<DeviceAttribute>], lists: ListTypes) -> bool {
    let Some(values) = values.iter().cloned().collect::<Option<Vec<_>>>() else { return false };
    match (constraint, lists) {
        (Constraint::Match(_), ListTypes::Enabled) => all_share_one(&values.iter().map(set).collect::<Vec<_>>()),
        (Constraint::Distinct(_), ListTypes::Enabled) => pairwise_disjoint(&values.iter().map(set).collect::<Vec<_>>()),
        (_, ListTypes::Refused) if values.iter().any(|value| scalar(value).is_none()) => false,
        (Constraint::Match(_), _) => all_equal(&values.iter().map(scalar).collect::<Vec<_>>()),
        (Constraint::Distinct(_), _) => all_different(&values.iter().map(scalar).collect::<Vec<_>>()),
    }
}

fn all_share_one(sets: &[Vec<One>]) -> bool {
    let Some(first) = sets.first() else { return true };
    first.iter().any(|value| sets.iter().all(|set| set.contains(value)))
}

fn pairwise_disjoint(sets: &[Vec<One>]) -> bool {
    let disjoint = |left: &Vec<One>, right: &Vec<One>| !left.iter().any(|value| right.contains(value));
    sets.iter()
        .enumerate()
        .all(|(index, set)| !set.is_empty() && sets[..index].iter().all(|before| disjoint(before, set)))
}

/// Evaluates equality without list types: a single value is not checked; several must all exist and be equal.
fn all_equal(values: &[Option<One>]) -> bool {
    values.len() < 2 || values.iter().all(|value| value.is_some() && *value == values[0])
}

/// Evaluates difference without list types: every value but the first must exist and differ from all before it.
fn all_different(values: &[Option<One>]) -> bool {
    (1..values.len()).all(|index| values[index].is_some() && !values[..index].contains(&values[index]))
}
