//! Input of a selector.

use k8s_openapi::api::resource::v1::Device;

/// Input of a selector: a device and its driver.
///
/// ```
/// use dra_selector::{Options, Selector, SelectorInput};
/// use k8s_openapi::api::resource::v1::Device;
///
/// let device = Device { name: "gpu-0".to_owned(), ..Default::default() };
/// let input = SelectorInput { driver: "gpu.example", device: &device };
/// assert_eq!(Selector::compile("device.driver == 'gpu.example'", &Options::stored())?.matches(input), Ok(true));
/// # Ok::<(), dra_selector::CompileError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by the caller; these are all that an expression can read")]
pub struct SelectorInput<'a> {
    /// Driver of the device's slice.
    pub driver: &'a str,
    /// Device to evaluate.
    pub device: &'a Device,
}
