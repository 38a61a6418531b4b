//! Who may use devices with admin access (KEP-5018): the objects of namespaces with a label.

use dra_attrs::field::{FieldError, FieldPath};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::resource::v1::{ResourceClaimSpec, ResourceClaimStatus};

use super::findings::Findings;
use crate::allocated::of_status;

/// The label of a namespace whose claims may have admin access; its value must be `true`.
pub const ADMIN_ACCESS_LABEL: &str = "resource.kubernetes.io/admin-access";

/// What the namespace of a claim or template allows.
///
/// ```
/// use dra_alloc::validate::{ADMIN_ACCESS_LABEL, NamespaceAccess};
/// use k8s_openapi::api::core::v1::Namespace;
///
/// let mut namespace = Namespace::default();
/// assert_eq!(NamespaceAccess::of(&namespace), NamespaceAccess::Ordinary);
/// namespace.metadata.labels = Some([(ADMIN_ACCESS_LABEL.to_owned(), "true".to_owned())].into());
/// assert_eq!(NamespaceAccess::of(&namespace), NamespaceAccess::Admin);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NamespaceAccess {
    /// Nothing is known about the namespace: admin access is not checked.
    #[default]
    Unknown,
    /// Claims may not have admin access.
    Ordinary,
    /// Claims may have admin access.
    Admin,
}

impl NamespaceAccess {
    /// What the labels of a namespace say.
    #[must_use]
    pub fn of(namespace: &Namespace) -> Self {
        let label = namespace.metadata.labels.as_ref().and_then(|labels| labels.get(ADMIN_ACCESS_LABEL));
        if label.is_some_and(|value| value == "true") { Self::Admin } else { Self::Ordinary }
    }
}

/// Checks that no request of a new claim or template asks for what the namespace does not allow. The API server's
/// path is the same for both, and has no `exactly`.
pub(super) fn check_requests(spec: Option<&ResourceClaimSpec>, namespace: NamespaceAccess, findings: &mut Findings) {
    let devices = spec.and_then(|spec| spec.devices.as_ref());
    let at_spec = FieldPath::new("spec");
    let at_devices = at_spec.child("devices");
    let at_requests = at_devices.child("requests");
    for (index, request) in devices.into_iter().flat_map(|devices| devices.requests.iter().flatten()).enumerate() {
        let admin = request.exactly.as_ref().and_then(|exactly| exactly.admin_access);
        check(admin, namespace, &at_requests.index(index), findings);
    }
}

/// Checks that no result newly has what the namespace does not allow.
pub(super) fn check_results(
    new: Option<&ResourceClaimStatus>,
    old: Option<&ResourceClaimStatus>,
    namespace: NamespaceAccess,
    findings: &mut Findings,
) {
    if admin_results(old).any(|admin| admin == Some(true)) {
        // It was granted when the allocation was written.
        return;
    }
    let at_status = FieldPath::new("status");
    let at_allocation = at_status.child("allocation");
    let at_devices = at_allocation.child("devices");
    let at_results = at_devices.child("results");
    for (index, admin) in admin_results(new).enumerate() {
        check(admin, namespace, &at_results.index(index), findings);
    }
}

fn admin_results(status: Option<&ResourceClaimStatus>) -> impl Iterator<Item = Option<bool>> {
    of_status(status).iter().map(|result| result.admin_access)
}

fn check(admin: Option<bool>, namespace: NamespaceAccess, at: &FieldPath<'_>, findings: &mut Findings) {
    if admin == Some(true) && namespace == NamespaceAccess::Ordinary {
        let detail = format!(
            "admin access to devices requires the `{ADMIN_ACCESS_LABEL}: true` label on the containing namespace"
        );
        findings.push(FieldError::forbidden(&at.child("adminAccess"), detail));
    }
}
