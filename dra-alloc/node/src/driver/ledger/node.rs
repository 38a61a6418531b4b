//! Driver on a node: what decisions of the ledger depend on beside the ledger itself.

use std::fmt;

use super::entry::HeldDevice;

/// Function that tells if two devices can't be in use together.
type Overlaps<'a> = dyn Fn(&HeldDevice, &HeldDevice) -> bool + 'a;

/// Driver on a node, in one boot.
#[derive(Clone, Copy)]
pub struct NodeContext<'a> {
    driver: &'a str,
    boot_id: &'a str,
    overlaps: Option<&'a Overlaps<'a>>,
    has_metadata: bool,
}

impl<'a> NodeContext<'a> {
    /// Creates the context of a driver in the boot with this id, which Linux has in `/proc/sys/kernel/random/boot_id`.
    #[must_use]
    pub const fn new(driver: &'a str, boot_id: &'a str) -> Self {
        Self { driver, boot_id, overlaps: None, has_metadata: false }
    }

    /// Adds which devices can't be in use together, for example a card and its partitions. The function gets two
    /// different devices, in either order.
    ///
    /// ```
    /// use dra_node::driver::{HeldDevice, NodeContext};
    /// // A card `gpu-0` and its partitions `gpu-0-a` and `gpu-0-b`.
    /// let is_part = |part: &HeldDevice, card: &HeldDevice| part.device.starts_with(&format!("{}-", card.device));
    /// let overlaps = |one: &HeldDevice, other: &HeldDevice| is_part(one, other) || is_part(other, one);
    /// let node = NodeContext::new("gpu.example.com", "3c1e").with_overlaps(&overlaps);
    /// # let _ = node;
    /// ```
    #[must_use]
    pub const fn with_overlaps(self, overlaps: &'a dyn Fn(&HeldDevice, &HeldDevice) -> bool) -> Self {
        Self { overlaps: Some(overlaps), ..self }
    }

    /// Adds the steps for metadata files (KEP-5304): [`super::LedgerStep::WriteMetadata`] and
    /// [`super::LedgerStep::RemoveMetadata`].
    #[must_use]
    pub const fn with_metadata(self) -> Self {
        Self { has_metadata: true, ..self }
    }

    pub(super) const fn has_metadata(&self) -> bool {
        self.has_metadata
    }

    /// Returns the name of the driver.
    #[must_use]
    pub const fn driver(&self) -> &'a str {
        self.driver
    }

    /// Returns the id of the current boot.
    #[must_use]
    pub const fn boot_id(&self) -> &'a str {
        self.boot_id
    }

    /// Returns true if two results can't be prepared together: they are for one device or for devices that overlap,
    /// neither is for administrative access, and they are not different shares of one device.
    pub(super) fn conflict(&self, one: &HeldDevice, other: &HeldDevice) -> bool {
        if one.admin_access || other.admin_access {
            return false;
        }
        if one.place() != other.place() {
            return self.overlaps.is_some_and(|overlaps| overlaps(one, other));
        }
        match (&one.share_id, &other.share_id) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }

    /// Returns the first device of `wanted` that can't be prepared together with one of `held`.
    pub(super) fn first_conflict<'d>(&self, wanted: &'d [HeldDevice], held: &[HeldDevice]) -> Option<&'d HeldDevice> {
        wanted.iter().find(|device| held.iter().any(|other| self.conflict(device, other)))
    }
}

impl fmt::Debug for NodeContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeContext")
            .field("driver", &self.driver)
            .field("boot_id", &self.boot_id)
            .finish_non_exhaustive()
    }
}
