//! Requests without a status, in the order in which they are tried.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dra_live::retry::Pauses;
use examples::output::say;
use tokio::time::Instant;

/// Time before a request that waits for slices is looked at after a change of pools.
const GATHERING: Duration = Duration::from_millis(200);

/// Requests without a status.
#[derive(Debug)]
pub(super) struct Pending {
    requests: BTreeMap<String, Request>,
    /// Their names, by the time of the next attempt.
    due: BTreeSet<(Instant, String)>,
    /// Time before which none is answered.
    not_before: Instant,
}

/// Request that has no status yet.
#[derive(Debug)]
struct Request {
    due: Instant,
    pauses: Pauses,
    /// Reason that was said last.
    said: String,
}

impl Pending {
    pub(super) fn new() -> Self {
        Self { requests: BTreeMap::new(), due: BTreeSet::new(), not_before: Instant::now() }
    }

    /// Adds a request, to be tried at once. One that is there stays as it is.
    pub(super) fn add(&mut self, name: &str) {
        if !self.requests.contains_key(name) {
            let due = Instant::now();
            self.requests.insert(name.to_owned(), Request { due, pauses: Pauses::default(), said: String::new() });
            self.due.insert((due, name.to_owned()));
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(request) = self.requests.remove(name) {
            self.due.remove(&(request.due, name.to_owned()));
        }
    }

    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.due.clear();
    }

    /// Returns the request that is due first, and when.
    pub(super) fn next(&self) -> Option<(String, Instant)> {
        self.due.first().map(|(due, name)| (name.clone(), (*due).max(self.not_before)))
    }

    /// Answers none before some time has passed.
    pub(super) fn hold_all(&mut self, wait: Duration) {
        self.not_before = soon(wait);
    }

    /// Brings the requests forward that were put off: what they wait for may have come.
    pub(super) fn soon(&mut self) {
        let soon = soon(GATHERING);
        for (_, name) in self.due.split_off(&(soon, String::new())) {
            if let Some(request) = self.requests.get_mut(&name) {
                request.due = soon;
                self.due.insert((soon, name));
            }
        }
    }

    /// Tries a request later. The reason is said once.
    pub(super) fn put_off(&mut self, name: &str, reason: &str) {
        let Some(request) = self.requests.get_mut(name) else { return };
        self.due.remove(&(request.due, name.to_owned()));
        request.due = soon(request.pauses.next().unwrap_or_default());
        self.due.insert((request.due, name.to_owned()));
        if request.said != reason {
            say(&format_args!("pool-status: {name}: {reason}"));
            reason.clone_into(&mut request.said);
        }
    }
}

/// Returns the time after a wait from now.
pub(super) fn soon(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait).unwrap_or(now)
}
