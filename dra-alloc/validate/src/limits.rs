//! Size limits of the API, as the documentation of its types states them.

use dra_attrs::NameFormat;
use dra_attrs::internal::{AttributeValue, QualifiedName};
use dra_device::MAX_DEVICES_PER_CLAIM;
use dra_device::internal::{MAX_DEVICES, MAX_REQUESTS_PER_CLAIM};
use dra_selector::internal::EXPRESSION_LIMIT;

pub(super) const DRIVER_NAME: usize = QualifiedName::MAX_DOMAIN_LEN;
pub(super) const POOL_NAME: usize = NameFormat::MAX_SUBDOMAIN_LEN;
pub(super) const ID: usize = QualifiedName::MAX_ID_LEN;
/// Largest length in bytes of a qualified name: domain, slash and identifier.
pub(super) const QUALIFIED_NAME: usize = DRIVER_NAME + 1 + ID;
/// Largest size of all annotations of an object, keys and values.
pub(super) const ANNOTATIONS: usize = 256 * 1024;

pub(super) const DEVICES: usize = MAX_DEVICES;
pub(super) const COMPATIBILITY_GROUPS: usize = 2;
pub(super) const ATTRIBUTES_AND_CAPACITIES: usize = AttributeValue::MAX_ENTRIES_PER_DEVICE;
pub(super) const ATTRIBUTE_VALUES: usize = AttributeValue::MAX_PER_DEVICE;
pub(super) const ATTRIBUTE_VALUE_LEN: usize = AttributeValue::MAX_TEXT_LEN;
pub(super) const BINDING_CONDITIONS: usize = 4;
pub(super) const VALID_VALUES: usize = 10;

pub(super) const REQUESTS: usize = MAX_REQUESTS_PER_CLAIM;
pub(super) const SUBREQUESTS: usize = 8;
pub(super) const SELECTORS: usize = 32;
pub(super) const CONSTRAINTS: usize = 32;
pub(super) const CONFIG: usize = 32;
pub(super) const DERIVED_ATTRIBUTES: usize = 32;
pub(super) const CEL_EXPRESSION: usize = EXPRESSION_LIMIT;
pub(super) const OPAQUE_PARAMETERS: usize = 10 * 1024;

pub(super) const RESULTS: usize = MAX_DEVICES_PER_CLAIM;
/// Largest number of configurations in an allocation, from the class and from the claim.
pub(super) const ALLOCATION_CONFIG: usize = 2 * CONFIG;
pub(super) const RESERVED_FOR: usize = 256;
pub(super) const DEVICE_DATA: usize = 10 * 1024;
pub(super) const CONDITIONS: usize = 8;
pub(super) const IPS: usize = 16;
pub(super) const INTERFACE_NAME: usize = 256;
pub(super) const HARDWARE_ADDRESS: usize = 128;
