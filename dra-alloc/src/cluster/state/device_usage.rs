//! Use of one device by claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use dra_attrs::Quantity;
use smallvec::SmallVec;

use super::claim_id::ClaimId;
use super::holding::{Holding, Share};
use crate::cluster::trie::{Trie, hash};

/// Claim that holds a device; `None` if the caller has not named one.
pub(super) type Holder = Option<Arc<ClaimId>>;

/// Use of one device: the claims that hold it exclusively, and the shares that claims have of it.
///
/// ```
/// use dra_alloc::{AllocatedState, DeviceId};
///
/// let nic = DeviceId::new("nic.example.com", "node-1", "nic-0");
/// let mut state = AllocatedState::default();
/// state.share(&nic, "share-1");
/// state.consume(&nic, "bandwidth", "10Gi".parse()?);
/// let usage = state.device(&nic).unwrap();
/// assert!(usage.is_shared());
/// assert_eq!(usage.consumed("bandwidth"), "10Gi".parse()?);
/// # Ok::<(), dra_attrs::QuantityError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DeviceUsage {
    pub(super) name: Arc<str>,
    /// Claims that hold the device exclusively; one in a consistent cluster.
    holders: SmallVec<[Holder; 1]>,
    shared: Option<Arc<SharedUse>>,
}

/// Shares of one device.
#[derive(Clone, Debug, Default)]
struct SharedUse {
    /// Shares by the hash of their ID.
    shares: Trie<Arc<HeldShare>>,
    /// Sum of the amounts of all shares, by capacity name.
    consumed: BTreeMap<String, Sum>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct HeldShare {
    holder: Holder,
    share: Share,
}

/// Sum of the amounts of one capacity.
#[derive(Clone, Copy, Debug)]
struct Sum {
    /// The exact sum; `None` if it is too large for a quantity.
    exact: Option<Quantity>,
    /// Number of amounts.
    amounts: usize,
}

impl DeviceUsage {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.into(), holders: SmallVec::new(), shared: None }
    }

    /// Returns the name of the device.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if a claim holds the device exclusively.
    pub(crate) fn is_exclusive(&self) -> bool {
        !self.holders.is_empty()
    }

    /// Returns true if the device has shares or consumed capacity.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns the claims that hold the device exclusively or have a share of it, as often as they do. Uses without a
    /// claim ([`super::AllocatedState::hold`] and [`super::AllocatedState::share`]) are left out.
    pub fn holders(&self) -> impl Iterator<Item = &ClaimId> {
        self.all_holders().filter_map(Option::as_deref)
    }

    /// Returns the claims that hold the device exclusively or have a share of it, sorted, each once. Uses without a claim are
    /// left out.
    #[must_use]
    pub fn claims(&self) -> Vec<&ClaimId> {
        let mut claims: Vec<&ClaimId> = self.holders().collect();
        claims.sort_unstable();
        claims.dedup();
        claims
    }

    /// Returns the number of claims that hold the device exclusively or have a share of it. Uses without a claim count as one
    /// more.
    #[must_use]
    pub fn claim_count(&self) -> usize {
        self.claims().len() + usize::from(self.all_holders().any(Option::is_none))
    }

    /// Returns how often the device is used: once as a whole, and once for each share.
    pub(crate) fn uses(&self) -> usize {
        let shares = self.shared.iter().flat_map(|shared| shared.shares.iter());
        usize::from(self.is_exclusive()) + shares.filter(|share| share.share.id.is_some()).count()
    }

    /// Returns true if a claim holds the device exclusively while another one holds it too, or has a share of it: the
    /// cluster is inconsistent. See [`super::AllocatedState::held_twice`].
    #[must_use]
    pub fn is_held_twice(&self) -> bool {
        let Some((first, others)) = self.holders.split_first() else { return false };
        (!others.is_empty() || self.is_shared()) && self.all_holders().any(|other| other != first)
    }

    /// Returns true if a claim, given by its identity, holds the device exclusively, and nobody else uses it.
    pub(super) fn is_held_by(&self, claim: [&str; 3]) -> bool {
        let is_it = |holder: &Holder| holder.as_ref().is_some_and(|holder| holder.texts() == claim);
        self.is_exclusive() && !self.is_shared() && self.holders.iter().all(is_it)
    }

    /// Returns the amount of a capacity that all shares together consume; the largest quantity if the sum is larger.
    #[must_use]
    pub fn consumed(&self, capacity: &str) -> Quantity {
        let sum = self.shared.as_ref().and_then(|shared| shared.consumed.get(capacity));
        sum.map_or(Quantity::ZERO, |sum| sum.exact.unwrap_or_else(largest))
    }

    /// Returns the larger of two uses of one device: the whole device is more than any shares of it; of shares all that are in one of
    /// the two, and of each capacity the larger amount.
    pub(super) fn larger(&self, other: &Self) -> Self {
        match (&self.shared, &other.shared) {
            _ if self.is_exclusive() => self.clone(),
            _ if other.is_exclusive() => other.clone(),
            (Some(own), Some(others)) => Self { shared: Some(Arc::new(own.larger(others))), ..self.clone() },
            (Some(_) | None, None) => self.clone(),
            (None, Some(_)) => other.clone(),
        }
    }

    /// Returns the holder of each exclusive use, then of each share.
    fn all_holders(&self) -> impl Iterator<Item = &Holder> {
        let shares = self.shared.iter().flat_map(|shared| shared.shares.iter().map(|share| &share.holder));
        self.holders.iter().chain(shares)
    }

    pub(super) fn is_unused(&self) -> bool {
        !self.is_exclusive() && !self.is_shared()
    }

    pub(super) fn add(&mut self, holder: Holder, holding: Holding) {
        match holding {
            Holding::Exclusive => self.holders.push(holder),
            Holding::Share(share) => {
                Arc::make_mut(self.shared.get_or_insert_default()).add(HeldShare { holder, share });
            }
        }
    }

    /// Removes one holding that equals the given one, if there is one.
    pub(super) fn remove(&mut self, holder: &Holder, holding: &Holding) {
        match holding {
            Holding::Exclusive => {
                if let Some(position) = self.holders.iter().position(|other| other == holder) {
                    self.holders.remove(position);
                }
            }
            Holding::Share(share) => {
                let Some(shared) = self.shared.as_mut().map(Arc::make_mut) else { return };
                shared.remove(holder, share);
                if shared.shares.is_empty() {
                    self.shared = None;
                }
            }
        }
    }
}

