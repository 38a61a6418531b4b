//! Display of requests, constraints and bottlenecks in explanations.

use std::fmt;

use super::{Bottleneck, Cause, ClaimName, ConstraintName, Explanation, RequestName, Taint};

impl fmt::Display for ClaimName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Display for RequestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "claim {}, request {}", self.claim, Named(self))
    }
}

/// Displays the taint as `key[=value]:effect`.
impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.key)?;
        if let Some(value) = &self.value {
            write!(f, "={value}")?;
        }
        write!(f, ":{}", self.effect)
    }
}

impl fmt::Display for ConstraintName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.attribute)?;
        write_claim(f, &self.claim)
    }
}

/// Displays the bottleneck as the end of a phrase: "not enough …".
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
    /// Returns the displayed text without the name of the pool, which differs from node to node.
    pub(super) fn on_any_node(&self) -> String {
        match self {
            Self::Counters { set, .. } => format!("of counter set {set}"),
            Self::Groups { set, .. } => format!("compatible devices on counter set {set}"),
            Self::Capacity { capacity } => format!("of capacity {capacity}"),
        }
    }
}

/// Request name displayed without its claim, or with it in the alternate form (`{:#}`).
pub(super) struct Named<'a>(pub(super) &'a RequestName);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.request)?;
        if let Some(subrequest) = &self.0.subrequest {
            write!(f, "/{subrequest}")?;
        }
        write_claim(f, &self.0.claim)
    }
}

/// Writes " of claim …" if the alternate form (`{:#}`) is asked for.
fn write_claim(f: &mut fmt::Formatter<'_>, claim: &ClaimName) -> fmt::Result {
    if f.alternate() { write!(f, " of claim {claim}") } else { Ok(()) }
}

/// Number of claims in an explanation, which decides if requests are displayed with their claim.
#[derive(Clone, Copy)]
pub(super) enum Scope {
    /// All requests are of one claim, so that its name is left out.
    OneClaim,
    Claims,
}

impl Scope {
    pub(super) fn from_claims<'a>(claims: impl IntoIterator<Item = &'a ClaimName>) -> Self {
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
        Scope::from_claims(self.reasons.iter().flat_map(|reason| reason.cause.claims()))
    }
}

impl Cause {
    /// Returns the names of the claims whose requests fail.
    fn claims(&self) -> Vec<&ClaimName> {
        match self {
            Self::Request { at, .. } | Self::NoAlternative { at } => vec![&at.claim],
            Self::Together { requests, .. } => requests.iter().map(|at| &at.claim).collect(),
            Self::TooManyDevices { claim, .. } => vec![claim],
            _ => Vec::new(),
        }
    }
}

/// Largest number of items in a list in a sentence.
pub(super) const MOST_LISTED: usize = 8;

/// Joins words as a list in a sentence: `a`, `a and b`, `a, b and c`. A long list is cut: `a, b, c and 14 more`.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] if names.len() <= MOST_LISTED => format!("{} and {last}", first.join(", ")),
        names => {
            let (first, rest) = names.split_at(MOST_LISTED);
            format!("{} and {} more", first.join(", "), rest.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        let names = |count: u32| -> Vec<String> { (1..=count).map(|number| number.to_string()).collect() };
        assert_eq!(listed(&names(0)), "");
        assert_eq!(listed(&names(2)), "1 and 2");
        assert_eq!(listed(&names(8)), "1, 2, 3, 4, 5, 6, 7 and 8");
        assert_eq!(listed(&names(22)), "1, 2, 3, 4, 5, 6, 7, 8 and 14 more");
    }
}
