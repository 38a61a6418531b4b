//! What is asked of an API server, and what it makes of it.

/// A write: a new object, and the one that it replaces.
///
/// ```
/// use dra_alloc::validate::Admission;
/// let (old, new) = (1, 2);
/// assert_eq!(Admission::create(&new).old, None);
/// assert_eq!(Admission::update(&old, &new).old, Some(&1));
/// ```
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a write has these two objects")]
pub struct Admission<'a, T> {
    /// The object in storage; none for a create.
    pub old: Option<&'a T>,
    /// The object in the request.
    pub new: &'a T,
}

impl<'a, T> Admission<'a, T> {
    /// A create.
    #[must_use]
    pub const fn create(new: &'a T) -> Self {
        Self { old: None, new }
    }

    /// An update.
    #[must_use]
    pub const fn update(old: &'a T, new: &'a T) -> Self {
        Self { old: Some(old), new }
    }
}

impl<T> Clone for Admission<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Admission<'_, T> {}

/// A write that is accepted.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Admitted<T> {
    /// What would be stored. Defaults of absent fields are not filled in, and `timeAdded` of a taint, for which the API
    /// server asks its clock, is as it was sent.
    pub object: T,
    /// Paths of the fields that were set in the request and are not stored, because their features are off.
    pub dropped: Vec<String>,
    /// What the API server would say to the client although it accepts.
    pub warnings: Vec<String>,
}
