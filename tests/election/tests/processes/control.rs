use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use coord_api::{Coordinator, Key, Target, Task, Watch, WatchEvent};
use coord_election_tests::Store;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::cast::{LONG, TTL};
use crate::theatre::Theatre;

/// A lease that is taken at the very moment at which a leader falls silent, by a process that is killed at once: when it
/// ends is the store's doing, and the machine's, and no recipe has a part in it.
pub(crate) struct Control {
    client: Arc<dyn Coordinator>,
    process: Child,
    output: Lines<BufReader<ChildStdout>>,
    watch: Watch,
}

impl Control {
    /// Waits until it has nothing more to do than to take its lease.
    pub(crate) async fn ready(theatre: &Theatre, store: Store, client: &Arc<dyn Coordinator>) -> Control {
        let name = format!("/control/{:x}", client.env().random_u64());
        let key = Key::new(&name).expect("a key");
        let mut watch = client.watch(&Target::Key(key)).await.expect("a watch");
        let nothing = watch.next().await.expect("the state").expect("the state");
        assert_eq!(nothing, WatchEvent::State(vec![]));
        let mut process = Command::new(env!("CARGO_BIN_EXE_control"))
            .args([store.name(), &theatre.address().to_string(), &name])
            .arg(TTL.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the control starts");
        let output = process.stdout.take().expect("it is piped");
        let mut control = Control {
            client: client.clone(),
            process,
            output: BufReader::new(output).lines(),
            watch,
        };
        assert_eq!(control.line().await, "ready");
        control
    }

    /// Has it take its lease now. The task tells in the end how long after its ttl and the driver's slack the lease has
    /// ended; zero if in time.
    pub(crate) fn begin(mut self) -> Task<Duration> {
        drop(self.process.stdin.take());
        let env = self.client.env().clone();
        env.spawn(self.lateness())
    }

    async fn lateness(mut self) -> Duration {
        let answered = Duration::from_nanos(self.line().await.parse().expect("a moment"));
        self.process.kill().await.expect("it is ours");
        timeout(LONG, self.gone()).await.expect("its lease ends");
        let now = self.client.env().now().since_start();
        now.saturating_sub(answered + TTL + self.client.capabilities().expiry_slack)
    }

    /// Waits until the entry has been there and is gone.
    async fn gone(&mut self) {
        let mut made = false;
        while let Some(event) = self.watch.next().await {
            match event.expect("the watch goes on") {
                WatchEvent::Put(_) => made = true,
                WatchEvent::Delete { .. } => return,
                WatchEvent::State(entries) | WatchEvent::Resync(entries) if entries.is_empty() && made => return,
                WatchEvent::State(entries) | WatchEvent::Resync(entries) => made |= !entries.is_empty(),
            }
        }
        panic!("the watch ended");
    }

    async fn line(&mut self) -> String {
        let line = timeout(LONG, self.output.next_line()).await.expect("in time");
        line.expect("a line").expect("it goes on")
    }
}
