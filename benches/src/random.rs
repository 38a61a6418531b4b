//! Numbers that look random and are the same in each run: splitmix64.

/// Generator, by its state.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next number of 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap_or_default()
    }
}
