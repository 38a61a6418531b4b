//! Nesting of lists, maps and optional values.

use std::sync::Arc;

use super::{Answer, Held, List, Map, Value};
use crate::fault::Fault;

/// Largest nesting of lists, maps and optional values.
const MOST_NESTED: u16 = 250;

/// Returns the nesting of something around what nests so deeply.
pub(super) fn nested(depth: u16) -> Result<u16, Box<Fault>> {
    if depth < MOST_NESTED { Ok(depth + 1) } else { Err(Fault::too_much()) }
}

impl<'v> Value<'v> {
    /// Returns a value as an optional that holds it.
    pub(crate) fn held(self) -> Answer<'v> {
        let depth = nested(self.depth())?;
        Ok(Self::Optional(Some(Arc::new(Held { value: self, depth }))))
    }

    /// Returns how deeply lists, maps and optional values nest in a value.
    pub(super) fn depth(&self) -> u16 {
        match self {
            Self::List(list) => list.depth(),
            Self::Map(map) => map.depth(),
            Self::Optional(Some(held)) => held.depth,
            _ => 0,
        }
    }
}

impl List<'_> {
    pub(super) fn depth(&self) -> u16 {
        self.0.depth
    }
}

impl Map<'_> {
    fn depth(&self) -> u16 {
        match self {
            Self::Table(table) => table.0.depth,
            Self::Device(_) => 4,
            Self::Domains(..) => 3,
            Self::Names(..) => 2,
        }
    }
}
