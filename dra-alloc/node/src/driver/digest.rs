//! Hash of the names that must be short and distinct.

/// Returns the SHA-256 hash of a text.
pub(super) fn sha256(text: &str) -> [u8; 32] {
    hmac_sha256::Hash::hash(text.as_bytes())
}

/// Returns the first digits of the SHA-256 hash of a text, in hexadecimal.
pub(super) fn hex_digest(text: &str, digits: usize) -> String {
    let nibbles = sha256(text).into_iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    nibbles.take(digits).filter_map(|nibble| char::from_digit(nibble.into(), 16)).collect()
}
