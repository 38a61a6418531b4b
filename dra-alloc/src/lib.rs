//! What Kubernetes decides about devices: which devices a claim gets, what a driver may publish, and which node
//! operations the kubelet performs or skips (KEP-5945, and the allocation side of KEP-6072).
//!
//! Built so far: the declaration of skipped node operations, in both forms that exist on the wire ([`skip`]), and taints
//! with their tolerations and rules ([`taint`]).
//! `docs/requirements.tsv` says which statements of the KEPs are open.
//!
//! ```
//! use dra_alloc::skip::{SkipDeclaration, WireForm};
//! use dra_attrs::profile::Profile;
//!
//! // What 1.37 ships, read from a slice, and the same as the KEP writes it.
//! let shipped = SkipDeclaration::List(vec!["*".to_owned()]);
//! assert!(shipped.set().prepare && shipped.set().unprepare);
//! assert_eq!(shipped.written_as(WireForm::of(Profile::Kep))?, SkipDeclaration::Bool(true));
//! # Ok::<(), dra_alloc::skip::NotExpressible>(())
//! ```

pub mod allocator;
pub mod budget;
pub mod capacity;
pub mod device_id;
pub mod error;
pub mod features;
pub mod inventory;
pub mod node;
pub mod outcome;
pub mod result;
pub mod selector;
pub mod skip;
pub mod state;
pub mod taint;
pub mod usage;

mod counters;
mod profile;
mod request;
mod search;
