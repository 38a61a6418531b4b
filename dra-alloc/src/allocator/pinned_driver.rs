//! The one driver whose devices a class and selectors admit, if they say so themselves.

use k8s_openapi::api::resource::v1::DeviceSelector;

use super::Allocator;
use crate::cluster::expression::{Expression, Owner, Selectors};

impl Allocator<'_> {
    /// Returns the driver that the selectors of a class, or the selectors beside it, ask for; `None` if devices of several
    /// drivers may do, or if there is no such class.
    ///
    /// # Complexity
    /// Linear in the number of selectors. Each is compiled once.
    pub(crate) fn pinned_driver(&self, class: &str, selectors: &[DeviceSelector]) -> Option<String> {
        let own = Selectors::new(Owner::Claim, selectors);
        let class = self.classes.named(class)?;
        class.selectors().chain(own.iter()).find_map(|selector| self.driver_of(&selector))
    }

    /// Returns the driver that the class of an extended resource asks for; `None` if devices of several drivers may do, or if
    /// no class serves the resource.
    ///
    /// # Complexity
    /// As [`Allocator::pinned_driver`].
    pub(crate) fn driver_of_resource(&self, resource: &str) -> Option<String> {
        self.pinned_driver(self.classes.of_extended_resource(resource)?.metadata.name.as_deref()?, &[])
    }

    fn driver_of(&self, selector: &Expression<'_>) -> Option<String> {
        Some(selector.compile(self.compiler())?.ok()?.pinned_driver()?.to_owned())
    }
}
