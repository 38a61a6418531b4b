//! Adapter between the libraries and an API server, to be copied: what talks is here, what decides is in the libraries.
//!
//! | file | what it does |
//! |---|---|
//! | `connect` | finds the cluster, and asks for its version |
//! | `retry` | repeats calls that got no answer, within a limit |
//! | `failure` | says in one sentence what went wrong: no kubeconfig, no permission, kind not served, server gone |
//! | `watching` | watches kinds, and passes on their changes through one bounded channel |
//! | `cluster_view` | takes the changes into `Inventory`, `Classes` and `ClaimTracker` of dra-alloc |
//! | `touched` | names what a change touches: a pod, a claim, nodes |
//! | `kinds` | keeps the verdicts on nodes by kind of pods |
//! | `kept_list` | keeps an autoscaler's list of nodes |
//! | `claim_calls` | carries out `ClaimWrite`s, also when the answer to one was lost |
//! | `node_calls` | writes taints, conditions, labels and events of a node |
//! | `pod_calls` | nominates, binds, and writes conditions |
//! | `controller_calls` | carries out the calls of the claim controller |
//! | `slice_calls` | carries out a driver's `SliceWrite`s |
//! | `device_status_calls` | writes a driver's reports into `status.devices`, beside those of others |
//! | `events` | writes events about pods, without repeating itself |
//! | `why` | says why pods are pending |
//! | `lists` | puts the lists of a watch in one piece |
//! | `readable` | keeps a watch going at an object that can't be decoded |
//! | `times` | reads times of year 9999 that can't be held |
//! | `outage` | makes pauses grow while a watch has trouble |
//! | `taint_rules` | finds the version in which the server has taint rules |
//! | `listing` | lists kinds once, page by page |
//! | `pool_view` | takes the changes into `PoolIndex` of poolstatus, and keeps the requests |
//! | `pool_request_calls` | writes the status of requests, and deletes expired ones |
//! | `lease` | keeps a second copy of a program waiting while this one works |
//! | `metrics` | counts, in the text format of Prometheus |
//! | `vitals` | serves `/metrics` and `/healthz` |
//! | `http` | serves HTTP on a bounded number of connections |
//! | `stop` | waits for SIGTERM or Ctrl-C |
//!
//! Whatever is sent may have been carried out although no answer came. Each write therefore names the version or the UID of
//! what was read, so that a repetition does nothing or is a conflict; and after a conflict the stored object tells whose
//! write it was.

mod answers;
pub mod claim_calls;
pub mod cluster_view;
pub mod connect;
pub mod controller_calls;
pub mod device_status_calls;
pub mod events;
pub mod failure;
pub mod http;
pub mod kept_list;
pub mod kinds;
pub mod lease;
pub mod listing;
mod lists;
pub mod metrics;
pub mod node_calls;
pub mod outage;
pub mod pod_calls;
pub mod pool_request_calls;
pub mod pool_view;
mod readable;
pub mod retry;
pub mod slice_calls;
pub mod stop;
mod taint_rules;
mod times;
pub mod touched;
pub mod vitals;
pub mod watching;
pub mod why;

use std::time::SystemTime;

use k8s_openapi::jiff::Timestamp;

/// Returns the time. A clock before 1970 counts as 1970.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH)
}
