//! Size limits of the API that several packages use, as the documentation of its types states them.

/// Largest number of devices in the allocation of one claim (`AllocationResultsMaxSize`).
pub const MAX_DEVICES_PER_CLAIM: usize = 32;

/// Largest number of requests of one claim (`DeviceRequestsMaxSize`).
pub const MAX_REQUESTS_PER_CLAIM: usize = 32;

/// Largest number of devices of a slice.
pub const MAX_DEVICES: usize = 128;

/// Largest number of devices of a slice with an advanced device; see [`is_advanced`](crate::slice::is_advanced).
pub const MAX_ADVANCED_DEVICES: usize = 64;

/// Largest number of counter sets of a slice.
pub const MAX_COUNTER_SETS: usize = 8;
