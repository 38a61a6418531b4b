//! Admin access to devices (KEP-5018): allowed only for claims and templates in a labelled namespace.

use dra_attrs::internal::release::AdminAccessErrors;
use dra_attrs::{FieldError, FieldPath};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::resource::v1::{ResourceClaimSpec, ResourceClaimStatus};

use super::allocation::results;
use super::context::ValidationContext;

/// Label of a namespace whose claims may have admin access; its value must be `true`.
const ADMIN_ACCESS_LABEL: &str = "resource.kubernetes.io/admin-access";

/// Permission to request admin access in the namespace of a claim or template.
///
/// ```
/// use dra_validate::NamespaceAccess;
/// use k8s_openapi::api::core::v1::Namespace;
///
/// let mut namespace = Namespace::default();
/// assert_eq!(NamespaceAccess::from_namespace(&namespace), NamespaceAccess::Ordinary);
/// let label = ("resource.kubernetes.io/admin-access".to_owned(), "true".to_owned());
/// namespace.metadata.labels = Some([label].into());
/// assert_eq!(NamespaceAccess::from_namespace(&namespace), NamespaceAccess::Admin);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum NamespaceAccess {
    /// The namespace is unknown, so that admin access is not checked.
    #[default]
    Unknown,
    /// Claims in the namespace may not have admin access.
    Ordinary,
    /// Claims in the namespace may have admin access.
    Admin,
}

impl NamespaceAccess {
    /// Reads the permission from the labels of a namespace.
    #[must_use]
    pub fn from_namespace(namespace: &Namespace) -> Self {
        let label = namespace.metadata.labels.as_ref().and_then(|labels| labels.get(ADMIN_ACCESS_LABEL));
        if label.is_some_and(|value| value == "true") { Self::Admin } else { Self::Ordinary }
    }
}

/// Checks that a new claim or template requests admin access only in a namespace that allows it. The path in the error
/// is that of the API server: the same for claims and templates, without `exactly`.
pub(super) fn check_requests(
    spec: Option<&ResourceClaimSpec>,
    namespace: NamespaceAccess,
    context: &mut ValidationContext,
) {
    let devices = spec.and_then(|spec| spec.devices.as_ref());
    let at_spec = FieldPath::new("spec");
    let at_devices = at_spec.child("devices");
    let at_requests = at_devices.child("requests");
    let requests = devices.into_iter().flat_map(|devices| devices.requests.iter().flatten());
    let admin = requests.map(|request| request.exactly.as_ref().and_then(|exactly| exactly.admin_access));
    check_access(admin, namespace, &at_requests, context);
}

/// Checks that an allocation result has admin access only in a namespace that allows it. Skipped if a stored result has
/// admin access.
pub(super) fn check_results(
    new: Option<&ResourceClaimStatus>,
    old: Option<&ResourceClaimStatus>,
    namespace: NamespaceAccess,
    context: &mut ValidationContext,
) {
    if admin_results(old).any(|admin| admin == Some(true)) {
        // Admin access was checked when the allocation was written.
        return;
    }
    let at_status = FieldPath::new("status");
    let at_allocation = at_status.child("allocation");
    let at_devices = at_allocation.child("devices");
    let at_results = at_devices.child("results");
    check_access(admin_results(new), namespace, &at_results, context);
}

fn admin_results(status: Option<&ResourceClaimStatus>) -> impl Iterator<Item = Option<bool>> {
    results(status).iter().map(|result| result.admin_access)
}

/// Reports the requests or results with admin access, if the namespace does not allow it: the first, or each.
fn check_access(
    admin: impl Iterator<Item = Option<bool>>,
    namespace: NamespaceAccess,
    at: &FieldPath<'_>,
    context: &mut ValidationContext,
) {
    if namespace != NamespaceAccess::Ordinary {
        return;
    }
    let reported = match context.rules.validation.admin_access {
        AdminAccessErrors::First => 1,
        AdminAccessErrors::Each => usize::MAX,
    };
    let wanted = admin.enumerate().filter(|(_, admin)| *admin == Some(true));
    for (index, _) in wanted.take(reported) {
        let detail = format!(
            "admin access to devices requires the `{ADMIN_ACCESS_LABEL}: true` label on the containing namespace"
        );
        context.push(FieldError::forbidden(&at.index(index).child("adminAccess"), detail));
    }
}
