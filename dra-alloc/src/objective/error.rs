//! Reasons that an objective is refused.

use dra_attrs::NameError;
use dra_device::DeviceIdError;
use dra_selector::CompileError;

/// Reason that an objective is refused. `field` is the path in the objective, such as `[0][1].weight` for the second term of
/// the first level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectiveError {
    /// A field has another type than it must have.
    #[error("objective{field}: must be {expected}")]
    Type {
        /// Path of the field.
        field: String,
        /// Type or value that the field must have, in words.
        expected: &'static str,
    },
    /// A field is missing.
    #[error("objective{field}: is missing")]
    Missing {
        /// Path of the field.
        field: String,
    },
    /// A field does not belong to its term.
    #[error("objective{field}: term {term} has no such field")]
    UnknownField {
        /// Path of the field.
        field: String,
        /// Name of the term.
        term: String,
    },
    /// There is no term of this name.
    #[error("objective{field}: there is no term {term:?}")]
    UnknownTerm {
        /// Path of the field.
        field: String,
        /// The name.
        term: String,
    },
    /// A weight is zero.
    #[error("objective{field}: must be at least 1")]
    ZeroWeight {
        /// Path of the field.
        field: String,
    },
    /// A list is too long, or a term is there too often.
    #[error("objective{field}: {number}, more than {limit}")]
    TooMany {
        /// Path of the field.
        field: String,
        /// Number of items.
        number: u64,
        /// Largest number of items.
        limit: u64,
    },
    /// A list has no items.
    #[error("objective{field}: must not be empty")]
    Empty {
        /// Path of the field.
        field: String,
    },
    /// An attribute or capacity is not a fully qualified name.
    #[error("objective{field}: {source}")]
    Name {
        /// Path of the field.
        field: String,
        /// Problem with the name.
        source: NameError,
    },
    /// A device is not named as `driver/pool/device`.
    #[error("objective{field}: {source}")]
    Device {
        /// Path of the field.
        field: String,
        /// Problem with the name.
        source: DeviceIdError,
    },
    /// A selector does not compile.
    #[error("objective{field}: {source}")]
    Selector {
        /// Path of the field.
        field: String,
        /// Problem with the selector.
        source: CompileError,
    },
    /// Two units have one name, or a claim belongs to two units.
    #[error("objective{field}: {name:?} is there twice")]
    Twice {
        /// Path of the field.
        field: String,
        /// The name.
        name: String,
    },
}
