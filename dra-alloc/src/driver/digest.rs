//! Hash of the names that must be short and distinct.

/// Returns the SHA-256 hash of a text.
pub(super) fn sha256(text: &str) -> Vec<u8> {
    hmac_sha256::Hash::hash(text.as_bytes()).to_vec()
}
