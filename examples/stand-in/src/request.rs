//! Requests for objects: path and query.

use crate::kinds::Kind;
use crate::refusal::Refusal;
use crate::scale::SCALED;
use crate::served::Served;

/// Object, or objects, that a request is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    pub(crate) kind: &'static Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Subresource,
}

/// Part of an object that has a path of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subresource {
    None,
    Status,
    Binding,
    Eviction,
    Scale,
}

impl Subresource {
    /// Returns the name in paths; empty for the object itself.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Status => "status",
            Self::Binding => "binding",
            Self::Eviction => "eviction",
            Self::Scale => "scale",
        }
    }
}

impl Target {
    /// Reads the part of a path below the version of a group.
    ///
    /// # Errors
    /// Nothing is there.
    pub(crate) fn parse(served: &Served, group: &str, version: &str, path: &[&str]) -> Result<Self, Refusal> {
        let (namespace, path) = match path {
            ["namespaces", namespace, rest @ ..] if !matches!(rest, [] | ["status"]) => (Some(*namespace), rest),
            path => (None, path),
        };
        let (plural, name, subresource) = match path {
            [plural] => (*plural, None, Subresource::None),
            [plural, name] => (*plural, Some(*name), Subresource::None),
            [plural, name, "status"] => (*plural, Some(*name), Subresource::Status),
            [plural, name, "scale"] => (*plural, Some(*name), Subresource::Scale),
            ["pods", name, "binding"] => ("pods", Some(*name), Subresource::Binding),
            ["pods", name, "eviction"] => ("pods", Some(*name), Subresource::Eviction),
            _ => return Err(Refusal::no_path()),
        };
        let kind = served.find(group, version, plural).ok_or_else(Refusal::no_path)?;
        let fits = match namespace {
            Some(_) => kind.is_namespaced(),
            None => !kind.is_namespaced() || name.is_none(),
        };
        let has_subresource = match subresource {
            Subresource::Status => kind.has_status(),
            Subresource::Scale => SCALED.contains(&kind.name),
            _ => true,
        };
        if !fits || !has_subresource {
            return Err(Refusal::no_path());
        }
        Ok(Self { kind, namespace: namespace.map(str::to_owned), name: name.map(str::to_owned), subresource })
    }
}
