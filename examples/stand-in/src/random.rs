//! Random numbers from a seed: ids, generated names, misbehaviour.

/// Generator (`SplitMix64`). The same seed gives the same numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

/// Letters of generated names, as in Kubernetes: no vowels, nothing that looks like something else.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Longest beginning of a generated name.
const LONGEST_BASE: usize = 58;

impl Random {
    /// Creates a generator.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub(crate) const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `limit`; 0 for a limit of 0.
    pub(crate) const fn below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.draw() % limit }
    }

    /// Returns a UID (version 4).
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.draw(), self.draw());
        let version = (high & 0x0fff) | 0x4000;
        let variant = ((low >> 48) & 0x3fff) | 0x8000;
        format!(
            "{:08x}-{:04x}-{version:04x}-{variant:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            low & 0xffff_ffff_ffff
        )
    }

    /// Returns a name that begins with `base`.
    pub(crate) fn name(&mut self, base: &str) -> String {
        let cut = base.char_indices().map(|(at, _)| at).take_while(|at| *at < LONGEST_BASE).count();
        let mut name: String = base.chars().take(cut).collect();
        for _ in 0..5 {
            let index = usize::try_from(self.below(LETTERS.len() as u64)).unwrap_or_default();
            name.push(LETTERS.get(index).copied().map_or('x', char::from));
        }
        name
    }
}
