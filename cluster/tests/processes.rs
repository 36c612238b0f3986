//! Real processes over loopback: this test binary starts itself once per node.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Instant;

use coord_cluster::{Address, ClusterNode, DowningAfterStable, Secret, Start};
use tokio::io::AsyncBufReadExt;

use common::{DEADLINE, quick_settings};

const CONTACTS: &str = "COORD_CLUSTER_TEST_CONTACTS";

/// The child: a node that prints its view whenever it changes and leaves when told so, or when its parent is gone.
#[test]
fn node_process() {
    let Ok(contacts) = std::env::var(CONTACTS) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let contacts: Vec<Address> = contacts
            .split_whitespace()
            .map(|contact| contact.parse().unwrap())
            .collect();
        let mut settings = quick_settings(Start::with_contacts(contacts));
        settings.secret = Some(Secret::new("processes"));
        settings.downing = Box::new(DowningAfterStable::new(std::time::Duration::from_secs(1)));
        let node = ClusterNode::start(settings).await.unwrap();
        println!("\nlisten {}", node.local_addr());
        let mut view = node.watch();
        let mut commands = tokio::io::BufReader::new(tokio::io::stdin()).lines();
        loop {
            {
                let view = view.borrow_and_update();
                let leader = view
                    .leader
                    .as_ref()
                    .map_or("-".into(), |leader| leader.address.to_string());
                println!(
                    "view {} {} {leader} {}",
                    view.up().count(),
                    view.members.len(),
                    view.converged
                );
            }
            tokio::select! {
                changed = view.changed() => changed.unwrap(),
                command = commands.next_line() => {
                    if let Ok(Some(_)) = command {
                        println!("left {}", node.leave(DEADLINE).await.unwrap().graceful);
                    }
                    return;
                }
            }
        }
    });
}

struct Process {
    child: Child,
    commands: ChildStdin,
    lines: mpsc::Receiver<String>,
    address: String,
}

impl Process {
    fn start(contacts: &[&str]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "node_process", "--nocapture"])
            .env(CONTACTS, contacts.join(" "))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let commands = child.stdin.take().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut process = Self {
            child,
            commands,
            lines,
            address: String::new(),
        };
        process.address = process.wait_for(|line| line.strip_prefix("listen ").map(str::to_owned));
        process
    }

    fn wait_for<T>(&self, wanted: impl Fn(&str) -> Option<T>) -> T {
        let end = Instant::now() + DEADLINE;
        let mut last = String::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => match wanted(&line) {
                    Some(found) => return found,
                    None => last = line,
                },
                Err(error) => panic!("{}: {error}; the last line was: {last}", self.address),
            }
        }
    }

    /// Waits for a converged view with exactly `count` members, all up; gives its leader.
    fn wait_for_up(&self, count: usize) -> String {
        let prefix = format!("view {count} {count} ");
        self.wait_for(|line| line.strip_prefix(&prefix)?.strip_suffix(" true").map(str::to_owned))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn processes_form_a_cluster_lose_one_to_a_kill_and_let_one_leave() {
    let founder = Process::start(&[]);
    let mut others: Vec<Process> = (0..4)
        .map(|_| Process::start(&["127.0.0.1:1", &founder.address]))
        .collect();
    let leader = founder.wait_for_up(5);
    for process in &others {
        assert_eq!(process.wait_for_up(5), leader);
    }

    let mut killed = others.pop().unwrap();
    killed.child.kill().unwrap();
    for process in others.iter().chain([&founder]) {
        process.wait_for_up(4);
    }

    let mut leaver = others.pop().unwrap();
    writeln!(leaver.commands, "leave").unwrap();
    assert_eq!(
        leaver.wait_for(|line| line.strip_prefix("left ").map(str::to_owned)),
        "true"
    );
    for process in others.iter().chain([&founder]) {
        process.wait_for_up(3);
    }
}
