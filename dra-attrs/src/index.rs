//! Positions in lists, typed by what the list holds.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use serde::{Serialize, Serializer};

/// Position of a `T` in a list of `T`s, counted from 0.
///
/// ```
/// use dra_attrs::Index;
/// use k8s_openapi::api::resource::v1::DeviceConstraint;
///
/// let constraints = [DeviceConstraint::default(), DeviceConstraint::default()];
/// let second: Index<DeviceConstraint> = Index::from(1);
/// assert!(second.of(&constraints).is_some_and(|found| std::ptr::eq(found, &constraints[1])));
/// assert_eq!((second.to_string(), usize::from(second)), ("1".to_owned(), 1));
/// ```
///
/// A position of one kind is not one of another:
///
/// ```compile_fail,E0308
/// use dra_attrs::Index;
/// use k8s_openapi::api::resource::v1::{DeviceConstraint, DeviceRequest};
///
/// let first: Index<DeviceConstraint> = Index::FIRST;
/// let requests: Vec<DeviceRequest> = Vec::new();
/// let _ = first.of(&requests);
/// ```
pub struct Index<T> {
    number: usize,
    list: PhantomData<fn() -> T>,
}

impl<T> Index<T> {
    /// The position of the first element.
    pub const FIRST: Self = Self { number: 0, list: PhantomData };

    /// Returns the element at this position of `list`; `None` if the list is shorter.
    #[must_use]
    pub fn of(self, list: &[T]) -> Option<&T> {
        list.get(self.number)
    }
}

impl<T> From<usize> for Index<T> {
    #[inline]
    fn from(number: usize) -> Self {
        Self { number, list: PhantomData }
    }
}

impl<T> From<Index<T>> for usize {
    #[inline]
    fn from(ix: Index<T>) -> Self {
        ix.number
    }
}

// Derived implementations would require the same traits of `T`, whose values a position does not contain.

impl<T> Clone for Index<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Index<T> {}

impl<T> PartialEq for Index<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for Index<T> {}

impl<T> PartialOrd for Index<T> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Index<T> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl<T> Hash for Index<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl<T> fmt::Debug for Index<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}

impl<T> fmt::Display for Index<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}

impl<T> Serialize for Index<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.number.serialize(serializer)
    }
}
