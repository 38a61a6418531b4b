//! Objectives that people want, as constructors.

use super::error::ObjectiveError;
use super::levels::Objective;
use super::term::{GroupBy, PairCost, PairScope, Pairs, Term};

/// Attributes by which devices are close, the nearest first.
const NEAR: [&str; 2] = ["resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode"];

/// Objectives that people want. Each is a list of terms like any other: print it to see which.
impl Objective {
    /// Packs partitions: on cards that are cut already, then so that the largest partitions stay possible, then as many as
    /// possible. Of seven small partitions, first fit may cut seven cards; this cuts one.
    ///
    /// ```
    /// use dra_alloc::objective::Objective;
    /// assert_eq!(Objective::pack_partitions().to_string(), "opened by counter set, then room, then options");
    /// ```
    #[must_use]
    pub fn pack_partitions() -> Self {
        Self::of([Term::Opened { by: GroupBy::CounterSet }, Term::Room { size: None }, Term::Options])
    }

    /// Keeps whole nodes and whole cards free: devices of pools in use first, then of cards in use. Values of several nodes
    /// compare well, since a node without any device in use has a larger one; see [`node_scores`](super::node_scores()).
    ///
    /// ```
    /// use dra_alloc::objective::Objective;
    /// assert_eq!(Objective::keep_whole().to_string(), "opened by pool, then opened by counter set, then room");
    /// ```
    #[must_use]
    pub fn keep_whole() -> Self {
        let opened = |by| Term::Opened { by };
        Self::of([opened(GroupBy::Pool), opened(GroupBy::CounterSet), Term::Room { size: None }])
    }

    /// Takes devices of a claim that are close together: with a common PCI root, else with a common NUMA node. If there are
    /// several such places, the one is taken that leaves the most PCI roots untouched.
    ///
    /// ```
    /// use dra_alloc::objective::Objective;
    /// let (root, node) = ("resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode");
    /// assert_eq!(Objective::close_together().to_string(), format!("distance by {root}, {node}, then opened by {root}"));
    /// ```
    #[must_use]
    pub fn close_together() -> Self {
        let [root, node] = NEAR.map(str::to_owned);
        let cost = PairCost::Distance { attributes: vec![root.clone(), node] };
        let near = Pairs { cost, within: PairScope::Claim };
        Self::of([Term::Pairs(near), Term::Opened { by: GroupBy::Attribute(root) }])
    }

    /// Takes for each device of one request a device of another one at the same PCI root, such as a NIC at each GPU's switch, as
    /// far as possible. Both are requests of one claim.
    ///
    /// ```
    /// use dra_alloc::objective::Objective;
    /// let objective = Objective::pair_requests("gpus", "nics");
    /// assert_eq!(objective.to_string(), "pairing of gpus with nics by resource.kubernetes.io/pcieRoot");
    /// ```
    #[must_use]
    pub fn pair_requests(of: &str, with: &str) -> Self {
        let [attribute, _] = NEAR.map(str::to_owned);
        Self::of([Term::Pairing { of: of.to_owned(), with: with.to_owned(), attribute }])
    }

    /// Wastes as little as possible of a capacity of devices that are taken as a whole: a claim for 4 GiB gets a device of 4 GiB
    /// and not one of 80 GiB that comes before it.
    ///
    /// # Errors
    /// The capacity is not named as `domain/name`.
    ///
    /// ```
    /// use dra_alloc::objective::Objective;
    /// assert_eq!(Objective::least_waste("gpu.example.com/memory")?.to_string(), "waste of gpu.example.com/memory");
    /// # Ok::<(), dra_alloc::objective::ObjectiveError>(())
    /// ```
    pub fn least_waste(capacity: &str) -> Result<Self, ObjectiveError> {
        Self::new([vec![Term::Waste { capacity: capacity.to_owned() }.into()]])
    }

    /// Spreads devices over the values of an attribute, such as failure domains or physical functions: those with the fewest
    /// devices in use come first.
    ///
    /// # Errors
    /// The attribute is not named as `domain/name`.
    ///
    /// ```
    /// use dra_alloc::objective::Objective;
    /// assert_eq!(Objective::spread_over("nic.example.com/pf")?.to_string(), "spread by nic.example.com/pf");
    /// # Ok::<(), dra_alloc::objective::ObjectiveError>(())
    /// ```
    pub fn spread_over(attribute: &str) -> Result<Self, ObjectiveError> {
        Self::new([vec![Term::Spread { by: GroupBy::Attribute(attribute.to_owned()) }.into()]])
    }
}
