//! Operation of the replay door.

use dra_attrs::Profile;
use serde_json::Value;

use super::refusal::Refusal;
use super::stopwatch::Stopwatch;

/// Parsed operation. It can be called repeatedly, computes the answer, and tells the stopwatch which part is index and
/// which is run.
pub(crate) type Operation = Box<dyn Fn(&mut Stopwatch) -> Result<Value, Refusal>>;

/// Profile of an operation that names none.
pub(crate) fn kep() -> Profile {
    Profile::Kep
}
