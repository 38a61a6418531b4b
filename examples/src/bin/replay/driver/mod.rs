//! Operations `driver.*`: decisions of a DRA driver. A refusal of a driver is part of the result.

mod names;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::operation::Operation;
use crate::refusal::{Refusal, read};

pub(super) use names::names;

/// Builds an operation that computes `result` from its input.
fn operation<T: DeserializeOwned + 'static, R: Serialize>(
    input: Value,
    decide: impl Fn(&T) -> Result<R, Refusal> + 'static,
) -> Result<Operation, Refusal> {
    let input: T = read(input)?;
    Ok(Box::new(move |stopwatch| {
        let result = stopwatch.run(|| decide(&input))?;
        Ok(json!({"result": result}))
    }))
}
