//! Keys of the controller's work queue.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use dra_device::claims::ClaimKey;

/// Kind of object that a key names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum QueueKind {
    /// A pod.
    Pod,
    /// A pod group (KEP-5729).
    PodGroup,
    /// A claim.
    Claim,
}

/// Prefixes of keys.
const PREFIXES: [(QueueKind, &str); 3] =
    [(QueueKind::Pod, "pod:"), (QueueKind::PodGroup, "podgroup:"), (QueueKind::Claim, "claim:")];

/// Object for the controller to look at, written as `pod:namespace/name`, `podgroup:…` or `claim:…`.
///
/// ```
/// use dra_alloc::claim_controller::{QueueKey, QueueKind};
/// let key: QueueKey = "claim:ns/c".parse()?;
/// assert_eq!((key.kind, key.namespace.as_str(), key.name.as_str()), (QueueKind::Claim, "ns", "c"));
/// assert_eq!(key.to_string(), "claim:ns/c");
/// # Ok::<(), dra_alloc::claim_controller::QueueKeyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_structs, reason = "kind and name identify an object")]
pub struct QueueKey {
    /// Kind of the object.
    pub kind: QueueKind,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

/// A text that is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected key: {text}")]
#[non_exhaustive]
pub struct QueueKeyError {
    /// The text that was parsed.
    pub text: String,
}

impl QueueKey {
    pub(super) fn new(kind: QueueKind, object: &ClaimKey) -> Self {
        Self { kind, namespace: object.namespace.clone(), name: object.name.clone() }
    }

    /// Returns namespace and name of the object.
    pub(super) fn object(&self) -> ClaimKey {
        ClaimKey::new(&self.namespace, &self.name)
    }
}

impl fmt::Display for QueueKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = PREFIXES.iter().find(|(kind, _)| *kind == self.kind).map_or("", |(_, prefix)| prefix);
        write!(f, "{prefix}{}/{}", self.namespace, self.name)
    }
}

impl FromStr for QueueKey {
    type Err = QueueKeyError;

    fn from_str(text: &str) -> Result<Self, QueueKeyError> {
        let parts =
            PREFIXES.iter().find_map(|(kind, prefix)| Some((*kind, text.strip_prefix(prefix)?.split_once('/')?)));
        let (kind, (namespace, name)) = parts.ok_or_else(|| QueueKeyError { text: text.to_owned() })?;
        Ok(Self { kind, namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

/// Keys in the order in which they were added, each once.
#[derive(Default)]
pub(super) struct DistinctKeys {
    keys: Vec<QueueKey>,
    known: BTreeSet<QueueKey>,
}

impl DistinctKeys {
    pub(super) fn add(&mut self, kind: QueueKind, object: &ClaimKey) {
        let key = QueueKey::new(kind, object);
        if self.known.insert(key.clone()) {
            self.keys.push(key);
        }
    }

    pub(super) fn into_keys(self) -> Vec<QueueKey> {
        self.keys
    }
}
