//! The pruning rules of the search, as a set that tests switch off one by one.

/// Rule by which the search skips a branch, with the sign of such a branch. All rules are on; tests switch them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PruningRule {
    /// An open request has fewer free devices than it still needs.
    ForwardChecking,
    /// Several requests together need more devices, or shares, than they have free (Hall bound).
    Pigeonhole,
    /// No value of a `matchAttribute` is left with which all open requests can be served.
    CommonValue,
    /// The open requests can't have different values of a `distinctAttribute`.
    AllDifferent,
    /// The remaining counters of one name are below the open requests' minimum use.
    CounterBound,
    /// Several `matchAttribute`s together need more devices of one value than the values have.
    Packing,
    /// The claim would get more devices than an allocation may have.
    ResultLimit,
    /// An interchangeable device was tried at this place.
    ValueSymmetry,
    /// A later claim has no solution even if nothing else is allocated.
    LaterClaims,
    /// One of the first seven rules cuts the branch, beyond requests that can't end in an error any more.
    SettledRisks,
    /// The devices that are left are, up to exchanges, those that were left when a search failed.
    FailedStates,
}

/// Number of backtracks before pruning starts. Most satisfiable searches never reach it.
const START_AFTER_BACKTRACKS: usize = 3;

/// Devices that a constraint refuses one after the other before pruning starts: so many, and one for so many looks with which
/// pruning begins.
const START_AFTER_CONFLICTS: usize = 32;
const START_AFTER_SHARE: usize = 8;

/// Set of [`PruningRule`]s, with the time at which they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PruningRules(u16);

impl PruningRules {
    /// Number of pruning rules.
    pub(crate) const COUNT: u8 = 11;

    /// Returns the set of rules whose bits are set, active from the first backtrack or conflict on.
    #[cfg(test)]
    pub(crate) const fn from_start(bits: u16) -> Self {
        Self(bits | 1 << Self::COUNT)
    }

    /// Returns the set without a rule.
    #[cfg(test)]
    pub(crate) const fn without(self, rule: PruningRule) -> Self {
        Self(self.0 & !(1 << rule as u16))
    }

    /// Returns the number of backtracks before pruning starts.
    pub(crate) const fn start_after(self) -> usize {
        if self.0 >> Self::COUNT == 0 { START_AFTER_BACKTRACKS } else { 0 }
    }

    /// Returns the number of devices that a constraint refuses one after the other before pruning starts, which begins with a
    /// number of looks at devices.
    pub(crate) fn start_after_conflicts(self, looks: impl FnOnce() -> usize) -> usize {
        if self.start_after() == 0 { 0 } else { START_AFTER_CONFLICTS.max(looks() / START_AFTER_SHARE) }
    }

    /// Returns the number of devices that a constraint refuses before the looks are counted.
    pub(crate) const fn least_conflicts(self) -> usize {
        if self.start_after() == 0 { 0 } else { START_AFTER_CONFLICTS }
    }

    pub(super) const fn has(self, rule: PruningRule) -> bool {
        self.0 & (1 << rule as u16) != 0
    }
}

impl Default for PruningRules {
    fn default() -> Self {
        Self((1 << Self::COUNT) - 1)
    }
}

#[cfg(test)]
mod savings;
#[cfg(test)]
mod tests;
