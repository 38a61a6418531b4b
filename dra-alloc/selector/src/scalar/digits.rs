//! Digits of texts.

/// Splits off the leading digits of a text.
pub(crate) fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Returns the two digits of a byte.
pub(crate) fn hexadecimal(byte: u8, digits: &[u8; 16]) -> [char; 2] {
    [byte >> 4, byte & 15].map(|digit| digits.get(usize::from(digit)).copied().map_or('0', char::from))
}
