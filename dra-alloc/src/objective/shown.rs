//! Objectives in words.

use std::fmt;

use super::levels::Objective;
use super::term::{GroupBy, PairCost, PairScope, Pairs, Term, Weighted};

impl fmt::Display for Objective {
    /// Writes the terms of each level, with weights other than 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut levels = self.levels().iter().filter(|level| !level.is_empty()).peekable();
        if levels.peek().is_none() {
            return f.write_str("the first solution");
        }
        for (number, level) in levels.enumerate() {
            if number > 0 {
                f.write_str(", then ")?;
            }
            for (position, weighted) in level.iter().enumerate() {
                f.write_str(if position > 0 { " + " } else { "" })?;
                weighted.fmt(f)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Weighted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.weight != 1 {
            write!(f, "{} × ", self.weight)?;
        }
        self.term.fmt(f)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { by } | Self::Spread { by } => write!(f, "{} by {by}", self.name()),
            Self::Room { size: Some(size) } => write!(f, "room in {size}"),
            Self::Pairs(pairs) => pairs.fmt(f),
            Self::Pairing { of, with, attribute } => write!(f, "pairing of {of} with {with} by {attribute}"),
            Self::Waste { capacity } => write!(f, "waste of {capacity}"),
            Self::Prefer { selectors } => write!(f, "prefer {}", selectors.join(", then ")),
            Self::Outlook { of, times: None } => write!(f, "outlook of {of}"),
            Self::Outlook { of, times: Some(times) } => write!(f, "outlook of {of}, {times} times"),
            Self::Room { .. } | Self::Options | Self::Stranded | Self::Tainted | Self::Conditions => {
                f.write_str(self.name())
            }
            Self::Alternative | Self::Displaced { .. } => f.write_str(self.name()),
        }
    }
}

impl fmt::Display for GroupBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool => f.write_str("pool"),
            Self::CounterSet => f.write_str("counter set"),
            Self::Attribute(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cost {
            PairCost::Distance { attributes } => write!(f, "distance by {}", attributes.join(", "))?,
            PairCost::Links { scores, .. } => write!(f, "links of {} pairs", scores.len())?,
        }
        f.write_str(match self.within {
            PairScope::Claim => "",
            PairScope::AllClaims => " across claims",
        })
    }
}
