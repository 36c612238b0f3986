use std::sync::Arc;

use coord_api::{Coordinator, Entry, InvalidKey, Key, Target, Task, WatchEvent};

use super::recorder::{Recorder, held};
use super::{CHAINED, KEYS};
use crate::history::{Seen, What};

/// A watch on each chained key, and one on all of them.
pub(super) fn start(coordinator: &Arc<dyn Coordinator>, recorder: &Recorder) -> Result<Vec<Task>, InvalidKey> {
    let parent = Key::new(CHAINED)?;
    let mut targets = vec![Target::Children(parent.clone())];
    for n in 0..KEYS {
        targets.push(Target::Key(parent.child(format!("k{n}"))?));
    }
    let follow = |target| follow(coordinator.clone(), recorder.clone(), target);
    let env = coordinator.env();
    Ok(targets.into_iter().map(|target| env.spawn(follow(target))).collect())
}

/// Follows until the coordinator is closed. It ends for no other reason; if it did, another one begins.
async fn follow(coordinator: Arc<dyn Coordinator>, recorder: Recorder, target: Target) {
    loop {
        let number = recorder.number();
        let mut watch = match coordinator.watch(&target).await {
            Ok(watch) => watch,
            Err(error) if error.is_closed() => return,
            Err(error) => {
                recorder.note(format!("watch {number}: {error}"));
                continue;
            }
        };
        let (name, children) = match &target {
            Target::Key(key) => (key.to_string(), false),
            Target::Children(key) => (key.to_string(), true),
        };
        recorder.say(What::Watching {
            watch: number,
            target: name,
            children,
        });
        loop {
            match watch.next().await {
                Some(Ok(event)) => recorder.say(told(number, &target, event)),
                Some(Err(error)) if error.is_closed() => return,
                Some(Err(error)) => recorder.note(format!("watch {number}: {error}")),
                None => break,
            }
        }
    }
}

fn told(watch: u64, target: &Target, event: WatchEvent) -> What {
    let there = |entry: &Entry| Seen {
        key: entry.key.to_string(),
        created: entry.created,
        held: Some(held(entry)),
    };
    let (whole, seen) = match event {
        WatchEvent::State(entries) | WatchEvent::Resync(entries) => {
            let mut seen: Vec<Seen> = entries.iter().map(there).collect();
            if let (true, Target::Key(key)) = (seen.is_empty(), target) {
                seen.push(Seen {
                    key: key.to_string(),
                    created: 0,
                    held: None,
                });
            }
            (true, seen)
        }
        WatchEvent::Put(entry) => (false, vec![there(&entry)]),
        WatchEvent::Delete { key, created } => {
            let gone = Seen {
                key: key.to_string(),
                created,
                held: None,
            };
            (false, vec![gone])
        }
    };
    What::Seen { watch, whole, seen }
}
