//! Resource pools and the requests about them, as watches show them.

use std::collections::{BTreeMap, BTreeSet};

use dra_alloc::InventoryError;
use dra_attrs::{Component, PoolStatusForm, Profile};
use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::runtime::watcher::{Config, Event};
use poolstatus::{InputKind, PoolIndex, PoolIndexEvent, kep};

use crate::manifest::PoolStatusRequest;
use crate::output::say;
use dra_live::connect::Cluster;
use dra_live::failure::LiveError;
use dra_live::lists::{List, Step};
use dra_live::watching::{Change, Watches};

/// Kinds from which a status is computed.
const INPUTS: [InputKind; 3] = [InputKind::ResourceSlices, InputKind::ResourceClaims, InputKind::DeviceTaintRules];

/// Pools of a cluster, and the requests about them.
#[derive(Debug)]
#[non_exhaustive]
pub struct PoolView {
    /// Slices, claims and taint rules.
    pub index: PoolIndex,
    /// Requests by name; none unless they are watched.
    pub requests: BTreeMap<String, PoolStatusRequest>,
    listed: BTreeSet<InputKind>,
    /// Newest resource version that was seen of each kind.
    versions: BTreeMap<InputKind, u64>,
    new: NewLists,
}

/// Lists that are being read.
#[derive(Debug, Default)]
struct NewLists {
    slices: List<ResourceSlice>,
    claims: List<ResourceClaim>,
    rules: List<DeviceTaintRule>,
    requests: List<ResourcePoolStatusRequest>,
    kep_requests: List<kep::ResourcePoolStatusRequest>,
}

/// Part of a view that a change is about.
#[derive(Debug)]
#[non_exhaustive]
pub enum Seen {
    /// Nothing yet: a list is being read.
    Nothing,
    /// Slices, claims or rules have changed.
    Pools,
    /// The list of a kind is complete.
    List(InputKind),
    /// All requests were listed anew.
    Requests,
    /// The request of that name was added or changed.
    Request(String),
    /// The request was deleted.
    RequestDeleted(PoolStatusRequest),
}

/// Begins the watches of slices, claims and taint rules.
#[must_use]
pub fn watch_pools(cluster: &Cluster) -> Watches {
    let client = &cluster.client;
    let mut watches = Watches::default();
    watches.add("resourceslices", client, Config::default(), Change::Slice);
    watches.add("resourceclaims", client, Config::default(), Change::Claim);
    watches.add_taint_rules(client);
    watches
}

/// Begins the watch of requests too, in the form that a profile has.
pub fn watch_requests(cluster: &Cluster, watches: &mut Watches, profile: Profile) {
    let (resource, client) = ("resourcepoolstatusrequests", &cluster.client);
    match profile.pool_status_form() {
        PoolStatusForm::V1alpha3 => watches.add(resource, client, Config::default(), Change::PoolStatusRequest),
        PoolStatusForm::Kep => watches.add(resource, client, Config::default(), Change::KepPoolStatusRequest),
    }
}

impl PoolView {
    /// Creates a view that has seen nothing.
    #[must_use]
    pub fn new(controllers: Component) -> Self {
        Self {
            index: PoolIndex::new(controllers),
            requests: BTreeMap::new(),
            listed: BTreeSet::new(),
            versions: BTreeMap::new(),
            new: NewLists::default(),
        }
    }

