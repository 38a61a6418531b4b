//! Positions in the lists of the search, typed by what they count, and lists that take only their own positions.
//!
//! Positions of claims, requests and constraints are those in the API objects; the other kinds exist only in the search.

use std::marker::PhantomData;
use std::ops::{self, Deref, DerefMut};

use dra_attrs::Index;
use k8s_openapi::api::resource::v1::{CounterSet, Device, DeviceConstraint, DeviceRequest, ResourceClaim};

use crate::cluster::expression::Expression;
use crate::cluster::inventory::pool::Pool;
use crate::cluster::inventory::pool_counters::CounterNames;
pub(crate) use crate::cluster::inventory::pool_counters::{CounterIx, SetIx};

/// Kind of position: alternatives of requests.
pub(crate) enum Alternatives {}
/// Kind of position: columns of the table.
pub(crate) enum Columns {}

/// Position of a claim in the call.
pub(crate) type ClaimIx = Index<ResourceClaim>;
/// Position of a request in its claim.
pub(crate) type RequestIx = Index<DeviceRequest>;
/// Position of a request among those of all claims.
pub(crate) type Place = (ClaimIx, RequestIx);
/// Position of a constraint in its claim.
pub(crate) type ConstraintIx = Index<DeviceConstraint>;
/// Position of an alternative among those of all requests of all claims.
pub(crate) type AlternativeIx = Index<Alternatives>;
/// Position of a column, which holds the attribute values that constraints compare.
pub(crate) type ColumnIx = Index<Columns>;
/// Position of a selector among those of the class, then of the request.
pub(crate) type SelectorIx = Index<Expression<'static>>;
/// Position of a pool in the node's view.
pub(crate) type PoolIx = Index<Pool>;
/// Position of a device in search order.
pub(crate) type DeviceIx = Index<Device>;

/// Values by claim.
pub(crate) type ByClaim<T> = IxVec<ResourceClaim, T>;
/// Values by request of one claim.
pub(crate) type ByRequest<T> = IxVec<DeviceRequest, T>;
/// Values by constraint of one claim.
pub(crate) type ByConstraint<T> = IxVec<DeviceConstraint, T>;
/// Values by alternative.
pub(crate) type ByAlternative<T> = IxVec<Alternatives, T>;
/// Values by column.
pub(crate) type ByColumn<T> = IxVec<Columns, T>;
/// Values by device.
pub(crate) type ByDevice<T> = IxVec<Device, T>;

/// Values by counter set of one pool.
pub(crate) type BySet<T> = IxVec<CounterSet, T>;
/// Values by name of a counter in one pool.
pub(crate) type ByCounterName<T> = IxVec<CounterNames, T>;

/// Vector with positions of kind `K`.
pub(crate) type IxVec<K, T> = Indexed<K, Vec<T>>;

/// List `L` with positions of kind `K`.
pub(crate) struct Indexed<K, L> {
    list: L,
    kind: PhantomData<fn() -> K>,
}

impl<K, L> Indexed<K, L> {
    pub(crate) const fn new(list: L) -> Self {
        Self { list, kind: PhantomData }
    }

    pub(crate) fn len<T>(&self) -> usize
    where
        L: Deref<Target = [T]>,
    {
        self.list.len()
    }

    /// Returns the value at a position that may be after the last one.
    pub(crate) fn at<T>(&self, ix: Index<K>) -> Option<&T>
    where
        L: Deref<Target = [T]>,
    {
        self.list.get(usize::from(ix))
    }

    /// Returns the value at a position that may be after the last one.
    pub(crate) fn at_mut<T>(&mut self, ix: Index<K>) -> Option<&mut T>
    where
        L: DerefMut<Target = [T]>,
    {
        self.list.get_mut(usize::from(ix))
    }

    pub(crate) fn iter<T>(&self) -> std::slice::Iter<'_, T>
    where
        L: Deref<Target = [T]>,
    {
        self.list.iter()
    }

    pub(crate) fn iter_mut<T>(&mut self) -> std::slice::IterMut<'_, T>
    where
        L: DerefMut<Target = [T]>,
    {
        self.list.iter_mut()
    }

