//! Any text: no panic, and what was read prints a text that reads back as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nnn::amount::Amount;

fuzz_target!(|text: &str| {
    if let Ok(amount) = Amount::parse(text) {
        assert_eq!(Amount::parse(&amount.to_string()), Ok(amount));
        let _ = amount.plus(amount).minus(amount).permille_of(amount);
    }
});
