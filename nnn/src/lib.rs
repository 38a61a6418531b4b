//! When a pod's `nominatedNodeName` is set, overwritten and cleared, what it reserves, and what others may conclude from it
//! (KEP-5278).
//!
//! A nomination is a plan: the scheduler has chosen victims on a node, or has chosen the node and waits for volumes and
//! devices before it binds. This crate has the decisions around it as pure functions, and puts them together.
//!
//! - [`state`]: where a pod is on its way to a node, and the only ways between; [`command`]: decisions as values.
//! - [`scheduling`]: which node is tried first, what the result of a cycle means, what failures write and whom they wake.
//! - [`binding`]: when a node is announced, what runs in which order, what the API server does.
//! - [`nominator`]: the cache of nominations; [`reservation`]: what they reserve.
//! - [`scheduler`] puts these together: events go in, commands come out. [`options`] says how.
//! - [`view`]: what an autoscaler may conclude: which nodes are in use, promised, removable.
//! - [`external`]: an option, other writers. [`patch`] and [`cost`]: writes and what they cost. [`gates`]: feature gates
//!   and version skew. [`profile`]: the text of the KEP, or Kubernetes 1.37.
//!
//! ```
//! use nnn::nominating::NominatingInfo;
//! use nnn::nominator::Nominator;
//! use nnn::pod::PodView;
//! use nnn::reservation::{Fit, two_pass};
//!
//! let (first, second) = (PodView::pending("default", "first"), PodView::pending("default", "second"));
//! let mut nominator = Nominator::default();
//! nominator.add(&first, &NominatingInfo::to("node-1"), Some(&first));
//!
//! // The node has room for one pod, and that is promised.
//! let fit = |running: &[_]| if running.is_empty() { Fit::Fits } else { Fit::Rejected("full") };
//! assert_eq!(two_pass(&second, nominator.on_node("node-1"), fit), Fit::Rejected("full"));
//! assert_eq!(two_pass(&first, nominator.on_node("node-1"), fit), Fit::Fits);
//! ```
//!
//! # What a caller must keep
//!
//! - Commands are carried out in their order. Answers to writes are told in the order of the writes.
//! - A [`nominator::Nominator`] never gets a nomination of an assumed pod, and is told of every pod that is bound or gone.
//!   [`scheduler::Scheduler`] keeps both rules itself.
//!
//! # What it does not do
//!
//! It filters and scores no nodes, chooses no victims, and neither reads nor writes anything. Devices are
//! counted as claims have them allocated; nothing is allocated.
//!
//! The same input gives the same output. `None` and the empty name of a node mean the same wherever one comes in.
//!
//! The crate needs the Kubernetes types of 1.37.

pub mod amount;
pub mod binding;
pub mod command;
pub mod cost;
pub mod external;
pub mod gates;
pub mod nominating;
pub mod nominator;
pub mod options;
pub mod patch;
pub mod pod;
pub mod profile;
pub mod reservation;
pub mod scheduler;
pub mod scheduling;
pub mod state;
pub mod view;

mod k8s;
mod writes;