    /// Returns the values with their positions.
    pub(crate) fn enumerate<'a, T: 'a>(
        &'a self,
    ) -> impl DoubleEndedIterator<Item = (Index<K>, &'a T)> + ExactSizeIterator
    where
        L: Deref<Target = [T]>,
    {
        self.list.iter().enumerate().map(|(number, value)| (Index::from(number), value))
    }

    /// Returns the positions of the values.
    pub(crate) fn range<T>(&self) -> IxRange<K>
    where
        L: Deref<Target = [T]>,
    {
        IxRange { start: Index::FIRST, end: self.end() }
    }

    /// Returns the position after the last value.
    pub(crate) fn end<T>(&self) -> Index<K>
    where
        L: Deref<Target = [T]>,
    {
        Index::from(self.list.len())
    }
}

impl<K, T> IxVec<K, T> {
    /// Adds a value and returns its position.
    pub(crate) fn push(&mut self, value: T) -> Index<K> {
        let ix = self.end();
        self.list.push(value);
        ix
    }

    pub(crate) fn extend(&mut self, values: impl IntoIterator<Item = T>) {
        self.list.extend(values);
    }

    pub(crate) fn last(&self) -> Option<&T> {
        self.list.last()
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut T> {
        self.list.last_mut()
    }
}

impl<K, L: Default> Default for Indexed<K, L> {
    fn default() -> Self {
        Self::new(L::default())
    }
}

impl<K, L: Clone> Clone for Indexed<K, L> {
    fn clone(&self) -> Self {
        Self::new(self.list.clone())
    }
}

impl<K, L: std::fmt::Debug> std::fmt::Debug for Indexed<K, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.list.fmt(f)
    }
}

// Only for positions that were taken from this list, or from one of the same length. Their kind says so.
impl<K, L: ops::Index<usize>> ops::Index<Index<K>> for Indexed<K, L> {
    type Output = L::Output;

    #[inline]
    fn index(&self, ix: Index<K>) -> &L::Output {
        &self.list[usize::from(ix)]
    }
}

impl<K, L: ops::IndexMut<usize>> ops::IndexMut<Index<K>> for Indexed<K, L> {
    #[inline]
    fn index_mut(&mut self, ix: Index<K>) -> &mut L::Output {
        &mut self.list[usize::from(ix)]
    }
}

impl<'a, K, L> IntoIterator for &'a Indexed<K, L>
where
    &'a L: IntoIterator,
{
    type Item = <&'a L as IntoIterator>::Item;
    type IntoIter = <&'a L as IntoIterator>::IntoIter;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<K, T, L: FromIterator<T>> FromIterator<T> for Indexed<K, L> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::new(values.into_iter().collect())
    }
}

/// Positions from `start` to before `end`.
pub(crate) struct IxRange<K> {
    pub(crate) start: Index<K>,
    pub(crate) end: Index<K>,
}

impl<K> Clone for IxRange<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for IxRange<K> {}

impl<K> std::fmt::Debug for IxRange<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (self.start..self.end).fmt(f)
    }
}

impl<K> IxRange<K> {
    pub(crate) fn new(start: Index<K>, end: Index<K>) -> Self {
        Self { start, end }
    }

    pub(crate) fn len(self) -> usize {
        usize::from(self.end).saturating_sub(self.start.into())
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

impl<K> IntoIterator for IxRange<K> {
    type Item = Index<K>;
    type IntoIter = std::iter::Map<ops::Range<usize>, fn(usize) -> Index<K>>;

    fn into_iter(self) -> Self::IntoIter {
        (usize::from(self.start)..usize::from(self.end)).map(Index::from)
    }
}

/// Returns the position after `ix`.
pub(crate) fn next<K>(ix: Index<K>) -> Index<K> {
    Index::from(usize::from(ix) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_the_list() {
        let mut list: ByDevice<char> = ['a', 'b'].into_iter().collect();
        let third = list.push('c');
        assert_eq!((list[third], list.at(next(third)), list.end()), ('c', None, next(third)));
        list[DeviceIx::FIRST] = 'd';
        let all: String = list.range().into_iter().map(|ix| list[ix]).collect();
        assert_eq!((all.as_str(), list.len()), ("dbc", 3));
        let values: Vec<(usize, char)> = list.enumerate().map(|(ix, value)| (ix.into(), *value)).collect();
        assert_eq!(values, [(0, 'd'), (1, 'b'), (2, 'c')]);
        assert!(IxRange::new(third, third).is_empty() && !list.range().is_empty());
    }
}
