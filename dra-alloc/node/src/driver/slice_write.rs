//! One write of a reconciliation.

use std::fmt;

use dra_attrs::Index;
use dra_device::internal::name_of;
use k8s_openapi::api::resource::v1::ResourceSlice;

/// One write of a plan, with its preconditions.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SliceWrite {
    /// Deletes a slice. UID and resource version go into `preconditions` of the request.
    Delete {
        /// Name of the slice.
        name: String,
        /// UID of the slice.
        uid: String,
        /// Resource version of the slice.
        resource_version: String,
    },
    /// Replaces a slice. UID and resource version in its metadata are the preconditions.
    Update {
        /// Position of the slice in the pool.
        index: Index<ResourceSlice>,
        /// The slice as it is sent.
        slice: ResourceSlice,
    },
    /// Creates a slice.
    Create {
        /// Position of the slice in the pool.
        index: Index<ResourceSlice>,
        /// The slice as it is sent.
        slice: ResourceSlice,
    },
}

impl SliceWrite {
    pub(super) fn delete(slice: &ResourceSlice) -> Self {
        Self::Delete {
            name: name_of(slice).to_owned(),
            uid: slice.metadata.uid.clone().unwrap_or_default(),
            resource_version: slice.metadata.resource_version.clone().unwrap_or_default(),
        }
    }

    /// Returns the slice that an update or create sends.
    #[must_use]
    pub const fn slice(&self) -> Option<&ResourceSlice> {
        match self {
            Self::Delete { .. } => None,
            Self::Update { slice, .. } | Self::Create { slice, .. } => Some(slice),
        }
    }
}

/// Shows the write for people: `create s-1 (generation 2)`.
impl fmt::Display for SliceWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with_generation = |verb: &str, slice: &ResourceSlice| {
            format!("{verb} {} (generation {})", name_of(slice), slice.spec.pool.generation)
        };
        match self {
            Self::Delete { name, .. } => write!(f, "delete {name}"),
            Self::Update { slice, .. } => f.write_str(&with_generation("update", slice)),
            Self::Create { slice, .. } => f.write_str(&with_generation("create", slice)),
        }
    }
}
