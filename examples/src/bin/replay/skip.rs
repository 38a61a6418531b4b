//! The operation `alloc.aggregate_skip`: calls of drivers that an allocation makes unnecessary.

use dra_alloc::skip::SkipSet;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde::Deserialize;
use serde_json::{Value, json};

use super::alloc::carrier;
use super::operation::Operation;
use super::refusal::{Refusal, read};
use super::stopwatch::Stopwatch;

#[derive(Deserialize)]
struct AggregateInput {
    claim: Value,
}

pub(super) fn aggregate_skip(input: Value) -> Result<Operation, Refusal> {
    let input: AggregateInput = read(input)?;
    let claim: ResourceClaim = carrier("claim", input.claim)?;
    Ok(Box::new(move |stopwatch: &mut Stopwatch| {
        let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref());
        let drivers = stopwatch.run(|| allocation.map(SkipSet::by_driver).unwrap_or_default());
        let drivers = drivers.into_iter().map(|(driver, skips)| {
            (driver.to_owned(), json!({"prepare": skips.prepare, "unprepare": skips.unprepare}))
        });
        Ok(json!({"drivers": drivers.collect::<serde_json::Map<_, _>>()}))
    }))
}
