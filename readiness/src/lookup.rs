//! Lookup of list items by name. Of several items with one name, the first counts.

use k8s_openapi::api::core::v1::NodeCondition;

use crate::gate::NodeReadinessGate;

/// Length up to which a list is searched linearly, which is faster than sorting it.
const LINEAR_SEARCH_MAX: usize = 32;

/// Item that a [`Lookup`] finds by its name.
pub(crate) trait Named {
    fn name(&self) -> &str;
}

impl Named for NodeCondition {
    fn name(&self) -> &str {
        &self.type_
    }
}

impl Named for NodeReadinessGate {
    fn name(&self) -> &str {
        &self.condition_type
    }
}

/// List with an index by name.
#[derive(Clone, Debug)]
pub(crate) struct Lookup<'a, T> {
    items: &'a [T],
    /// Positions of the items, sorted by name. Empty for a list of at most [`LINEAR_SEARCH_MAX`] items.
    order: Vec<usize>,
}

impl<'a, T: Named> Lookup<'a, T> {
    pub(crate) fn new(items: &'a [T]) -> Self {
        let mut order = Vec::new();
        if items.len() > LINEAR_SEARCH_MAX {
            order.extend(0..items.len());
            order.sort_by_key(|index| items.get(*index).map(Named::name));
        }
        Self { items, order }
    }

    pub(crate) const fn items(&self) -> &'a [T] {
        self.items
    }

    pub(crate) fn find(&self, name: &str) -> Option<&'a T> {
        self.position(name).and_then(|index| self.items.get(index))
    }

    /// Returns the first item of each name, in the order of the list.
    pub(crate) fn distinct(&self) -> impl Iterator<Item = &'a T> + '_ {
        let is_first = |(index, item): &(usize, &'a T)| self.position(item.name()) == Some(*index);
        self.items.iter().enumerate().filter(is_first).map(|(_, item)| item)
    }

    /// Returns true if no earlier item of the list has the name of `item`, which must be in the list.
    pub(crate) fn is_first(&self, item: &T) -> bool {
        self.find(item.name()).is_some_and(|first| std::ptr::eq(first, item))
    }

    fn position(&self, name: &str) -> Option<usize> {
        if self.order.is_empty() {
            return self.items.iter().position(|item| item.name() == name);
        }
        let name_at = |index: &usize| self.items.get(*index).map(Named::name);
        let place = self.order.partition_point(|index| name_at(index) < Some(name));
        self.order.get(place).copied().filter(|index| name_at(index) == Some(name))
    }
}
