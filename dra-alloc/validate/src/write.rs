//! Write requests to the API server, and their results.

use dra_attrs::DroppedField;

/// Create or update of an object: the new object, and the stored one that it replaces.
///
/// ```
/// use dra_validate::Write;
/// let (old, new) = (1, 2);
/// assert_eq!(Write::create(&new).old, None);
/// assert_eq!(Write::update(&old, &new).old, Some(&1));
/// ```
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a write has these two objects")]
pub struct Write<'a, T> {
    /// The stored object; none for a create.
    pub old: Option<&'a T>,
    /// The object in the request.
    pub new: &'a T,
}

impl<'a, T> Write<'a, T> {
    /// Creates a write that stores a new object.
    #[must_use]
    pub const fn create(new: &'a T) -> Self {
        Self { old: None, new }
    }

    /// Creates a write that replaces the stored object `old` by `new`.
    #[must_use]
    pub const fn update(old: &'a T, new: &'a T) -> Self {
        Self { old: Some(old), new }
    }
}

impl<T> Clone for Write<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Write<'_, T> {}

/// Result of an accepted write.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Accepted<T> {
    /// Object that the API server would store: defaults are filled in, and amounts have their canonical form.
    /// `timeAdded` of a taint is set if the server has a clock ([`super::ApiServer::with_now`]).
    pub object: T,
    /// Fields that were dropped from the request because their features are off.
    pub dropped: Vec<DroppedField>,
    /// Warnings that the API server would return to the client.
    pub warnings: Vec<String>,
}
