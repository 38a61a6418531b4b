//! Size limits of the API that several packages use, as the documentation of its types states them.

/// Largest number of devices in the allocation of one claim (`AllocationResultsMaxSize`).
pub const MAX_DEVICES_PER_CLAIM: usize = 32;

/// Largest number of requests of one claim (`DeviceRequestsMaxSize`).
pub const MAX_REQUESTS_PER_CLAIM: usize = 32;

/// Largest number of devices of a slice.
pub const MAX_DEVICES: usize = 128;
