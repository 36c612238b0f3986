use std::collections::BTreeMap;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal};

/// A process below us, as /proc shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    zombie: bool,
    /// Together with the number this is one process, also when the number is given to another later.
    started: u64,
}

/// What came of signalling everything below us.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// How many got it.
    pub(super) reached: usize,
    /// How many we may not signal: they run as another user.
    pub(super) refused: usize,
}

/// Signals every process below this one, however deep, in whatever group or session.
pub(super) fn signal_all(signal: Signal) -> Sent {
    let mut sent = Sent::default();
    for process in below(&processes(), getpid().as_raw_nonzero().get()) {
        match send(process, signal) {
            Ok(()) => sent.reached += 1,
            Err(Errno::PERM) => sent.refused += 1,
            // It has ended meanwhile.
            Err(_) => {}
        }
    }
    sent
}

/// To this very process, not to another that has got its number since.
fn send(process: Process, signal: Signal) -> Result<(), Errno> {
    let pid = Pid::from_raw(process.pid).ok_or(Errno::SRCH)?;
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => match read(process.pid) {
            Some(now) if now.started == process.started => pidfd_send_signal(&handle, signal),
            _ => Err(Errno::SRCH),
        },
        // A kernel older than 5.3.
        Err(Errno::NOSYS) => kill_process(pid, signal),
        Err(error) => Err(error),
    }
}

fn processes() -> Vec<Process> {
    let Ok(folder) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    folder
        .filter_map(|entry| read(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .collect()
}

fn read(pid: i32) -> Option<Process> {
    parse(pid, &std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(pid: i32, stat: &str) -> Option<Process> {
    // The command's name before it is in brackets and may itself hold brackets and spaces.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    Some(Process {
        pid,
        parent,
        zombie,
        started: fields.nth(17)?.parse().ok()?,
    })
}

/// Those below `root`, zombies left out.
fn below(all: &[Process], root: i32) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            next.push(process.pid);
            if !process.zombie {
                found.push(process);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process {
            pid,
            parent,
            zombie: false,
            started: 1,
        }
    }

    #[test]
    fn everything_below_is_found_whatever_lies_between() {
        let zombie = Process {
            zombie: true,
            ..process(3, 2)
        };
        let all = [
            process(1, 0),
            process(2, 1),
            zombie,
            process(4, 3),
            process(5, 1),
            process(6, 5),
        ];
        let mut pids: Vec<_> = below(&all, 2).iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [4]);
        assert_eq!(below(&all, 1).len(), 4);
    }

    #[test]
    fn a_name_with_brackets_and_spaces_confuses_nobody() {
        let stat = "7 (a) R 1 (b) c) S 5 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 0 0";
        let found = parse(7, stat).unwrap();
        assert_eq!((found.parent, found.started, found.zombie), (5, 4711, false));
        assert_eq!(parse(7, "nonsense"), None);
    }

    #[test]
    fn our_own_child_is_found() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let found = below(&processes(), getpid().as_raw_nonzero().get());
        let id = i32::try_from(child.id()).unwrap();
        let child_seen = found.into_iter().find(|process| process.pid == id).unwrap();
        send(child_seen, Signal::KILL).unwrap();
        assert!(!child.wait().unwrap().success());
        assert_eq!(send(child_seen, Signal::KILL), Err(Errno::SRCH));
    }
}
