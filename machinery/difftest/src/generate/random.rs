//! Numbers from a seed: the same on every machine and in every release.

/// No object has more mistakes to choose from.
const MISTAKES: usize = 8;

/// SplitMix64, which is small, fast and good enough to choose test cases.
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: u64,
    /// Makes no mistakes on purpose.
    pub(super) careful: bool,
    /// Has made one in this object: of two the real server reports either, as a hash map has it.
    pub(super) mistaken: bool,
}

impl Random {
    /// The stream of one script: neither the number of scripts nor their order changes it.
    pub(super) fn new(seed: u64, script: u64) -> Random {
        let mut random = Random {
            state: seed ^ script.wrapping_mul(0xd134_2543_de82_ef95),
            careful: false,
            mistaken: false,
        };
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is small.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// Which mistake to make, out of `bound` draws of which most are none; none after the first of an object.
    pub(super) fn mistake(&mut self, bound: usize) -> usize {
        let drawn = self.below(bound);
        if self.careful || self.mistaken {
            return usize::MAX;
        }
        self.mistaken = drawn < MISTAKES;
        drawn
    }

    /// True once in `n` times.
    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of the choices.
    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Some of the choices, in order.
    pub(super) fn some<T: Copy>(&mut self, choices: &[T]) -> Vec<T> {
        choices.iter().copied().filter(|_| self.one_in(2)).collect()
    }
}
