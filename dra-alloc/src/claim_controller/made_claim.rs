//! Claims that are made from templates.

use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate, ResourceClaimTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// Annotation of a claim from a template: the name of the entry that it was made for.
pub(super) const ENTRY_ANNOTATION: &str = "resource.kubernetes.io/pod-claim-name";

/// Longest prefix of a generated name that leaves room for what the API server adds.
const MAX_PREFIX_LEN: usize = 57;

/// Returns the prefix from which an API server makes the name of a claim: the names of the pod or pod group and of its
/// entry, with a hyphen after each. If it is too long, both names are cut in proportion, and no hyphen stays at the end.
///
/// Lengths are in bytes, as in kube-controller-manager; a name that is no DNS name is cut before a character that would be
/// split.
///
/// ```
/// use dra_alloc::claim_controller::generate_name;
/// assert_eq!(generate_name("web-0", "gpu"), "web-0-gpu-");
/// let (pod, entry) = ("p".repeat(50), "e".repeat(20));
/// assert_eq!(generate_name(&pod, &entry), format!("{}-{}", "p".repeat(39), "e".repeat(15)));
/// ```
#[must_use]
pub fn generate_name(owner: &str, entry: &str) -> String {
    let whole = format!("{owner}-{entry}-");
    if whole.len() <= MAX_PREFIX_LEN {
        return whole;
    }
    let cut = |name: &str| {
        let length = name.len().saturating_mul(MAX_PREFIX_LEN) / whole.len();
        let length = (0..=length).rev().find(|length| name.is_char_boundary(*length)).unwrap_or_default();
        name.get(..length).unwrap_or_default().to_owned()
    };
    format!("{}-{}", cut(owner), cut(entry))
}

/// Makes the claim of an entry from its template.
pub(super) fn make_claim(template: &ResourceClaimTemplate, entry: &str, owner: OwnerReference) -> ResourceClaim {
    let ResourceClaimTemplateSpec { metadata, spec } = template.spec.clone().unwrap_or_default();
    let from_template = metadata.unwrap_or_default();
    let mut annotations = from_template.annotations.unwrap_or_default();
    annotations.insert(ENTRY_ANNOTATION.to_owned(), entry.to_owned());
    let metadata = ObjectMeta {
        namespace: template.metadata.namespace.clone(),
        generate_name: Some(generate_name(&owner.name, entry)),
        owner_references: Some(vec![owner]),
        annotations: Some(annotations),
        labels: from_template.labels,
        ..ObjectMeta::default()
    };
    ResourceClaim { metadata, spec: Some(spec.unwrap_or_default()), status: None }
}
