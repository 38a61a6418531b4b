//! Watches: a stream of the changes after a version. A watch has no queue; it reads the history at its own speed, and
//! ends with 410 if it falls behind.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::program::now;
use futures_util::stream::{Stream, unfold};
use hyper::body::{Bytes, Frame};
use object_patches::Object;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::answers::{Form, metadata_of};
use crate::misbehave::{Fault, Moment};
use crate::options::Options;
use crate::refusal::Refusal;
use crate::request::Target;
use crate::selector::Selector;
use crate::service::Service;
use crate::shown::{Answered, shown};
use crate::store::Change;
use crate::table::table;

/// Time between two bookmarks.
const BOOKMARKS: Duration = Duration::from_secs(10);

/// Longest watch, if the client asks for none that is shorter.
const LONGEST: Duration = Duration::from_secs(1800);

/// Largest number of changes that are looked at before others have their turn.
const BATCH: usize = 256;

type Written = Result<Frame<Bytes>, io::Error>;

/// Event as a line.
#[derive(Serialize)]
struct Line<'l, O> {
    r#type: &'l str,
    object: &'l O,
}

/// Watch of a client.
struct Watch {
    server: Arc<Service>,
    selector: Selector,
    form: Form,
    /// Version up to which the client knows everything.
    revision: u64,
    end: Instant,
    next_bookmark: Option<Instant>,
    ready: VecDeque<Bytes>,
    has_ended: bool,
}

/// Begins a watch.
///
/// # Errors
/// The version is no number.
pub(crate) fn watch(
    server: Arc<Service>,
    selector: Selector,
    (target, options): (&Target, &Options),
    form: Form,
) -> Result<impl Stream<Item = Written> + Send + use<>, Refusal> {
    let seconds = options.timeout_seconds.map_or(LONGEST, Duration::from_secs).min(LONGEST);
    let start = Instant::now();
    let mut watch = Watch {
        server,
        selector,
        form,
        revision: 0,
        end: start.checked_add(seconds).unwrap_or(start),
        next_bookmark: options.has_bookmarks.then(|| start.checked_add(BOOKMARKS).unwrap_or(start)),
        ready: VecDeque::new(),
        has_ended: false,
    };
    match options.watched_from(target)? {
        // Any version will do, and what there is shall not be told.
        Some(0) => watch.revision = watch.server.api().store.revision(),
        Some(revision) => watch.revision = revision,
        None => watch.begin_with_objects(options.initial_events == Some(true)),
    }
    Ok(unfold(watch, |mut watch| async move { watch.next().await.map(|line| (line, watch)) }))
}

impl Watch {
    fn begin_with_objects(&mut self, has_end: bool) {
        let server = Arc::clone(&self.server);
        let api = server.api();
        let objects = api.store.list(self.selector.kind(), self.selector.namespace());
        let selected: Vec<Arc<Value>> = objects.filter(|object| self.selector.matches(object)).cloned().collect();
        for object in &selected {
            self.push("ADDED", object);
        }
        self.revision = api.store.revision();
        if has_end {
            self.push_bookmark(&json!({"k8s.io/initial-events-end": "true"}));
        }
    }

    async fn next(&mut self) -> Option<Written> {
        let mut changed = self.server.changes();
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(Ok(Frame::data(bytes)));
            }
            if self.has_ended {
                return None;
            }
            changed.mark_unchanged();
            match self.read() {
                Err(refusal) => {
                    self.has_ended = true;
                    self.push_line("ERROR", &refusal.body());
                    continue;
                }
                Ok(0) => {}
                Ok(_) => {
                    match self.server.fault(Moment::Watch) {
                        Some(Fault::Drop) => return Some(Err(io::Error::other("the watch is cut"))),
                        Some(Fault::Expire) => {
                            let server = Arc::clone(&self.server);
                            server.api().store.forget_history();
                            self.ready.clear();
                            self.has_ended = true;
                            self.push_line("ERROR", &Refusal::expired(self.revision, self.revision).body());
                        }
                        _ => {}
                    }
                    continue;
                }
            }
            let wake = self.next_bookmark.map_or(self.end, |bookmark| bookmark.min(self.end));
            tokio::select! {
                outcome = changed.changed() => self.has_ended |= outcome.is_err(),
                () = sleep_until(wake) => {
                    self.has_ended = Instant::now() >= self.end;
                    if let Some(bookmark) = &mut self.next_bookmark {
                        *bookmark = Instant::now().checked_add(BOOKMARKS).unwrap_or(*bookmark);
                        self.push_bookmark(&Value::Null);
                    }
                }
            }
        }
    }

    /// Reads the changes that the client does not know yet. Returns how many there were.
    fn read(&mut self) -> Result<usize, Refusal> {
        let server = Arc::clone(&self.server);
        let api = server.api();
        let changes: Vec<Change> = api.store.since(self.revision)?.take(BATCH).cloned().collect();
        drop(api);
        for change in &changes {
            self.revision = change.revision;
            self.push_change(change);
        }
        Ok(changes.len())
    }

    fn push_change(&mut self, change: &Change) {
        if change.kind != self.selector.kind() {
            return;
        }
        let was_selected = change.before.as_deref().is_some_and(|before| self.selector.matches(before));
        let is_selected = !change.is_deletion && self.selector.matches(&change.object);
        match (was_selected, is_selected) {
            (false, false) => {}
            (false, true) => self.push("ADDED", &change.object),
            (true, true) => self.push("MODIFIED", &change.object),
            (true, false) => self.push("DELETED", &change.object),
        }
    }

    fn push(&mut self, event: &str, object: &Value) {
        match self.form {
            Form::Object => {
                let object = shown(self.selector.kind(), self.server.profile, object);
                self.push_line(event, &Answered { object, is_item: false });
            }
            Form::Metadata => self.push_line(event, &metadata_of(object)),
            Form::Table => {
                let version = object.metadata("resourceVersion");
                let table =
                    table(self.selector.kind(), std::iter::once(object), &json!({"resourceVersion": version}), now());
                self.push_line(event, &table);
            }
        }
    }

    fn push_bookmark(&mut self, annotations: &Value) {
        let kind = self.selector.kind();
        let mut metadata = json!({"resourceVersion": self.revision.to_string(), "creationTimestamp": null});
        if !annotations.is_null() {
            metadata.fields().insert("annotations".to_owned(), annotations.clone());
        }
        let object = json!({"kind": kind.name, "apiVersion": kind.api_version(), "metadata": metadata});
        self.push_line("BOOKMARK", &object);
    }

    fn push_line(&mut self, event: &str, object: &impl Serialize) {
        let mut line = serde_json::to_vec(&Line { r#type: event, object }).unwrap_or_default();
        line.push(b'\n');
        self.ready.push_back(line.into());
    }
}
