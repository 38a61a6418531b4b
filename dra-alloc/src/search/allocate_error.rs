//! Errors of the allocator that do not depend on the node: invalid claims, classes or slices.

use dra_attrs::{Index, NodeSelectorError, QuantityError};
use dra_device::DeviceId;
use dra_selector::{CompileError, EvaluationError};
use k8s_openapi::api::resource::v1::{DeviceConstraint, DeviceSelector};

use super::outcome::NodeError;
use crate::cluster::capacity::CapacityError;

/// Error in the input of the allocator. kube-scheduler then gives up the pod without trying other nodes.
///
/// Messages name the location first: claim, request, then the problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllocateError {
    /// A request of a claim can't be served on any node, because it is invalid or needs a feature gate that is off.
    #[error("claim {claim}, request {request}: {source}")]
    Request {
        /// Namespace and name of the claim.
        claim: String,
        /// Name of the request, as `request` or `request/subrequest`.
        request: String,
        /// Reason why the request can't be used.
        source: RequestError,
    },
    /// A constraint of a claim has no attribute.
    #[error("claim {claim}, constraint #{index}: empty constraint (unsupported constraint type?)")]
    EmptyConstraint {
        /// Namespace and name of the claim.
        claim: String,
        /// Position of the constraint in the claim.
        index: Index<DeviceConstraint>,
    },
    /// A claim asks for more devices than an allocation may have.
    #[error("claim {claim}: number of requested devices {devices} exceeds the claim limit of {limit}")]
    TooManyDevices {
        /// Namespace and name of the claim.
        claim: String,
        /// Smallest number of devices that the claim can be allocated with, over all its alternatives.
        devices: u64,
        /// Largest number of devices in the allocation of one claim.
        limit: usize,
    },
    /// The node selector of an allocated claim can't be evaluated.
    #[error("claim {claim}: status.allocation.{source}")]
    AllocatedNodeSelector {
        /// Namespace and name of the claim.
        claim: String,
        /// Reason why the node selector can't be evaluated.
        source: NodeSelectorError,
    },
    /// A selector of a class or request can't be compiled.
    #[error("{owner}: selector #{index}: CEL compile error: {source}")]
    SelectorCompile {
        /// Object that has the selector, as `class NAME` or `claim NAMESPACE/NAME`.
        owner: String,
        /// Position of the selector in its list.
        index: Index<DeviceSelector>,
        /// Error of the CEL compiler.
        source: CompileError,
    },
    /// A selector of a class or request can't be evaluated on a device.
    #[error("{owner}: selector #{index} on device {device}: CEL runtime error: {source}")]
    SelectorEvaluation {
        /// Object that has the selector, as `class NAME` or `claim NAMESPACE/NAME`.
        owner: String,
        /// Position of the selector in its list.
        index: Index<DeviceSelector>,
        /// The device on which evaluation failed.
        device: Box<DeviceId>,
        /// Error of the CEL evaluation.
        source: EvaluationError,
    },
    /// A selector of a class has no expression.
    #[error("{owner}: selector #{index}: CEL expression empty (unsupported selector type?)")]
    SelectorEmpty {
        /// Object that has the selector, as `class NAME`.
        owner: String,
        /// Position of the selector in its list.
        index: Index<DeviceSelector>,
    },
    /// A derived attribute can't be compiled.
    #[error("compile derived attribute {attribute} failed: {source}")]
    DerivedCompile {
        /// Name of the attribute.
        attribute: String,
        /// Error of the CEL compiler.
        source: CompileError,
    },
    /// A derived attribute can't be evaluated on a device.
    #[error("evaluate derived attribute {attribute} on device {device} failed: {source}")]
    DerivedEvaluation {
        /// Name of the attribute.
        attribute: String,
        /// The device on which evaluation failed.
        device: Box<DeviceId>,
        /// Error of the CEL evaluation.
        source: EvaluationError,
    },
    /// A request asks for all devices, but a constraint does not permit one of them.
    #[error(
        "claim {claim}, request {request}: cannot add device {device} because a claim constraint would not be satisfied"
    )]
    ConstraintOnAll {
        /// Namespace and name of the claim.
        claim: String,
        /// Name of the request, as `request` or `request/subrequest`.
        request: String,
        /// The device that the constraint does not permit.
        device: Box<DeviceId>,
    },
    /// The amount of a device's capacity that a request consumes can't be computed.
    #[error("claim {claim}, request {request}: checking capacity for device {device}: capacity {capacity:?}: {source}")]
    Capacity {
        /// Namespace and name of the claim.
        claim: String,
        /// Name of the request, as `request` or `request/subrequest`.
        request: String,
        /// The device with the capacity.
        device: Box<DeviceId>,
        /// Name of the capacity.
        capacity: String,
        /// Reason why the amount can't be computed.
        source: Box<CapacityError>,
    },
    /// The node selector of a slice, or of a device in it, is invalid.
    #[error("ResourceSlice {slice}: {field}: {source}")]
    NodeSelector {
        /// Name of the slice.
        slice: String,
        /// Path of the field with the selector.
        field: String,
        /// The rule that the selector breaks.
        source: NodeSelectorError,
    },
    /// The node selector of an allocated device has several terms, so that it can't be merged into that of the
    /// allocation.
    #[error("create NodeSelector for claim {claim}: unsupported ResourceSlice.NodeSelector with {terms} terms")]
    NodeSelectorTerms {
        /// Namespace and name of the claim.
        claim: String,
        /// Number of terms of the device's node selector.
        terms: usize,
    },
    /// kube-scheduler crashes, and so has no answer: a request for all devices comes to one that consumes counters.
    #[error("claim {claim}, request {request}: kube-scheduler crashes at device {device}, which consumes counters")]
    SchedulerStops {
        /// Namespace and name of the claim.
        claim: String,
        /// Name of the request, as `request` or `request/subrequest`.
        request: String,
        /// The device.
        device: Box<DeviceId>,
    },
    /// A failure that concerns one node ends the attempt on all nodes, as before Kubernetes 1.35.
    #[error("{source}")]
    Node {
        /// The failure.
        source: Box<NodeError>,
    },
    /// A field of a slice is not a valid quantity.
    #[error("ResourceSlice {slice}: {field}: {source}")]
    SliceQuantity {
        /// Name of the slice.
        slice: String,
        /// Path of the field.
        field: String,
        /// Reason why the text is not a valid quantity.
        source: QuantityError,
    },
}

