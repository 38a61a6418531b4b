//! Objects of a watch, of which one that can't be decoded does not end the watch or the list that it is in.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use dra_alloc::validate::read;
use dra_attrs::Profile;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::core::ApiResource;
use kube::runtime::watcher::Event;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::allocation_part::allocation_part;
use crate::say::say;

/// Largest number of objects of a watch that are named.
const MOST_NAMED: usize = 1000;

/// Object as the server has sent it, read or not.
#[derive(Clone, Debug)]
pub(super) enum Readable<K> {
    Read(Box<K>),
    /// An object of an older version, and the fields that only that version has.
    Converted(Box<K>, String),
    /// The part of a claim that holds devices, and the reason why the rest can't be read.
    Partly(Box<K>, String),
    /// Identity of the object, and the reason why it can't be read.
    Unreadable(Box<ObjectMeta>, String),
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Readable<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (object, lost) = in_v1(Value::deserialize(deserializer)?);
        Ok(match K::deserialize(&object) {
            Ok(object) if !lost.is_empty() => Self::Converted(Box::new(object), lost),
            Ok(object) => Self::Read(Box::new(object)),
            Err(error) => {
                let part = allocation_part(&object).and_then(|part| K::deserialize(part).ok());
                match part {
                    Some(part) => Self::Partly(Box::new(part), error.to_string()),
                    None => Self::Unreadable(Box::new(identity(&object)), error.to_string()),
                }
            }
        })
    }
}

/// Brings a taint rule of an older version to the one of the types; returns the fields that were lost on the
/// way as well. Objects in lists of a server do not have their version: the fields of the older one tell it.
fn in_v1(mut object: Value) -> (Value, String) {
    let is_bare = object.get("apiVersion").is_none();
    if let Some(fields) = object.as_object_mut().filter(|fields| is_bare && has_old_selector(fields)) {
        fields.insert("apiVersion".to_owned(), "resource.k8s.io/v1alpha3".into());
        fields.insert("kind".to_owned(), "DeviceTaintRule".into());
    }
    let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
    if text("kind") != "DeviceTaintRule" || text("apiVersion") == "resource.k8s.io/v1" {
        return (object, String::new());
    }
    match read(object.clone(), Profile::V1_37) {
        Ok(found) => (found.object, found.dropped.join(", ")),
        // The types say which field it is.
        Err(_) => (object, String::new()),
    }
}

fn has_old_selector(object: &Map<String, Value>) -> bool {
    let selector = object.get("spec").and_then(|spec| spec.get("deviceSelector"));
    selector.is_some_and(|selector| selector.get("deviceClassName").is_some() || selector.get("selectors").is_some())
}

/// Returns what identifies an object.
fn identity(object: &Value) -> ObjectMeta {
    let field = |name: &str| Some(object.get("metadata")?.get(name)?.as_str()?.to_owned());
    ObjectMeta {
        namespace: field("namespace"),
        name: field("name"),
        uid: field("uid"),
        resource_version: field("resourceVersion"),
        ..ObjectMeta::default()
    }
}

impl<K: Resource> Resource for Readable<K> {
    type DynamicType = ApiResource;
    type Scope = K::Scope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        (&resource.kind).into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        (&resource.group).into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        (&resource.version).into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        (&resource.plural).into()
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Read(object) | Self::Partly(object, _) | Self::Converted(object, _) => object.meta(),
            Self::Unreadable(metadata, _) => metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Read(object) | Self::Partly(object, _) | Self::Converted(object, _) => object.meta_mut(),
            Self::Unreadable(metadata, _) => metadata,
        }
    }
}

/// Objects of one watch that can't be read. Each is named once.
#[derive(Debug)]
pub(super) struct Unreadable {
    resource: &'static str,
    named: BTreeSet<String>,
}

impl Unreadable {
    pub(super) const fn new(resource: &'static str) -> Self {
        Self { resource, named: BTreeSet::new() }
    }

    /// Returns the object, or names it and returns its identity.
    pub(super) fn read<K: Resource>(&mut self, object: Readable<K>) -> Result<K, Box<ObjectMeta>> {
        match object {
            Readable::Read(object) => Ok(*object),
            Readable::Converted(object, lost) => {
                self.name(object.meta(), &format_args!("read without {lost}, which no later version has"));
                Ok(*object)
            }
            Readable::Partly(object, reason) => {
                self.name(object.meta(), &format_args!("can't be read but for its allocation: {reason}"));
                Ok(*object)
            }
            Readable::Unreadable(metadata, reason) => {
                self.name(&metadata, &format_args!("can't be read, and is left out: {reason}"));
                Err(metadata)
            }
        }
    }

    fn name(&mut self, metadata: &ObjectMeta, told: &dyn fmt::Display) {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let name = match &metadata.namespace {
            Some(namespace) => format!("{namespace}/{}", text(&metadata.name)),
            None => text(&metadata.name),
        };
        if self.named.len() < MOST_NAMED && self.named.insert(name.clone()) {
            say(&format_args!("{} {name}: {told}", self.resource));
        }
    }

