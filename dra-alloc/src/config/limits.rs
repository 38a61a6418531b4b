//! Limits of the API that several modules use.

/// Largest number of devices in the allocation of one claim (`AllocationResultsMaxSize`).
pub const MAX_DEVICES_PER_CLAIM: usize = 32;

/// Largest number of requests of one claim (`DeviceRequestsMaxSize`).
pub(crate) const MAX_REQUESTS_PER_CLAIM: usize = 32;
