//! Validation errors of an object, each with its field: the API server's answer to an invalid object.
//!
//! [`FieldPath`] is the location, [`ErrorType`] the kind, [`FieldError`] one error, [`FieldErrors`] the list of all
//! errors.
//! The texts are those of the API server, so that a message can be looked up in its documentation and issues.
//!
//! Source of the rules: `k8s.io/apimachinery/pkg/util/validation/field`.
//!
//! Tests: `tests/it/field.rs`.

mod error;
mod error_type;
mod errors;
mod path;
mod quote;
mod value;

pub use error::FieldError;
pub use error_type::ErrorType;
pub use errors::FieldErrors;
pub use path::FieldPath;
pub use quote::Quoted;
pub use value::BadValue;
