//! Programs on a cluster: what several of them share beside the package `dra-live`, which talks.
//!
//! | file | what it does |
//! |---|---|
//! | `cluster` | finds the cluster that the flags name, and says if it is of another release |
//! | `devices` | lists the devices of a cluster once |
//! | `kinds` | keeps the verdicts on nodes by kind of pods |
//! | `kept_list` | keeps an autoscaler's list of nodes |
//! | `why` | says why pods are pending |
//! | `pool_view` | takes the changes into `PoolIndex` of poolstatus, and keeps the requests |
//! | `pool_request_calls` | writes the status of requests, and deletes expired ones |

pub mod cluster;
pub mod devices;
pub mod kept_list;
pub mod kinds;
pub mod pool_request_calls;
pub mod pool_view;
pub mod why;
