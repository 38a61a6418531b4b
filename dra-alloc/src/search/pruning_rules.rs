//! The pruning rules of the search, as a set that tests switch off one by one.

/// Rule by which the search skips branches. All rules are on; tests switch them off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PruningRule {
    /// A request with fewer free devices than it needs fails whatever is chosen, since free devices only get fewer. A device that
    /// no check admits, or without the attribute of a constraint, is in no domain from the start.
    ForwardChecking,
    /// Requests that can only take devices of a set need at most as many as the set has places. An exclusive device is one place. A
    /// shared one has what is left of a capacity, divided by the smallest share of any request.
    Pigeonhole,
    /// All devices of a `matchAttribute` have one value, so that the two rules above hold among the holders of each value.
    CommonValue,
    /// The devices still needed take at least the smallest numbers of values among those left, which must fit into the free values. Each
    /// must find a value of its own: a matching in a bipartite graph.
    AllDifferent,
    /// Each further device takes at least the smallest amount that any of them takes of the counters of one name.
    CounterBound,
    /// A value with `f` free devices serves at most `f / k` of the `matchAttribute`s that need `k` devices or more. The largest needs
    /// are counted first, so that `k` is the smallest of the needs counted so far. A device with a list would be counted for each of its
    /// values, so that lists are left out.
    Packing,
    /// The devices of a claim so far, and the fewest that its open requests can get, are more than an allocation may have. The search
    /// of kube-scheduler ends such a branch early and skips further devices; those have no solution either, as only numbers decide.
    ResultLimit,
    /// Two devices that all requests, constraints and counters see as equal can be exchanged in a solution. If the branch with the
    /// first one failed, every branch of the same request with the second one fails, here or below.
    ValueSymmetry,
    /// Two equal requests can exchange their devices, so that one of the two orders is enough: the first that the walk reaches. It
    /// does not hold under a constraint that leaves its first device unchecked.
    VariableSymmetry,
    /// A claim without a solution on the empty node has none next to other claims. Each is searched alone once, with little work.
    LaterClaims,
    /// A risk is settled once a device that it needs is taken: the request can only fail. Then the bounds may look beyond it.
    SettledRisks,
    /// A state in which everything was tried without success is a fact about the remaining devices. It holds wherever the state
    /// comes up again, also in another request or claim.
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
    pub(crate) const COUNT: u8 = 12;

    /// Returns the set of rules whose bits are set, active from the first backtrack or conflict on.
    #[cfg(test)]
    pub(crate) const fn from_start(bits: u16) -> Self {
        Self(bits | 1 << Self::COUNT)
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
mod tests;
