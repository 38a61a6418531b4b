//! Operations `driver.*`: decisions of a DRA driver. A refusal of a driver is part of the result.

mod claims;
mod due;
mod equal;
mod gates;
mod imagined_server;
mod names;
mod node;
mod plan;
mod pool_check;
mod reconcile;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::operation::Operation;
use crate::refusal::{Refusal, read};

pub(super) use claims::{configs, ledger, status};
pub(super) use due::due;
pub(super) use equal::equal;
pub(super) use names::names;
pub(super) use node::{h2, health, metadata};
pub(super) use plan::plan;
pub(super) use pool_check::pool_check;
pub(super) use reconcile::reconcile;

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

/// Returns a refusal as a result, with the name of its kind and the values of `fields`.
fn refused(kind: &str, mut fields: Value) -> Value {
    if let Value::Object(fields) = &mut fields {
        fields.insert("kind".to_owned(), kind.into());
    }
    json!({"error": fields})
}
