//! CEL expressions: selectors and derived attributes.

use std::sync::LazyLock;

use dra_alloc::selector::{SelectorCache, SelectorInput};
use k8s_openapi::api::resource::v1::{Device, DeviceAttribute, DeviceSelector};

use super::{Failure, fatal};

/// Cache of compiled expressions, shared by all cases.
static COMPILED: LazyLock<SelectorCache> = LazyLock::new(SelectorCache::default);

/// Returns true if all selectors hold; stops at the first that does not.
pub fn all_hold(selectors: Option<&Vec<DeviceSelector>>, driver: &str, device: &Device) -> Result<bool, Failure> {
    for (index, selector) in selectors.into_iter().flatten().enumerate() {
        let Some(cel) = &selector.cel else { return fatal(format!("selector #{index}: CEL expression empty")) };
        let failed = |kind: &str, reason: String| Failure::Fatal(format!("selector #{index}: {kind} error: {reason}"));
        let program = COMPILED.compile(&cel.expression).map_err(|error| failed("compile", error.to_string()))?;
        let answer = program.matches(SelectorInput::new(driver, device));
        if !answer.map_err(|error| failed("runtime", error.to_string()))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the value of a derived attribute.
pub fn derive(expression: &str, driver: &str, device: &Device) -> Result<DeviceAttribute, Failure> {
    let failed = |kind: &str, reason: String| Failure::Fatal(format!("{kind} derived attribute: {reason}"));
    let program = COMPILED.compile_derived(expression).map_err(|error| failed("compile", error.to_string()))?;
    program.derive(SelectorInput::new(driver, device)).map_err(|error| failed("evaluate", error.to_string()))
}
