//! Positions in lists, typed by what the list holds.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use serde::{Serialize, Serializer};

/// Position of a `T` in a list of `T`s, counted from 0.
///
/// ```
/// use dra_attrs::Ix;
/// use k8s_openapi::api::resource::v1::DeviceConstraint;
///
/// let constraints = [DeviceConstraint::default(), DeviceConstraint::default()];
/// let second: Ix<DeviceConstraint> = Ix::from(1);
/// assert!(second.of(&constraints).is_some_and(|found| std::ptr::eq(found, &constraints[1])));
/// assert_eq!((second.to_string(), usize::from(second)), ("1".to_owned(), 1));
/// ```
///
/// A position of one kind is not one of another:
///
/// ```compile_fail,E0308
/// use dra_attrs::Ix;
/// use k8s_openapi::api::resource::v1::{DeviceConstraint, DeviceRequest};
///
/// let first: Ix<DeviceConstraint> = Ix::FIRST;
/// let requests: Vec<DeviceRequest> = Vec::new();
/// let _ = first.of(&requests);
/// ```
pub struct Ix<T> {
    number: usize,
    list: PhantomData<fn() -> T>,
}

impl<T> Ix<T> {
    /// The position of the first element.
    pub const FIRST: Self = Self { number: 0, list: PhantomData };

    /// Returns the element at this position of `list`; `None` if the list is shorter.
    #[must_use]
    pub fn of(self, list: &[T]) -> Option<&T> {
        list.get(self.number)
    }
}

impl<T> From<usize> for Ix<T> {
    #[inline]
    fn from(number: usize) -> Self {
        Self { number, list: PhantomData }
    }
}

impl<T> From<Ix<T>> for usize {
    #[inline]
    fn from(ix: Ix<T>) -> Self {
        ix.number
    }
}

// Derived implementations would require the same traits of `T`, whose values a position does not contain.

impl<T> Clone for Ix<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ix<T> {}

impl<T> PartialEq for Ix<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for Ix<T> {}

impl<T> PartialOrd for Ix<T> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Ix<T> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl<T> Hash for Ix<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl<T> fmt::Debug for Ix<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}

impl<T> fmt::Display for Ix<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}

impl<T> Serialize for Ix<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.number.serialize(serializer)
    }
}
