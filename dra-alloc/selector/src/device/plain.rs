//! Versions and quantities in their plain forms: read without an allocation, in a few nanoseconds.
//!
//! `None` says that a text is not of the plain form; whether it is valid is for the parser to say.

/// Number of digits that fit in 64 bits in any case.
const MOST_DIGITS: usize = 18;

/// Returns the three numbers of a version without pre-release and build metadata, as digits.
#[inline]
pub(crate) fn version(text: &str) -> Option<[&[u8]; 3]> {
    let (major, rest) = digits(text.as_bytes())?;
    let [b'.', rest @ ..] = rest else { return None };
    let (minor, rest) = digits(rest)?;
    let [b'.', rest @ ..] = rest else { return None };
    let (patch, rest) = digits(rest)?;
    rest.is_empty().then_some([major, minor, patch])
}

/// Returns the value of a quantity in whole units; `None` if it is not a whole number below 2⁶³ in plain form.
#[inline]
pub(crate) fn units(quantity: &str) -> Option<i64> {
    let (digits, suffix) = digits(quantity.as_bytes())?;
    let factor = match suffix {
        b"" => 1,
        b"Ki" => 1 << 10,
        b"Mi" => 1 << 20,
        b"Gi" => 1 << 30,
        b"Ti" => 1 << 40,
        b"Pi" => 1 << 50,
        b"Ei" => 1 << 60,
        b"k" => 1_000,
        b"M" => 1_000_000,
        b"G" => 1_000_000_000,
        b"T" => 1_000_000_000_000,
        b"P" => 1_000_000_000_000_000,
        b"E" => 1_000_000_000_000_000_000,
        _ => return None,
    };
    let units = number(digits).checked_mul(factor)?;
    i64::try_from(units).ok()
}

/// Splits off the leading digits of a text, without leading zeros and up to a limit.
#[inline]
fn digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().take_while(|c| c.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(end)?;
    let leading_zero = matches!(digits, [b'0', _, ..]);
    ((1..=MOST_DIGITS).contains(&end) && !leading_zero).then_some((digits, rest))
}

/// Returns the number that the digits denote.
pub(crate) fn number(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use dra_attrs::{Quantity, QuantityFormat, Version};
    use proptest::prelude::*;

    use super::{number, units, version};

    #[test]
    fn what_is_plain() {
        assert_eq!(version("550.54.0").map(|parts| parts.map(number)), Some([550, 54, 0]));
        assert_eq!(units("40Gi"), Some(40 << 30));
        assert_eq!(units("8Ei"), None);
        assert_eq!(units("9E"), Some(9_000_000_000_000_000_000));
        for text in
            ["", "1", "1.2", "1.2.", "1.2.3.4", "1.2.03", "1.2.3-rc", "1.2.3+b", "v1.2.3", "1.2.1234567890123456789"]
        {
            assert_eq!(version(text), None, "{text}");
        }
        for text in ["", "-1", "+1", "1.5", "01", "1m", "1e3", " 1", "1i", "1Gi ", "1234567890123456789"] {
            assert_eq!(units(text), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn what_is_plain_is_what_the_parsers_say(
            text in "[0-9]{0,20}[.]?[0-9]{0,3}[.]?[0-9]{0,20}(|[-+]a)",
            quantity in "[-+ ]?[0-9]{0,20}[.]?[0-9]{0,2}(|[numkMGTPE]|[KMGTPE]i|e[0-9]| )",
        ) {
            if let Some(parts) = version(&text) {
                let parsed: Version = text.parse().unwrap();
                prop_assert_eq!([parsed.major(), parsed.minor(), parsed.patch()], parts.map(number));
                prop_assert_eq!(parsed.to_string(), text);
            }
            if let Some(units) = units(&quantity) {
                prop_assert_eq!(quantity.parse(), Ok(Quantity::from_units(units, QuantityFormat::DecimalSi)));
            }
        }
    }
}
