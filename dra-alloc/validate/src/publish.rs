//! Validation of a slice before its driver publishes it, with a separate error for list attributes that the cluster
//! does not support.

use dra_attrs::{FieldErrors, Gate};
use dra_device::internal::list_fields;
use k8s_openapi::api::resource::v1::ResourceSlice;

use super::api_server::ApiServer;
use super::write::{Accepted, Write};

/// Reason why a slice can't be published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The slice has list attributes, but the API server drops them, because its gate `DRAListTypeAttributes` is off.
    /// An operator must turn the gate on, or configure the driver to publish scalars.
    #[error(
        "fatal configuration error: list attributes are published ({}), but the feature gate DRAListTypeAttributes of the \
         API server is off; turn it on in API server and scheduler, or have the driver publish scalars",
        first(fields)
    )]
    ListsDisabled {
        /// Paths of the list attributes, all of them; the text has the first eight.
        fields: Vec<String>,
        /// Errors of the API server about the attributes that have lost their value.
        errors: FieldErrors,
    },
    /// The slice is invalid for other reasons.
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
}

impl ApiServer {
    /// Validates a create or update of a slice by its driver. Like [`ApiServer::validate_slice`], but reports list
    /// attributes that the API server does not support as [`PublishError::ListsDisabled`].
    ///
    /// # Errors
    /// [`PublishError::ListsDisabled`] if the slice has list attributes, `DRAListTypeAttributes` is off, and the stored
    /// slice has none. Otherwise [`PublishError::Invalid`] with all problems of the slice.
    ///
    /// ```
    /// use dra_attrs::Component;
    /// use dra_validate::{ApiServer, PublishError, Write};
    /// use dra_attrs::GateSet;
    /// use dra_attrs::Profile;
    ///
    /// let slice = serde_json::from_value(serde_json::json!({
    ///     "spec": {
    ///         "driver": "gpu.example.com", "nodeName": "node-1",
    ///         "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
    ///         "devices": [{"name": "gpu-0", "attributes": {"resource.kubernetes.io/numaNode": {"ints": [0, 1]}}}],
    ///     }
    /// }))?;
    /// let server = ApiServer::new(Component::of(Profile::V1_37));
    /// let Err(PublishError::ListsDisabled { fields, .. }) = server.publish(Write::create(&slice)) else { panic!() };
    /// assert_eq!(fields, ["spec.devices[0].attributes[resource.kubernetes.io/numaNode]"]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn publish(self, write: Write<'_, ResourceSlice>) -> Result<Accepted<ResourceSlice>, PublishError> {
        let outcome = self.validate_slice(write);
        let in_use = write.old.is_some_and(|old| !list_fields(old).is_empty());
        let fields = list_fields(write.new);
        match outcome {
            Err(errors) if !self.has(Gate::ListTypeAttributes) && !in_use && !fields.is_empty() => {
                Err(PublishError::ListsDisabled { fields, errors })
            }
            outcome => Ok(outcome?),
        }
    }
}

/// Returns the first fields in words, and the number of the others.
fn first(fields: &[String]) -> String {
    const MOST: usize = 8;
    match fields.split_at_checked(MOST) {
        Some((first, rest)) if !rest.is_empty() => format!("{} and {} more", first.join(", "), rest.len()),
        _ => fields.join(", "),
    }
}
