//! Lists.

use std::sync::Arc;

use super::nesting::nested;
use super::{List, ListData, Value};
use crate::fault::Fault;

impl<'v> List<'v> {
    /// Makes a list.
    pub(crate) fn new(items: Vec<Value<'v>>) -> Result<Self, Box<Fault>> {
        let depth = nested(items.iter().map(Value::depth).max().unwrap_or_default())?;
        Ok(Self(Arc::new(ListData { items, depth, is_sum: false })))
    }

    pub(crate) fn items(&self) -> &[Value<'v>] {
        &self.0.items
    }

    pub(crate) fn len(&self) -> usize {
        self.0.items.len()
    }

    pub(super) fn is_sum(&self) -> bool {
        self.0.is_sum
    }

    /// Returns a list with the elements of another behind its own. A list that nobody else has grows in place.
    pub(crate) fn joined(mut self, other: &Self) -> Self {
        if other.len() == 0 {
            return self;
        }
        if self.len() == 0 {
            return other.clone();
        }
        let data = Arc::make_mut(&mut self.0);
        data.items.extend_from_slice(other.items());
        data.depth = data.depth.max(other.depth());
        data.is_sum = true;
        self
    }

    /// Returns the list with an element more, as a loop builds it: not a sum.
    pub(crate) fn pushed(mut self, item: Value<'v>) -> Result<Self, Box<Fault>> {
        let depth = nested(item.depth())?;
        let data = Arc::make_mut(&mut self.0);
        data.items.push(item);
        data.depth = data.depth.max(depth);
        Ok(self)
    }
}