    /// Returns an event about an object that can be read, or the identity of one that can't. A deletion needs no more than that.
    pub(super) fn event<K: Resource + Default>(
        &mut self,
        event: Event<Readable<K>>,
    ) -> Result<Event<K>, Box<ObjectMeta>> {
        Ok(match event {
            Event::Init => Event::Init,
            Event::InitDone => Event::InitDone,
            Event::InitApply(object) => Event::InitApply(self.read(object)?),
            Event::Apply(object) => Event::Apply(self.read(object)?),
            Event::Delete(Readable::Read(object) | Readable::Partly(object, _) | Readable::Converted(object, _)) => {
                Event::Delete(*object)
            }
            Event::Delete(Readable::Unreadable(metadata, _)) => {
                let mut deleted = K::default();
                *deleted.meta_mut() = *metadata;
                Event::Delete(deleted)
            }
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use k8s_openapi::api::resource::v1::{DeviceTaintRule, ResourceClaim};
    use kube::core::WatchEvent;
    use kube::runtime::watcher::Event;

    use super::{Readable, Unreadable};

    #[test]
    fn an_object_that_cannot_be_decoded_is_named_and_its_watch_goes_on() {
        let mut unreadable = Unreadable::new("nodes");
        let mut event = |line: &str| match serde_json::from_str::<WatchEvent<Readable<Node>>>(line).unwrap() {
            WatchEvent::Added(node) => unreadable.event(Event::Apply(node)),
            WatchEvent::Deleted(node) => unreadable.event(Event::Delete(node)),
            _ => panic!("another event"),
        };
        let broken = r#"{"metadata":{"name":"n","uid":"u","resourceVersion":"7"},"spec":{"taints":"many"}}"#;
        // The type comes first, or last.
        let left_out = event(&format!(r#"{{"type":"ADDED","object":{broken}}}"#)).unwrap_err();
        assert_eq!((left_out.name.as_deref(), left_out.uid.as_deref()), (Some("n"), Some("u")));
        assert!(event(&format!(r#"{{"object":{broken},"type":"ADDED"}}"#)).is_err());
        let Ok(Event::Delete(deleted)) = event(&format!(r#"{{"type":"DELETED","object":{broken}}}"#)) else {
            panic!("a deletion needs a name only")
        };
        assert_eq!(deleted.metadata.name.as_deref(), Some("n"));
        assert!(event(r#"{"type":"ADDED","object":{"metadata":{"name":"m"}}}"#).is_ok());
        assert_eq!(unreadable.named.len(), 1);
    }

    #[test]
    fn taint_rules_of_older_versions_are_read() {
        let read = |text: &str| {
            let mut unreadable = Unreadable::new("devicetaintrules");
            let rule = unreadable.read(serde_json::from_str::<Readable<DeviceTaintRule>>(text).unwrap()).unwrap();
            (rule.spec.device_selector.unwrap().driver, unreadable.named.len())
        };
        let rule = |version: &str, selector: &str| {
            format!(
                r#"{{{version}"metadata":{{"name":"r"}},"spec":{{"deviceSelector":{selector},"taint":{{"key":"a","effect":"NoSchedule"}}}}}}"#
            )
        };
        let driver = Some("d".to_owned());
        let version = |version| format!(r#""apiVersion":"resource.k8s.io/{version}","kind":"DeviceTaintRule","#);
        for version in ["v1", "v1beta2", "v1alpha3"].map(version) {
            assert_eq!(read(&rule(&version, r#"{"driver":"d"}"#)), (driver.clone(), 0), "{version}");
        }
        // What only the old version has is named, also in a list, whose items have no version.
        for version in [version("v1alpha3"), String::new()] {
            assert_eq!(read(&rule(&version, r#"{"driver":"d","deviceClassName":"c"}"#)), (driver.clone(), 1));
        }
    }

    #[test]
    fn a_claim_that_cannot_be_decoded_holds_its_devices() {
        let allocation = r#"{"devices":{"results":[{"request":"r","driver":"d","pool":"p","device":"gpu-0"}]}}"#;
        let claim = |results: &str, spec: &str| {
            let text =
                format!(r#"{{"metadata":{{"name":"c","uid":"u"}},"spec":{spec},"status":{{"allocation":{results}}}}}"#);
            Unreadable::new("resourceclaims").read(serde_json::from_str::<Readable<ResourceClaim>>(&text).unwrap())
        };
        let read = claim(allocation, r#"{"devices":[]}"#).unwrap();
        let results = read.status.unwrap().allocation.unwrap().devices.unwrap().results.unwrap();
        let devices: Vec<&str> = results.iter().map(|result| result.device.as_str()).collect();
        assert_eq!((read.metadata.uid.as_deref(), devices), (Some("u"), vec!["gpu-0"]));
        assert!(claim(r#"{"devices":[]}"#, "{}").is_err());
        assert!(claim("null", r#"{"devices":[]}"#).is_err());
    }
}
