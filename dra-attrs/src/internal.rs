//! Parts that other packages of the family need, and nobody else: no promise is made about them.

/// Supertrait of a trait that only the packages of the family implement.
pub trait Sealed {}