    /// Returns true once slices, claims and rules have been listed: before that, nothing may be counted.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        INPUTS.iter().all(|kind| self.listed.contains(kind))
    }

    /// Returns the kinds of which a list is complete.
    pub fn listed_kinds(&self) -> impl Iterator<Item = InputKind> {
        self.listed.iter().copied()
    }

    /// Describes the state of the view by the newest resource version of each kind: `ResourceSlices 12, ...`. The versions
    /// of kinds that were never there are 0.
    #[must_use]
    pub fn versions(&self) -> String {
        let version = |kind: &InputKind| self.versions.get(kind).copied().unwrap_or_default();
        let texts = INPUTS.iter().map(|kind| format!("{} {}", kind.name(), version(kind)));
        texts.collect::<Vec<_>>().join(", ")
    }

    /// Takes a change into the view, and says what it was about.
    ///
    /// # Errors
    /// A watch has ended for good.
    pub fn apply(&mut self, change: Change) -> Result<Seen, LiveError> {
        Ok(match change {
            Change::Slice(event) => self.slice(event),
            Change::Claim(event) => self.claim(event),
            Change::TaintRule(event) => self.rule(event),
            Change::PoolStatusRequest(event) => {
                let step = self.new.requests.take(event);
                self.request(step, |request| PoolStatusRequest::V1alpha3(Box::new(request)))
            }
            Change::KepPoolStatusRequest(event) => {
                let step = self.new.kep_requests.take(event);
                self.request(step, |request| PoolStatusRequest::Kep(Box::new(request)))
            }
            Change::Failed(error) => return Err(error),
            _ => Seen::Nothing,
        })
    }

    fn slice(&mut self, event: Event<ResourceSlice>) -> Seen {
        let step = self.new.slices.take(event);
        let deleted = |slice: &ObjectMeta| PoolIndexEvent::SliceDeleted { name: name(slice), uid: slice.uid.clone() };
        let set = |slice: ResourceSlice| PoolIndexEvent::Slice(slice.into());
        self.input(InputKind::ResourceSlices, step, PoolIndex::replace_slices, set, deleted)
    }

    fn claim(&mut self, event: Event<ResourceClaim>) -> Seen {
        let step = self.new.claims.take(event);
        let deleted = |claim: &ObjectMeta| {
            let namespace = claim.namespace.clone().unwrap_or_default();
            PoolIndexEvent::ClaimDeleted { namespace, name: name(claim), uid: claim.uid.clone() }
        };
        let set = |claim: ResourceClaim| PoolIndexEvent::Claim(claim.into());
        self.input(InputKind::ResourceClaims, step, PoolIndex::replace_claims, set, deleted)
    }

    fn rule(&mut self, event: Event<DeviceTaintRule>) -> Seen {
        let step = self.new.rules.take(event);
        let deleted = |rule: &ObjectMeta| PoolIndexEvent::TaintRuleDeleted { name: name(rule), uid: rule.uid.clone() };
        let set = |rule: DeviceTaintRule| PoolIndexEvent::TaintRule(rule.into());
        self.input(InputKind::DeviceTaintRules, step, PoolIndex::replace_taint_rules, set, deleted)
    }

    /// Takes a step of a watch of what is counted into the index.
    fn input<K: Resource>(
        &mut self,
        kind: InputKind,
        step: Step<K>,
        replace: impl FnOnce(&mut PoolIndex, Vec<K>) -> Result<(), InventoryError>,
        set: impl FnOnce(K) -> PoolIndexEvent,
        deleted: impl FnOnce(&ObjectMeta) -> PoolIndexEvent,
    ) -> Seen {
        self.note_version(kind, &step);
        match step {
            Step::More => Seen::Nothing,
            Step::All(objects) => {
                // An API server gives each object a name.
                replace(&mut self.index, objects).unwrap_or_else(|error| say(&error));
                self.listed.insert(kind);
                Seen::List(kind)
            }
            Step::One(object) => self.changed(set(*object)),
            Step::Gone(object) => self.changed(deleted(object.meta())),
        }
    }

    fn request<K: Resource>(&mut self, step: Step<K>, of: fn(K) -> PoolStatusRequest) -> Seen {
        match step {
            Step::More => Seen::Nothing,
            Step::All(requests) => {
                self.requests = requests.into_iter().map(|request| (name(request.meta()), of(request))).collect();
                Seen::Requests
            }
            Step::One(request) => {
                let name = name(request.meta());
                self.requests.insert(name.clone(), of(*request));
                Seen::Request(name)
            }
            Step::Gone(request) => {
                self.requests.remove(&name(request.meta()));
                Seen::RequestDeleted(of(*request))
            }
        }
    }

    fn changed(&mut self, event: PoolIndexEvent) -> Seen {
        self.index.apply(event).map_or_else(|error| say(&error), drop);
        Seen::Pools
    }

    fn note_version<K: Resource>(&mut self, kind: InputKind, step: &Step<K>) {
        let version = |object: &K| object.meta().resource_version.as_ref()?.parse().ok();
        let seen: Option<u64> = match step {
            Step::More => None,
            Step::All(objects) => objects.iter().filter_map(version).max(),
            Step::One(object) | Step::Gone(object) => version(object),
        };
        let newest = self.versions.entry(kind).or_default();
        *newest = (*newest).max(seen.unwrap_or_default());
    }
}

fn name(metadata: &ObjectMeta) -> String {
    metadata.name.clone().unwrap_or_default()
}