/// Returns the largest amount that a quantity can have.
fn largest() -> Quantity {
    Quantity::from_nanos(i128::MAX, Quantity::ZERO.format())
}

impl SharedUse {
    fn larger(&self, other: &Self) -> Self {
        let (mut larger, mut rest) = (self.clone(), self.shares.clone());
        for share in other.shares.iter() {
            if rest.remove(hash(&share.share.id), |known| known == share).is_none() {
                larger.shares.insert(hash(&share.share.id), share.clone());
            }
        }
        for (capacity, sum) in &other.consumed {
            let known = larger.consumed.entry(capacity.clone()).or_insert(*sum);
            // A sum that is too large for a quantity is larger than one that is not.
            known.exact = known.exact.zip(sum.exact).map(|(own, other)| own.max(other));
        }
        larger
    }

    fn add(&mut self, share: HeldShare) {
        for (capacity, amount) in &share.share.consumed {
            let sum = self.consumed.entry(capacity.clone()).or_insert(Sum { exact: Some(Quantity::ZERO), amounts: 0 });
            sum.exact = sum.exact.and_then(|sum| sum.checked_add(*amount));
            sum.amounts += 1;
        }
        self.shares.insert(hash(&share.share.id), Arc::new(share));
    }

    fn remove(&mut self, holder: &Holder, share: &Share) {
        let is_it = |other: &Arc<HeldShare>| other.holder == *holder && other.share == *share;
        let Some(removed) = self.shares.remove(hash(&share.id), is_it) else { return };
        for (capacity, amount) in &removed.share.consumed {
            debug_assert!(self.consumed.contains_key(capacity), "a share that goes was counted");
            let Some(sum) = self.consumed.get_mut(capacity) else { continue };
            sum.amounts -= 1;
            // A sum that was too large is computed anew.
            sum.exact = match sum.exact {
                Some(sum) => sum.checked_sub(*amount),
                None => total(&self.shares, capacity),
            };
            if sum.amounts == 0 {
                self.consumed.remove(capacity);
            }
        }
    }
}

/// Returns the sum of the amounts of a capacity; `None` if it is too large for a quantity.
fn total(shares: &Trie<Arc<HeldShare>>, capacity: &str) -> Option<Quantity> {
    let amounts = shares.iter().flat_map(|share| &share.share.consumed).filter(|(name, _)| name == capacity);
    amounts.map(|(_, amount)| *amount).try_fold(Quantity::ZERO, Quantity::checked_add)
}

/// Two uses are equal if the same claims hold the same, in any order.
impl PartialEq for DeviceUsage {
    fn eq(&self, other: &Self) -> bool {
        let shares = |usage: &Self| usage.shared.as_ref().map_or(0, |shared| shared.shares.len());
        self.name == other.name
            && self.holders.len() == other.holders.len()
            && shares(self) == shares(other)
            && self.holders.iter().all(|holder| times(&self.holders, holder) == times(&other.holders, holder))
            && self.shared.iter().zip(&other.shared).all(|(own, other)| own.is_within(other))
    }
}

impl Eq for DeviceUsage {}

impl SharedUse {
    /// Returns true if the other use has each share at least as often.
    fn is_within(&self, other: &Self) -> bool {
        let mut rest = other.shares.clone();
        self.shares.iter().all(|share| rest.remove(hash(&share.share.id), |other| other == share).is_some())
    }
}

fn times(holders: &[Holder], holder: &Holder) -> usize {
    holders.iter().filter(|other| *other == holder).count()
}
