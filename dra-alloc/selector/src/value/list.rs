//! Lists.

use std::sync::Arc;

use super::{Value, nested};
use crate::fault::Fault;

/// List of values.
#[derive(Clone, Debug)]
pub(crate) struct List<'v>(Arc<Data<'v>>);

#[derive(Clone, Debug)]
struct Data<'v> {
    items: Vec<Value<'v>>,
    depth: u16,
    /// Made by `+`: its comparison is an error when that of an element is.
    is_sum: bool,
}

impl<'v> List<'v> {
    /// Makes a list.
    pub(crate) fn new(items: Vec<Value<'v>>) -> Result<Self, Box<Fault>> {
        let depth = nested(items.iter().map(Value::depth).max().unwrap_or_default())?;
        Ok(Self(Arc::new(Data { items, depth, is_sum: false })))
    }

    pub(crate) fn items(&self) -> &[Value<'v>] {
        &self.0.items
    }

    pub(crate) fn len(&self) -> usize {
        self.0.items.len()
    }

    /// Returns the work of reading all elements once.
    pub(crate) fn weight(&self) -> usize {
        self.items().iter().map(Value::weight).fold(0, usize::saturating_add)
    }

    pub(super) fn depth(&self) -> u16 {
        self.0.depth
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
