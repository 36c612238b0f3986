//! What jobs write down while they live.

use coord_harness::process_alive;

/// A sign of life.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Beat {
    /// The copy that runs it.
    pub(crate) name: String,
    pub(crate) token: u64,
    /// Which of its processes.
    pub(crate) tag: String,
    pub(crate) pid: u32,
    /// When: seconds since the boot of the machine, the same for all processes.
    pub(crate) at: f64,
}

pub(crate) fn parse(log: &str) -> Vec<Beat> {
    let beat = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [name, token, tag, pid, at] = fields[..] else {
            return None;
        };
        Some(Beat {
            name: name.to_owned(),
            token: token.parse().ok()?,
            tag: tag.to_owned(),
            pid: pid.parse().ok()?,
            at: at.parse().ok()?,
        })
    };
    log.lines().filter_map(beat).collect()
}

/// The machine's clock now, as jobs read it.
pub(crate) fn now() -> f64 {
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    uptime.split(' ').next().unwrap().parse().unwrap()
}

/// What is wrong: a process of an older leader that lived when one of a newer did.
pub(crate) fn overlaps(beats: &[Beat]) -> Vec<String> {
    let mut tokens: Vec<u64> = beats.iter().map(|beat| beat.token).collect();
    tokens.sort_unstable();
    tokens.dedup();
    let mut wrong = vec![];
    for pair in tokens.windows(2) {
        let of = |token| beats.iter().filter(move |beat| beat.token == token);
        let last = of(pair[0]).map(|beat| beat.at).fold(f64::MIN, f64::max);
        let first = of(pair[1]).map(|beat| beat.at).fold(f64::MAX, f64::min);
        if last > first {
            wrong.push(format!(
                "token {} lived at {last}, and {} began at {first}",
                pair[0], pair[1]
            ));
        }
    }
    wrong
}

/// Fails if an older leader's job lived beside a newer one's.
pub(crate) fn assert_one_at_a_time(beats: &[Beat]) {
    let wrong = overlaps(beats);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Fails if a process that wrote something still lives.
pub(crate) fn assert_all_gone(beats: &[Beat]) {
    let mut alive: Vec<_> = beats.iter().filter(|beat| process_alive(beat.pid)).collect();
    alive.dedup_by_key(|beat| beat.pid);
    assert!(alive.is_empty(), "{alive:#?}");
}

#[test]
fn overlaps_are_found() {
    let log = "a 5 main 1 10.00\nb 9 main 2 10.02\nnonsense\na 5 near 3 10.01\nc 11 main 4 10.02\n";
    assert_eq!(overlaps(&parse(log)), [""; 0]);
    assert_eq!(overlaps(&parse(&format!("{log}a 5 far 3 10.03\n"))).len(), 1);
}
