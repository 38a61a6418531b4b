//! Why an allocation can't be attempted: input that is bad whatever the node.

use dra_attrs::quantity::QuantityError;

use crate::capacity::CapacityError;
use crate::device_id::DeviceId;
use crate::node::NodeSelectorError;
use crate::selector::{CompileError, EvaluationError};

/// Input on which the allocator can't run. kube-scheduler gives up the pod, whatever other nodes may offer.
///
/// Texts name the place first: claim, request, then what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocateError {
    /// A request of a claim can't be used.
    #[error("claim {claim}, request {request}: {error}")]
    Request {
        /// Namespace and name of the claim.
        claim: String,
        /// The request, or `request/subrequest`.
        request: String,
        /// What is wrong.
        error: RequestError,
    },
    /// A constraint of a claim can't be used.
    #[error("claim {claim}, constraint #{index}: empty constraint (unsupported constraint type?)")]
    EmptyConstraint {
        /// Namespace and name of the claim.
        claim: String,
        /// Position of the constraint.
        index: usize,
    },
    /// A claim asks for more devices than an allocation may have.
    #[error("claim {claim}: number of requested devices {devices} exceeds the claim limit of {limit}")]
    TooManyDevices {
        /// Namespace and name of the claim.
        claim: String,
        /// The fewest devices with which the claim could be allocated.
        devices: u64,
        /// The most devices of an allocation.
        limit: usize,
    },
    /// A selector of a class or request can't be compiled.
    #[error("{owner}: selector #{index}: CEL compile error: {}", .error.detail())]
    SelectorCompile {
        /// `class NAME` or `claim NAMESPACE/NAME`.
        owner: String,
        /// Position of the selector.
        index: usize,
        /// What is wrong.
        error: CompileError,
    },
    /// A selector of a class or request can't be evaluated on a device.
    #[error("{owner}: selector #{index} on device {device}: CEL runtime error: {error}")]
    SelectorEvaluation {
        /// `class NAME` or `claim NAMESPACE/NAME`.
        owner: String,
        /// Position of the selector.
        index: usize,
        /// The device.
        device: Box<DeviceId>,
        /// What is wrong.
        error: EvaluationError,
    },
    /// A selector of a class has no expression.
    #[error("{owner}: selector #{index}: CEL expression empty (unsupported selector type?)")]
    SelectorEmpty {
        /// `class NAME`.
        owner: String,
        /// Position of the selector.
        index: usize,
    },
    /// A derived attribute can't be compiled.
    #[error("compile derived attribute {attribute} failed: {}", .error.detail())]
    DerivedCompile {
        /// Name of the attribute.
        attribute: String,
        /// What is wrong.
        error: CompileError,
    },
    /// A derived attribute can't be evaluated on a device.
    #[error("evaluate derived attribute {attribute} on device {device} failed: {error}")]
    DerivedEvaluation {
        /// Name of the attribute.
        attribute: String,
        /// The device.
        device: Box<DeviceId>,
        /// What is wrong.
        error: EvaluationError,
    },
    /// A request that asks for all devices gets one that a constraint refuses.
    #[error(
        "claim {claim}, request {request}: cannot add device {device} because a claim constraint would not be satisfied"
    )]
    ConstraintOnAll {
        /// Namespace and name of the claim.
        claim: String,
        /// The request, or `request/subrequest`.
        request: String,
        /// The device.
        device: Box<DeviceId>,
    },
    /// The capacity that a request asks of a device can't be computed.
    #[error("claim {claim}, request {request}: checking capacity for device {device}: capacity {capacity:?}: {error}")]
    Capacity {
        /// Namespace and name of the claim.
        claim: String,
        /// The request, or `request/subrequest`.
        request: String,
        /// The device.
        device: Box<DeviceId>,
        /// Name of the capacity.
        capacity: String,
        /// What is wrong.
        error: Box<CapacityError>,
    },
    /// The node selector of a slice, or of a device in it, can't be used.
    #[error("ResourceSlice {slice}: {field}: {error}")]
    NodeSelector {
        /// Name of the slice.
        slice: String,
        /// The field that has the selector.
        field: String,
        /// What is wrong.
        error: NodeSelectorError,
    },
    /// An allocated device has a node selector that can't become part of the claim's.
    #[error("create NodeSelector for claim {claim}: unsupported ResourceSlice.NodeSelector with {terms} terms")]
    NodeSelectorTerms {
        /// Namespace and name of the claim.
        claim: String,
        /// Number of terms.
        terms: usize,
    },
    /// A field of a slice is not a quantity.
    #[error("ResourceSlice {slice}: {field}: {error}")]
    SliceQuantity {
        /// Name of the slice.
        slice: String,
        /// Path of the field.
        field: String,
        /// What is wrong.
        error: QuantityError,
    },
}

/// Why a request can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// `firstAvailable` with its gate off.
    #[error("has subrequests, but the DRAPrioritizedList feature is disabled")]
    PrioritizedListOff,
    /// A capacity request with its gate off.
    #[error("has capacity requests, but the DRAConsumableCapacity feature is disabled")]
    ConsumableCapacityOff,
    /// Derived attributes with their gate off.
    #[error("cannot handle request with derived attributes, the feature is disabled")]
    DerivedAttributesOff,
    /// `adminAccess` with its gate off.
    #[error("admin access is requested, but the feature is disabled")]
    AdminAccessOff,
    /// A selector without an expression.
    #[error("selector #{index}: CEL expression empty (unsupported selector type?)")]
    SelectorEmpty {
        /// Position of the selector.
        index: usize,
    },
    /// No class is named.
    #[error("missing device class name (unsupported request type?)")]
    NoClass,
    /// There is no class of that name.
    #[error("could not retrieve device class {class}: not found")]
    ClassNotFound {
        /// The class.
        class: String,
    },
    /// An allocation mode that this version does not know.
    #[error("unsupported count mode {mode}")]
    AllocationMode {
        /// The mode.
        mode: String,
    },
    /// A requested amount is not a quantity.
    #[error("capacity.requests[{capacity}]: {error}")]
    Quantity {
        /// Name of the capacity.
        capacity: String,
        /// What is wrong.
        error: QuantityError,
    },
}
