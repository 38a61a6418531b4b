//! Slices of this machine's pool: planned, compared with stored ones, and printed as writes.

use dra_alloc::driver::{
    Memory, NodeChoice, PlanError, PoolScope, PoolSpec, ReconcileError, ReconcileOptions, SliceContents, SliceLimits,
    SyncPlan, reconcile, split_into_slices,
};
use dra_attrs::{Component, Profile, ServerVersionError};
use examples::manifest::Manifests;
use k8s_openapi::api::resource::v1::{Device, ResourceSlice};
use k8s_openapi::apimachinery::pkg::version::Info;

/// Reason why there are no slices.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PublishingError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Reconcile(#[from] ReconcileError),
}

/// Slices that are stored, and remarks on their files.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub(crate) slices: Vec<ResourceSlice>,
    pub(crate) notes: Vec<String>,
    /// Number of objects that could not be read; the notes say why.
    pub(crate) unread: usize,
}

impl Stored {
    pub(crate) fn read(files: &[String]) -> Self {
        let mut manifests = Manifests::default();
        for file in files {
            manifests.read_argument(file);
        }
        let notes = manifests.problems.iter().chain(&manifests.notes).map(ToString::to_string);
        let notes = notes.chain(manifests.ignored_lines("driver", &["ResourceSlice"])).collect();
        Self { slices: manifests.slices, notes, unread: manifests.problems.len() }
    }
}

/// Reads a version, such as 1.34.
pub(crate) fn server(text: &str) -> Result<Profile, String> {
    let (major, minor) = text.split_once('.').ok_or("not a version, such as 1.37")?;
    let info = Info { major: major.to_owned(), minor: minor.to_owned(), ..Info::default() };
    Profile::of_server(&info).map_err(|error: ServerVersionError| error.to_string())
}

/// Plans the writes that make the stored slices those of the devices. A device stays in its slice. Fields that a known
/// server would not keep are left out.
pub(crate) fn writes(
    driver: &str,
    node: &str,
    devices: &[Device],
    server: Option<Component>,
    stored: &[ResourceSlice],
) -> Result<SyncPlan, PublishingError> {
    let scope = PoolScope { driver, pool: node, node_name: Some(node), owner: None };
    let is_own =
        |slice: &&ResourceSlice| (slice.spec.driver.as_str(), slice.spec.node_name.as_deref()) == (driver, Some(node));
    let layout = SliceContents::from_slices(stored.iter().filter(is_own));
    let pool = PoolSpec::new(driver, node, NodeChoice::Node(node)).with_devices(devices);
    let limits = SliceLimits::of(server.unwrap_or_else(|| Profile::V1_37.into()));
    let mut memory = match server {
        Some(_) => Memory::default().with_gates_off(limits.gates_off()),
        None => Memory::default(),
    };
    let plan = split_into_slices(&pool, &limits, Some(&layout))?;
    Ok(reconcile(&scope, stored, Some(&plan), &mut memory, &ReconcileOptions::default())?)
}
