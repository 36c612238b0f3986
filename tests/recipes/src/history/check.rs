use std::collections::BTreeMap;
use std::time::Duration;

use super::{Line, What};

/// One leadership, as its holder saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// Who led.
    pub who: String,
    /// Under which token.
    pub token: u64,
    /// When it was granted.
    pub from: Duration,
    /// Until when it counted on it: given back, or the end of what it knew to be valid.
    pub until: Duration,
}

/// The leaderships in the order in which they were granted.
pub fn intervals(lines: &[Line]) -> Vec<Interval> {
    let mut found: BTreeMap<(&str, u64), Interval> = BTreeMap::new();
    for line in lines {
        match line.what {
            What::Elected { token } => {
                let interval = Interval {
                    who: line.who.clone(),
                    token,
                    from: line.at,
                    until: line.at,
                };
                found.insert((&line.who, token), interval);
            }
            What::Valid { token, until } => {
                if let Some(interval) = found.get_mut(&(line.who.as_str(), token)) {
                    // The latest word counts: a clock that jumped ahead has brought the end nearer.
                    interval.until = until;
                }
            }
            // Given back before its time; one that was lost counted on it for as long as it had known.
            What::Ended {
                token,
                given_back: true,
            } => {
                if let Some(interval) = found.get_mut(&(line.who.as_str(), token)) {
                    // Written down late if the process was stopped just then: no longer than it knew.
                    interval.until = interval.until.min(line.at);
                }
            }
            _ => {}
        }
    }
    let mut intervals: Vec<_> = found.into_values().collect();
    intervals.sort_by_key(|interval| interval.from);
    intervals
}

/// What is wrong with a history: two valid at once, or a token that does not rise. Moments of one common clock.
pub fn check(lines: &[Line]) -> Vec<String> {
    let intervals = intervals(lines);
    let mut wrong = vec![];
    for (i, later) in intervals.iter().enumerate() {
        for earlier in &intervals[..i] {
            if earlier.until > later.from {
                wrong.push(format!("both valid: {earlier:?} and {later:?}"));
            }
            if earlier.token >= later.token {
                wrong.push(format!("no rising token: {earlier:?} and {later:?}"));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at: u64, who: &str, what: What) -> Line {
        Line {
            at: Duration::from_millis(at),
            who: who.to_owned(),
            what,
        }
    }

    fn led(who: &str, token: u64, from: u64, until: u64) -> Vec<Line> {
        let until = Duration::from_millis(until);
        vec![
            line(from, who, What::Elected { token }),
            line(from + 1, who, What::Valid { token, until }),
        ]
    }

    #[test]
    fn one_after_the_other_is_right_and_overlaps_are_found() {
        assert!(check(&[led("a", 1, 0, 10), led("b", 2, 10, 20)].concat()).is_empty());
        assert_eq!(check(&[led("a", 1, 0, 11), led("b", 2, 10, 20)].concat()).len(), 1);
    }

    #[test]
    fn what_was_given_back_ends_there() {
        let ended = line(
            5,
            "a",
            What::Ended {
                token: 1,
                given_back: true,
            },
        );
        assert!(check(&[led("a", 1, 0, 99), vec![ended], led("b", 2, 6, 20)].concat()).is_empty());
        let lost = line(
            5,
            "a",
            What::Ended {
                token: 1,
                given_back: false,
            },
        );
        assert!(!check(&[led("a", 1, 0, 99), vec![lost], led("b", 2, 6, 20)].concat()).is_empty());
    }

    #[test]
    fn a_clock_that_jumped_ahead_brings_the_end_nearer() {
        let until = Duration::from_millis(4);
        let nearer = line(3, "a", What::Valid { token: 1, until });
        assert!(check(&[led("a", 1, 0, 99), vec![nearer], led("b", 2, 5, 20)].concat()).is_empty());
    }

    #[test]
    fn tokens_must_rise() {
        assert_eq!(check(&[led("a", 2, 0, 10), led("b", 2, 10, 20)].concat()).len(), 1);
    }
}
