//! Problems of an object, each with the field that has it: what the API server answers to a bad object.
//!
//! [`FieldPath`] says where, [`ErrorType`] says what kind, [`FieldError`] is one problem, [`FieldErrors`] all of them.
//! The texts are those of the API server, so that a message found here is also found in its documentation and in issues.
//!
//! Source of the rules: `k8s.io/apimachinery/pkg/util/validation/field`.

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
