//! Events of a cluster, and the remedies that each brings.
//!
//! Source: `EventsToRegister` of the plugin `dynamicresources`, and `NodeSchedulingPropertiesChange`, `podSchedulingPropertiesChange`
//! of the framework. An event that makes nothing better brings nothing.

use std::sync::Arc;

use dra_device::claims::ClaimKey;
use dra_device::internal::DEVICE_CLASS_PREFIX;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::api::scheduling::v1beta1::PodGroup;

use super::pod_change;
use super::remedy::Remedy;
use crate::cluster::inventory::Inventory;
use crate::pods::{freed_drivers, is_news_of_claim};

/// Change of one object, as a watch shows it. An update may have objects of two UIDs, if the watch has missed a deletion.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a watch shows these three")]
pub enum ObjectChange<'e, K> {
    /// The object is new.
    Added(&'e K),
    /// The object has changed.
    Updated {
        /// The object before.
        old: &'e K,
        /// The object now.
        new: &'e K,
    },
    /// The object is gone. This is its last state that is known.
    Deleted(&'e K),
}

impl<'e, K> ObjectChange<'e, K> {
    /// Returns the object before the change.
    pub(super) const fn before(&self) -> Option<&'e K> {
        match self {
            Self::Added(_) => None,
            Self::Updated { old, .. } | Self::Deleted(old) => Some(old),
        }
    }

    /// Returns the object after the change.
    pub(super) const fn after(&self) -> Option<&'e K> {
        match self {
            Self::Added(new) | Self::Updated { new, .. } => Some(new),
            Self::Deleted(_) => None,
        }
    }
}

