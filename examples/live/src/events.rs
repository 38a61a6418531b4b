//! Events about pods and nodes, as `kubectl describe` shows them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Event, EventSource, Node, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use nnn::PodKey;
use serde_json::json;
use tokio::sync::mpsc::{Sender, channel};
use tokio_stream::wrappers::ReceiverStream;

use super::failure::{Trouble, text, trouble};
use super::metrics::Series;
use super::now;
use super::retry::answered;
use crate::say::say;

/// Largest number of bytes of a message.
const LONGEST: usize = 1024;

/// Largest number of objects whose last message is remembered.
const REMEMBERED: usize = 10_000;

/// Number of events that wait to be written.
const WAITING: usize = 4096;

/// Object that an event is about. Events about objects without a namespace are in `default`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Subject {
    kind: &'static str,
    namespace: Option<String>,
    name: String,
    uid: String,
}

impl From<&PodKey> for Subject {
    fn from(pod: &PodKey) -> Self {
        let PodKey { namespace, name, uid, .. } = pod.clone();
        Self { kind: "Pod", namespace: Some(namespace), name, uid }
    }
}

impl From<&Node> for Subject {
    fn from(node: &Node) -> Self {
        let ObjectMeta { name, uid, .. } = node.metadata.clone();
        Self { kind: "Node", namespace: None, name: name.unwrap_or_default(), uid: uid.unwrap_or_default() }
    }
}

/// Writer of events. An event is not worth a failure: one that can't be written is named, and that is all.
#[derive(Debug)]
pub struct Events {
    /// Name of the program.
    component: &'static str,
    /// Last message about each object, by UID.
    last: Mutex<BTreeMap<String, String>>,
}

impl Events {
    /// Creates the writer of a program.
    #[must_use]
    pub const fn new(component: &'static str) -> Self {
        Self { component, last: Mutex::new(BTreeMap::new()) }
    }

    /// Writes that something went well.
    pub async fn normal(&self, client: &Client, about: impl Into<Subject>, reason: &str, message: &str) {
        self.write(client, &about.into(), "Normal", reason, message).await;
    }

    /// Writes that something did not go well.
    pub async fn warning(&self, client: &Client, about: impl Into<Subject>, reason: &str, message: &str) {
        self.write(client, &about.into(), "Warning", reason, message).await;
    }

    /// Writes an event, unless it says what the last one about the object has said.
    async fn write(&self, client: &Client, about: &Subject, kind: &str, reason: &str, message: &str) {
        if !self.is_new(about, message) {
            return;
        }
        let event = self.event(about, kind, reason, message);
        let api: Api<Event> = Api::namespaced(client.clone(), about.namespace.as_deref().unwrap_or("default"));
        let (post, params) = (PostParams::default(), PatchParams::default());
        let sent = answered(|| api.create(&post, &event)).await.outcome;
        let Err(error) = sent else { return };
        if trouble(&error) != Trouble::Exists {
            return say(&format_args!(
                "{}: no event about {} {}: {}",
                self.component,
                about.kind,
                about.name,
                text(&error)
            ));
        }
        // The same event of an earlier run, or of a call whose answer was lost.
        let patch = Patch::Merge(json!({"lastTimestamp": now().to_string()}));
        let name = event.metadata.name.as_deref().unwrap_or_default();
        let _ = answered(|| api.patch(name, &params, &patch)).await;
    }

    /// Remembers a message; returns false if it is the last one about the object already.
    fn is_new(&self, about: &Subject, message: &str) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() >= REMEMBERED {
            last.clear();
        }
        last.insert(about.uid.clone(), message.to_owned()).is_none_or(|last| last != message)
    }

    /// Returns an event whose name follows from what it says: the second of the same is the first.
    fn event(&self, about: &Subject, kind: &str, reason: &str, message: &str) -> Event {
        let mut hasher = DefaultHasher::new();
        (&about.uid, reason, message).hash(&mut hasher);
        let time = Some(Time(now()));
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{}.{:016x}", about.name, hasher.finish())),
                namespace: Some(about.namespace.clone().unwrap_or_else(|| "default".to_owned())),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some(about.kind.to_owned()),
                namespace: about.namespace.clone(),
                name: Some(about.name.clone()),
                uid: Some(about.uid.clone()),
                ..ObjectReference::default()
            },
            source: Some(EventSource { component: Some(self.component.to_owned()), host: None }),
            reporting_component: Some(self.component.to_owned()),
            type_: Some(kind.to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(cut(message).to_owned()),
            first_timestamp: time.clone(),
            last_timestamp: time,
            count: Some(1),
            ..Event::default()
        }
    }
}

/// Events that are written in the background: who has decided something does not wait for them.
#[derive(Debug)]
pub struct EventQueue {
    sender: Sender<Told>,
    lost: Series,
}

/// Event that waits to be written.
#[derive(Debug)]
struct Told {
    about: Subject,
    kind: &'static str,
    reason: &'static str,
    message: String,
}

impl EventQueue {
    /// Begins to write events, a number at a time. If too many wait, the next ones are left out, and counted as `lost`.
    #[must_use]
    pub fn start(events: Events, client: &Client, at_a_time: usize, lost: Series) -> Self {
        let (sender, receiver) = channel(WAITING);
        let client = client.clone();
        tokio::spawn(async move {
            let (events, client) = (&events, &client);
            let write =
                async |told: Told| events.write(client, &told.about, told.kind, told.reason, &told.message).await;
            ReceiverStream::new(receiver).for_each_concurrent(at_a_time, write).await;
        });
        Self { sender, lost }
    }

    /// Tells that something went well.
    pub fn normal(&self, about: impl Into<Subject>, reason: &'static str, message: String) {
        self.tell(Told { about: about.into(), kind: "Normal", reason, message });
    }

    /// Tells that something did not go well.
    pub fn warning(&self, about: impl Into<Subject>, reason: &'static str, message: String) {
        self.tell(Told { about: about.into(), kind: "Warning", reason, message });
    }

    fn tell(&self, told: Told) {
        if self.sender.try_send(told).is_err() {
            self.lost.add(&[], 1);
        }
    }
}

fn cut(message: &str) -> &str {
    let end = message.char_indices().map(|(at, character)| at.saturating_add(character.len_utf8()));
    message.get(..end.take_while(|end| *end <= LONGEST).last().unwrap_or_default()).unwrap_or_default()
}
