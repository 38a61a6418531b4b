//! Shortcuts past devices that no request can get, as a set that tests switch off one by one.

/// Way of not looking at devices that can't matter. All are used; tests switch them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortcut {
    /// Devices that claims hold are left out of the search.
    FreeDevices,
    /// Pools whose driver the selectors of all requests reject are left out.
    PoolsByDriver,
    /// A request passes over pools whose driver its own selectors reject.
    PoolsByRequest,
    /// A node without a device that could be given is answered without a search.
    NoDevice,
    /// Requests that ask the same of a device check it once.
    LikeRequests,
    /// A node with fewer devices than are asked for is answered without a search.
    TooFew,
}

/// Set of [`Shortcut`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortcuts(u8);

impl Shortcuts {
    /// Number of shortcuts.
    pub(crate) const COUNT: u8 = 6;

    /// Returns the set of shortcuts whose bits are set.
    #[cfg(test)]
    pub(crate) const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    pub(crate) const fn has(self, shortcut: Shortcut) -> bool {
        self.0 & (1 << shortcut as u8) != 0
    }
}

impl Default for Shortcuts {
    fn default() -> Self {
        Self((1 << Self::COUNT) - 1)
    }
}

#[cfg(test)]
mod tests;
