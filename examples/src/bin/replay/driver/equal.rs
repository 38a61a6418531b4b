//! The operation `driver.equal`: equality of two lists of devices.

use dra_alloc::driver::same_devices;
use k8s_openapi::api::resource::v1::Device;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::operation::Operation;
use crate::refusal::Refusal;

#[derive(Deserialize)]
struct EqualInput {
    #[serde(default)]
    a: Vec<Device>,
    #[serde(default)]
    b: Vec<Device>,
}

pub(crate) fn equal(input: Value) -> Result<Operation, Refusal> {
    super::operation(input, |input: &EqualInput| Ok(json!({"equal": same_devices(&input.a, &input.b)})))
}
