//! The example in each command's help works.

use rustix::process::Signal;

use crate::store::Store;
use crate::support::{Running, command, finish};

/// The commands that a help lists.
async fn commands(of: &[&str]) -> Vec<String> {
    let help = finish(command(&[of, &["--help"]].concat())).await.ok();
    let lines = help
        .stdout
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1);
    lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !matches!(*name, "" | "help"))
        .map(str::to_owned)
        .collect()
}

/// The command lines in a command's help.
async fn examples(of: &[&str]) -> Vec<String> {
    let help = finish(command(&[of, &["--help"]].concat())).await.ok();
    let lines = help.stdout.lines().map(str::trim);
    lines
        .filter_map(|line| line.strip_prefix("coord "))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn the_examples_of_the_helps_work() {
    let store = Store::etcd().await;
    let url = store.url();
    let mut somebody = Running::start(&url, &["register", "web", "somebody", "h:1"]);
    somebody.event(0, "registered").await;
    let mut seen = 0;
    for name in commands(&[]).await {
        // Those of others have tests of their own; conformance takes long, and has one, too.
        if !OURS.contains(&name.as_str()) {
            continue;
        }
        let nested = commands(&[&name]).await;
        let examples = match nested.as_slice() {
            [] => examples(&[&name]).await,
            nested => {
                let mut all = Vec::new();
                for inner in nested {
                    all.extend(examples(&[&name, inner]).await);
                }
                all
            }
        };
        assert!(!examples.is_empty(), "{name} has no example");
        for example in examples {
            seen += 1;
            try_out(&example, &url).await;
        }
    }
    assert!(seen >= OURS.len(), "{seen}");
    somebody.terminate().await;
}

/// In the order of `coord help`: what one creates, the next one finds.
const OURS: [&str; 13] = [
    "elect",
    "observe",
    "register",
    "services",
    "create",
    "get",
    "update",
    "list",
    "watch",
    "delete",
    "check",
    "bench",
    "completions",
];

async fn try_out(example: &str, url: &str) {
    let example = example.replace("etcd://localhost:2379", url);
    let example = example
        .split_once(" > ")
        .map_or(example.as_str(), |(command, _)| command);
    let words: Vec<&str> = example.split(' ').collect();
    let goes_on = matches!(words[0], "elect" | "observe" | "register" | "watch") || words.contains(&"--watch");
    if goes_on {
        let mut running = Running::spawn(command(&words));
        running.first_line().await;
        running.signal(Signal::TERM);
        assert_eq!(running.ended().await.code(), Some(0), "{example}: {}", running.stderr());
        return;
    }
    let done = finish(command(&words)).await;
    // Nobody knows the version that the store will give.
    let expected = if words.contains(&"--version") { 1 } else { 0 };
    assert_eq!(done.code, Some(expected), "{example}: {done:?}");
}
