//! Pools that a driver does not publish any more.
//!
//! Source: `sync` of `resourceslicecontroller.go`, which removes the slices of pools that its driver no longer names.

use k8s_openapi::api::resource::v1::ResourceSlice;

use super::slice_write::SliceWrite;

/// Plans the deletes of the slices of pools that are not in `pools`, the pools that the driver publishes now. Devices that
/// moved to a pool of another name would be allocated twice as long as both are stored.
///
/// `stored` are slices as the watch shows them. Those of other drivers and other nodes are left alone, and those that are
/// being deleted. Without a node (`None`) it is about slices that name no node, and right only if one instance of the
/// driver publishes all of them.
///
/// Cost: linear in the slices times the pools.
///
/// ```
/// use dra_node::driver::{SliceWrite, withdraw_others};
/// use k8s_openapi::api::resource::v1::ResourceSlice;
///
/// let mut slice = ResourceSlice::default();
/// slice.metadata.name = Some("former-slice".to_owned());
/// slice.spec.driver = "gpu.example.com".to_owned();
/// slice.spec.node_name = Some("node-1".to_owned());
/// slice.spec.pool.name = "gpus-of-node-1".to_owned();
/// let writes = withdraw_others("gpu.example.com", Some("node-1"), &["node-1"], [&slice]);
/// assert!(matches!(&writes[..], [SliceWrite::Delete { name, .. }] if name == "former-slice"));
/// assert!(withdraw_others("gpu.example.com", Some("node-1"), &["gpus-of-node-1"], [&slice]).is_empty());
/// ```
#[must_use]
pub fn withdraw_others<'s>(
    driver: &str,
    node_name: Option<&str>,
    pools: &[&str],
    stored: impl IntoIterator<Item = &'s ResourceSlice>,
) -> Vec<SliceWrite> {
    let is_own = |slice: &&ResourceSlice| {
        slice.spec.driver == driver
            && slice.spec.node_name.as_deref() == node_name
            && slice.metadata.deletion_timestamp.is_none()
    };
    let is_other = |slice: &&ResourceSlice| !pools.contains(&slice.spec.pool.name.as_str());
    let mut slices: Vec<&ResourceSlice> = stored.into_iter().filter(is_own).filter(is_other).collect();
    slices.sort_by_key(|slice| slice.metadata.name.as_deref());
    slices.into_iter().map(SliceWrite::delete).collect()
}
