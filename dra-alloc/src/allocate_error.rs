//! Errors in the input of the allocator, independent of the node.

use dra_attrs::QuantityError;

use crate::capacity::CapacityError;
use crate::device_id::DeviceId;
use crate::selector::{CompileError, EvaluationError};
use dra_attrs::NodeSelectorError;

/// Input on which the allocator can't run. kube-scheduler then gives up the pod without trying other nodes.
///
/// Messages name the location first: claim, request, then the problem.
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
        /// The problem of the request.
        error: RequestError,
    },
    /// A constraint of a claim has no attribute.
    #[error("claim {claim}, constraint #{index}: empty constraint (unsupported constraint type?)")]
    EmptyConstraint {
        /// Namespace and name of the claim.
        claim: String,
        /// Index of the constraint in the claim.
        index: usize,
    },
    /// A claim asks for more devices than an allocation may have.
    #[error("claim {claim}: number of requested devices {devices} exceeds the claim limit of {limit}")]
    TooManyDevices {
        /// Namespace and name of the claim.
        claim: String,
        /// Smallest number of devices with which the claim could be allocated.
        devices: u64,
        /// Largest number of devices of an allocation.
        limit: usize,
    },
    /// The allocation shares a device, and the allocator has no generator of share IDs.
    #[error(
        "claim {claim}: the allocation shares a device, and the allocator has no share IDs (Allocator::with_share_ids)"
    )]
    NoShareIds {
        /// Namespace and name of the claim.
        claim: String,
    },
    /// A selector of a class or request can't be compiled.
    #[error("{owner}: selector #{index}: CEL compile error: {}", .error.detail())]
    SelectorCompile {
        /// `class NAME` or `claim NAMESPACE/NAME`.
        owner: String,
        /// Index of the selector in its list.
        index: usize,
        /// The compiler's error.
        error: CompileError,
    },
    /// A selector of a class or request can't be evaluated on a device.
    #[error("{owner}: selector #{index} on device {device}: CEL runtime error: {error}")]
    SelectorEvaluation {
        /// `class NAME` or `claim NAMESPACE/NAME`.
        owner: String,
        /// Index of the selector in its list.
        index: usize,
        /// The device on which evaluation failed.
        device: Box<DeviceId>,
        /// The evaluation error.
        error: EvaluationError,
    },
    /// A selector of a class has no expression.
    #[error("{owner}: selector #{index}: CEL expression empty (unsupported selector type?)")]
    SelectorEmpty {
        /// `class NAME`.
        owner: String,
        /// Index of the selector in its list.
        index: usize,
    },
    /// A derived attribute can't be compiled.
    #[error("compile derived attribute {attribute} failed: {}", .error.detail())]
    DerivedCompile {
        /// Name of the attribute.
        attribute: String,
        /// The compiler's error.
        error: CompileError,
    },
    /// A derived attribute can't be evaluated on a device.
    #[error("evaluate derived attribute {attribute} on device {device} failed: {error}")]
    DerivedEvaluation {
        /// Name of the attribute.
        attribute: String,
        /// The device on which evaluation failed.
        device: Box<DeviceId>,
        /// The evaluation error.
        error: EvaluationError,
    },
    /// A request asks for all devices, but a constraint refuses one of them.
    #[error(
        "claim {claim}, request {request}: cannot add device {device} because a claim constraint would not be satisfied"
    )]
    ConstraintOnAll {
        /// Namespace and name of the claim.
        claim: String,
        /// The request, or `request/subrequest`.
        request: String,
        /// The device that a constraint refuses.
        device: Box<DeviceId>,
    },
    /// The amount that a request consumes of a device's capacity can't be computed.
    #[error("claim {claim}, request {request}: checking capacity for device {device}: capacity {capacity:?}: {error}")]
    Capacity {
        /// Namespace and name of the claim.
        claim: String,
        /// The request, or `request/subrequest`.
        request: String,
        /// The device with the capacity.
        device: Box<DeviceId>,
        /// Name of the capacity.
        capacity: String,
        /// The problem of the computation.
        error: Box<CapacityError>,
    },
    /// The node selector of a slice, or of a device in it, can't be used.
    #[error("ResourceSlice {slice}: {field}: {error}")]
    NodeSelector {
        /// Name of the slice.
        slice: String,
        /// Path of the field with the selector.
        field: String,
        /// The rule that the selector breaks.
        error: NodeSelectorError,
    },
    /// An allocated device has a node selector that can't be merged into that of the allocation, because it has several
    /// terms.
    #[error("create NodeSelector for claim {claim}: unsupported ResourceSlice.NodeSelector with {terms} terms")]
    NodeSelectorTerms {
        /// Namespace and name of the claim.
        claim: String,
        /// Number of terms of the device's node selector.
        terms: usize,
    },
    /// A field of a slice is not a quantity.
    #[error("ResourceSlice {slice}: {field}: {error}")]
    SliceQuantity {
        /// Name of the slice.
        slice: String,
        /// Path of the field.
        field: String,
        /// The rule for quantities that the text breaks.
        error: QuantityError,
    },
}

/// Reason why a request can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The request has `firstAvailable`, but its gate is off.
    #[error("has subrequests, but the DRAPrioritizedList feature is disabled")]
    PrioritizedListOff,
    /// The request asks for capacity, but its gate is off.
    #[error("has capacity requests, but the DRAConsumableCapacity feature is disabled")]
    ConsumableCapacityOff,
    /// The request has derived attributes, but their gate is off.
    #[error("cannot handle request with derived attributes, the feature is disabled")]
    DerivedAttributesOff,
    /// The request sets `adminAccess`, but its gate is off.
    #[error("admin access is requested, but the feature is disabled")]
    AdminAccessOff,
    /// A selector has no expression.
    #[error("selector #{index}: CEL expression empty (unsupported selector type?)")]
    SelectorEmpty {
        /// Index of the selector in its list.
        index: usize,
    },
    /// The request names no device class.
    #[error("missing device class name (unsupported request type?)")]
    NoClass,
    /// The device class does not exist.
    #[error("could not retrieve device class {class}: not found")]
    ClassNotFound {
        /// Name of the device class.
        class: String,
    },
    /// The allocation mode is unknown to this version.
    #[error("unsupported count mode {mode}")]
    AllocationMode {
        /// The allocation mode.
        mode: String,
    },
    /// A requested amount is not a quantity.
    #[error("capacity.requests[{capacity}]: {error}")]
    Quantity {
        /// Name of the capacity.
        capacity: String,
        /// The rule for quantities that the text breaks.
        error: QuantityError,
    },
}
