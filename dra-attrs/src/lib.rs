//! Attributes of DRA devices for Kubernetes: names, values, constraints and `resource.kubernetes.io/numaNode`.
//!
//! [`numa::numa_node_attribute`] answers the question of KEP-6072: to which NUMA nodes is this PCI device, or this CPU,
//! local?
//!
//! ```
//! use dra_attrs::numa::{NumaForm, NumaPlace, numa_node_attribute};
//! use dra_attrs::{PciAddress, SysfsMap};
//!
//! // Implement `Sysfs` for a real /sys, or describe a machine.
//! let machine = SysfsMap::default()
//!     .with_file("bus/pci/devices/0000:c1:00.0/numa_node", "1")
//!     .with_file("devices/system/node/online", "0-1")
//!     .with_file("devices/system/node/node0/distance", "10 12")
//!     .with_file("devices/system/node/node1/distance", "12 10");
//! let nic = NumaPlace::Pci(PciAddress::parse("0000:c1:00.0")?);
//! let attribute = numa_node_attribute(&machine, nic, NumaForm::LocalNodes)?;
//! assert_eq!(attribute.value.ints, Some(vec![1, 0]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Contents
//!
//! - **NUMA and PCI** (KEP-6072): [`numa::numa_node_attribute`], [`numa::NumaTopology`] for machines without sysfs, module
//!   [`numa`]; [`PciAddress`], [`PciAddress::pcie_root_attribute`]; [`Sysfs`], the view of a machine; [`VendorDriver::add_standard_numa_node`]
//!   for drivers that publish the NUMA node under a name of their own.
//! - **Attributes**: [`FullyQualifiedName`], [`Quantity`], [`Version`], parsed strictly; [`check_device_attributes`] for
//!   the values and the limits of one device.
//! - **Constraints** (KEP-4381, KEP-5491): [`MatchState`] and [`DistinctState`] decide `matchAttribute` and
//!   `distinctAttribute` over [`ValueSet`]s, read leniently as the allocator of kube-scheduler does.
//! - **Shared by the family**: [`Profile`], [`GateSet`], [`FieldErrors`], [`Index`] (a position in a list),
//!   [`Resources`], [`ClaimAmounts`], [`node_selector_matches`], [`node_affinity_matches`], [`first_untolerated_taint`],
//!   [`label_selector_matches`], [`saturate_times`], and [`NameFormat`] with
//!   the API server's rules for names.
//!
//! # Times after 9999-12-30T22:00Z
//!
//! k8s-openapi's `Time` and `MicroTime` end there, and an API server stores times until the end of year 9999. Objects that
//! come from one are decoded by way of `serde_json::Value`, after [`saturate_times`]; otherwise one object with a later
//! time, such as a taint's `timeAdded`, makes its whole list unreadable.
//!
//! # Guarantees
//!
//! - **No IO.** A machine is read through the [`Sysfs`] trait only.
//! - **Parsing is not validating.** A `DeviceAttribute` that deserialised may carry no value, or two;
//!   [`check_device_attributes`] is the check.
//! - **Deterministic.** The same input gives the same output, byte for byte; lists have a documented order.
//! - **Bounded, without panics.** Node ids stay below 1,024, CPU ids below 65,536, quantities within an `i128` of
//!   nano-units.
//!
//! # Features
//!
//! `schemars` adds `JsonSchema` to the types that are read or written. The binary that uses this crate chooses the
//! Kubernetes version of its `k8s-openapi` dependency, 1.37 or newer (`k8s-openapi/v1_37` or `latest`).
//!
//! Tests: `tests/it`.

pub mod numa;
mod release;

mod claim_amounts;
mod component;
mod dns;
mod dropped_field;
mod field;
mod format;
mod gate;
mod gate_in_release;
mod gates;
mod held_resources;
mod index;
#[doc(hidden)]
pub mod internal;
mod k8s;
mod label;
mod label_selector;
mod matching;
mod name;
mod name_format;
mod node_selector;
mod pci;
mod profile;
mod quantity;
mod resources;
mod semver;
mod serde_text;
mod server_version;
mod standard;
mod sysfs;
mod time_range;
mod toleration;
mod value;
mod vendor;

pub use claim_amounts::{ClaimAmounts, DeviceOverhead};
pub use component::Component;
pub use dropped_field::{DropCause, DroppedField};
pub use field::{BadValue, ErrorType, FieldError, FieldErrors, FieldPath, Quoted};
pub use gate::Gate;
pub use gate_in_release::GateName;
pub use gates::{GateError, GateMetricsError, GateSet};
pub use index::Index;
pub use label_selector::{LabelSelectorError, label_selector_matches};
pub use matching::{DistinctState, ListTypes, MatchError, MatchState, ValueSet};
pub use name::{FullyQualifiedName, NameError, lookup_by_name};
pub use name_format::NameFormat;
pub use node_selector::{NodeSelectorError, node_affinity_matches, node_selector_matches};
pub use pci::{PciAddress, PciAddressError, PcieRootError};
pub use profile::{Profile, ProfileError};
pub use quantity::{Quantity, QuantityError, QuantityFormat};
pub use release::{GateStage, NodeAllocatableForm, PoolStatusForm};
pub use resources::Resources;
pub use semver::{Version, VersionError};
pub use server_version::ServerVersionError;
pub use standard::StandardAttribute;
pub use sysfs::{Sysfs, SysfsError, SysfsMap};
pub use time_range::{has_saturated_time, saturate_times};
pub use toleration::{TolerationOperators, first_untolerated_taint};
pub use value::{DeviceAttributesError, Scalar, ValueError, check_device_attributes};
pub use vendor::{VendorDriver, VendorMigration};
