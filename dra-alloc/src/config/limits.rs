//! Limits of the API that several modules use.

/// Largest number of devices in the allocation of one claim (`AllocationResultsMaxSize`).
pub const MAX_DEVICES_PER_CLAIM: usize = 32;
