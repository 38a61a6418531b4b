//! A driver publishes a slice, and may be configured for another cluster.

use dra_attrs::field::FieldErrors;
use k8s_openapi::api::resource::v1::ResourceSlice;

use super::admission::{Admission, Admitted};
use super::api_server::ApiServer;
use super::attribute::is_list;
use crate::features::Feature;

/// Why a slice can't be published.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The driver is configured to publish lists, and the API server drops them. This is for the operator to put right:
    /// nothing that the driver could publish instead is meant by the configuration, and it must not choose by itself.
    #[error(
        "fatal configuration error: list attributes are published ({}), but the feature gate DRAListTypeAttributes of the \
         API server is off; turn it on in API server and scheduler, or have the driver publish scalars", fields.join(", ")
    )]
    ListsDisabled {
        /// Paths of the attributes with lists.
        fields: Vec<String>,
        /// What the API server says: attributes without a value.
        errors: FieldErrors,
    },
    /// The slice has problems.
    #[error(transparent)]
    Invalid(#[from] FieldErrors),
}

impl ApiServer {
    /// A write of a slice by its driver, with the one problem told apart that is none of the slice.
    ///
    /// # Errors
    /// All problems of the slice, or that its lists are not wanted.
    ///
    /// ```
    /// use dra_alloc::features::Features;
    /// use dra_alloc::validate::{Admission, ApiServer, PublishError};
    /// use dra_attrs::profile::Profile;
    ///
    /// let slice = serde_json::from_value(serde_json::json!({
    ///     "spec": {
    ///         "driver": "gpu.example.com", "nodeName": "node-1",
    ///         "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
    ///         "devices": [{"name": "gpu-0", "attributes": {"resource.kubernetes.io/numaNode": {"ints": [0, 1]}}}],
    ///     }
    /// }))?;
    /// let server = ApiServer::new(Profile::V1_37, Features::default());
    /// let Err(PublishError::ListsDisabled { fields, .. }) = server.publish(Admission::create(&slice)) else { panic!() };
    /// assert_eq!(fields, ["spec.devices[0].attributes[resource.kubernetes.io/numaNode]"]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn publish(self, write: Admission<'_, ResourceSlice>) -> Result<Admitted<ResourceSlice>, PublishError> {
        let outcome = self.slice(write);
        let in_use = write.old.is_some_and(|old| !lists(old).is_empty());
        let fields = lists(write.new);
        match outcome {
            Err(errors) if !self.has(Feature::ListTypeAttributes) && !in_use && !fields.is_empty() => {
                Err(PublishError::ListsDisabled { fields, errors })
            }
            outcome => Ok(outcome?),
        }
    }
}

/// The paths of attributes with lists.
fn lists(slice: &ResourceSlice) -> Vec<String> {
    let devices = slice.spec.devices.iter().flatten().enumerate();
    let attributes = devices.flat_map(|(index, device)| {
        let attributes = device.attributes.iter().flatten().filter(|(_, attribute)| is_list(attribute));
        attributes.map(move |(name, _)| format!("spec.devices[{index}].attributes[{name}]"))
    });
    attributes.collect()
}