/// Reason why a request of a claim can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The request has `firstAvailable`, but the gate `DRAPrioritizedList` is off.
    #[error("has subrequests, but the DRAPrioritizedList feature is disabled")]
    PrioritizedListOff,
    /// The request asks for capacity, but the gate `DRAConsumableCapacity` is off.
    #[error("has capacity requests, but the DRAConsumableCapacity feature is disabled")]
    ConsumableCapacityOff,
    /// The request has derived attributes, but the gate `DRADerivedAttributes` is off.
    #[error("cannot handle request with derived attributes, the feature is disabled")]
    DerivedAttributesOff,
    /// The request sets `adminAccess`, but the gate `DRAAdminAccess` is off.
    #[error("admin access is requested, but the feature is disabled")]
    AdminAccessOff,
    /// A selector has no expression.
    #[error("selector #{index}: CEL expression empty (unsupported selector type?)")]
    SelectorEmpty {
        /// Position of the selector in its list.
        index: Index<DeviceSelector>,
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
    /// The allocation mode is neither `ExactCount` nor `All`.
    #[error("unsupported count mode {mode}")]
    AllocationMode {
        /// The allocation mode.
        mode: String,
    },
    /// A requested amount of capacity is not a valid quantity.
    #[error("capacity.requests[{capacity}]: {source}")]
    Quantity {
        /// Name of the capacity.
        capacity: String,
        /// Reason why the text is not a valid quantity.
        source: QuantityError,
    },
}