/// Event of a cluster that a queue is told of. The caller's caches have to know it first.
///
/// ```
/// use dra_alloc::Inventory;
/// use dra_alloc::queue::{ClusterEvent, ObjectChange, Remedy};
/// use k8s_openapi::api::resource::v1::ResourceSlice;
/// use serde_json::{from_value, json};
/// let slice: ResourceSlice = from_value(json!({"metadata": {"name": "s"}, "spec": {"driver": "gpu.example.com",
///     "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}}))?;
/// let inventory = Inventory::new([slice.clone()]);
/// let remedies = |change| ClusterEvent::Slice { change, inventory: &inventory }.remedies();
/// assert_eq!(remedies(ObjectChange::Added(&slice)), [Remedy::Devices { driver: "gpu.example.com".into() }]);
/// assert_eq!(remedies(ObjectChange::Updated { old: &slice, new: &slice }), []);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ClusterEvent<'e> {
    /// A claim has changed.
    Claim(ObjectChange<'e, ResourceClaim>),
    /// A device class has changed.
    Class(ObjectChange<'e, DeviceClass>),
    /// A slice has changed.
    Slice {
        /// The change.
        change: ObjectChange<'e, ResourceSlice>,
        /// Slices of the cluster after the change: a deletion helps only if the pool has other slices, which it may have
        /// contradicted.
        inventory: &'e Inventory,
    },
    /// A taint rule has changed.
    TaintRule(ObjectChange<'e, DeviceTaintRule>),
    /// A node has changed.
    Node(ObjectChange<'e, Node>),
    /// A pod has changed: one that waits, or one on a node.
    Pod(ObjectChange<'e, Arc<Pod>>),
    /// A pod group has changed.
    Group(ObjectChange<'e, PodGroup>),
}

impl ClusterEvent<'_> {
    /// Returns the remedies that the event brings to pods that wait, each once. A change of a waiting pod brings others
    /// nothing.
    ///
    /// # Complexity
    /// Linear in the size of the objects.
    #[must_use]
    pub fn remedies(&self) -> Vec<Remedy> {
        let mut remedies = match self {
            Self::Claim(change) => of_claim(change),
            Self::Class(change) => of_class(change),
            Self::Slice { change, inventory } => of_slice(change, inventory),
            Self::TaintRule(change) => of_rule(change),
            Self::Node(change) => of_node(change),
            Self::Pod(change) => {
                pod_change::for_others(change.before().map(|pod| &**pod), change.after().map(|pod| &**pod))
            }
            Self::Group(change) => of_group(change),
        };
        remedies.sort_unstable();
        remedies.dedup();
        remedies
    }
}

fn of_claim(change: &ObjectChange<'_, ResourceClaim>) -> Vec<Remedy> {
    let (old, new) = (change.before(), change.after());
    let freed = old.into_iter().flat_map(|old| freed_drivers(old, new));
    let mut remedies: Vec<Remedy> = freed.map(|driver| Remedy::Devices { driver: driver.to_owned() }).collect();
    let news = [old, new].into_iter().flatten().filter(|_| is_news_of_claim(old, new));
    remedies.extend(news.map(|claim| Remedy::Claim { claim: ClaimKey::from_metadata(&claim.metadata) }));
    remedies
}

/// A class that goes may leave its extended resource to another one, and serves nobody itself.
fn of_class(change: &ObjectChange<'_, DeviceClass>) -> Vec<Remedy> {
    let spec = |class: Option<&DeviceClass>| class.and_then(|class| class.spec.clone()).unwrap_or_default();
    let (old, new) = (spec(change.before()), spec(change.after()));
    let is_same = old.selectors == new.selectors && old.extended_resource_name == new.extended_resource_name;
    if is_same && change.before().is_some() && change.after().is_some() {
        return Vec::new();
    }
    let named = [old.extended_resource_name, new.extended_resource_name].into_iter().flatten();
    let mut remedies: Vec<Remedy> = named.map(|name| Remedy::ExtendedResource { name }).collect();
    if let Some(name) = change.after().and_then(|class| class.metadata.name.clone()) {
        remedies.push(Remedy::ExtendedResource { name: format!("{DEVICE_CLASS_PREFIX}{name}") });
        remedies.push(Remedy::Class { name });
    }
    remedies
}

fn of_slice(change: &ObjectChange<'_, ResourceSlice>, inventory: &Inventory) -> Vec<Remedy> {
    let has_others =
        |slice: &ResourceSlice| inventory.slices_of_pool(&slice.spec.driver, &slice.spec.pool.name).next().is_some();
    let helps = match *change {
        ObjectChange::Added(_) => true,
        ObjectChange::Updated { old, new } => old.spec != new.spec,
        ObjectChange::Deleted(old) => has_others(old),
    };
    let drivers = [change.before(), change.after()].into_iter().flatten().map(|slice| slice.spec.driver.clone());
    drivers.filter(|_| helps).map(|driver| Remedy::Devices { driver }).collect()
}

/// A rule taints: a new one helps nobody, and an old one that is another now may have let go of its devices.
fn of_rule(change: &ObjectChange<'_, DeviceTaintRule>) -> Vec<Remedy> {
    let Some(old) = change.before().filter(|old| change.after().is_none_or(|new| old.spec != new.spec)) else {
        return Vec::new();
    };
    let Some(selector) = &old.spec.device_selector else { return Vec::new() };
    vec![selector.driver.clone().map_or(Remedy::AnyDevices, |driver| Remedy::Devices { driver })]
}

fn of_node(change: &ObjectChange<'_, Node>) -> Vec<Remedy> {
    let (old, new) = match *change {
        ObjectChange::Added(_) => return vec![Remedy::NodeAdded],
        ObjectChange::Deleted(_) => return vec![Remedy::Neighbors],
        ObjectChange::Updated { old, new } if old.metadata.uid != new.metadata.uid => return vec![Remedy::NodeAdded],
        ObjectChange::Updated { old, new } => (old, new),
    };
    let facets = [
        (old.metadata.labels != new.metadata.labels, Remedy::NodeLabels),
        (old.metadata.annotations != new.metadata.annotations, Remedy::NodeAnnotations),
        (taints_of(old) != taints_of(new), Remedy::NodeTaints),
        (allocatable_of(old) != allocatable_of(new), Remedy::NodeAllocatable),
        (!conditions_of(old).eq(conditions_of(new)), Remedy::NodeConditions),
        (features_of(old) != features_of(new), Remedy::NodeFeatures),
    ];
    facets.into_iter().filter_map(|(has_changed, remedy)| has_changed.then_some(remedy)).collect()
}

fn taints_of(node: &Node) -> impl PartialEq {
    let spec = node.spec.as_ref();
    let taints = spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    (taints, spec.and_then(|spec| spec.unschedulable).unwrap_or_default())
}

fn allocatable_of(node: &Node) -> impl PartialEq {
    node.status.as_ref().and_then(|status| status.allocatable.as_ref())
}

/// Returns types and statuses of the conditions. Their times change with each report of the kubelet.
fn conditions_of(node: &Node) -> impl Iterator<Item = (&str, &str)> {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().map(|condition| (condition.type_.as_str(), condition.status.as_str()))
}

fn features_of(node: &Node) -> &[String] {
    node.status.as_ref().and_then(|status| status.declared_features.as_deref()).unwrap_or_default()
}

fn of_group(change: &ObjectChange<'_, PodGroup>) -> Vec<Remedy> {
    let Some(new) = change.after() else { return Vec::new() };
    let claims = |group: &PodGroup| group.status.as_ref().and_then(|status| status.resource_claim_statuses.clone());
    let is_same =
        |old: &PodGroup| old.metadata.uid == new.metadata.uid && old.spec == new.spec && claims(old) == claims(new);
    if change.before().is_some_and(is_same) {
        return Vec::new();
    }
    let namespace = new.metadata.namespace.clone().unwrap_or_default();
    vec![Remedy::Group { namespace, name: new.metadata.name.clone().unwrap_or_default() }]
}
