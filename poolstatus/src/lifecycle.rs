//! Which requests are processed, and when.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;

use crate::gate::{Gate, Gates};
use crate::outcome::Input;
use crate::request::Request;
use crate::time::since;

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// There is no answer yet.
    Pending {
        /// For how long, if the time of creation is known.
        waiting: Option<Duration>,
    },
    /// There is an answer.
    Complete,
    /// An input could not be read. Only the shipped form has this.
    Failed,
}

impl Phase {
    /// The phase of a request at a time.
    ///
    /// ```
    /// use poolstatus::kep::ResourcePoolStatusRequest;
    /// use poolstatus::lifecycle::Phase;
    /// let request = ResourcePoolStatusRequest::default();
    /// assert_eq!(Phase::of((&request).into(), "2026-11-21T12:00:00Z".parse()?), Phase::Pending { waiting: None });
    /// # Ok::<(), k8s_openapi::jiff::Error>(())
    /// ```
    #[must_use]
    pub fn of(request: Request<'_>, now: Timestamp) -> Self {
        if !request.is_processed() {
            let created = request.metadata().creation_timestamp.as_ref();
            return Self::Pending { waiting: created.map(|created| since(created.0, now)) };
        }
        if has_failed(request) { Self::Failed } else { Self::Complete }
    }
}

fn has_failed(request: Request<'_>) -> bool {
    let Request::Shipped(request) = request else { return false };
    let conditions = request.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Failed" && condition.status == "True")
}

/// What a controller does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// Compute the status and write it, once.
    Process,
    /// Nothing: the gate is off in the API server, which shows no requests.
    Inaccessible,
    /// Nothing: the gate is off in the controller manager. The request stays pending, without a status.
    Unserved,
    /// Nothing: there is an answer already.
    Processed,
    /// Nothing yet: a list of objects is not complete. There is no partial answer.
    NotSynced(Input),
}

/// What a controller remembers between requests.
///
/// Requests are told apart by their UID: one that is deleted and made again under the same name is a new one.
///
/// ```
/// use poolstatus::gate::{Gate, Gates};
/// use poolstatus::kep::ResourcePoolStatusRequest;
/// use poolstatus::lifecycle::{Controller, Decision};
/// use poolstatus::outcome::Input;
///
/// let on = Gates::default().with(Gate::ResourcePoolStatus);
/// let mut controller = Controller::new(on, on);
/// let mut request = ResourcePoolStatusRequest::default();
/// request.metadata.uid = Some("1".into());
/// assert_eq!(controller.decide((&request).into()), Decision::NotSynced(Input::ResourceSlices));
/// [Input::ResourceSlices, Input::ResourceClaims, Input::DeviceTaintRules].map(|input| controller.synced(input));
/// assert_eq!(controller.decide((&request).into()), Decision::Process);
/// controller.written("1");
/// assert_eq!(controller.decide((&request).into()), Decision::Processed);
/// ```
#[derive(Clone, Debug)]
pub struct Controller {
    api_server: Gates,
    manager: Gates,
    unsynced: BTreeSet<Input>,
    written: BTreeSet<String>,
}

impl Controller {
    /// A controller with nothing synced. It needs taint rules only if their gate is on in the controller manager.
    #[must_use]
    pub fn new(api_server: Gates, manager: Gates) -> Self {
        let mut unsynced = BTreeSet::from([Input::ResourceSlices, Input::ResourceClaims]);
        if manager.has(Gate::DeviceTaintRules) {
            unsynced.insert(Input::DeviceTaintRules);
        }
        Self { api_server, manager, unsynced, written: BTreeSet::new() }
    }

    /// A list of objects is complete.
    pub fn synced(&mut self, input: Input) {
        self.unsynced.remove(&input);
    }

    /// A status was written to the request of that UID. Until the watch shows it, the request looks as before.
    pub fn written(&mut self, uid: &str) {
        self.written.insert(uid.to_owned());
    }

    /// The request of that UID is gone.
    pub fn deleted(&mut self, uid: &str) {
        self.written.remove(uid);
    }

    /// What to do with a request.
    #[must_use]
    pub fn decide(&self, request: Request<'_>) -> Decision {
        if !self.api_server.has(Gate::ResourcePoolStatus) {
            return Decision::Inaccessible;
        }
        let uid = request.metadata().uid.as_deref();
        if request.is_processed() || uid.is_some_and(|uid| self.written.contains(uid)) {
            return Decision::Processed;
        }
        if !self.manager.has(Gate::ResourcePoolStatus) {
            return Decision::Unserved;
        }
        self.unsynced.first().map_or(Decision::Process, |input| Decision::NotSynced(*input))
    }
}
