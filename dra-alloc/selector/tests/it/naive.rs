//! Selectors beside a second, naive evaluator: the same values and the same errors.

use proptest::prelude::*;

use crate::evaluator as naive;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn typed_expressions_have_the_values_of_plain_recursion(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
        naive::compare(&bytes);
    }
}

#[test]
fn a_long_key_is_quoted_in_part() {
    // Joins lists to a text of a thousand characters, which is the key of no entry.
    let tail = [b'_'; 74];
    let bytes = [&b"j\xea_________________["[..], &tail[..], b"\xea"].concat();
    naive::compare(&bytes);
}
