//! Hashes that tell the templates of one workload apart.

use k8s_openapi::api::core::v1::PodTemplateSpec;

/// Letters and digits of hashes in names, as in Kubernetes: none of them make a word.
const SAFE: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Number of letters of a hash.
const LENGTH: usize = 10;

/// Label with which the pods of stateful and daemon sets tell their template.
pub(crate) const REVISION: &str = "controller-revision-hash";

/// Returns a short hash of a template (FNV-1a): the same at each run, another one for another template.
pub(crate) fn template_hash(template: &PodTemplateSpec) -> String {
    let text = serde_json::to_string(template).unwrap_or_default();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let mut letters = String::with_capacity(LENGTH);
    for _ in 0..LENGTH {
        let place = usize::try_from(hash % 27).unwrap_or_default();
        letters.push(SAFE.get(place).copied().map_or('b', char::from));
        hash /= 27;
    }
    letters
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodSpec;

    use super::*;

    #[test]
    fn another_template_has_another_hash() {
        let one = PodTemplateSpec::default();
        let other = PodTemplateSpec { spec: Some(PodSpec::default()), ..PodTemplateSpec::default() };
        assert_eq!(template_hash(&one), template_hash(&one));
        assert_ne!(template_hash(&one), template_hash(&other));
        assert_eq!(template_hash(&one).len(), LENGTH);
    }
}
