//! Terms of an objective, as data.

use dra_device::DeviceId;

/// Term of an objective: a number that a solution has, of which less is better.
///
/// *New* are the devices of the solution, *held* those in use before, once as a whole or once for each share. Devices are those
/// in reach of the node; admin access counts nowhere. A device is *allocatable* if it is not held as a whole and either is in
/// use by shares or has its counters left; capacity, taints and selectors are not looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Term {
    /// Number of groups of new devices that no held device belongs to.
    Opened {
        /// Groups of devices.
        by: GroupBy,
    },
    /// Sum over counter sets of the size of the largest allocatable device, before minus after. The size of a device is the
    /// amount of a counter that it consumes of the set, in whole units, or its largest share of a counter in thousandths.
    Room {
        /// Name of the counter that is the size; `None` for the largest share of any counter.
        size: Option<String>,
    },
    /// Number of devices that are allocatable before and not after, beside the new ones.
    Options,
    /// Sum over the counters that no allocatable device consumes afterwards of what is left of them, in thousandths.
    Stranded,
    /// Sum over groups of the square of the number of uses, after minus before. A use is a new or held device, or a share.
    Spread {
        /// Groups of devices.
        by: GroupBy,
    },
    /// Cost of the pairs of new devices: how far they are from each other.
    Pairs(Pairs),
    /// Number of devices of one request that find no partner of the other one with the same value of an attribute, in each
    /// claim, for as many pairs as possible.
    Pairing {
        /// Name of the request whose devices want a partner.
        of: String,
        /// Name of the request whose devices are partners.
        with: String,
        /// Attribute of which both have a value in common, as `domain/name`.
        attribute: String,
    },
    /// Sum over new devices that are taken as a whole of a capacity, in thousandths of the largest of all devices.
    Waste {
        /// Capacity, as `domain/name`.
        capacity: String,
    },
    /// Sum over new devices of the position of the first selector that is true, or the number of selectors if none is. An
    /// evaluation that fails is not true.
    Prefer {
        /// CEL selectors, the best first.
        selectors: Vec<String>,
    },
    /// Number of new devices with a tolerated taint. One that is tolerated for some time only, and evicts, counts 2.
    Tainted,
    /// Number of new devices with binding conditions.
    Conditions,
    /// Sum over requests with `firstAvailable` of the position of the subrequest taken.
    Alternative,
    /// Least price of the units that have to give back what their claims hold, so that the solution can be allocated. What the
    /// claims of units hold counts as free in all other terms.
    Displaced {
        /// Units that may have to go.
        units: Vec<Unit>,
    },
    /// Least total cost of pairs over further solutions for the same claims on what is left, as many as fit, up to 128. If the
    /// budget ends before that is known, of those that were found: then nothing is proved.
    Outlook {
        /// Cost of the pairs.
        of: Pairs,
        /// Largest number of further solutions; `None` for as many as fit.
        times: Option<u32>,
    },
}

/// Groups of devices. A device may belong to several groups, or to none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupBy {
    /// The devices of a pool.
    Pool,
    /// The devices that consume counters of one set, such as the partitions of a card.
    CounterSet,
    /// The devices with one value of an attribute, named as `domain/name`. Each value of a list is a group.
    Attribute(String),
}

/// Cost of each pair of new devices. Two shares of one device are a pair as well.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a cost, and the pairs that it is of")]
pub struct Pairs {
    /// Cost of a pair.
    pub cost: PairCost,
    /// Pairs that count.
    pub within: PairScope,
}

/// Cost of a pair of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PairCost {
    /// Position of the first attribute of which the two have a value in common, or the number of attributes.
    Distance {
        /// Attributes, as `domain/name`: the nearest first, such as a switch before a NUMA node.
        attributes: Vec<String>,
    },
    /// Difference between the best score there is and that of the pair.
    Links {
        /// Scores of pairs of devices, in either order.
        scores: Vec<(DeviceId, DeviceId, u32)>,
        /// Score of any other pair.
        otherwise: u32,
    },
}

/// Pairs of devices that a term counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "within a claim, or all")]
pub enum PairScope {
    /// Pairs of devices of one claim.
    #[default]
    Claim,
    /// All pairs.
    AllClaims,
}

/// Claims that give back what they hold together, such as those of a pod or of a gang.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a name, claims and a price")]
pub struct Unit {
    /// Name of the unit, by which the answer names it.
    pub id: String,
    /// Claims of the unit, each as `namespace/name`.
    pub claims: Vec<String>,
    /// Price of taking what the claims hold.
    pub price: u64,
}

/// Term with its weight in a level of an objective.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a factor and what it multiplies")]
pub struct Weighted {
    /// Factor, at least 1.
    pub weight: u32,
    /// Term.
    pub term: Term,
}

impl From<Term> for Weighted {
    /// Returns a term with weight 1.
    fn from(term: Term) -> Self {
        Self { weight: 1, term }
    }
}

impl Term {
    /// Returns the name of the term in JSON.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Opened { .. } => "opened",
            Self::Room { .. } => "room",
            Self::Options => "options",
            Self::Stranded => "stranded",
            Self::Spread { .. } => "spread",
            Self::Pairs(pairs) => pairs.cost.name(),
            Self::Pairing { .. } => "pairing",
            Self::Waste { .. } => "waste",
            Self::Prefer { .. } => "prefer",
            Self::Tainted => "tainted",
            Self::Conditions => "conditions",
            Self::Alternative => "alternative",
            Self::Displaced { .. } => "displaced",
            Self::Outlook { .. } => "outlook",
        }
    }
}

impl PairCost {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Distance { .. } => "distance",
            Self::Links { .. } => "links",
        }
    }
}
