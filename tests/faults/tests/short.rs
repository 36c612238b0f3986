//! Three short schedules for each store. `make faults` runs many, and longer ones.

use std::time::Duration;

use coord_faults::client::Store;
use coord_faults::{RunOptions, Summary, run, timeline};

const LENGTH: Duration = Duration::from_secs(20);

async fn is_right(store: Store, seed: u64) {
    let options = RunOptions::new(store, seed, LENGTH, env!("CARGO_BIN_EXE_faults").into());
    let ran = run(&options).await.expect("servers and clients work");
    let (lines, summary) = (&ran.lines, Summary::of(seed, &ran.lines, ran.verdicts.clone()));
    eprintln!("{} {summary}", store.name());
    assert!(
        summary.rate >= 100.0,
        "{} calls a second before the first fault",
        summary.rate
    );
    let picture = timeline("a run", lines);
    assert!(picture.contains("leader, cas") && picture.contains("calls a second"));
    if !summary.is_right() {
        let name = store.name();
        let out = std::env::temp_dir().join(format!("coord-faults-{name}-{seed}.jsonl"));
        coord_faults::history::save(&out, lines).expect("the history is kept");
        for verdict in &summary.verdicts {
            for violation in &verdict.violations {
                eprintln!("{}: {violation}", verdict.checker);
            }
        }
        panic!(
            "violations; the history is {}; replay: {}",
            out.display(),
            options.replay()
        );
    }
}

macro_rules! schedules {
    ($($name:ident: $store:ident $seed:literal;)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            is_right(Store::$store, $seed).await;
        })*
    };
}

schedules! {
    etcd_first: Etcd 101;
    etcd_second: Etcd 102;
    etcd_third: Etcd 103;
    zookeeper_first: ZooKeeper 101;
    zookeeper_second: ZooKeeper 102;
    zookeeper_third: ZooKeeper 103;
}
