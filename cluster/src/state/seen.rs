use serde::{Deserialize, Serialize};

/// Which members have seen a state: one bit per member in their sorted order, which is the same for all holders of
/// that state. A thousand nodes fit in 125 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SeenSet {
    words: Vec<u64>,
}

impl SeenSet {
    /// A set in which nobody has seen anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the member at `index`.
    pub fn insert(&mut self, index: usize) {
        let word = index / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (index % 64);
    }

    /// Whether the member at `index` is in the set.
    pub fn contains(&self, index: usize) -> bool {
        self.words
            .get(index / 64)
            .is_some_and(|word| word & (1 << (index % 64)) != 0)
    }

    /// Adds all of `other` below `limit` members; says whether any was new.
    pub fn union(&mut self, other: &Self, limit: usize) -> bool {
        let words = other.words.len().min(limit.div_ceil(64));
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
        let mut grew = false;
        for (own, theirs) in self.words.iter_mut().zip(&other.words) {
            grew |= theirs & !*own != 0;
            *own |= theirs;
        }
        grew
    }

    /// Whether every member of `other` is in this set.
    pub fn covers(&self, other: &Self) -> bool {
        other
            .words
            .iter()
            .enumerate()
            .all(|(i, theirs)| theirs & !self.words.get(i).copied().unwrap_or(0) == 0)
    }

    /// How many members of `among` are not in this set.
    pub fn missing(&self, among: &Self) -> usize {
        let missing = |(i, word): (usize, &u64)| (word & !self.words.get(i).copied().unwrap_or(0)).count_ones();
        among
            .words
            .iter()
            .enumerate()
            .map(|entry| missing(entry) as usize)
            .sum()
    }

    /// The `nth` member of `among` that is not in this set.
    pub fn nth_missing(&self, among: &Self, nth: usize) -> Option<usize> {
        let mut left = nth;
        for (i, word) in among.words.iter().enumerate() {
            let mut absent = word & !self.words.get(i).copied().unwrap_or(0);
            let here = absent.count_ones() as usize;
            if left >= here {
                left -= here;
                continue;
            }
            for _ in 0..left {
                absent &= absent - 1;
            }
            return Some(i * 64 + absent.trailing_zeros() as usize);
        }
        None
    }
}
