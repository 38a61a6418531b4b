//! Size limits that differ between releases.

/// Size limits of objects in one release.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a row is written without `..`, and only in this crate")]
pub struct Limits {
    /// Largest number of taints of a device.
    pub taints: usize,
    /// Largest number of devices of a slice in which a device has taints, counters or list attributes.
    pub advanced_devices: usize,
    /// Limits of counters and of the sets that they are in.
    pub counters: CounterLimits,
}

/// Way in which a release limits counters (KEP-4815).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a new way must stop whoever checks it")]
pub enum CounterLimits {
    /// All counters of a slice are counted together, and those that a device consumes. Sets are not counted.
    InTotal {
        /// Largest number of counters in all sets of a slice.
        shared: usize,
        /// Largest number of counters that one device consumes.
        of_device: usize,
        /// Largest number of counters that all devices of a slice consume.
        consumed: usize,
    },
    /// Sets are counted, and the counters of each.
    BySet {
        /// Largest number of counter sets of a slice.
        sets: usize,
        /// Largest number of counters of a set, and of one entry of `consumesCounters`.
        counters: usize,
        /// Largest number of sets that one device consumes counters of.
        of_device: usize,
    },
}
