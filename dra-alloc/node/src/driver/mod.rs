//! Decisions of a DRA driver: how it splits its devices into slices, keeps the stored slices so, and prepares claims.
//!
//! A driver discovers devices, makes API calls and serves sockets; the functions here decide which. They do no IO: the
//! stored objects, the answers of the API server and the time are arguments.
//!
//! - **Plan**: [`split_into_slices`] splits a [`PoolSpec`] into slices that an API server with some [`SliceLimits`] accepts.
//! - **Check**: [`validate_pool`](dra_device::pool::validate_pool) finds mistakes that no single slice shows.
//! - **Partitions**: [`PartitionsLeft::by_type`] says how many of each type can still be allocated.
//! - **Reconcile**: [`reconcile`] compares the stored slices with a plan and returns the writes of one pass; [`Memory`] is
//!   what a driver remembers between passes; [`Timers::due`] says when the next pass is; [`withdraw_others`] is about pools that
//!   the driver had before. [`Publisher`] joins all of them for the pools of a node.
//! - **Equality**: [`same_devices`], and [`dropped`] for fields that an API server does not store.
//! - **Names**: [`SlicePlan::fixed_name`] and [`SlicePlan::generate_name`] of slices; [`PluginInfo::registrar_socket`] and
//!   [`PluginInfo::data_socket`] of the driver's sockets, [`PluginInfo::kubelet_authority`].
//! - **Claims** (KEP-4381): [`own_results`] and [`device_configs`] of an allocation; the [`Ledger`] of prepared claims plans
//!   the steps of each call, [`claim_responses`] collects the answers, [`DeviceReport::merge`] reports (KEP-4817).
//! - **Containers**: [`CdiSpec`] and its names; [`DeviceMetadata`] with its paths (KEP-5304).
//! - **Kubelet**: [`Registration`] and [`PluginInfo`]; [`HealthReporter`] (KEP-4680); [`AuthorityRewriter`], without which
//!   servers in Rust can't be registered.
//!
//! Tests: `tests/it/driver`.

mod authority;
mod cdi;
mod claim;
mod components;
mod device_status;
mod digest;
mod dropped;
mod due;
mod equality;
mod health;
mod layout;
mod ledger;
mod limits;
mod memory;
mod metadata;
mod names;
mod partitions;
mod plan_error;
mod publisher;
mod reconcile;
mod registration;
mod response;
mod slice_plan;
mod slice_write;
mod sockets;
mod split;
mod wanted;
mod withdraw;

pub use authority::AuthorityRewriter;
pub use cdi::{
    CdiDevice, CdiDeviceNode, CdiEdits, CdiError, CdiHook, CdiIntelRdt, CdiKind, CdiMount, CdiNetDevice, CdiSpec,
};
pub use claim::{ConfigError, DeviceConfig, device_configs, own_results, request_names};
pub use device_status::{ConditionReport, DeviceReport, DeviceStatusError};
pub use dropped::dropped;
pub use due::{DueReason, Timers};
pub use equality::same_devices;
pub use health::{DeviceHealth, HealthReporter, HealthStatus};
pub use ledger::{
    ClaimPlan, ClaimReply, CleanUp, EntryState, HeldDevice, Ledger, LedgerEntry, LedgerError, LedgerStep,
    LookedUpClaim, NodeContext, NotStartedError, PrepareClaimError, StartAction, StartUp,
};
pub use limits::SliceLimits;
pub use memory::{Answered, Memory, NextStep, WriteFailure, WriteResponse};
pub use metadata::{
    ClaimMetadata, DeviceMetadata, MetadataDevice, MetadataFile, MetadataOwner, MetadataPathError, MetadataReadError,
    MetadataRequest, MetadataVersion, MetadataVersionError,
};
pub use partitions::PartitionsLeft;
pub use plan_error::PlanError;
pub use publisher::{PoolPublishError, Publisher, PublisherPass, Rehearsal};
pub use reconcile::{PoolScope, ReconcileError, ReconcileOptions, SyncPlan, reconcile};
pub use registration::{LastOutcome, PluginInfo, PluginService, Registration, RegistrationEvent, RegistrationReply};
pub use response::{ClaimError, claim_responses};
pub use slice_plan::{SliceContents, SlicePlan};
pub use slice_write::SliceWrite;
pub use sockets::SocketPathError;
pub use split::{NodeChoice, PoolPlan, PoolSpec, split_into_slices};
pub use withdraw::withdraw_others;
