//! Versions in which the API server of one release has objects of `resource.k8s.io`.

/// Versions of the API group `resource.k8s.io`, the newest first. Only `v1` is served unless a server is started with others
/// (`--runtime-config`).
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a row is written without `..`, and only in this crate")]
pub struct ServedVersions {
    /// Versions of slices, claims, claim templates and classes.
    pub objects: &'static [&'static str],
    /// Versions of `DeviceTaintRule`.
    pub taint_rules: &'static [&'static str],
    /// Versions of `ResourcePoolStatusRequest`.
    pub pool_status: &'static [&'static str],
}

impl ServedVersions {
    /// Versions of a kind of the group; none for a kind that the release does not have.
    #[must_use]
    pub fn of_kind(&self, kind: &str) -> &'static [&'static str] {
        match kind {
            "DeviceClass" | "ResourceClaim" | "ResourceClaimTemplate" | "ResourceSlice" => self.objects,
            "DeviceTaintRule" => self.taint_rules,
            "ResourcePoolStatusRequest" => self.pool_status,
            _ => &[],
        }
    }
}
