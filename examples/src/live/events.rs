//! Events about pods, as `kubectl describe` shows them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use nnn::PodKey;
use serde_json::json;

use super::failure::{Trouble, text, trouble};
use super::now;
use super::retry::answered;
use crate::output::say;

/// Largest number of bytes of a message.
const LONGEST: usize = 1024;

/// Largest number of pods whose last message is remembered.
const REMEMBERED: usize = 10_000;

/// Writer of events. An event is not worth a failure: one that can't be written is named, and that is all.
#[derive(Debug)]
pub struct Events {
    /// Name of the program.
    component: &'static str,
    /// Last message about each pod, by UID.
    last: Mutex<BTreeMap<String, String>>,
}

impl Events {
    /// Creates the writer of a program.
    #[must_use]
    pub const fn new(component: &'static str) -> Self {
        Self { component, last: Mutex::new(BTreeMap::new()) }
    }

    /// Writes that something went well.
    pub async fn normal(&self, client: &Client, pod: &PodKey, reason: &str, message: &str) {
        self.write(client, pod, "Normal", reason, message).await;
    }

    /// Writes that something did not go well.
    pub async fn warning(&self, client: &Client, pod: &PodKey, reason: &str, message: &str) {
        self.write(client, pod, "Warning", reason, message).await;
    }

    /// Writes an event, unless it says what the last one about the pod has said.
    async fn write(&self, client: &Client, pod: &PodKey, kind: &str, reason: &str, message: &str) {
        if !self.is_new(pod, message) {
            return;
        }
        let event = self.event(pod, kind, reason, message);
        let api: Api<Event> = Api::namespaced(client.clone(), &pod.namespace);
        let (post, params) = (PostParams::default(), PatchParams::default());
        let sent = answered(|| api.create(&post, &event)).await.outcome;
        let Err(error) = sent else { return };
        if trouble(&error) != Trouble::Exists {
            return say(&format_args!("{}: no event about {pod}: {}", self.component, text(&error)));
        }
        // The same event of an earlier run, or of a call whose answer was lost.
        let patch = Patch::Merge(json!({"lastTimestamp": now().to_string()}));
        let name = event.metadata.name.as_deref().unwrap_or_default();
        let _ = answered(|| api.patch(name, &params, &patch)).await;
    }

    /// Remembers a message; returns false if it is the last one about the pod already.
    fn is_new(&self, pod: &PodKey, message: &str) -> bool {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() >= REMEMBERED {
            last.clear();
        }
        last.insert(pod.uid.clone(), message.to_owned()).is_none_or(|last| last != message)
    }

    /// Returns an event whose name follows from what it says: the second of the same is the first.
    fn event(&self, pod: &PodKey, kind: &str, reason: &str, message: &str) -> Event {
        let mut hasher = DefaultHasher::new();
        (&pod.uid, reason, message).hash(&mut hasher);
        let time = Some(Time(now()));
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{}.{:016x}", pod.name, hasher.finish())),
                namespace: Some(pod.namespace.clone()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some("Pod".to_owned()),
                namespace: Some(pod.namespace.clone()),
                name: Some(pod.name.clone()),
                uid: Some(pod.uid.clone()),
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

fn cut(message: &str) -> &str {
    let end = message.char_indices().map(|(at, character)| at.saturating_add(character.len_utf8()));
    message.get(..end.take_while(|end| *end <= LONGEST).last().unwrap_or_default()).unwrap_or_default()
}
