//! Numbers from a seed: the same on every machine and in every release.

/// SplitMix64, which is small, fast and good enough to choose what is changed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The numbers of one target: neither the other targets nor their order change them.
    pub(crate) fn new(seed: u64, target: &str) -> Self {
        let state = target.bytes().fold(seed, |state, byte| {
            state.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte)
        });
        let mut random = Self(state);
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, or 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// One of the choices, of which there is at least one.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}
