//! Input of a selector.

use k8s_openapi::api::resource::v1::Device;

/// Input of a selector: a device and its driver.
///
/// ```
/// use dra_selector::{Options, Selector, SelectorInput};
/// use k8s_openapi::api::resource::v1::Device;
///
/// let device = Device { name: "gpu-0".to_owned(), ..Default::default() };
/// let input = SelectorInput::new("gpu.example", &device);
/// assert_eq!(Selector::compile("device.driver == 'gpu.example'", &Options::stored())?.matches(input), Ok(true));
/// # Ok::<(), dra_selector::CompileError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SelectorInput<'a> {
    /// Driver of the device's slice.
    pub driver: &'a str,
    /// Device to evaluate.
    pub device: &'a Device,
}

impl<'a> SelectorInput<'a> {
    /// Returns the input for a device of a driver's slice.
    #[must_use]
    pub const fn new(driver: &'a str, device: &'a Device) -> Self {
        Self { driver, device }
    }
}
