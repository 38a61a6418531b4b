//! Parts that other packages of the family need, and nobody else: no promise is made about them.

/// One reading of an attribute and of its name, with their limits. A driver asks
/// [`check_device_attributes`](crate::check_device_attributes), a scheduler [`ValueSet`](crate::ValueSet).
pub use crate::name::QualifiedName;
pub use crate::numa::attribute::NumaNodeValue;
pub use crate::value::AttributeValue;

/// Supertrait of a trait that only the packages of the family implement.
pub trait Sealed {}

/// Rules of releases. They grow with each release, and a place that decides by one of them must not build before it knows
/// a new answer: that is the wrong promise to anybody else. [`Profile`](crate::Profile) and [`Gate`](crate::Gate) answer
/// what a user asks of a release.
pub mod release {
    pub use crate::release::*;
}
