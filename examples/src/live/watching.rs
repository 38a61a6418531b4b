//! Watches of several kinds, whose changes come through one bounded channel: a slow reader slows the watches down, and
//! nothing grows.

use std::fmt;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice};
use k8s_openapi::api::resource::v1alpha3::ResourcePoolStatusRequest;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use super::failure::{LiveError, watch_text};
use super::retry::Pauses;
use crate::output::say;

/// Number of changes that wait for the reader.
const WAITING: usize = 256;

/// Sentence for a server that does not know taint rules.
pub(super) const NO_TAINT_RULES: &str = "the API server has no device taint rules: none are in force";

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
    /// Change of a request for the status of pools, or a new list.
    PoolStatusRequest(Event<ResourcePoolStatusRequest>),
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
    /// Adds the watch of a kind: lists, then watches from there; lists anew where a watch can't go on.
    pub fn add<K>(
        &mut self,
        resource: &'static str,
        api: Api<K>,
        config: watcher::Config,
        change: fn(Event<K>) -> Change,
    ) where
        K: Resource + Clone + DeserializeOwned + fmt::Debug + Send + 'static,
    {
        let sender = self.sender.clone();
        self.tasks.spawn(async move {
            let mut events = std::pin::pin!(watcher(api, config).backoff(Pauses::default()));
            let mut was_down = false;
            while let Some(event) = events.next().await {
                let change = match event {
                    Ok(event) => change(event),
                    Err(error) => match LiveError::from_watch(resource, &error) {
                        Some(LiveError::NotServed { resource: "devicetaintrules" }) => {
                            say(&NO_TAINT_RULES);
                            let _ = sender.send(Change::TaintRule(Event::Init)).await;
                            let _ = sender.send(Change::TaintRule(Event::InitDone)).await;
                            return;
                        }
                        Some(failure) => Change::Failed(failure),
                        None => {
                            if !was_down && !matches!(error, watcher::Error::WatchError(_)) {
                                say(&format_args!(
                                    "{resource}: the watch is interrupted and tried again: {}",
                                    watch_text(&error)
                                ));
                            }
                            was_down = true;
                            continue;
                        }
                    },
                };
                was_down = false;
                if sender.send(change).await.is_err() {
                    return;
                }
            }
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
