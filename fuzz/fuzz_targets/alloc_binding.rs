//! Plays any history of bindings that are open at once, with a server, a watch and answers that do as the bytes say: nothing panics,
//! no device is given twice, no bound pod is tried again or nominated, and each history ends.
#![no_main]
#![allow(dead_code, reason = "the model of the tests has more than a history needs")]

use libfuzzer_sys::fuzz_target;

#[path = "../../dra-alloc/tests/it/pods/api_server.rs"]
mod api_server;
#[path = "../../dra-alloc/tests/it/pods/binding_history.rs"]
mod binding_history;
#[path = "../../dra-alloc/tests/it/pods/cluster.rs"]
mod cluster;
#[path = "../../dra-alloc/tests/it/pods/world.rs"]
mod world;

mod oracle {
    pub mod random {
        /// Choices by bytes, in place of the random ones of the tests. After the last byte each one is the first.
        pub struct Random(std::vec::IntoIter<u8>);

        impl Random {
            pub fn of_bytes(bytes: &[u8]) -> Self {
                Self(Vec::from(bytes).into_iter())
            }

            pub fn is_empty(&self) -> bool {
                self.0.len() == 0
            }

            pub fn below(&mut self, end: usize) -> usize {
                usize::from(self.0.next().unwrap_or_default()) % end
            }

            pub fn percent(&mut self, percent: u32) -> bool {
                u32::from(self.0.next().unwrap_or_default()) % 100 < percent
            }
        }
    }
}

use binding_history::{History, Lateness};
use oracle::random::Random;

fuzz_target!(|bytes: &[u8]| {
    let random = &mut Random::of_bytes(bytes);
    let lateness = if random.percent(50) { Lateness::Unlimited } else { Lateness::Minute };
    let mut history = History::new(0, lateness);
    while !random.is_empty() {
        history.step(random);
    }
    history.end();
});
