//! Device attributes of Kubernetes Dynamic Resource Allocation (DRA): their names, their values, how the values of
//! several devices are matched, and how a device's place in the machine becomes an attribute.
//!
//! The crate implements [KEP-6072] (`resource.kubernetes.io/numaNode`) together with what it stands on: typed and
//! list-typed attributes (KEP-5491), `matchAttribute` and `distinctAttribute`, `pcieRoot` and `pciBusID`, and
//! `resource.Quantity`.
//!
//! ```
//! use dra_attrs::numa::{NumaForm, NumaNode, NumaTopology};
//!
//! // Four NUMA nodes on one socket, all at the same distance: AMD EPYC with NPS4.
//! let topology = NumaTopology::new(vec![
//!     NumaNode::new(0, [10, 12, 12, 12]).on_socket(0).with_cpus("0-35".parse()?),
//!     NumaNode::new(1, [12, 10, 12, 12]).on_socket(0).with_cpus("36-71".parse()?),
//!     NumaNode::new(2, [12, 12, 10, 12]).on_socket(0).with_cpus("72-107".parse()?),
//!     NumaNode::new(3, [12, 12, 12, 10]).on_socket(0).with_cpus("108-143".parse()?),
//! ])?;
//! let nic = topology.attribute(2, NumaForm::LocalNodes)?;
//! assert_eq!(nic.value.ints, Some(vec![2, 0, 1, 3]));
//! assert!(nic.diagnostics.is_empty());
//!
//! let cpu = topology.attribute(topology.node_of_cpu(5)?, NumaForm::Scalar)?;
//! assert_eq!(cpu.value.int, Some(0));
//!
//! // The claim's matchAttribute constraint holds: both devices have node 0 in common.
//! use dra_attrs::matching::{ListTypes, MatchState, ValueSet};
//! let mut constraint = MatchState::new();
//! constraint.push(&ValueSet::of(Some(&nic.value), ListTypes::Enabled))?;
//! constraint.push(&ValueSet::of(Some(&cpu.value), ListTypes::Enabled))?;
//! assert_eq!(constraint.common().len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The parts
//!
//! - [`numa`]: the attribute `numaNode` in its three forms; [`pci`]: addresses and roots; [`sysfs`]: how a machine is read;
//!   [`standard`]: the names of standard attributes; [`vendor`]: what stood in their place before.
//! - [`name`], [`value`], [`quantity`], [`semver`]: names and values, read strictly. [`matching`]: what constraints make of
//!   values, read leniently.
//! - [`profile`]: the text of the KEPs or the release. [`field`], [`dns`], [`format`](mod@format): field errors, names and
//!   formats in the API server's words.
//!
//! # What a caller must know
//!
//! - **No IO.** A machine is read through the [`sysfs::Sysfs`] trait, which the caller implements for a real `/sys`, a
//!   directory capture or a map of texts.
//! - **Parsing is not validating.** A `DeviceAttribute` that deserialised may still carry no value, or two;
//!   [`value::AttributeValue::parse`] is the check. Matching reads such objects as the allocator of kube-scheduler
//!   does and reports a violation, never an error.
//! - **Deterministic.** The same input gives the same output, byte for byte; lists have a documented order.
//! - **Nothing panics** and no work is without bound: node ids stay below 1,024, CPU ids below 65,536, quantities in
//!   an `i128` of nano-units.
//!
//! # Features
//!
//! `schemars` adds `JsonSchema` to the types that are read or written. A binary that uses this crate chooses the Kubernetes
//! version of its `k8s-openapi` dependency; this crate needs the types of 1.37 (`k8s-openapi/v1_37` or `latest`).
//!
//! [KEP-6072]: https://github.com/kubernetes/enhancements/issues/6072

pub mod dns;
pub mod field;
pub mod format;
pub mod matching;
pub mod name;
pub mod numa;
pub mod pci;
pub mod profile;
pub mod quantity;
pub mod semver;
pub mod standard;
pub mod sysfs;
pub mod value;
pub mod vendor;

mod k8s;
