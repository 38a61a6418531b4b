//! Objects in memory, and the changes that led to them, as far back as the history reaches.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use object_patches::Object;
use serde_json::Value;

use crate::kinds::Kind;
use crate::refusal::Refusal;

/// Largest object in bytes, as in etcd.
const MAX_OBJECT: usize = 1536 * 1024;

/// Largest number of bytes of changes that are kept.
const MAX_HISTORY: usize = 64 * 1024 * 1024;

/// Largest number of bytes of all objects.
const MAX_STORED: usize = 512 * 1024 * 1024;

/// Revision at the start: a real server has written much of its own before anybody asks, and nobody can watch from there.
const FIRST_REVISION: u64 = 200;

/// Place of an object: kind, namespace (empty for the cluster's), name.
pub(crate) type Place = (&'static str, String, String);

/// Change of an object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) kind: &'static Kind,
    /// The object before; none for a new one.
    pub(crate) before: Option<Arc<Value>>,
    /// The object after, or the last state of a deleted one.
    pub(crate) object: Arc<Value>,
    pub(crate) is_deletion: bool,
    bytes: usize,
}

impl Change {
    /// Returns an object as if it had just been made.
    pub(crate) fn of(kind: &'static Kind, object: &Arc<Value>) -> Self {
        Self { revision: 0, kind, before: None, object: Arc::clone(object), is_deletion: false, bytes: 0 }
    }
}

/// Object with its size.
#[derive(Debug)]
struct Stored {
    object: Arc<Value>,
    bytes: usize,
}

/// Objects and their history.
#[derive(Debug)]
pub(crate) struct Store {
    objects: BTreeMap<Place, Stored>,
    bytes: usize,
    revision: u64,
    history: VecDeque<Change>,
    history_bytes: usize,
    /// Number of changes that are kept.
    longest_history: usize,
    /// Revision of the newest change that is not kept.
    forgotten: u64,
}

impl Store {
    pub(crate) fn new(longest_history: usize) -> Self {
        Self {
            objects: BTreeMap::new(),
            bytes: 0,
            revision: FIRST_REVISION,
            history: VecDeque::new(),
            history_bytes: 0,
            longest_history,
            forgotten: FIRST_REVISION,
        }
    }

    pub(crate) const fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, place: &Place) -> Option<&Arc<Value>> {
        self.objects.get(place).map(|stored| &stored.object)
    }

    /// Returns the objects of a kind, of one namespace or of all, by namespace and name.
    pub(crate) fn list(&self, kind: &'static Kind, namespace: Option<&str>) -> impl Iterator<Item = &Arc<Value>> {
        let first = (kind.plural, namespace.unwrap_or_default().to_owned(), String::new());
        let namespace = namespace.map(str::to_owned);
        let is_wanted = move |place: &Place| {
            place.0 == kind.plural && namespace.as_ref().is_none_or(|namespace| place.1 == *namespace)
        };
        self.objects.range(first..).take_while(move |(place, _)| is_wanted(place)).map(|(_, stored)| &stored.object)
    }

    /// Stores an object in a new version.
    ///
    /// # Errors
    /// The object or all objects are too large.
    pub(crate) fn put(&mut self, kind: &'static Kind, place: &Place, mut object: Value) -> Result<Arc<Value>, Refusal> {
        let old = self.objects.get(place);
        let (before, old_bytes) = old.map_or((None, 0), |old| (Some(Arc::clone(&old.object)), old.bytes));
        let revision = self.revision.saturating_add(1);
        object.set_metadata("resourceVersion", revision.to_string());
        let bytes = size(&object);
        if bytes > MAX_OBJECT {
            return Err(Refusal::new(413, "RequestEntityTooLarge", "etcdserver: request is too large"));
        }
        let all = self.bytes.saturating_sub(old_bytes).saturating_add(bytes);
        if all > MAX_STORED {
            return Err(Refusal::new(500, "InternalError", "etcdserver: mvcc: database space exceeded"));
        }
        let object = Arc::new(object);
        self.bytes = all;
        self.objects.insert(place.clone(), Stored { object: Arc::clone(&object), bytes });
        self.record(Change { revision, kind, before, object: Arc::clone(&object), is_deletion: false, bytes });
        Ok(object)
    }

    /// Removes an object; returns its last state in the version of the deletion.
    pub(crate) fn remove(&mut self, kind: &'static Kind, place: &Place) -> Option<Arc<Value>> {
        let Stored { object: before, bytes, .. } = self.objects.remove(place)?;
        self.bytes = self.bytes.saturating_sub(bytes);
        let revision = self.revision.saturating_add(1);
        let mut object = Value::clone(&before);
        object.set_metadata("resourceVersion", revision.to_string());
        let object = Arc::new(object);
        let change =
            Change { revision, kind, before: Some(before), object: Arc::clone(&object), is_deletion: true, bytes };
        self.record(change);
        Some(object)
    }

    /// Returns the changes after a revision.
    ///
    /// # Errors
    /// The history does not reach back so far.
    pub(crate) fn since(&self, revision: u64) -> Result<impl Iterator<Item = &Change>, Refusal> {
        if revision < self.forgotten {
            return Err(Refusal::expired(revision, self.forgotten));
        }
        let first = self.history.partition_point(|change| change.revision <= revision);
        Ok(self.history.range(first..))
    }

    /// Forgets all changes, so that watches have to begin anew.
    pub(crate) fn forget_history(&mut self) {
        self.history.clear();
        (self.history_bytes, self.forgotten) = (0, self.revision);
    }

    fn record(&mut self, change: Change) {
        self.revision = change.revision;
        self.history_bytes = self.history_bytes.saturating_add(change.bytes);
        self.history.push_back(change);
        while self.history.len() > self.longest_history || self.history_bytes > MAX_HISTORY {
            let Some(oldest) = self.history.pop_front() else { break };
            self.history_bytes = self.history_bytes.saturating_sub(oldest.bytes);
            self.forgotten = oldest.revision;
        }
    }
}

fn size(object: &Value) -> usize {
    serde_json::to_vec(object).map_or(usize::MAX, |bytes| bytes.len())
}
