//! Watches of several kinds, whose changes come through one bounded channel: a slow reader slows the watches down, and
//! nothing grows.

use std::fmt;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use poolstatus::kep;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::failure::{LiveError, watch_text};
use super::outage::Outage;
use super::readable::{Readable, Unreadable};
use super::taint_rules;
use crate::say::say;

/// Number of changes that wait for the reader.
const WAITING: usize = 256;

/// Change of a cluster, of a kind that programs look at.
#[derive(Debug)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "most changes are of pods, and each is moved once")]
pub enum Change {
    /// Change of a node, or a new list.
    Node(Event<Node>),
    /// Change of a pod, or a new list.
    Pod(Event<Pod>),
    /// Change of a slice, or a new list.
    Slice(Event<ResourceSlice>),
    /// Change of a class, or a new list.
    Class(Event<DeviceClass>),
    /// Change of a taint rule, or a new list.
    TaintRule(Event<DeviceTaintRule>),
    /// Change of a claim, or a new list.
    Claim(Event<ResourceClaim>),
    /// Change of a disruption budget, or a new list.
    Budget(Event<PodDisruptionBudget>),
    /// Change of a request for the status of pools, or a new list.
    PoolStatusRequest(Event<ResourcePoolStatusRequest>),
    /// Change of such a request in the form of its KEP, or a new list.
    KepPoolStatusRequest(Event<kep::ResourcePoolStatusRequest>),
    /// An object of a resource is there, in a list or changed, and can't be read.
    LeftOut(&'static str, Box<ObjectMeta>),
    /// A watch has ended for good.
    Failed(LiveError),
}

/// Watches, for as long as this value lives.
#[derive(Debug)]
pub struct Watches {
    sender: Sender<Change>,
    receiver: Receiver<Change>,
    tasks: JoinSet<()>,
}

impl Default for Watches {
    fn default() -> Self {
        let (sender, receiver) = channel(WAITING);
        Self { sender, receiver, tasks: JoinSet::new() }
    }
}

impl Watches {
    /// Adds the watch of a kind: lists, then watches from there; lists anew where a watch can't go on. An object that can't be
    /// read is named once, and left out.
    pub fn add<K>(
        &mut self,
        resource: &'static str,
        client: &Client,
        config: watcher::Config,
        change: fn(Event<K>) -> Change,
    ) where
        K: Resource<DynamicType = ()> + Clone + Default + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
    {
        let api = Api::all_with(client.clone(), &ApiResource::erase::<K>(&()));
        let (sender, kind) = (self.sender.clone(), Watched { resource, config, change });
        self.tasks.spawn(async move {
            if let Some(failure) = kind.watch(api, &sender).await {
                // Nobody reads any more: there is nobody to tell.
                let _ = sender.send(Change::Failed(failure)).await;
            }
        });
    }

    /// Adds the watch of taint rules, in the version that the server has; none if it has none.
    pub fn add_taint_rules(&mut self, client: &Client) {
        let (sender, client) = (self.sender.clone(), client.clone());
        self.tasks.spawn(async move {
            let failure = watch_taint_rules(&client, &sender).await;
            let _ = match failure {
                Some(failure) => sender.send(Change::Failed(failure)).await,
                None => Ok(()),
            };
        });
    }

    /// Returns the next change.
    pub async fn next(&mut self) -> Option<Change> {
        self.receiver.recv().await
    }

    /// Returns a change that has come already.
    pub fn next_waiting(&mut self) -> Option<Change> {
        self.receiver.try_recv().ok()
    }
}

/// Kind that is watched.
struct Watched<K> {
    resource: &'static str,
    config: watcher::Config,
    change: fn(Event<K>) -> Change,
}

impl<K> Watched<K>
where
    K: Resource + Clone + Default + DeserializeOwned + fmt::Debug + Send + Sync + 'static,
{
    /// Watches until nobody reads the changes any more, or until it can't go on: then the reason is returned.
    async fn watch(&self, api: Api<Readable<K>>, changes: &Sender<Change>) -> Option<LiveError> {
        let mut events = std::pin::pin!(watcher(api, self.config.clone()));
        let (mut outage, mut unreadable) = (Outage::default(), Unreadable::new(self.resource));
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    let left_out = |metadata| Change::LeftOut(self.resource, metadata);
                    let change = unreadable.event(event).map_or_else(left_out, self.change);
                    if changes.send(change).await.is_err() {
                        return None;
                    }
                }
                // A program that ends takes the connection away as well.
                Err(_) if changes.is_closed() => return None,
                Err(error) => {
                    if let Some(failure) = LiveError::from_watch(self.resource, &error) {
                        return Some(failure);
                    }
                    let (pause, is_new) = outage.goes_on(Instant::now());
                    if is_new && !matches!(error, watcher::Error::WatchError(_)) {
                        let (resource, text) = (self.resource, watch_text(&error));
                        say(&format_args!("{resource}: the watch is interrupted and tried again: {text}"));
                    }
                    tokio::time::sleep(pause).await;
                }
            }
        }
        None
    }
}

/// Time after which a server that has no taint rules is asked again: it may be another release by then.
const ASK_AGAIN: Duration = Duration::from_secs(300);

async fn watch_taint_rules(client: &Client, changes: &Sender<Change>) -> Option<LiveError> {
    let kind = Watched { resource: taint_rules::PLURAL, config: watcher::Config::default(), change: Change::TaintRule };
    let (mut outage, mut said_none) = (Outage::default(), false);
    loop {
        match taint_rules::served(client).await {
            Ok(Some(resource)) => match kind.watch(Api::all_with(client.clone(), &resource), changes).await {
                Some(LiveError::NotServed { .. }) => tokio::time::sleep(outage.goes_on(Instant::now()).0).await,
                ended => return ended,
            },
            Ok(None) => {
                if !std::mem::replace(&mut said_none, true) {
                    say(&taint_rules::NONE);
                }
                for event in [Event::Init, Event::InitDone] {
                    changes.send(Change::TaintRule(event)).await.ok()?;
                }
                tokio::time::sleep(ASK_AGAIN).await;
            }
            Err(error) => {
                let failure = LiveError::from_call("list", taint_rules::PLURAL, &error);
                if matches!(failure, LiveError::Unauthenticated(_) | LiveError::Forbidden { .. }) {
                    return Some(failure);
                }
                tokio::time::sleep(outage.goes_on(Instant::now()).0).await;
            }
        }
    }
}
