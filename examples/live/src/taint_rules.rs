//! Version in which a server has taint rules: `v1` since 1.37, `v1beta2` in 1.36, `v1alpha3` before. The fields that are read
//! are the same.

use k8s_openapi::api::resource::v1::DeviceTaintRule;
use kube::core::ApiResource;
use kube::{Client, Error};

use super::failure::{Trouble, trouble};
use super::retry::answered;

/// Versions of the group that had the kind, the newest first.
const VERSIONS: [&str; 3] = ["v1", "v1beta2", "v1alpha3"];

const GROUP: &str = "resource.k8s.io";
pub(super) const PLURAL: &str = "devicetaintrules";

/// Sentence for a server that does not know taint rules.
pub(super) const NONE: &str = "the API server serves no device taint rules, in no version: none are in force";

/// Returns the newest version in which a server has taint rules; `None` if it has none.
///
/// # Errors
/// The server does not say which kinds it has.
pub(super) async fn served(client: &Client) -> Result<Option<ApiResource>, Error> {
    for version in VERSIONS {
        let group_version = format!("{GROUP}/{version}");
        match answered(|| client.list_api_group_resources(&group_version)).await.outcome {
            Ok(list) if list.resources.iter().any(|resource| resource.name == PLURAL) => {
                let erased = ApiResource::erase::<DeviceTaintRule>(&());
                return Ok(Some(ApiResource { version: version.to_owned(), api_version: group_version, ..erased }));
            }
            Ok(_) => {}
            Err(error) if matches!(trouble(&error), Trouble::NotServed | Trouble::Missing) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
