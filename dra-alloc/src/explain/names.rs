//! How requests and constraints are named in texts.

use std::fmt;

use super::{Bottleneck, Cause, ConstraintName, Explanation, RequestName};

impl fmt::Display for RequestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "claim {}, request {}", self.claim, self.request)
    }
}

impl fmt::Display for ConstraintName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.attribute)?;
        of_claim(f, &self.claim)
    }
}

/// After "not enough".
impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.on_any_node())?;
        match self {
            Self::Counters { pool, .. } | Self::Groups { pool, .. } => write!(f, " in pool {pool}"),
            Self::Capacity { .. } => Ok(()),
        }
    }
}

impl Bottleneck {
    /// Without the pool, whose name differs from node to node.
    pub(super) fn on_any_node(&self) -> String {
        match self {
            Self::Counters { set, .. } => format!("of counter set {set}"),
            Self::Groups { set, .. } => format!("compatible devices on counter set {set}"),
            Self::Capacity { capacity } => format!("of capacity {capacity}"),
        }
    }
}

/// A request within a sentence that may name the claim elsewhere.
pub(super) struct Named<'a>(pub(super) &'a RequestName);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.request)?;
        of_claim(f, &self.0.claim)
    }
}

/// The alternate form names the claim of everything.
fn of_claim(f: &mut fmt::Formatter<'_>, claim: &str) -> fmt::Result {
    if f.alternate() { write!(f, " of claim {claim}") } else { Ok(()) }
}

/// Whose requests a text is about.
#[derive(Clone, Copy)]
pub(super) enum Scope {
    /// All are of one claim, which need not be named again.
    OneClaim,
    Claims,
}

impl Scope {
    pub(super) fn of<'a>(claims: impl IntoIterator<Item = &'a String>) -> Self {
        let mut claims = claims.into_iter();
        let first = claims.next();
        if claims.all(|claim| Some(claim) == first) { Self::OneClaim } else { Self::Claims }
    }

    pub(super) fn text(self, item: &impl fmt::Display) -> String {
        match self {
            Self::OneClaim => item.to_string(),
            Self::Claims => format!("{item:#}"),
        }
    }

    pub(super) fn listed<T: fmt::Display>(self, items: impl IntoIterator<Item = T>) -> String {
        let texts: Vec<String> = items.into_iter().map(|item| self.text(&item)).collect();
        listed(&texts)
    }
}

impl Explanation {
    pub(super) fn scope(&self) -> Scope {
        Scope::of(self.reasons.iter().flat_map(|reason| reason.cause.claims()))
    }
}

impl Cause {
    /// The claims whose requests are at fault.
    fn claims(&self) -> Vec<&String> {
        match self {
            Self::Request { at, .. } | Self::NoAlternative { at } => vec![&at.claim],
            Self::Together { requests, .. } => requests.iter().map(|at| &at.claim).collect(),
            Self::TooManyDevices { claim, .. } => vec![claim],
            _ => Vec::new(),
        }
    }
}

/// `a`, `a and b`, `a, b and c`
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
