//! Elisions past devices that no request can get, and past questions of an explanation whose answer is known, as a set that
//! tests switch off one by one.

/// Way of not looking at what can't matter. All are used; tests switch them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Elision {
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
    /// An explanation does not ask for gates where the devices were counted. The count reads pools, the use of devices and claims.
    /// The gate of partitions decides which slices are read, and is asked for; others only make errors of claims, and claims that
    /// were counted have none.
    GatesInVain,
    /// An explanation does not ask again what is known of an unsatisfiable core: a core with one request is that request, which was
    /// just found to be impossible.
    KnownCore,
    /// An explanation examines one device of a pool whose devices are equal for a request: the selectors read the driver alone, no
    /// capacity is requested, and the pool is plain. The state's occupancy tells which of them are held.
    LikeDevices,
    /// The explanation of a node is that of a node before it that is like it.
    ExplainedStates,
    /// The search on a node is that of a node before it in the same state.
    SearchedStates,
    /// Devices with equal values share the results of selectors.
    EqualValues,
    /// A request starts behind the devices that were refused to one that asks the same.
    RefusedBefore,
    /// Looking ahead looks once at a pool whose devices are alike for a request.
    PoolsAtOnce,
    /// Looking ahead looks once at pools with the same devices in the same use.
    LikePools,
    /// Answers of selectors about the devices of a pool are kept with the pool.
    KeptSelections,
}

/// Set of [`Elision`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elisions(u32);

impl Elisions {
    /// Number of elisions.
    pub(crate) const COUNT: u8 = 16;

    /// Returns the set of elisions whose bits are set.
    #[cfg(test)]
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the set without one of its elisions.
    #[cfg(test)]
    pub(crate) const fn without(self, one: Elision) -> Self {
        Self(self.0 & !(1 << one as u32))
    }

    pub(crate) const fn has(self, shortcut: Elision) -> bool {
        self.0 & (1 << shortcut as u32) != 0
    }
}

impl Default for Elisions {
    fn default() -> Self {
        Self((1 << Self::COUNT) - 1)
    }
}

#[cfg(test)]
mod tests;
