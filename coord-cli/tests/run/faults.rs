//! What happens to the copy that runs, and to its way to the store.

use std::sync::Arc;

use coord_harness::{eventually, process_alive};
use rustix::process::{Pid, Signal, kill_process};

use crate::beats::{assert_all_gone, assert_one_at_a_time, now};
use crate::scenes;
use crate::stage::{LONG, SHORT, Server, Stage, whose};

scenes![
    killed_with_9_it_leaves_nothing_that_runs,
    the_whole_tree_is_gone_within_the_ttl_when_the_store_is_a_black_hole,
    a_copy_that_is_stopped_past_the_ttl_runs_nothing,
    a_killed_guardian_takes_the_job_along,
    a_stopped_guardian_does_not_keep_the_job_alive,
];

/// ZooKeeper has no command that ends another's session.
pub(crate) const OF_ETCD: &[crate::stage::Scene] = &[("a_revoked_lease_kills_at_once", |stage| {
    Box::pin(a_revoked_lease_kills_at_once(stage))
})];

/// Nothing of it listens to SIGTERM, and one process has left group and session.
const STUBBORN: &str = r#"trap "" TERM
setsid sh -c "$BEAT" beat far & sh -c "$BEAT" beat near & sh -c "$BEAT" beat main"#;

const TTL: f64 = 3.0;
/// Long before the lease of ten seconds makes it stop, in seconds.
pub(crate) const SOON: f64 = 2.5;

async fn the_whole_tree_is_gone_within_the_ttl_when_the_store_is_a_black_hole(stage: Arc<Stage>) {
    let (job, way) = (stage.job("hole"), stage.way().await);
    let cut_off = job.copy_via(Some(&way), "a", &SHORT, STUBBORN);
    let first = job.runs(0).await;
    let other = job.copy("b", &SHORT, STUBBORN);
    job.in_line(2).await;
    way.black_hole();
    let from = now();
    let second = job.runs(first.token).await;
    assert_eq!(second.name, "b");
    let beats = job.beats();
    assert_one_at_a_time(&beats);
    let old: Vec<_> = beats.into_iter().filter(|beat| beat.token == first.token).collect();
    let last = old.iter().map(|beat| beat.at).fold(0.0, f64::max);
    // The last renewal cannot have been sent after that moment.
    assert!(last < from + TTL, "it lived {} s without a renewal", last - from);
    assert_all_gone(&old);
    eprintln!(
        "black hole: job gone after {:.2} s, next one after {:.2} s",
        last - from,
        second.at - from
    );
    // When the store is back, it waits for its turn again.
    way.pass();
    job.in_line(2).await;
    cut_off.signal(Signal::KILL);
    other.signal(Signal::KILL);
}

async fn killed_with_9_it_leaves_nothing_that_runs(stage: Arc<Stage>) {
    let job = stage.job("nine");
    // With the long lease: what is gone soon is not gone by its deadline.
    let mut copy = job.copy("a", &[], STUBBORN);
    job.runs(0).await;
    copy.signal(Signal::KILL);
    copy.code().await;
    let from = now();
    eventually(LONG, "the end of all of it", || {
        let alive = job.beats().iter().any(|beat| process_alive(beat.pid));
        async move { !alive }
    })
    .await;
    assert!(now() < from + SOON, "its processes lived for {} s more", now() - from);
}

async fn a_copy_that_is_stopped_past_the_ttl_runs_nothing(stage: Arc<Stage>) {
    let job = stage.job("stopped");
    let mut copies = vec![job.copy("a", &SHORT, STUBBORN)];
    let first = job.runs(0).await;
    copies.push(job.copy("b", &SHORT, STUBBORN));
    job.in_line(2).await;
    copies[0].signal(Signal::STOP);
    let second = job.runs(first.token).await;
    assert_eq!(second.name, "b");
    let old: Vec<_> = job
        .beats()
        .into_iter()
        .filter(|beat| beat.token == first.token)
        .collect();
    // It stands still, and its job is gone nevertheless.
    assert_all_gone(&old);
    assert_one_at_a_time(&job.beats());
    copies[0].signal(Signal::CONT);
    job.in_line(2).await;
    let leader = whose(&mut copies, &second);
    leader.signal(Signal::KILL);
    leader.code().await;
    let third = job.runs(second.token).await;
    assert_eq!(third.name, "a", "it waited for its turn again");
    assert_one_at_a_time(&job.beats());
    copies[0].signal(Signal::KILL);
}

/// The guardian of this copy.
async fn guardian(copy: Pid) -> Pid {
    let found = eventually(LONG, "a guardian", || async move {
        let children = std::fs::read_dir("/proc").ok()?;
        children
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
            .find(|pid| {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                let name = stat.contains("(job-guardian)");
                let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
                name && parent.and_then(|pid| pid.parse().ok()) == Some(copy.as_raw_nonzero().get())
            })
    });
    Pid::from_raw(found.await).unwrap()
}

async fn a_killed_guardian_takes_the_job_along(stage: Arc<Stage>) {
    let job = stage.job("unguarded");
    let mut copy = job.copy("a", &[], STUBBORN);
    job.runs(0).await;
    kill_process(guardian(copy.pid()).await, Signal::KILL).unwrap();
    assert_eq!(copy.code().await, Some(137));
    assert_all_gone(&job.beats());
}

async fn a_stopped_guardian_does_not_keep_the_job_alive(stage: Arc<Stage>) {
    let (job, way) = (stage.job("frozen"), stage.way().await);
    let copy = job.copy_via(Some(&way), "a", &SHORT, r#"trap "" TERM; exec sh -c "$BEAT" beat main"#);
    let first = job.runs(0).await;
    let guardian = guardian(copy.pid()).await;
    kill_process(guardian, Signal::STOP).unwrap();
    way.black_hole();
    let from = now();
    eventually(LONG, "the job's end", || async move { !process_alive(first.pid) }).await;
    let last = job.beats().iter().map(|beat| beat.at).fold(0.0, f64::max);
    assert!(last < from + TTL, "it lived {} s without a renewal", last - from);
    kill_process(guardian, Signal::KILL).unwrap();
    copy.signal(Signal::KILL);
}

async fn a_revoked_lease_kills_at_once(stage: Arc<Stage>) {
    let Server::Etcd(etcd) = &stage.server else {
        panic!("a scene of etcd's");
    };
    let job = stage.job("revoked");
    let mut copy = job.copy("a", &["--no-recontend"], STUBBORN);
    let first = job.runs(0).await;
    let client = stage.client();
    let candidates = coordkit::Key::new(format!("/jobs/{}/candidates", job.name)).unwrap();
    let entry = client.children(&candidates).await.unwrap().remove(0);
    client.close().await.unwrap();
    let lease = entry.lease.expect("it has one").to_string();
    let from = now();
    etcd.etcdctl(&["lease", "revoke", &lease]).await;
    assert_eq!(copy.code().await, Some(76));
    let last = job.beats().iter().map(|beat| beat.at).fold(0.0, f64::max);
    // The default grace would be 3.3 s.
    assert!(last < from + 2.0, "it lived {} s after its lease", last - from);
    assert!(!process_alive(first.pid));
    assert_all_gone(&job.beats());
}
