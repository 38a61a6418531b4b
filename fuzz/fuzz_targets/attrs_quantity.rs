//! Quantities, one per line: printing keeps the value, and the arithmetic of any two does not panic.
#![no_main]

use dra_attrs::Quantity;
use libfuzzer_sys::fuzz_target;

fn printed_and_read(quantity: Quantity) -> Quantity {
    let again = quantity.to_string().parse().expect("what is printed can be read");
    assert_eq!(quantity, again);
    again
}

fuzz_target!(|text: &str| {
    let quantities: Vec<Quantity> = text.lines().filter_map(|line| line.parse().ok()).take(8).collect();
    for &left in &quantities {
        // A binary quantity without a binary factor prints without a suffix and is decimal from then on, as upstream;
        // so the text settles after one round.
        let settled = printed_and_read(left);
        assert_eq!(printed_and_read(settled).to_string(), settled.to_string());
        for &right in &quantities {
            let difference = left.checked_sub(right);
            assert!(difference.is_none_or(|difference| difference.checked_add(right) == Some(left)));
            let results = [left.checked_add(right), difference, left.checked_mul(right.nanos() as i64)];
            results.into_iter().flatten().for_each(|result| drop(result.to_kube()));
        }
    }
});
