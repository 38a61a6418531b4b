//! Changes that can make a refused pod fit: the words in which refusals and events are compared.

use std::collections::BTreeMap;
use std::ops::Bound;

use dra_device::claims::ClaimKey;
use serde::Serialize;

use crate::pods::PodCycle;

/// Change that can make a refused pod fit. A refusal lists those that it waits for, and an event those that it brings: an
/// event helps if the lists meet.
///
/// ```
/// use dra_alloc::queue::{Refusal, Remedy};
/// let devices = |driver: &str| Remedy::Devices { driver: driver.to_owned() };
/// let refusal = Refusal::new([Remedy::NodeAdded, devices("gpu.example.com")]);
/// assert!(refusal.is_helped_by(&devices("gpu.example.com")) && refusal.is_helped_by(&Remedy::AnyDevices));
/// assert!(!refusal.is_helped_by(&devices("nic.example.com")) && !refusal.is_helped_by(&Remedy::Room));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Remedy {
    /// Devices of some driver, or of every driver, are more, free, or without a taint.
    AnyDevices,
    /// Devices of one driver are more, free, or without a taint.
    Devices {
        /// Name of the driver.
        driver: String,
    },
    /// A device class was added, or its selectors are others.
    Class {
        /// Name of the class.
        name: String,
    },
    /// The device class that serves an extended resource may be another one (KEP-5004).
    ExtendedResource {
        /// Name of the resource.
        name: String,
    },
    /// A claim was added or deleted, its status or its owner has changed, or an attempt has given it back.
    Claim {
        /// Namespace and name of the claim.
        claim: ClaimKey,
    },
    /// A pod group was added or changed.
    Group {
        /// Namespace of the group.
        namespace: String,
        /// Name of the group.
        name: String,
    },
    /// A node was added.
    NodeAdded,
    /// The labels of a node have changed.
    NodeLabels,
    /// The annotations of a node have changed.
    NodeAnnotations,
    /// The taints of a node, or its field `unschedulable`, have changed.
    NodeTaints,
    /// The allocatable amounts of a node have changed.
    NodeAllocatable,
    /// A condition of a node has another status.
    NodeConditions,
    /// The features that a node declares have changed.
    NodeFeatures,
    /// A pod has left a node or asks for other amounts there, or a node that was kept free is so no more.
    Room,
    /// A pod has come to a node, has left one, or has other labels there.
    Neighbors,
    /// The claims that the pod's status names have changed.
    OwnClaims,
    /// The labels of the pod have changed.
    OwnLabels,
    /// The amounts that the pod asks for have changed.
    OwnRequests,
    /// The tolerations of the pod have changed.
    OwnTolerations,
    /// Another pod has joined the pod's group, or has left it.
    Members,
}

impl Remedy {
    /// Returns the remedies that an attempt brings to other pods when it gives back all that it has reserved: its claims, the
    /// devices chosen for them, and room on the node. Ask before [`PodCycle::unreserve`], and tell the queue afterwards.
    ///
    /// # Complexity
    /// Linear in the number of chosen devices.
    #[must_use]
    pub fn given_back(cycle: &PodCycle) -> Vec<Self> {
        let claims = cycle.claims().iter();
        let mut remedies = vec![Self::Room];
        for claim in claims.filter(|claim| claim.chosen().is_some()) {
            remedies.push(Self::Claim { claim: ClaimKey::from_metadata(&claim.claim().metadata) });
            let results = claim.chosen().and_then(|chosen| chosen.devices.as_ref()?.results.as_ref());
            remedies
                .extend(results.into_iter().flatten().map(|result| Self::Devices { driver: result.driver.clone() }));
        }
        remedies.sort_unstable();
        remedies.dedup();
        remedies
    }

    /// Returns true if only the pod itself, or its group, can bring the remedy.
    pub(super) const fn is_own(&self) -> bool {
        matches!(self, Self::OwnClaims | Self::OwnLabels | Self::OwnRequests | Self::OwnTolerations | Self::Members)
    }

    /// Returns the values of a map by remedy that meet this one: its own, and for devices of one driver those of any.
    pub(super) fn meet<'m, V>(&self, by_remedy: &'m BTreeMap<Self, V>) -> impl Iterator<Item = &'m V> {
        let wider = matches!(self, Self::Devices { .. }).then(|| by_remedy.get(&Self::AnyDevices)).flatten();
        let narrower = (*self == Self::AnyDevices).then(|| by_remedy.range(Self::devices_of_drivers()));
        by_remedy.get(self).into_iter().chain(wider).chain(narrower.into_iter().flatten().map(|(_, value)| value))
    }

    /// Returns the range of [`Remedy::Devices`], by the order of the variants.
    const fn devices_of_drivers() -> (Bound<Self>, Bound<Self>) {
        (Bound::Excluded(Self::AnyDevices), Bound::Excluded(Self::Class { name: String::new() }))
    }
}
