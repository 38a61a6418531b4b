//! Decisions of the controller that processes `ResourcePoolStatusRequest`s.

use std::collections::BTreeSet;
use std::time::Duration;

use dra_attrs::{Gate, GateSet};

use crate::request_outcome::InputKind;
use crate::status_request::StatusRequest;

/// Action that the controller takes on one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestDecision {
    /// Compute the status and write it, once.
    Process,
    /// Nothing to do: the feature gate `DRAResourcePoolStatus` is off in the API server, which then serves no requests.
    Inaccessible,
    /// Nothing to do: the feature gate `DRAResourcePoolStatus` is off in kube-controller-manager. The request stays
    /// pending, without a status.
    NotReady,
    /// Nothing to do: the request has a status.
    Processed,
    /// Wait until the initial list of objects of this kind is complete. A partial status is never written.
    NotSynced(InputKind),
}

/// State that the controller keeps between requests: unsynced lists, and requests whose status was just written.
///
/// Requests are identified by their UID: a request that is deleted and created again under the same name is a new one.
///
/// ```
/// use dra_attrs::Profile;
/// use poolstatus::kep::ResourcePoolStatusRequest;
/// use poolstatus::lifecycle::{RequestController, RequestDecision};
/// use dra_attrs::{Gate, GateSet};
/// use poolstatus::InputKind;
///
/// let on = GateSet::of(Profile::V1_37).with(Gate::ResourcePoolStatus);
/// let mut controller = RequestController::new(on, on);
/// let mut request = ResourcePoolStatusRequest::default();
/// request.metadata.uid = Some("1".into());
/// assert_eq!(controller.decide((&request).into()), RequestDecision::NotSynced(InputKind::ResourceSlices));
/// for kind in [InputKind::ResourceSlices, InputKind::ResourceClaims, InputKind::DeviceTaintRules] {
///     controller.mark_synced(kind);
/// }
/// assert_eq!(controller.decide((&request).into()), RequestDecision::Process);
/// controller.mark_written("1");
/// assert_eq!(controller.decide((&request).into()), RequestDecision::Processed);
/// ```
#[derive(Clone, Debug)]
pub struct RequestController {
    api_server: GateSet,
    controller_manager: GateSet,
    unsynced: BTreeSet<InputKind>,
    written: BTreeSet<String>,
}

impl RequestController {
    /// Interval at which Kubernetes 1.37 deletes expired requests: 10 minutes.
    pub const CLEANUP_INTERVAL: Duration = Duration::from_secs(600);

    /// Creates a controller from the feature gates of the API server and of kube-controller-manager. No list is synced
    /// yet.
    ///
    /// The controller needs taint rules only if [`Gate::DeviceTaintRules`] is on in kube-controller-manager.
    #[must_use]
    pub fn new(api_server: GateSet, controller_manager: GateSet) -> Self {
        let mut unsynced = BTreeSet::from([InputKind::ResourceSlices, InputKind::ResourceClaims]);
        if controller_manager.has(Gate::DeviceTaintRules) {
            unsynced.insert(InputKind::DeviceTaintRules);
        }
        Self { api_server, controller_manager, unsynced, written: BTreeSet::new() }
    }

    /// Records that the initial list of objects of one kind is complete.
    pub fn mark_synced(&mut self, kind: InputKind) {
        self.unsynced.remove(&kind);
    }

    /// Records that a status was written to the request `uid`, so that the controller does not process the request
    /// again before the watch shows the status.
    pub fn mark_written(&mut self, uid: &str) {
        self.written.insert(uid.to_owned());
    }

    /// Removes the record of the request `uid`, which was deleted.
    pub fn forget(&mut self, uid: &str) {
        self.written.remove(uid);
    }

    /// Decides if the controller processes a request now, later or never.
    #[must_use]
    pub fn decide(&self, request: StatusRequest<'_>) -> RequestDecision {
        if !self.api_server.has(Gate::ResourcePoolStatus) {
            return RequestDecision::Inaccessible;
        }
        let uid = request.metadata().uid.as_deref();
        if request.is_processed() || uid.is_some_and(|uid| self.written.contains(uid)) {
            return RequestDecision::Processed;
        }
        if !self.controller_manager.has(Gate::ResourcePoolStatus) {
            return RequestDecision::NotReady;
        }
        self.unsynced.first().map_or(RequestDecision::Process, |kind| RequestDecision::NotSynced(*kind))
    }
}
